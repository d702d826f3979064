//! Programs with one planted bug each, and the same without it.
//!
//! Each is one function of a `const BUG: bool`, so that the two differ in nothing but the bug. It
//! must be found by the default settings, as the right kind of failure, with a short witness that
//! fails again; the fixed one must pass, and where its orders are few, be proved.
//!
//! `cargo test -p asx-lab --test planted -- --nocapture | grep '^|'` prints the table.

mod cancel;
mod data;
mod draws;
mod kept;
mod locks;
mod messages;
mod operations;
mod pairs;
mod slow;
mod tasks;
mod timing;
mod wakes;

use std::time::{Duration, Instant};

use asx_lab::{Check, Judged, Kind};
use asx_runtime::Cx;

/// All of a program without its bug is to be run, however busy the machine is.
const MINUTE: Duration = Duration::from_secs(60);

/// What is known of the program without the bug.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Twin {
    /// All of its orders pass, and all were run.
    Proved,
    /// Too many orders to run them all.
    Passes,
    /// All of its orders pass, but its tasks share nothing that the lab can see.
    Unseen,
}

/// A program, what it is found as, and by how many forced decisions at most; and `exact_time` if
/// it is right only where no machine is slow.
macro_rules! planted {
    ($test:ident: $program:ident, $kind:ident, $forced:literal, $twin:ident $(, $time:ident)?) => {
        #[test]
        fn $test() {
            let bug = check($program::<true>) $(.$time())?;
            let fixed = check($program::<false>) $(.$time())?;
            let (kind, twin) = (asx_lab::Kind::$kind, crate::Twin::$twin);
            crate::judge(stringify!($program), bug, fixed, kind, $forced, twin);
        }
    };
    ($test:ident: $program:ident, $kind:ident by a cancel) => {
        #[test]
        fn $test() {
            let bug = check($program::<true>).cancel_at_every_await();
            let fixed = check($program::<false>).cancel_at_every_await();
            crate::judge_cancelled(stringify!($program), bug, fixed, asx_lab::Kind::$kind);
        }
    };
}
use planted;

fn judge<F, G, B, C>(
    name: &str,
    bug: Check<F>,
    fixed: Check<G>,
    kind: Kind,
    forced: usize,
    twin: Twin,
) where
    F: Fn(Cx) -> B,
    G: Fn(Cx) -> C,
    B: Future<Output: Judged>,
    C: Future<Output: Judged>,
{
    find(name, &bug, kind, forced);
    let report = fixed.time(MINUTE).run();
    assert!(report.failure.is_none(), "{name}, fixed: {report}");
    assert_eq!(report.proof.is_some(), twin == Twin::Proved, "{name}, fixed: {report}");
    assert_eq!(report.nothing_shared, twin == Twin::Unseen, "{name}, fixed: {report}");
}

fn judge_cancelled<F, G, B, C>(name: &str, bug: Check<F>, fixed: Check<G>, kind: Kind)
where
    F: Fn(Cx) -> B,
    G: Fn(Cx) -> C,
    B: Future<Output: Judged>,
    C: Future<Output: Judged>,
{
    find(name, &bug, kind, 2);
    let report = fixed.time(MINUTE).run();
    assert!(report.failure.is_none(), "{name}, fixed: {report}");
    let (tried, all) = report.cancels.expect("cancels were asked for");
    assert_eq!(tried, all, "{name}, fixed: {report}");
}

/// The bug is found, in time, and its witness is short and fails again.
fn find<F, B>(name: &str, bug: &Check<F>, kind: Kind, forced: usize)
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    let start = Instant::now();
    let report = bug.run();
    let took = start.elapsed();
    let found = report.failure.as_ref().unwrap_or_else(|| panic!("{name}: {report}"));
    let (kind_found, decisions) = (found.failure.finding.kind, found.schedule.deviations.len());
    println!(
        "| {name} | {} | {} | {} | {decisions} | {} |",
        kind_found.name(),
        report.runs,
        found.failure.step,
        took.as_millis()
    );
    assert_eq!(kind_found, kind, "{name}: {report}");
    assert!(decisions <= forced, "{name}: {report}");
    assert!(found.token.len() <= 64, "{name}: {report}");
    let again = bug.replay(&found.token).expect("a token");
    let again = again.failure.expect("it fails again").failure;
    assert_eq!(again.finding.kind, kind);
    // When another thread gets to it is nobody's choice.
    assert!(again == found.failure || kind == Kind::Foreign, "{again:?}");
}
