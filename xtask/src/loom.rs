//! `cargo xtask loom`: explores every interleaving of the models of our atomics and locks.
//!
//! With `--cfg loom` the crates use loom's primitives, and their unit tests are the models. In
//! release mode, because a model runs its threads some hundred thousand times.

use crate::report::Verdict;
use crate::shell::{cargo, run as sh, target_dir};
use crate::{Result, no_args};

const CRATES: [&str; 4] = ["asx-task", "asx-sync", "asx-native", "asx-capi"];

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    CRATES.into_iter().try_for_each(explore)
}

pub(crate) fn section() -> Verdict {
    match run(&[]) {
        Ok(()) => Verdict::Passed(CRATES.join(", ")),
        Err(why) => Verdict::Failed(why),
    }
}

fn explore(name: &str) -> Result {
    let mut test = cargo("test --quiet --release --lib --package");
    // A separate directory, because the flag changes every crate.
    test.arg(name).arg("--target-dir").arg(target_dir().join("loom"));
    sh(test.env("RUSTFLAGS", "--cfg loom"))
}
