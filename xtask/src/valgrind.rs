//! `cargo xtask asan`, `cargo xtask valgrind`: tests under a memory checker, leaks included.
//!
//! The first needs a nightly compiler and sees every access of our code; the second needs none and
//! runs what is shipped, some twenty times slower. The thread sanitizer and Miri are in `races`.

use std::process::Command;

use crate::check::alone;
use crate::nightly::{NO_NIGHTLY, has_nightly};
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, target_dir, works};
use crate::{Result, apt, no_args};

const TESTS: &str = "--quiet --lib --tests -p asx-journal -p asx-task -p asx-sync -p asx-native";
/// The hostile programs: what they break, if anything, is memory that is used after its end.
const HOSTILE: &str = "--quiet -p asx --test hostile";
/// What is shown and counts: memory that nothing points to any more.
const VALGRIND: &str = "valgrind --quiet --fair-sched=yes --error-exitcode=9 --leak-check=full \
                        --show-leak-kinds=definite --errors-for-leak-kinds=definite";

pub(crate) fn asan(args: &[String]) -> Result {
    no_args(args)?;
    if !has_nightly() {
        return Err(String::from(NO_NIGHTLY));
    }
    for which in [TESTS, HOSTILE] {
        let mut test = cargo(&format!("+nightly test {which} --target"));
        // Naming the target keeps the flags away from build scripts.
        test.arg(host()?).arg("--target-dir").arg(target_dir().join("asan"));
        // Memory that is used again would hide who uses a cell that is gone.
        sh(test.env("RUSTFLAGS", "-Zsanitizer=address --cfg asx_no_reuse"))?;
    }
    Ok(())
}

pub(crate) fn asan_section() -> Verdict {
    if has_nightly() { asan(&[]).into() } else { Verdict::Skipped(String::from(NO_NIGHTLY)) }
}

/// All tests, unless arguments for `cargo test` say which.
pub(crate) fn valgrind(args: &[String]) -> Result {
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

/// Tests of the native host only, in the build that the section `tests` has made.
pub(crate) fn valgrind_section() -> Verdict {
    if !works("valgrind", &["--version"])
        && let Err(why) = apt::install(&["valgrind"])
    {
        return Verdict::Skipped(format!("valgrind can't be had: {why}"));
    }
    // The packages and features decide which build is used.
    let mut test = cargo(&format!("test --quiet {}", alone()));
    under_valgrind(test.args(["--test", "portable", "--", "stop::", "basic::"])).into()
}
