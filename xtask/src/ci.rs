//! `cargo xtask test`: the test suite in named, timed sections.
//!
//! The quick sections cover what an ordinary change can break. The others are slow tools
//! (sanitizers, model checkers, fuzzers, browsers, foreign platforms) and run with `--all`, or
//! alone with `--rest`. Sections can also be selected by name.

use crate::report::{Report, Verdict};
use crate::shell::{cargo, run as sh};
use crate::{
    Result, audit, bare, bench, capi, check, conform, deny, determinism, fuzz, loom, memory,
    platforms, races, stress, tidy, web,
};

/// Seconds per fuzz target: enough to reach every operation.
const FUZZ_SECONDS: u32 = 5;
/// Seconds of random programs, in release and under the address sanitizer.
const STRESS_SECONDS: (u32, u32) = (60, 20);
/// Seconds of random programs under the thread sanitizer.
const RACES_SECONDS: u32 = 30;

const USAGE: &str = "usage: test [--all | --rest | --list | SECTION..]";

/// One part of the suite.
struct Section {
    name: &'static str,
    /// Runs without `--all`.
    quick: bool,
    run: fn() -> Verdict,
}

const fn quick(name: &'static str, run: fn() -> Verdict) -> Section {
    Section { name, quick: true, run }
}

const fn slow(name: &'static str, run: fn() -> Verdict) -> Section {
    Section { name, quick: false, run }
}

/// All sections in the order in which they run.
const SECTIONS: &[Section] = &[
    quick("fmt", || check::fmt().into()),
    quick("tidy", || tidy::check().into()),
    quick("clippy", || check::clippy().into()),
    quick("tests", || tests().into()),
    quick("doctests", || doctests().into()),
    quick("rustdoc", || rustdoc().into()),
    quick("no_std", bare::section),
    slow("shipped", || shipped().into()),
    slow("conform", conform::section),
    slow("parity", conform::parity_section),
    slow("same_seed", determinism::section),
    slow("grains", || grains().into()),
    slow("capi", capi::section),
    slow("deny", deny::section),
    slow("fuzz", || fuzz::section(FUZZ_SECONDS)),
    slow("loom", loom::section),
    slow("asan", memory::asan_section),
    // After `asan`, which builds the crates this section links.
    slow("stress", || stress::section(STRESS_SECONDS.0, STRESS_SECONDS.1)),
    slow("tsan", || races::tsan_section(RACES_SECONDS)),
    slow("audit", audit::section),
    slow("miri", races::miri_section),
    slow("valgrind", memory::valgrind_section),
    slow("browser", web::section),
    slow("bench", bench::section),
    slow("platforms", platforms::section),
];

pub(crate) fn run(args: &[String]) -> Result {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words == ["--list"] {
        for section in SECTIONS {
            println!("{:<12} {}", section.name, if section.quick { "quick" } else { "--all" });
        }
        return Ok(());
    }
    let mut report = Report::default();
    for section in select(&words)? {
        report.section(section.name, section.run);
    }
    report.finish()
}

/// Returns the sections that the arguments select, in the order of [`SECTIONS`].
fn select(words: &[&str]) -> Result<Vec<&'static Section>> {
    let names = match words {
        [] => return Ok(SECTIONS.iter().filter(|section| section.quick).collect()),
        ["--all"] => return Ok(SECTIONS.iter().collect()),
        ["--rest"] => return Ok(SECTIONS.iter().filter(|section| !section.quick).collect()),
        names => names,
    };
    let unknown = names.iter().find(|name| SECTIONS.iter().all(|section| section.name != **name));
    if let Some(name) = unknown {
        let known: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        return Err(format!("no section `{name}`; sections: {}\n{USAGE}", known.join(", ")));
    }
    Ok(SECTIONS.iter().filter(|section| names.contains(&section.name)).collect())
}

/// The benchmark crates, whose peers take longer to build than all of asx.
const NO_BENCHES: &str = "--exclude asx-bench --exclude asx-bench-lab";

/// Every test of every crate, with all features in one build. The section `grains` runs the random
/// programs, optimised.
fn tests() -> Result {
    let which = format!("--workspace {NO_BENCHES} --all-features");
    if !check::has_nextest() {
        return sh(&mut cargo(&format!("test --lib --bins --tests {which}")));
    }
    let mut test = cargo(&format!("nextest run {which} --no-tests pass --no-fail-fast"));
    sh(test.args(["-E", "not (package(asx) and binary(/^(grains|waits)$/))"]))
}

fn doctests() -> Result {
    sh(&mut cargo(&format!("test --workspace {NO_BENCHES} --all-features --doc")))
}

/// The native host with default features only, optimised: the build that users get. `clippy` and
/// `tests` enable the instrumentation of the lab in every crate.
fn shipped() -> Result {
    check::clippy_default_features()?;
    let which = "--release --tests -p asx -p asx-native -p asx-net --no-fail-fast";
    let runner = if check::has_nextest() { "nextest run" } else { "test" };
    sh(&mut cargo(&format!("{runner} {which}")))
}

/// Random programs on threads and in the lab; many of them, so in release.
fn grains() -> Result {
    sh(&mut cargo("test --release --quiet -p asx --features lab --test grains --test waits"))
}

fn rustdoc() -> Result {
    sh(cargo("doc --quiet --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        select(words).unwrap().iter().map(|section| section.name).collect()
    }

    #[test]
    fn quick_and_rest_together_are_all() {
        let mut both = [names(&[]), names(&["--rest"])].concat();
        let mut all = names(&["--all"]);
        both.sort_unstable();
        all.sort_unstable();
        assert_eq!(both, all);
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a name is used twice: {all:?}");
    }

    #[test]
    fn named_sections_run_in_order_and_unknown_ones_are_refused() {
        assert_eq!(names(&["clippy", "fmt"]), ["fmt", "clippy"]);
        assert!(select(&["fmt", "nonsense"]).is_err());
        assert!(select(&["--all", "fmt"]).is_err());
    }
}
