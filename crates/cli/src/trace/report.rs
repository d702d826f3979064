//! `asx trace report`: a trace as a page.

use super::{Done, Failed, file};
use asx_report::{Cause, PAGE_EVENTS, Run, html};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn report(input: &Path, page: &Path, json: bool, out: &mut impl Write) -> Done {
    let run = read(input, PAGE_EVENTS)?;
    let bytes = write(page, input, || html(&run))?;
    tell(&run, page, bytes, json, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads what can be read of a trace.
pub(super) fn read(input: &Path, most: usize) -> Result<Run, Failed> {
    Run::read(file::open(input)?, most).map_err(|error| file::unusable(input, &error))
}

/// Writes a file as a whole; answers how long it is.
pub(super) fn write(
    path: &Path,
    input: &Path,
    make: impl FnOnce() -> String,
) -> Result<usize, Failed> {
    let (draft, mut sink) = file::Draft::new(path, input)?;
    let text = make();
    let written = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
    written.map_err(|error| file::unusable(path, &error))?;
    draft.keep()?;
    Ok(text.len())
}

/// Says what was written, and whether the laws hold for it.
pub(super) fn tell(
    run: &Run,
    path: &Path,
    bytes: usize,
    json: bool,
    out: &mut impl Write,
) -> Result<(), Failed> {
    let verdict = &run.verdict;
    let path = path.display();
    let events = verdict.events;
    let marks = run.marks.len();
    // Whether the laws hold and whether the program has failed are two things.
    let cause = Cause::of(&run.header);
    if json {
        let object = serde_json::json!({
            "file": path.to_string(),
            "bytes": bytes,
            "events": events,
            "choices": verdict.choices,
            "marks": marks,
            "digest": format!("{:016x}", verdict.digest),
            "holds": verdict.holds(),
            "findings": verdict.violations.len(),
            "failure": cause.as_ref().map(|cause| &cause.kind),
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let holds = match verdict.violations.len() {
        0 => "lawful".to_owned(),
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    };
    let fails = cause.map(|Cause { kind, message, .. }| {
        let message = message.lines().next().unwrap_or_default().to_owned();
        format!("; the program fails: {kind}: {message}")
    });
    let fails = fails.unwrap_or_default();
    writeln!(out, "{path}: {events} events, {marks} marks: {holds}{fails}")?;
    Ok(())
}
