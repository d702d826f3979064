//! `cargo xtask valgrind`: tests under Valgrind, with leak detection.
//!
//! It needs no nightly compiler and runs the shipped code, about twenty times slower.

use std::process::Command;

use crate::asan::TESTS;
use crate::check::alone;
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, works};
use crate::{Result, apt};

/// Reports memory that is definitely lost, and fails for it.
const VALGRIND: &str = "valgrind --quiet --fair-sched=yes --error-exitcode=9 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

/// Runs all tests, or those that the arguments for `cargo test` select.
pub(crate) fn run(args: &[String]) -> Result {
    if !works("valgrind", &["--version"]) {
        apt::install(&["valgrind"])?;
    }
    let mut test = cargo("test --profile optimised-tests");
    match args {
        [] => test.args(TESTS.split_whitespace()),
        args => test.args(args),
    };
    under_valgrind(&mut test)
}

/// Runs the test binaries of a cargo command under Valgrind.
fn under_valgrind(test: &mut Command) -> Result {
    let runner = format!("CARGO_TARGET_{}_RUNNER", host()?.replace('-', "_").to_uppercase());
    sh(test.env(runner, VALGRIND))
}

/// Tests only the native host, in the build of the section `tests`.
pub(crate) fn section() -> Verdict {
    if !works("valgrind", &["--version"])
        && let Err(why) = apt::install(&["valgrind"])
    {
        return Verdict::Skipped(format!("valgrind cannot be installed: {why}"));
    }
    // The packages and features determine which build is used.
    let mut test = cargo(&format!("test --quiet {}", alone()));
    under_valgrind(test.args(["--test", "portable", "--", "stop::", "basic::"])).into()
}
