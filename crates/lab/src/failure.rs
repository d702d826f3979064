//! What went wrong in a run, in words.

use std::fmt;

use asx_kernel::digest::Digest;
use asx_kernel::status::Status;
use asx_runtime::{Cancelled, Panic};

use crate::explore::Verdict;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A task panicked.
    Panic,
    /// The program answered an error.
    Error,
    /// Nothing can run any more, and not everything has ended.
    Deadlock,
    /// It went on for longer than it may.
    Livelock,
    /// Something was left behind.
    Leak,
    /// The program was ended from within.
    Ended,
    /// The same decisions did not lead to the same run.
    Nondeterminism,
}

impl Kind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Panic => "panic",
            Kind::Error => "error",
            Kind::Deadlock => "deadlock",
            Kind::Livelock => "livelock",
            Kind::Leak => "leak",
            Kind::Ended => "ended",
            Kind::Nondeterminism => "not deterministic",
        }
    }
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of what kind.
    pub kind: Kind,
    /// In words.
    pub message: String,
    /// Who waits for what, where that says more.
    pub detail: String,
}

impl Finding {
    fn new(kind: Kind, message: impl Into<String>) -> Finding {
        Finding { kind, message: message.into(), detail: String::new() }
    }

    pub(crate) fn panicked(panic: &Panic) -> Finding {
        Finding::new(Kind::Panic, panic.message())
    }

    pub(crate) fn error(error: &dyn fmt::Debug) -> Finding {
        Finding::new(Kind::Error, format!("{error:?}"))
    }

    pub(crate) fn ended(cancelled: &Cancelled) -> Finding {
        Finding::new(Kind::Ended, cancelled.to_string())
    }

    pub(crate) fn refused(status: Status) -> Finding {
        Finding::new(Kind::Ended, status.name())
    }

    pub(crate) fn deadlock(tasks: usize, waiting: String) -> Finding {
        let message = format!("{tasks} tasks wait, and nobody is left to wake them");
        Finding { detail: waiting, ..Finding::new(Kind::Deadlock, message) }
    }

    pub(crate) fn endless(waiting: String, steps: u64) -> Finding {
        let message = format!("not over after {steps} polls");
        Finding { detail: waiting, ..Finding::new(Kind::Livelock, message) }
    }

    pub(crate) fn nondeterminism(message: String, detail: String) -> Finding {
        Finding { detail, ..Finding::new(Kind::Nondeterminism, message) }
    }

    pub(crate) fn leaked_timers(count: usize) -> Finding {
        Finding::new(Kind::Leak, format!("{count} timers are still armed"))
    }
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub finding: Finding,
    /// In which poll, from 1.
    pub step: u64,
    /// The task that was polled, of a panic.
    pub task: Option<String>,
    /// Where in the source, of a panic.
    pub place: Option<String>,
}

impl Failure {
    pub(crate) fn new(finding: Finding, step: u64) -> Failure {
        Failure { finding, step, task: None, place: None }
    }

    /// A number that says whether two failures are the same one.
    pub fn id(&self) -> u64 {
        let Finding { kind, message, .. } = &self.finding;
        Digest::new().word(*kind as u64).bytes(message.as_bytes()).value()
    }

    pub(crate) fn is_nondeterminism(&self) -> bool {
        self.finding.kind == Kind::Nondeterminism
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::Failed(self.id())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { kind, message, detail } = &self.finding;
        write!(f, "{} at step {}", kind.name(), self.step)?;
        if let Some(task) = &self.task {
            write!(f, " in `{task}`")?;
        }
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        writeln!(f, ": {message}")?;
        detail.lines().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
