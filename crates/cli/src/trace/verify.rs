//! `asx trace verify`: whether a trace is whole and lawful.

use super::{Done, file, holds};
use crate::output::{BAD, GOOD, printable};
use std::io::Write;
use std::path::Path;

pub(super) fn verify(path: &Path, strict: bool, json: bool, out: &mut impl Write) -> Done {
    let mut reader = file::open(path)?;
    let report = asx_trace::verify(&mut reader, strict);
    let codec = reader.codec().name();
    let digest = format!("{:016x}", report.digest);
    if json {
        let violations: Vec<_> = report
            .violations
            .iter()
            .map(|violation| {
                serde_json::json!({
                    "code": violation.code,
                    "text": violation.text,
                    "place": violation.place.to_string(),
                    "record": violation.record,
                })
            })
            .collect();
        let object = serde_json::json!({
            "file": path.display().to_string(),
            "codec": codec,
            "strict": strict,
            "holds": report.holds(),
            "events": report.events,
            "choices": report.choices,
            "digest": digest,
            "violations": violations,
        });
        writeln!(out, "{object}")?;
        return Ok(holds(report.holds()));
    }
    let events = report.events;
    let choices = report.choices;
    let verdict = match (report.holds(), strict) {
        (true, true) => GOOD.text("lawful"),
        (true, false) => GOOD.text("whole"),
        (false, _) => BAD.text("DOES NOT HOLD"),
    };
    writeln!(out, "{verdict}: {codec}, {events} events, {choices} choices, digest {digest}")?;
    for violation in &report.violations {
        writeln!(out, "{}: {}", path.display(), printable(&violation.to_string()))?;
    }
    Ok(holds(report.holds()))
}
