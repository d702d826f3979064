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

/// The text of a file; an error says which, and where it is no text.
pub fn read(path: &Path) -> io::Result<String> {
    let wrong = |kind, what: &dyn core::fmt::Display| {
        io::Error::new(kind, format!("{}: {what}", path.display()))
    };
    let bytes = fs::read(path).map_err(|error| wrong(error.kind(), &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        wrong(io::ErrorKind::InvalidData, &format!("line {line} is not UTF-8 (byte {at})"))
    })
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
                fixtures.push(Fixture { file, text: read(&path)? });
            }
        }
    }
    fixtures.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(fixtures)
}
