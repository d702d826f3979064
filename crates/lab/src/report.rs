//! What a failing check leaves behind: files.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use asx_kernel::digest::Digest;
use asx_report::{PAGE_EVENTS, Run, html};
use asx_trace::{Codec, Reader, Writer};

use crate::found::Found;
use crate::recording::Trace;

/// Writes what there is to see of a run that failed into files of a directory, which is made if it
/// is not there. Answers their paths. The same failure of the same test has the same files.
pub fn write(found: &Found, dir: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(dir)?;
    let mut paths = Vec::new();
    if let Some(trace) = &found.trace {
        let path = dir.join(stem(found)).with_extension(Codec::Json.name());
        write_trace(trace, &path)?;
        let page = path.with_extension("html");
        fs::write(&page, page_of(&path)?)?;
        paths.extend([path, page]);
    }
    Ok(paths)
}

/// Where the files of a test go: the folder `asx` of the target directory that its program is in;
/// of the folder for temporary things if it is in none.
pub fn folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    // target/debug/deps/program
    let deps = program.parent().filter(|deps| deps.ends_with("deps"));
    let target = deps.and_then(|deps| deps.parent()?.parent());
    target.map_or_else(std::env::temp_dir, Path::to_path_buf).join("asx")
}

/// The trace in a file as a page.
fn page_of(trace: &Path) -> io::Result<String> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let reader = Reader::open(File::open(trace)?).map_err(|error| failed(&error))?;
    let run = Run::read(reader, PAGE_EVENTS).map_err(|error| failed(&error))?;
    Ok(html(&run))
}

fn write_trace(trace: &Trace, path: &Path) -> io::Result<()> {
    let file = BufWriter::new(File::create(path)?);
    let failed = |error| io::Error::other(format!("{error}"));
    let mut writer = Writer::new(file, Codec::Json, &trace.header).map_err(failed)?;
    trace.records.iter().try_for_each(|record| writer.write(record).map_err(failed))?;
    writer.finish().map_err(failed)?;
    Ok(())
}

/// The name of the test, as the name of a file, and a few digits of which failure it is.
fn stem(found: &Found) -> String {
    let name = found.name.as_deref().unwrap_or("program");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts: Vec<_> = name.split(|c| !is_plain(c)).filter(|part| !part.is_empty()).collect();
    let mut digest = Digest::new();
    let which = digest.bytes(name.as_bytes()).bytes(found.token.as_bytes()).value() >> 40;
    format!("{}-{which:06x}", parts.join("-"))
}
