//! `cargo xtask audit`: tests and random programs in a build that records the owner of each
//! reference to a task or region, and poisons freed memory.

use std::process::Command;

use crate::check::has_nextest;
use crate::report::Verdict;
use crate::shell::{cargo, run as sh, target_dir};
use crate::{Result, no_args, stress};

/// Enables the ledger, and disables the reuse of memory that was not yet checked.
const FLAGS: &str = "--cfg asx_audit --cfg asx_no_reuse";

/// The crates of the runtime and the native host.
const CRATES: &str = "-p asx-journal -p asx-task -p asx-sync -p asx-native";
/// Programs that misuse the API.
const HOSTILE: &str = "-p asx --test hostile";

/// Long enough for random programs to reach every operation.
const STRESS_SECONDS: u32 = 20;

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    tests()?;
    let seconds = ["--audit".into(), "--seconds".into(), STRESS_SECONDS.to_string()];
    stress::run(&seconds)
}

pub(crate) fn section() -> Verdict {
    match run(&[]) {
        Ok(()) => Verdict::Passed(format!("tests, {STRESS_SECONDS} s of random programs")),
        Err(why) => Verdict::Failed(why),
    }
}

fn tests() -> Result {
    for which in [CRATES, HOSTILE] {
        let mut test = if has_nextest() {
            audited(&format!("nextest run {which} --no-fail-fast"))
        } else {
            audited(&format!("test --quiet --lib --tests {which}"))
        };
        sh(&mut test)?;
    }
    Ok(())
}

/// Returns a cargo command for that build, in a separate directory: the flags change every crate.
pub(crate) fn audited(line: &str) -> Command {
    let mut command = cargo(line);
    command.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", target_dir().join("audit"));
    command
}
