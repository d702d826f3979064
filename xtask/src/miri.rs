//! `cargo xtask miri`: checks the rules of Rust's memory model.
//!
//! Miri interprets the unit tests of the task core, about a thousand times slower than native. It
//! checks borrows, provenance, uninitialised memory, and weak memory orderings. It needs components
//! of a nightly compiler, which are installed where that is possible; otherwise the section of
//! `cargo xtask test` is skipped.

use crate::Result;
use crate::nightly::component;
use crate::report::Verdict;
use crate::shell::{cargo, run as sh, target_dir};

/// The tests of the task core and its surroundings, which contain the `unsafe` blocks.
const CORE: &str = "raw:: region::grace:: runtime::cx:: blocking::";
/// The tests of the combinators.
const COMBINATORS: &str = "combine::";
/// The tests of the channels.
const CHANNELS: &str = "channel::line channel::oneshot";
/// The tests with threads, which run with several seeds: each seed is another schedule.
const SCHEDULES: &str = "raw::memory";
/// Excluded tests, which take minutes because they enumerate all words and places.
const SKIPPED: &str = "--skip word:: --skip plain_means";
const SEEDS: &str = "-Zmiri-many-seeds=0..3";

/// Runs tests of tasks and channels under Miri. Arguments are filters for the tests of tasks.
pub(crate) fn run(args: &[String]) -> Result {
    component("miri")?;
    component("rust-src")?;
    match args {
        [] => {
            interpret("asx-task", CORE, "")?;
            interpret("asx-task", SCHEDULES, SEEDS)?;
            interpret("asx-sync", CHANNELS, "")?;
            interpret("asx-runtime", COMBINATORS, "")
        }
        filters => interpret("asx-task", &filters.join(" "), ""),
    }
}

fn interpret(package: &str, filters: &str, flags: &str) -> Result {
    let line = format!("+nightly miri test --quiet -p {package} --lib --target-dir");
    let mut test = cargo(&line);
    test.arg(target_dir().join("miri")).arg("--").args(filters.split_whitespace());
    test.args(SKIPPED.split_whitespace());
    // The tests read the clock. Printing a backtrace takes longer than a test.
    let flags = format!("-Zmiri-disable-isolation {flags}");
    sh(test.env("MIRIFLAGS", flags.trim_end()).env("RUST_BACKTRACE", "0"))
}

pub(crate) fn section() -> Verdict {
    match component("miri").and_then(|()| component("rust-src")) {
        Ok(()) => run(&[]).into(),
        Err(why) => Verdict::Skipped(why),
    }
}
