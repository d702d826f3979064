//! Trace files: opened, and replaced as a whole or not at all.

use super::{Failed, To};
use asx_trace::{Codec, Reader};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Opens a trace and reads its header.
pub(super) fn open(path: &Path) -> Result<Reader<File>, Failed> {
    let wrong = |error: &dyn std::fmt::Display| unusable(path, error);
    let file = File::open(path).map_err(|error| wrong(&error))?;
    Reader::open(file).map_err(|error| wrong(&error))
}

/// What is wrong with a file.
pub(super) fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Failed {
    Failed::Input(format!("{}: {why}", path.display()))
}

/// The codec a file is to be written in.
pub(super) fn codec(path: &Path, to: Option<To>) -> Result<Codec, Failed> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    match (to, ending) {
        (Some(To::Jsonl), _) | (None, Some("jsonl")) => Ok(Codec::Json),
        (Some(To::Bin), _) | (None, Some("asxt")) => Ok(Codec::Binary),
        (None, _) => Err(unusable(path, &"which codec? A name ends in .jsonl or .asxt")),
    }
}

/// A file under another name until it is complete.
pub(super) struct Draft {
    temporary: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl Draft {
    /// Begins to write `path`, which must not be `input`.
    pub(super) fn new(path: &Path, input: &Path) -> Result<(Draft, BufWriter<File>), Failed> {
        if let (Ok(path), Ok(input)) = (path.canonicalize(), input.canonicalize())
            && path == input
        {
            return Err(unusable(&path, &"this is the input: it is not overwritten"));
        }
        let name = path.file_name().ok_or_else(|| unusable(path, &"this is no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = File::create_new(&temporary).map_err(|error| unusable(&temporary, &error))?;
        let draft = Draft { temporary, path: path.to_owned(), kept: false };
        Ok((draft, BufWriter::new(file)))
    }

    /// Gives the complete file its name.
    pub(super) fn keep(mut self) -> Result<(), Failed> {
        let renamed = fs::rename(&self.temporary, &self.path);
        renamed.map_err(|error| unusable(&self.path, &error))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // It may be gone already; there is nobody to tell.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
