//! `asx trace verify`: whether a trace is whole and lawful.

use super::{Done, file, holds, plain};
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
    for violation in &report.violations {
        writeln!(out, "{}: {}", path.display(), plain(&violation.to_string()))?;
    }
    let events = report.events;
    let choices = report.choices;
    let verdict = match (report.holds(), strict) {
        (true, true) => "lawful",
        (true, false) => "whole",
        (false, _) => "DOES NOT HOLD",
    };
    writeln!(out, "{codec}: {events} events, {choices} choices, digest {digest}: {verdict}")?;
    Ok(holds(report.holds()))
}
