//! `cargo xtask bench`: runs the benchmark crates.

use serde_json::Value;

use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, output, run as sh};

const BENCH: &str = "run --release --quiet -p asx-bench --";
/// The lab's benchmarks: a package that is built separately, so that neither affects the other.
const LAB: &str = "run --release --quiet -p asx-bench-lab --";
/// The flag that selects them.
const FLAG: &str = "--lab";

pub(crate) fn run(args: &[String]) -> Result {
    let program = if args.iter().any(|arg| arg == FLAG) { LAB } else { BENCH };
    sh(cargo(program).args(args.iter().filter(|arg| *arg != FLAG)))
}

/// Runs every benchmark once. Figures are not compared.
pub(crate) fn section() -> Verdict {
    match clippy().and_then(|()| Ok((smoke(BENCH)?, smoke(LAB)?))) {
        Ok((rows, lab)) => Verdict::Passed(format!("{rows} figures, {lab} of the lab")),
        Err(why) => Verdict::Failed(why),
    }
}

/// Runs the lints of the benchmark crates, which the section `clippy` leaves out.
fn clippy() -> Result {
    let which = "-p asx-bench -p asx-bench-lab --all-targets --release";
    sh(&mut cargo(&format!("clippy --quiet {which} -- -D warnings")))
}

/// Returns the number of figures that a program reports.
fn smoke(program: &str) -> Result<usize> {
    let text = output(cargo(program).args(["--json", "--smoke"]))?;
    let rows: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    match rows.as_array().map(Vec::len) {
        Some(rows) if rows > 0 => Ok(rows),
        _ => Err(format!("`cargo {program}` has no figures")),
    }
}
