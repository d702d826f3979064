//! `cargo xtask check`: the checks before a commit, which take a minute or two.

use crate::report::Report;
use crate::shell::{cargo, run as sh, works};
use crate::{Result, no_args, tidy};

/// The packages that have features.
pub(crate) const WITH_FEATURES: &str = "-p asx -p asx-task -p asx-sync -p asx-runtime";

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    let mut report = Report::default();
    report.section("fmt", fmt);
    report.section("clippy", clippy);
    report.section("tidy", tidy::check);
    report.section("quick tests", quick_tests);
    report.finish()
}

/// The other workspaces of the repository.
const OTHERS: [&str; 2] = ["fuzz", "crates/bench-lab/madsim"];

/// Checks the formatting of all workspaces.
pub(crate) fn fmt() -> Result {
    sh(&mut cargo("fmt --all --check"))?;
    let fmt = |folder| cargo(&format!("fmt --manifest-path {folder}/Cargo.toml --check"));
    OTHERS.into_iter().try_for_each(|folder| sh(&mut fmt(folder)))
}

/// Excludes the benchmark crates, which have dependencies that take longer to build than asx.
pub(crate) const NO_BENCHES: &str = "--exclude asx-bench --exclude asx-bench-lab";

/// Crates that are tested separately, as users get them. Together with other crates they would be
/// built with the lab's instrumentation.
const ALONE: [&str; 2] = ["asx-native", "asx-net"];

/// Returns the arguments of cargo that select [`ALONE`].
pub(crate) fn alone() -> String {
    format!("{} --all-features", ALONE.map(|name| format!("-p {name}")).join(" "))
}

/// Returns the arguments of cargo that select the other crates.
///
/// The selection decides which features are built. A command that runs one test or program of these
/// crates therefore selects all of them and reuses the build.
pub(crate) fn others() -> String {
    let alone = ALONE.map(|name| format!("--exclude {name}")).join(" ");
    format!("--workspace {NO_BENCHES} {alone} --all-features")
}

/// Runs the lints with all features, as errors. The section `bench` checks the benchmark crates.
pub(crate) fn clippy() -> Result {
    let which = format!("--workspace {NO_BENCHES} --all-targets --all-features");
    sh(&mut cargo(&format!("clippy --quiet {which} -- -D warnings")))
}

/// Runs the lints with default features, as errors.
pub(crate) fn clippy_default_features() -> Result {
    sh(&mut cargo(&format!("clippy --quiet {WITH_FEATURES} --all-targets -- -D warnings")))
}

/// Whether the faster test runner is installed.
pub(crate) fn has_nextest() -> bool {
    works("cargo", &["nextest", "--version"])
}

fn quick_tests() -> Result {
    let which = "-p asx-kernel -p asx-conformance -p xtask";
    if has_nextest() {
        sh(&mut cargo(&format!("nextest run --no-tests pass {which}")))
    } else {
        sh(&mut cargo(&format!("test --quiet --tests {which}")))
    }
}
