//! The built-in collection, and collections in folders.

use std::path::Path;
use std::{fs, io};

/// A scenario file that was not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixture {
    /// Its path: in the repository if built in.
    pub file: String,
    /// Its text.
    pub text: String,
}

impl Fixture {
    /// The file's name without its ending: by rule the scenario's id.
    pub fn stem(&self) -> &str {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        name.strip_suffix(".toml").unwrap_or(name)
    }
}

const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/corpus.rs"));

/// The built-in scenarios, ordered by path.
pub fn corpus() -> Vec<Fixture> {
    let own = |(file, text): &(&str, &str)| Fixture { file: (*file).into(), text: (*text).into() };
    BUILT_IN.iter().map(own).collect()
}

/// The scenarios in a folder and below, ordered by path.
pub fn load(folder: &Path) -> io::Result<Vec<Fixture>> {
    let mut fixtures = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let file = path.to_string_lossy().into_owned();
                fixtures.push(Fixture { file, text: fs::read_to_string(&path)? });
            }
        }
    }
    fixtures.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(fixtures)
}
