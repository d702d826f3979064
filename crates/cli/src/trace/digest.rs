//! `asx trace digest`: what two runs are compared by.

use super::{Done, file, holds};
use crate::output::printable;
use std::io::Write;
use std::path::Path;

pub(super) fn digest(path: &Path, json: bool, out: &mut impl Write) -> Done {
    let mut reader = file::open(path)?;
    let complete = reader.header().complete;
    let report = asx_trace::verify(&mut reader, false);
    let Some(end) = report.end else {
        let why = report.violations.last().map(ToString::to_string).unwrap_or_default();
        return Err(file::unusable(path, &why));
    };
    // Of events that are not there only the end record knows.
    let whole = complete && end.lost == 0;
    let digest = if whole { report.digest } else { end.digest };
    if json {
        let object = serde_json::json!({
            "digest": format!("{digest:016x}"),
            "recorded": format!("{:016x}", end.digest),
            "computed": whole,
            "events": report.events,
            "lost": end.lost,
            "holds": report.holds(),
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "{digest:016x}")?;
        for violation in &report.violations {
            complain!("asx: {}: {}", path.display(), printable(&violation.to_string()));
        }
        if !whole {
            complain!("asx: {}: {} events are not in it", path.display(), end.lost);
        }
    }
    Ok(holds(report.holds()))
}
