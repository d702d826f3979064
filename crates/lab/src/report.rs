//! What a failing check leaves behind: files.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use asx_kernel::digest::Digest;
use asx_report::{Cause, PAGE_EVENTS, Run, html};
use asx_trace::{Codec, Reader, Writer};

use crate::failure::Failure;
use crate::found::{Found, running_test};
use crate::recording::Trace;

/// Writes the trace and the page of a run that failed into a directory, which is created if it does
/// not exist. Returns their paths. The same failure of the same test has the same files.
///
/// # Errors
/// The file system's error.
pub fn write(found: &Found, dir: &Path) -> io::Result<Vec<PathBuf>> {
    write_with(found, dir, found.command())
}

/// Writes the files of a run that failed, with another command to replay it than `cargo test`: for
/// programs that are not tests.
///
/// # Errors
/// The file system's error.
pub fn write_with(found: &Found, dir: &Path, replay: String) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(dir)?;
    let mut paths = Vec::new();
    if let Some(trace) = &found.trace {
        let path = dir.join(stem(found)).with_extension(Codec::Json.name());
        let mut header = trace.header.clone();
        header.meta.extend(cause(found, replay).meta());
        write_trace(&Trace { header, records: trace.records.clone() }, &path)?;
        let page = path.with_extension("html");
        fs::write(&page, page_of(&path)?)?;
        paths.extend([path, page]);
    }
    Ok(paths)
}

/// The cause of the failure, for the head of the page.
fn cause(found: &Found, replay: String) -> Cause {
    let Failure { finding, step, task, place } = &found.failure;
    Cause {
        kind: finding.kind.name().into(),
        message: finding.message.clone(),
        task: task.clone(),
        place: place.clone(),
        step: Some(step.to_string()),
        detail: finding.lines(),
        changes: found.words.clone(),
        replay: Some(replay),
        // The header of the trace already has the rest.
        ..Cause::default()
    }
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

/// Returns the name of the files: the name of the check or else of the test, and a few digits that
/// depend on the failure.
fn stem(found: &Found) -> String {
    let name = found.name.clone().or_else(running_test);
    let name = name.as_deref().unwrap_or("program");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts: Vec<_> = name.split(|c| !is_plain(c)).filter(|part| !part.is_empty()).collect();
    let Failure { finding, place, .. } = &found.failure;
    let place = place.as_deref().unwrap_or_default();
    let mut digest = Digest::new();
    // Two checks of one test may fail in the same order of polls, each in its own way.
    for text in [name, &found.token, finding.kind.name(), &finding.message, place] {
        digest.bytes(text.as_bytes());
    }
    format!("{}-{:06x}", parts.join("-"), digest.value() >> 40)
}
