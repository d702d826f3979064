//! What a host must offer to run scenarios.
//!
//! Names, expectations, scripted bodies and reports are shared; a host applies ops to its own
//! runtime and answers with a [`Reply`]. Scripted tasks run as a
//! [`BodyRunner`](crate::BodyRunner) over the host's [`TaskOps`](crate::TaskOps), from wherever the
//! host polls: directly in the model, from inside a future elsewhere.

use crate::events::{HostEvent, Ordinals};
use crate::scenario::{Op, Scenario, ScriptStep};
use crate::value::Value;
use asx_kernel::journal::Event;
use asx_kernel::status::{Coded, Status};
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that runs scenarios.
pub trait Host {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Whether it can run the scenario, perhaps without some lines; if not, why.
    fn can_run(&self, scenario: &Scenario) -> Result<(), String>;

    /// Why it cannot express an op, if it cannot. Such an op is skipped, and named in the report.
    fn hindrance(&self, _scenario: &Scenario, _step: &ScriptStep) -> Option<&'static str> {
        None
    }

    /// Whether it keeps events. If not, nothing of `[expect]` is checked that is about events.
    fn keeps_events(&self) -> bool {
        true
    }

    /// Whether it dispatches in the order of the model. If not, a run that differs from the model
    /// passes if all tasks, cancels and obligations end as they do there.
    fn keeps_order(&self) -> bool {
        true
    }

    /// The profile that it runs, if it has several.
    fn profile(&self) -> Option<&'static str> {
        None
    }

    /// Forgets everything and sets up a fresh world.
    fn start(&mut self, scenario: &Arc<Scenario>, seed: u64);

    /// Applies an op of `setup` or `steps`. Pure questions may be left to
    /// [`laws::answer`](crate::laws::answer).
    fn apply(&mut self, op: &Op) -> Reply;

    /// What went wrong inside bodies since the last call.
    fn take_failures(&mut self) -> Vec<Failure>;

    /// Looks for a broken invariant.
    fn check(&self) -> Result<(), String>;

    /// What happened so far.
    fn record(&self) -> Record;
}

/// The answer to an op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: Status,
    /// Its results.
    pub got: Vec<(&'static str, Value)>,
    /// A word for people when the status alone says little.
    pub note: Option<String>,
}

impl Reply {
    /// Success without results.
    pub const fn ok() -> Reply {
        Reply::status(Status::Ok)
    }

    /// A status without results.
    pub const fn status(status: Status) -> Reply {
        Reply { status, got: Vec::new(), note: None }
    }

    /// Adds a result.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Reply {
        self.got.push((key, value.into()));
        self
    }

    /// Adds a word for people.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Reply {
        self.note = Some(note.into());
        self
    }

    /// The result under `key`.
    pub fn result(&self, key: &str) -> Option<&Value> {
        self.got.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl<E: Coded> From<Result<(), E>> for Reply {
    fn from(result: Result<(), E>) -> Reply {
        match result {
            Ok(()) => Reply::ok(),
            Err(error) => Reply::status(error.status()),
        }
    }
}

impl From<Status> for Reply {
    fn from(status: Status) -> Reply {
        Reply::status(status)
    }
}

/// An expectation that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where it stands in the file; 0 if nowhere.
    pub line: usize,
    /// Byte offset in the file of the op that failed, if it was an op.
    pub op: Option<usize>,
    /// What was looked at.
    pub what: String,
    /// What the file says.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Failure {
    /// A failure.
    pub fn new(
        line: usize,
        what: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Failure {
        let (what, expected, got) = (what.into(), expected.into(), got.into());
        Failure { line, op: None, what, expected, got }
    }

    /// The failure as one of this op.
    #[must_use]
    pub fn of(self, step: &ScriptStep) -> Failure {
        Failure { op: Some(step.offset), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.what, self.expected, self.got)
    }
}

/// What a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The retained journal.
    pub events: Vec<Event>,
    /// The digest of all events that were recorded.
    pub digest: u64,
    /// How many events were recorded.
    pub recorded: u64,
    /// Host-only events.
    pub host_events: Vec<HostEvent>,
    /// Who is who in the journal.
    pub names: Ordinals,
    /// How named tasks have ended, if they have.
    pub outcomes: BTreeMap<String, Option<&'static str>>,
    /// Every quiescence failure.
    pub not_quiescent: Vec<Status>,
}
