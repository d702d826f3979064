//! Pure questions about the laws, as typed data.

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::{Lane, Suggestion};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use core::time::Duration;

/// A pure question.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Law {
    JoinOutcomes { of: Vec<End>, right: bool },
    Strengthen { reasons: Vec<Why> },
    KindInfo { kind: Kind },
    Meet { of: Vec<Budget> },
    ConsumePolls { budget: Budget, polls: u64 },
    ConsumeCost { budget: Budget, cost: u64 },
    CheckDeadline { budget: Budget, now: Time },
    WaitUntil { budget: Budget, now: Time, timeout: Duration },
    TaskMove { from: Vec<TaskState>, to: Vec<TaskState> },
    RegionMove { from: Vec<RegionState>, to: Vec<RegionState> },
    ObligationMove { from: Vec<ObligationState>, to: Vec<ObligationState> },
    PhaseMove { from: Vec<Phase>, to: Vec<Phase> },
    ValidateWitness { prev: Seen, next: Seen },
    Rng { seed: Option<u64>, worker: u64, count: usize },
    StealOrder { seed: Option<u64>, worker: usize, workers: usize },
    Decide { pending: Vec<Lane>, suggestion: Suggestion, limit: u32, history: Vec<Lane> },
    Certificates { left: Vec<Lane>, right: Vec<Lane> },
}

/// An outcome as an author writes it.
#[derive(Clone, Debug)]
pub struct End {
    /// How bad.
    pub severity: Severity,
    /// The reason, of a cancel; the message, of the others.
    pub why: Why,
}

/// A reason as an author writes it.
#[derive(Clone, Debug)]
pub struct Why {
    /// Its kind.
    pub kind: Kind,
    /// Its timestamp.
    pub at: Time,
    /// Its message.
    pub message: Option<String>,
}

/// A witness as an author writes it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The task's number.
    pub task: u32,
    /// The region's number.
    pub region: u32,
    /// The epoch.
    pub epoch: u64,
    /// The phase.
    pub phase: Phase,
    /// The reason's kind.
    pub kind: Kind,
}
