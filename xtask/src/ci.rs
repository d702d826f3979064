//! `cargo xtask test`: the test suite in named, timed sections.
//!
//! The quick sections cover what an ordinary change can break. The others use slow tools
//! (sanitizers, model checkers, fuzzers, browsers, foreign platforms) and run with `--all`, or
//! alone with `--rest`. Sections can also be selected by name.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::check::{NO_BENCHES, alone, others};
use crate::report::{Report, Verdict};
use crate::shell::{cargo, run as sh, set_prefix};
use crate::{
    Result, asan, audit, bench, capi, check, conform, deny, determinism, fuzz, instructions, loom,
    miri, no_std, platforms, stress, tidy, tsan, valgrind, web,
};

/// Seconds per fuzz target: enough to reach every operation.
const FUZZ_SECONDS: u32 = 5;
/// Seconds of random programs, in release and under the address sanitizer.
const STRESS_SECONDS: (u32, u32) = (40, 15);
/// Seconds of random programs under the thread sanitizer.
const TSAN_SECONDS: u32 = 20;

const USAGE: &str = "usage: test [--all | --rest | --list | SECTION..]";

/// One part of the suite.
struct Section {
    name: &'static str,
    kind: Kind,
    run: fn() -> Verdict,
}

/// The condition under which a section runs, and its target directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Without `--all`.
    Quick,
    /// With `--all`, in sequence: these build in the main target directory.
    Shared,
    /// With `--all`, in parallel with a shared section: these build in separate directories.
    Separate,
}

const fn section(kind: Kind, name: &'static str, run: fn() -> Verdict) -> Section {
    Section { name, kind, run }
}

/// All sections. The separate ones begin with the slowest, so that none runs alone at the end.
const SECTIONS: &[Section] = &[
    section(Kind::Quick, "fmt", || check::fmt().into()),
    section(Kind::Quick, "tidy", || tidy::check().into()),
    section(Kind::Quick, "clippy", || check::clippy().into()),
    section(Kind::Quick, "tests", || tests().into()),
    section(Kind::Quick, "doctests", || doctests().into()),
    section(Kind::Quick, "rustdoc", || rustdoc().into()),
    section(Kind::Quick, "no_std", no_std::section),
    section(Kind::Shared, "deny", deny::section),
    section(Kind::Shared, "shipped", || shipped().into()),
    section(Kind::Shared, "valgrind", valgrind::section),
    section(Kind::Shared, "conform", conform::section),
    section(Kind::Shared, "parity", conform::parity_section),
    section(Kind::Shared, "same_seed", determinism::section),
    section(Kind::Shared, "grains", || grains().into()),
    section(Kind::Shared, "capi", capi::section),
    section(Kind::Shared, "bench", bench::section),
    section(Kind::Shared, "instructions", instructions::section),
    section(Kind::Separate, "platforms", platforms::section),
    section(Kind::Separate, "asan", asan::section),
    // After `asan`, which builds the crates this section links.
    section(Kind::Separate, "stress", || stress::section(STRESS_SECONDS.0, STRESS_SECONDS.1)),
    section(Kind::Separate, "tsan", || tsan::section(TSAN_SECONDS)),
    section(Kind::Separate, "browser", web::section),
    section(Kind::Separate, "bundlers", web::bundlers::section),
    section(Kind::Separate, "audit", audit::section),
    section(Kind::Separate, "loom", loom::section),
    section(Kind::Separate, "miri", miri::section),
    section(Kind::Separate, "fuzz", || fuzz::section(FUZZ_SECONDS)),
];

pub(crate) fn run(args: &[String]) -> Result {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words == ["--list"] {
        for section in SECTIONS {
            let is_quick = section.kind == Kind::Quick;
            println!("{:<12} {}", section.name, if is_quick { "quick" } else { "--all" });
        }
        return Ok(());
    }
    let selected = select(&words)?;
    let mut report = Report::default();
    if matches!(words[..], ["--all" | "--rest"]) {
        let limit = Limit::from_variable(std::env::var(MINUTES).ok())?;
        two_lanes(&selected, limit, &mut report);
    } else {
        selected.iter().for_each(|section| report.section(section.name, section.run));
    }
    report.finish()
}

/// The environment variable that limits the time in which slow sections start.
const MINUTES: &str = "ASX_TEST_MINUTES";

/// The time limit for starting slow sections. A run that the machine kills prints no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    minutes: Option<u64>,
    start: Instant,
}

impl Limit {
    fn from_variable(minutes: Option<String>) -> Result<Limit> {
        let wrong = |text: &String| format!("{MINUTES}={text}: a number of minutes is required");
        let minutes = minutes.map(|text| text.parse().map_err(|_| wrong(&text))).transpose()?;
        Ok(Limit { minutes, start: Instant::now() })
    }

    /// Returns the reason to skip a section that would start now.
    fn skips(self) -> Option<String> {
        let minutes = self.minutes?;
        let is_over = self.start.elapsed() >= Duration::from_secs(60 * minutes);
        is_over.then(|| format!("not started: {MINUTES} allows {minutes} minutes"))
    }
}

/// Runs the quick sections in sequence, then shared and separate sections in parallel: many use
/// only one core. The lane that runs out of sections first takes the last separate one.
fn two_lanes(selected: &[&Section], limit: Limit, report: &mut Report) {
    let of = |kind| selected.iter().filter(move |section| section.kind == kind);
    of(Kind::Quick).for_each(|section| report.section(section.name, section.run));
    let in_time = |report: &mut Report, section: &Section| {
        report.section(section.name, || limit.skips().map_or_else(section.run, Verdict::Skipped));
    };
    let separate = Mutex::new(of(Kind::Separate).collect::<VecDeque<_>>());
    let next = |end: fn(&mut VecDeque<_>) -> Option<_>| {
        end(&mut separate.lock().unwrap_or_else(PoisonError::into_inner))
    };
    let [first, second] = thread::scope(|scope| {
        let first = scope.spawn(|| {
            set_prefix("1| ");
            let mut report = Report::default();
            of(Kind::Shared).for_each(|section| in_time(&mut report, section));
            while let Some(section) = next(VecDeque::pop_back) {
                in_time(&mut report, section);
            }
            report
        });
        let second = scope.spawn(|| {
            set_prefix("2| ");
            let mut report = Report::default();
            while let Some(section) = next(VecDeque::pop_front) {
                in_time(&mut report, section);
            }
            report
        });
        [first, second].map(thread::ScopedJoinHandle::join)
    });
    for lane in [first, second] {
        report.append(lane.unwrap_or_else(|panic| resume_unwind(panic)));
    }
}

/// Returns the sections that the arguments select, in the order of [`SECTIONS`].
fn select(words: &[&str]) -> Result<Vec<&'static Section>> {
    let names = match words {
        [] => return Ok(SECTIONS.iter().filter(|section| section.kind == Kind::Quick).collect()),
        ["--all"] => return Ok(SECTIONS.iter().collect()),
        ["--rest"] => {
            return Ok(SECTIONS.iter().filter(|section| section.kind != Kind::Quick).collect());
        }
        names => names,
    };
    let unknown = names.iter().find(|name| SECTIONS.iter().all(|section| section.name != **name));
    if let Some(name) = unknown {
        let known: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        return Err(format!("no section `{name}`; sections: {}\n{USAGE}", known.join(", ")));
    }
    Ok(SECTIONS.iter().filter(|section| names.contains(&section.name)).collect())
}

/// Runs every test of every crate, with all features. The section `grains` runs the random
/// programs, optimised.
fn tests() -> Result {
    let (alone, others) = (alone(), others());
    if !check::has_nextest() {
        sh(&mut cargo(&format!("test --lib --bins --tests --no-fail-fast {alone}")))?;
        return sh(&mut cargo(&format!("test --lib --bins --tests --no-fail-fast {others}")));
    }
    let nextest = "nextest run --no-tests pass --no-fail-fast";
    let alone = sh(&mut cargo(&format!("{nextest} {alone}")));
    let mut others = cargo(&format!("{nextest} {others}"));
    let others = sh(others.args(["-E", "not (package(asx) and binary(/^(grains|waits)$/))"]));
    alone.and(others)
}

fn doctests() -> Result {
    sh(&mut cargo(&format!("test --workspace {NO_BENCHES} --all-features --doc")))
}

/// Runs lints and programs with default features. `tests` covers the native host and its sockets.
fn shipped() -> Result {
    check::clippy_default_features()?;
    let runner = match check::has_nextest() {
        true => "nextest run --cargo-profile optimised-tests",
        false => "test --profile optimised-tests",
    };
    sh(&mut cargo(&format!("{runner} -p asx --test hostile --test ends --no-fail-fast")))
}

/// Runs random programs on threads and in the lab; many of them, so in release mode.
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
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a duplicate name: {all:?}");
    }

    #[test]
    fn named_sections_run_in_order_and_unknown_ones_are_refused() {
        assert_eq!(names(&["clippy", "fmt"]), ["fmt", "clippy"]);
        assert!(select(&["fmt", "nonsense"]).is_err());
        assert!(select(&["--all", "fmt"]).is_err());
    }

    #[test]
    fn sections_start_only_within_the_limit() {
        let limit = |text: Option<&str>| Limit::from_variable(text.map(String::from));
        assert_eq!(limit(None).unwrap().skips(), None);
        assert_eq!(limit(Some("1000")).unwrap().skips(), None);
        let why = limit(Some("0")).unwrap().skips().unwrap();
        assert!(why.contains("ASX_TEST_MINUTES allows 0 minutes"), "{why}");
        assert!(limit(Some("-1")).is_err() && limit(Some("soon")).is_err());
    }
}
