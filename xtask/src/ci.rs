//! `cargo xtask test`: everything, in sections; the last line counts them.

use crate::report::Report;
use crate::shell::{cargo, run as sh};
use crate::{
    Result, audit, bare, bench, capi, check, conform, deny, determinism, fuzz, loom, memory,
    no_args, platforms, races, stress, tidy, web,
};

/// Long enough to reach every operation of a target, short enough for every push.
const FUZZ_SECONDS: u32 = 5;
/// The same for random programs: as they are shipped, and under the address sanitizer.
const STRESS_SECONDS: (u32, u32) = (60, 20);
/// And under the thread sanitizer.
const RACES_SECONDS: u32 = 30;

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    let mut report = Report::default();
    report.section("fmt", check::fmt);
    report.section("clippy", check::clippy);
    report.section("tidy", tidy::check);
    report.section("tests", tests);
    report.section("rustdoc", rustdoc);
    report.section("no_std", bare::section);
    report.section("conform", conform::section);
    report.section("parity", conform::parity_section);
    report.section("same_seed", determinism::section);
    report.section("grains", grains);
    report.section("capi", capi::section);
    report.section("deny", deny::section);
    report.section("fuzz", || fuzz::section(FUZZ_SECONDS));
    report.section("loom", loom::section);
    report.section("asan", memory::asan_section);
    // After the tests under the sanitizer, which have built what it uses.
    report.section("stress", || stress::section(STRESS_SECONDS.0, STRESS_SECONDS.1));
    report.section("tsan", || races::tsan_section(RACES_SECONDS));
    report.section("audit", audit::section);
    report.section("miri", races::miri_section);
    report.section("valgrind", memory::valgrind_section);
    report.section("browser", web::section);
    report.section("bench", bench::section);
    report.section("platforms", platforms::section);
    report.finish()
}

fn tests() -> Result {
    // What is off by default is tested where it is.
    let features = format!("{} --all-features", check::WITH_FEATURES);
    if !check::has_nextest() {
        sh(&mut cargo("test --workspace"))?;
        return sh(&mut cargo(&format!("test {features}")));
    }
    sh(&mut cargo("nextest run --workspace --no-tests pass --no-fail-fast"))?;
    sh(&mut cargo(&format!("nextest run {features} --no-tests pass --no-fail-fast")))?;
    sh(&mut cargo("test --workspace --doc"))?;
    sh(&mut cargo(&format!("test {features} --doc")))
}

/// Random programs on threads and in the lab: many, and so in release.
fn grains() -> Result {
    sh(&mut cargo("test --release --quiet -p asx --features lab --test grains --test waits"))
}

fn rustdoc() -> Result {
    sh(cargo("doc --quiet --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings"))
}
