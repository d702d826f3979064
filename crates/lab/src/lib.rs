//! The lab: concurrent programs run under control, one schedule after another.
//!
//! A [`check`] runs a program many times, each time in another order of polls, and looks for a run
//! that panics, answers an error, deadlocks, never ends, leaves something behind, or is not the
//! same when it is made again. Such a run is made small, told in words, and written to a trace
//! ([`report`]); a token names it, so that it can be run again.
//!
//! [`explore`] decides which schedule is next, keeps a log of what was decided, and makes a failing
//! schedule short. It knows nothing of futures: whoever runs the program asks it at every choice.

#![deny(unsafe_code)]

mod check;
mod coverage;
pub mod explore;
mod failure;
mod fault_sweep;
mod found;
mod guard;
#[allow(unsafe_code, reason = "it polls pinned tasks, on its thread")]
mod host;
#[allow(unsafe_code, reason = "it promises to keep pinned tasks on its thread")]
mod machine;
mod panic_hook;
mod recording;
mod replay_choices;
pub mod report;
mod search;
#[allow(unsafe_code, reason = "a waker without a count")]
mod signal;
mod stuck;
#[allow(unsafe_code, reason = "only one thread gets in")]
mod thread_bound;
mod watch;
mod words;
#[allow(unsafe_code, reason = "they poll pinned tasks, on one thread")]
pub mod workers;

pub use asx_kernel::lanes::TieBreak;
pub use check::{Check, How, Judged, check};
pub use failure::{Failure, Finding, Kind};
pub use found::{Found, Report};
pub use recording::Trace;

/// What `#[asx::test]` expands to.
#[doc(hidden)]
pub mod __test {
    use crate::Judged;

    /// Whether one schedule is to be run, and nothing else.
    pub fn is_replay() -> bool {
        crate::check::replayed().is_some()
    }

    /// The value, as what can be judged: so that one that can't be is an error where this is named.
    pub fn judged<T: Judged>(value: T) -> impl Judged {
        value
    }

    /// Panics if the value says that something went wrong.
    #[track_caller]
    pub fn passed(value: impl Judged) {
        if let Some(finding) = value.judge() {
            panic!("{}: {}", finding.kind.name(), finding.message);
        }
    }

    /// The name of a test as `cargo test` has it: without the crate.
    pub fn name(path: &str) -> &str {
        path.split_once("::").map_or(path, |(_, name)| name)
    }
}
