//! Trace files: opened, and replaced as a whole or not at all.

use super::{Failed, To};
use asx_trace::{Codec, Reader};
use std::fs::{self, File};
use std::io::{self, BufWriter};
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

/// A file under another name until it is complete. What is no file (a device, a pipe) keeps its
/// name: it is written as it is.
pub(super) struct Draft {
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Draft {
    /// Begins to write `path`, which must not be `input`.
    pub(super) fn new(path: &Path, input: &Path) -> Result<(Draft, BufWriter<File>), Failed> {
        let wrong = |error: io::Error| unusable(path, &error);
        let there = fs::metadata(path).ok();
        if there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
            let file = File::options().write(true).open(path).map_err(wrong)?;
            let draft = Draft { temporary: None, path: path.to_owned() };
            return Ok((draft, BufWriter::new(file)));
        }
        // A link stays one: what it leads to is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if there.is_some() && input.canonicalize().is_ok_and(|input| input == target) {
            return Err(unusable(path, &"this is the input: it is not overwritten"));
        }
        let name = target.file_name().ok_or_else(|| unusable(path, &"this is no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::create_new(&temporary).map_err(wrong)?;
        let draft = Draft { temporary: Some(temporary), path: target };
        Ok((draft, BufWriter::new(file)))
    }

    /// Gives the complete file its name.
    pub(super) fn keep(mut self) -> Result<(), Failed> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        fs::rename(temporary, &self.path).map_err(|error| unusable(&self.path, &error))?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It may be gone already; there is nobody to tell.
            let _ = fs::remove_file(temporary);
        }
    }
}
