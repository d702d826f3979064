//! `cargo xtask bench`: forwards to the bench crates.

use serde_json::Value;

use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, output, run as sh};

const BENCH: &str = "run --release --quiet -p asx-bench --";
/// The lab's: a package of its own, built alone, so that it changes nothing of the other.
const LAB: &str = "run --release --quiet -p asx-bench-lab --";
/// What asks for those.
const FLAG: &str = "--lab";

pub(crate) fn run(args: &[String]) -> Result {
    let program = if args.iter().any(|arg| arg == FLAG) { LAB } else { BENCH };
    sh(cargo(program).args(args.iter().filter(|arg| *arg != FLAG)))
}

/// Every benchmark runs once and reports; no figure is judged here.
pub(crate) fn section() -> Verdict {
    match clippy().and_then(|()| Ok((smoke(BENCH)?, smoke(LAB)?))) {
        Ok((rows, lab)) => Verdict::Passed(format!("{rows} figures, {lab} of the lab")),
        Err(why) => Verdict::Failed(why),
    }
}

/// The lints of the benchmark crates, which the section `clippy` leaves out.
fn clippy() -> Result {
    let which = "-p asx-bench -p asx-bench-lab --all-targets --release";
    sh(&mut cargo(&format!("clippy --quiet {which} -- -D warnings")))
}

/// How many figures a program reports.
fn smoke(program: &str) -> Result<usize> {
    let text = output(cargo(program).args(["--json", "--smoke"]))?;
    let rows: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    match rows.as_array().map(Vec::len) {
        Some(rows) if rows > 0 => Ok(rows),
        _ => Err(format!("`cargo {program}` has no figures")),
    }
}
