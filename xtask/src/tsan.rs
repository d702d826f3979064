//! `cargo xtask tsan`: detects data races.
//!
//! The thread sanitizer observes real threads and has to instrument std, so std is rebuilt. This
//! needs a component of a nightly compiler, which is installed where that is possible; otherwise
//! the section of `cargo xtask test` is skipped.
//!
//! The sanitizer does not model fences: it would report memory that is published only by a fence.
//! There is no list of suppressions because there is no such memory. Every fence in this project
//! stands between two atomics of its thread (one is written, the other is read afterwards), and
//! other memory is handed over by an acquire and a release, or by a lock.

use std::process::Command;

use crate::nightly::component;
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, target_dir};
use crate::{Result, stress};

/// The default arguments of `cargo test`, one run each: unit tests, and the tests in which several
/// threads interact.
const THREADED: [&str; 2] = ["--lib", "--test portable -- basic:: guests:: stop::"];

/// Runs tests under the thread sanitizer. Arguments are passed to `cargo test -p asx-native`.
pub(crate) fn run(args: &[String]) -> Result {
    component("rust-src")?;
    if !args.is_empty() {
        return test(args.iter().map(String::as_str));
    }
    THREADED.into_iter().try_for_each(|line| test(line.split_whitespace()))
}

fn test<'a>(args: impl Iterator<Item = &'a str>) -> Result {
    let mut test = cargo("+nightly test --quiet -p asx-native");
    // Before the arguments, which may end with `--` and names of tests.
    sanitized(&mut test)?;
    sh(test.args(args))
}

/// Makes a cargo command build everything, including std, with the thread sanitizer. The program
/// ends with the first report.
pub(crate) fn sanitized(command: &mut Command) -> Result<&mut Command> {
    command.args(["--profile", "optimised-tests", "-Zbuild-std", "--target", &host()?]);
    command.arg("--target-dir").arg(target_dir().join("tsan"));
    // Reports contain line numbers.
    command.env("CARGO_PROFILE_OPTIMISED_TESTS_DEBUG", "line-tables-only");
    command.env("TSAN_OPTIONS", "halt_on_error=1");
    // Reused memory would hide races with accesses after the drop.
    Ok(command.env("RUSTFLAGS", "-Zsanitizer=thread --cfg asx_no_reuse"))
}

/// Runs the tests with threads, and random programs for `seconds`.
pub(crate) fn section(seconds: u32) -> Verdict {
    if let Err(why) = component("rust-src") {
        return Verdict::Skipped(why);
    }
    let programs = ["--tsan", "--patience", "60", "--seconds", &seconds.to_string()];
    match run(&[]).and_then(|()| stress::run(&programs.map(String::from))) {
        Ok(()) => Verdict::Passed(format!("native tests, random programs {seconds} s")),
        Err(why) => Verdict::Failed(why),
    }
}
