//! Pure questions about the laws, as typed data.

use super::user;
use crate::parse::words::{self, OneOrMore, Word};
use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::{Lane, Suggestion};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use core::time::Duration;
use serde::Deserialize;

fn usual_limit() -> u32 {
    16
}

/// A pure question.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Law {
    JoinOutcomes {
        of: Vec<End>,
        #[serde(default)]
        fold: JoinOrder,
    },
    Strengthen {
        #[serde(deserialize_with = "words::several")]
        reasons: Vec<Why>,
    },
    KindInfo {
        kind: Word<Kind>,
    },
    Meet {
        #[serde(deserialize_with = "words::budgets")]
        of: Vec<Budget>,
    },
    ConsumePolls {
        #[serde(deserialize_with = "words::budget")]
        budget: Budget,
        polls: u64,
    },
    ConsumeCost {
        #[serde(deserialize_with = "words::budget")]
        budget: Budget,
        cost: u64,
    },
    CheckDeadline {
        #[serde(deserialize_with = "words::budget")]
        budget: Budget,
        #[serde(deserialize_with = "words::time")]
        now: Time,
    },
    WaitUntil {
        #[serde(deserialize_with = "words::budget")]
        budget: Budget,
        #[serde(deserialize_with = "words::time")]
        now: Time,
        timeout: Duration,
    },
    TaskMove {
        from: OneOrMore<TaskState>,
        to: OneOrMore<TaskState>,
    },
    RegionMove {
        from: OneOrMore<RegionState>,
        to: OneOrMore<RegionState>,
    },
    ObligationMove {
        from: OneOrMore<ObligationState>,
        to: OneOrMore<ObligationState>,
    },
    PhaseMove {
        from: OneOrMore<Phase>,
        to: OneOrMore<Phase>,
    },
    ValidateWitness {
        prev: Seen,
        next: Seen,
    },
    Rng {
        seed: Option<u64>,
        #[serde(default)]
        worker: u64,
        values: Vec<u64>,
    },
    StealOrder {
        seed: Option<u64>,
        #[serde(default)]
        worker: usize,
        #[serde(deserialize_with = "words::within::<_, _, 1, 1024>")]
        workers: usize,
    },
    Decide {
        pending: Vec<Word<Lane>>,
        #[serde(default)]
        suggestion: Word<Suggestion>,
        #[serde(
            default = "usual_limit",
            deserialize_with = "words::within::<_, _, 1, 4294967295>"
        )]
        limit: u32,
        #[serde(default)]
        history: Vec<Word<Lane>>,
    },
    Certificates {
        left: Vec<Word<Lane>>,
        right: Vec<Word<Lane>>,
    },
}

/// From which end outcomes are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum JoinOrder {
    #[default]
    Left,
    Right,
}

/// An outcome as an author writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "an outcome")]
pub struct End {
    /// How bad.
    #[serde(rename = "is")]
    pub severity: Word<Severity>,
    /// The kind of a cancel.
    pub kind: Option<Word<Kind>>,
    /// The timestamp of a cancel.
    #[serde(default, deserialize_with = "words::time")]
    pub at: Time,
    /// Its message.
    pub message: Option<String>,
}

impl End {
    /// Whether it has a kind although it is no cancel.
    pub(crate) fn is_odd(&self) -> bool {
        self.kind.is_some() && self.severity.0 != Severity::Cancelled
    }
}

/// A reason as an author writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "a reason")]
pub struct Why {
    /// Its kind.
    #[serde(default = "user")]
    pub kind: Word<Kind>,
    /// Its timestamp.
    #[serde(default, deserialize_with = "words::time")]
    pub at: Time,
    /// Its message.
    pub message: Option<String>,
}

/// A witness as an author writes it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename = "a witness", default)]
pub struct Seen {
    /// The task's number.
    pub task: u32,
    /// The region's number.
    pub region: u32,
    /// The epoch.
    pub epoch: u64,
    /// The phase.
    pub phase: Word<Phase>,
    /// The reason's kind.
    pub kind: Word<Kind>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { task: 1, region: 0, epoch: 1, phase: Word(Phase::Requested), kind: user() }
    }
}
