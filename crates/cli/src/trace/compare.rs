//! `asx trace diff`: where two traces part.

use super::{Done, file, holds};
use asx_kernel::journal::Event;
use asx_trace::Comparison;
use std::io::{self, Write};
use std::path::PathBuf;

/// Events shown on each side of the first difference.
const CONTEXT: usize = 5;

pub(super) fn compare(paths: [&PathBuf; 2], json: bool, out: &mut impl Write) -> Done {
    let left = file::open(paths[0])?;
    let right = file::open(paths[1])?;
    let compared = asx_trace::diff(left, right, CONTEXT);
    let compared = compared.map_err(|unread| file::unusable(paths[unread.side], &unread.error))?;
    if json {
        write_json(&compared, out)?;
    } else {
        write_text(paths, &compared, out)?;
    }
    Ok(holds(compared.is_same()))
}

fn hex(digest: Option<u64>) -> Option<String> {
    digest.map(|digest| format!("{digest:016x}"))
}

fn write_text(paths: [&PathBuf; 2], compared: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let common = compared.common;
    let digests = compared.digests.map(|digest| hex(digest).unwrap_or("unknown".to_owned()));
    if let Some(difference) = &compared.difference {
        writeln!(out, "they part after {common} events")?;
        for event in &difference.before {
            writeln!(out, "  {event}")?;
        }
        for (sign, events) in ["-", "+"].into_iter().zip(&difference.after) {
            for event in events {
                writeln!(out, "{sign} {event}")?;
            }
            if events.is_empty() {
                writeln!(out, "{sign} the end")?;
            }
        }
    } else if compared.is_same() {
        return writeln!(out, "the same: {common} events, digest {}", digests[0]);
    } else {
        writeln!(
            out,
            "the same {common} events, but the digests of all that were recorded differ"
        )?;
    }
    for ((sign, path), digest) in ["-", "+"].into_iter().zip(paths).zip(digests) {
        writeln!(out, "{sign} {}: digest {digest}", path.display())?;
    }
    Ok(())
}

fn write_json(compared: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let shown = |events: &[Event]| events.iter().map(ToString::to_string).collect::<Vec<_>>();
    let difference = compared.difference.as_ref().map(|difference| {
        serde_json::json!({
            "before": shown(&difference.before),
            "left": shown(&difference.after[0]),
            "right": shown(&difference.after[1]),
        })
    });
    let object = serde_json::json!({
        "same": compared.is_same(),
        "common": compared.common,
        "difference": difference,
        "digests": compared.digests.map(hex),
    });
    writeln!(out, "{object}")
}
