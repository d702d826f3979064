//! `cargo xtask tsan`, `cargo xtask miri`: data races, and what Rust's rules for memory forbid.
//!
//! Both need components of a nightly compiler, which are installed where that is possible; where it
//! is not, their sections of `cargo xtask test` are skipped.
//!
//! The thread sanitizer watches real threads and has to see what std does, so std is built again.
//! It doesn't model fences: memory that only a fence publishes would be reported. There is no list
//! of suppressions because there is no such memory. Every fence of ours stands between two atomics
//! of its thread (one is written, the other is read afterwards), and what is not atomic is handed
//! over by an acquire and a release, or by a lock.
//!
//! Miri interprets the unit tests of the task core, some thousand times slower: it checks borrows,
//! provenance, uninitialised memory, and weak memory orderings.

use std::process::Command;

use crate::nightly::component;
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, target_dir};
use crate::{Result, stress};

/// The default arguments of `cargo test`, one run each: unit tests, and the tests in which several
/// threads meet.
const THREADED: [&str; 2] = ["--lib", "--test portable -- basic:: guests:: stop::"];

/// Tests under the thread sanitizer; arguments go to `cargo test -p asx-native`.
pub(crate) fn tsan(args: &[String]) -> Result {
    component("rust-src")?;
    if !args.is_empty() {
        return tsan_test(args.iter().map(String::as_str));
    }
    THREADED.into_iter().try_for_each(|line| tsan_test(line.split_whitespace()))
}

fn tsan_test<'a>(args: impl Iterator<Item = &'a str>) -> Result {
    let mut test = cargo("+nightly test --quiet -p asx-native");
    // Before the arguments, which may end with `--` and names of tests.
    sanitized(&mut test)?;
    sh(test.args(args))
}

/// Has a cargo command build everything, std included, with the thread sanitizer; the first report
/// ends what it runs.
pub(crate) fn sanitized(command: &mut Command) -> Result<&mut Command> {
    command.args(["--profile", "optimised-tests", "-Zbuild-std", "--target", &host()?]);
    command.arg("--target-dir").arg(target_dir().join("tsan"));
    // Reports name lines.
    command.env("CARGO_PROFILE_OPTIMISED_TESTS_DEBUG", "line-tables-only");
    command.env("TSAN_OPTIONS", "halt_on_error=1");
    // Memory that is used again would hide races about what is gone.
    Ok(command.env("RUSTFLAGS", "-Zsanitizer=thread --cfg asx_no_reuse"))
}

/// The tests with threads, and random programs for so many seconds.
pub(crate) fn tsan_section(seconds: u32) -> Verdict {
    if let Err(why) = component("rust-src") {
        return Verdict::Skipped(why);
    }
    let programs = ["--tsan", "--patience", "60", "--seconds", &seconds.to_string()];
    match tsan(&[]).and_then(|()| stress::run(&programs.map(String::from))) {
        Ok(()) => Verdict::Passed(format!("native tests, random programs {seconds} s")),
        Err(why) => Verdict::Failed(why),
    }
}

/// Tests of the task core and what is beside it: where the `unsafe` blocks are.
const CORE: &str = "raw:: region::grace:: runtime::cx:: blocking::";
/// Of the combinators.
const COMBINATORS: &str = "combine::";
/// Of the channels.
const CHANNELS: &str = "channel::line channel::oneshot";
/// Those of them with threads, which are run with several seeds: each is another schedule.
const SCHEDULES: &str = "raw::memory";
/// Not these, which take minutes: every word and place there can be.
const SKIPPED: &str = "--skip word:: --skip plain_means";
const SEEDS: &str = "-Zmiri-many-seeds=0..3";

/// Tests of tasks and channels under Miri; arguments are filters for those of tasks.
pub(crate) fn miri(args: &[String]) -> Result {
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
    // The tests look at the clock. To print a backtrace takes longer than a test.
    let flags = format!("-Zmiri-disable-isolation {flags}");
    sh(test.env("MIRIFLAGS", flags.trim_end()).env("RUST_BACKTRACE", "0"))
}

pub(crate) fn miri_section() -> Verdict {
    match component("miri").and_then(|()| component("rust-src")) {
        Ok(()) => miri(&[]).into(),
        Err(why) => Verdict::Skipped(why),
    }
}
