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

mod backtrace;
mod check;
mod coverage;
pub mod explore;
mod failure;
mod fault_pairs;
mod fault_sweep;
#[allow(unsafe_code, reason = "a handle to the stack that runs")]
mod fiber;
mod found;
mod guard;
#[allow(unsafe_code, reason = "it polls pinned tasks, on its thread")]
mod host;
#[allow(unsafe_code, reason = "it promises to keep pinned tasks on its thread")]
mod machine;
#[cfg_attr(target_family = "wasm", allow(dead_code, reason = "programs there have no network"))]
mod net;
mod panic_hook;
mod recording;
mod replay_choices;
pub mod report;
mod search;
#[allow(unsafe_code, reason = "a waker without a count")]
mod signal;
mod source;
#[allow(unsafe_code, reason = "a function of the C library")]
mod std_locks;
mod stuck;
mod telling;
#[allow(unsafe_code, reason = "only one thread gets in")]
mod thread_bound;
mod wait_log;
mod watch;
mod words;
#[allow(unsafe_code, reason = "they poll pinned tasks, on one thread")]
pub mod workers;

pub use asx_kernel::lanes::TieBreak;
pub use check::{Check, Grain, How, Judged, check};
pub use failure::{Failure, Finding, Kind};
pub use found::{Found, Part, Proof, Report, Stopped};
pub use net::Faults;
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
