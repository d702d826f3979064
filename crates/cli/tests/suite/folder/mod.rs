//! A folder of a test's own, empty, which goes with the test however it ends.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// See the module's text.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The name is one of this process's tests'.
    pub(crate) fn new(name: &str) -> Folder {
        let folder = env::temp_dir().join(format!("asx-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_goes_with_its_test() {
    let folder = Folder::new("folder-itself");
    let (path, file) = (folder.to_path_buf(), folder.join("file"));
    fs::write(file, "text").expect("written");
    assert!(path.is_dir());
    drop(folder);
    assert!(!path.exists());
}
