//! `cargo xtask bench`: forwards to the bench crate.

use crate::Result;
use crate::json::Json;
use crate::report::Verdict;
use crate::shell::{cargo, output, run as sh};

const BENCH: &str = "run --release --quiet -p asx-bench --";

pub(crate) fn run(args: &[String]) -> Result {
    sh(cargo(BENCH).args(args))
}

/// Every benchmark runs once and reports; no figure is judged here.
pub(crate) fn section() -> Verdict {
    let text = output(cargo(BENCH).args(["--json", "--smoke"]));
    text.and_then(|text| Json::parse(&text)).map(|_| ()).into()
}
