//! The task's word law: six states, thirteen legal steps.
//!
//! ```text
//!  Created ----> Running ------------------------------------------+
//!     |  \          |                                              |
//!     |   \         v                                              v
//!     |    +--> CancelRequested --> Cancelling --> Finalizing --> Completed
//!     |           (strengthen)      (strengthen)   (strengthen)    ^
//!     +------------------------------------------------------------+   every state may complete
//! ```
//! A request does not end a task: it runs on until a cancel-checked operation *acknowledges* the
//! request, and a task that ends before that keeps its natural outcome.

use crate::cancel::{Cleanup, Phase, Reason};
use crate::status::Status;

named_enum! {
    /// The state of a task.
    #[derive(Default, PartialOrd, Ord)]
    pub enum TaskState {
        /// Never polled.
        #[default]
        Created = 0,
        /// Polled at least once.
        Running = 1,
        /// Cancel requested, but not observed.
        CancelRequested = 2,
        /// Cancel observed; the task's own cleanup runs.
        Cancelling = 3,
        /// The body has ended after a cancel; the cleanup stack runs.
        Finalizing = 4,
        /// The task has ended.
        Completed = 5,
    }
}

/// An event of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// A poll begins.
    Poll,
    /// A cancel is requested.
    RequestCancel,
    /// The task observes the request.
    Acknowledge,
    /// The body has ended; the cleanup stack follows.
    BodyEnded,
    /// Nothing is left to run.
    Complete,
}

/// The consequence of an event for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEffect {
    /// None.
    None,
    /// First request: a new epoch, a witness, a wake in the cancel lane.
    Requested,
    /// Another request: the reason is strengthened, the cleanup allowances combined.
    Strengthened,
    /// The cleanup allowance replaces the task's budget.
    Acknowledged,
    /// The task ends with the outcome of its body.
    Natural,
    /// The task ends Cancelled (a panic stays a panic), with a Completed witness.
    Cancelled,
}

impl TaskState {
    /// Checks that the transition `self -> to` exists.
    pub const fn check(self, to: TaskState) -> Result<(), Status> {
        use TaskState::*;
        match (self, to) {
            (Created, Running | CancelRequested | Completed)
            | (Running, CancelRequested | Completed)
            | (CancelRequested, CancelRequested | Cancelling | Completed)
            | (Cancelling, Cancelling | Finalizing | Completed)
            | (Finalizing, Finalizing | Completed) => Ok(()),
            _ => Err(Status::InvalidTransition),
        }
    }

    /// Applies an event. Every state change is a legal transition.
    pub const fn step(self, event: TaskEvent) -> Result<(TaskState, TaskEffect), Status> {
        use {TaskEvent::*, TaskState::*};
        Ok(match (self, event) {
            (Completed, RequestCancel) => (Completed, TaskEffect::None),
            (Completed, _) => return Err(Status::InvalidTransition),
            (Created, Poll) => (Running, TaskEffect::None),
            (_, Poll) => (self, TaskEffect::None),
            (Created | Running, RequestCancel) => (CancelRequested, TaskEffect::Requested),
            (_, RequestCancel) => (self, TaskEffect::Strengthened),
            (CancelRequested, Acknowledge) => (Cancelling, TaskEffect::Acknowledged),
            (Cancelling, Acknowledge) => (Cancelling, TaskEffect::None),
            (_, Acknowledge) => return Err(Status::InvalidTransition),
            (Cancelling, BodyEnded) => (Finalizing, TaskEffect::None),
            (_, BodyEnded) => (self, TaskEffect::None),
            (Cancelling | Finalizing, Complete) => (Completed, TaskEffect::Cancelled),
            (_, Complete) => (Completed, TaskEffect::Natural),
        })
    }

    /// Whether a runnable task in this state belongs in the cancel lane.
    pub const fn in_cancel_lane(self) -> bool {
        matches!(self, TaskState::CancelRequested | TaskState::Cancelling | TaskState::Finalizing)
    }

    /// Whether the cancel was observed, so that the task ends Cancelled.
    pub const fn acknowledged(self) -> bool {
        matches!(self, TaskState::Cancelling | TaskState::Finalizing)
    }

    /// Returns the phase of a cancel that is in progress.
    pub const fn phase(self) -> Option<Phase> {
        match self {
            TaskState::CancelRequested => Some(Phase::Requested),
            TaskState::Cancelling => Some(Phase::Cancelling),
            TaskState::Finalizing => Some(Phase::Finalizing),
            _ => None,
        }
    }
}

/// A requested cancel: its reason, and the cleanup that is still allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRecord {
    /// The reason as strengthened so far.
    pub reason: Reason,
    /// Polls still allowed once acknowledged, and the priority.
    pub cleanup: Cleanup,
}

/// A task's state together with its cancel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    state: TaskState,
    epoch: u64,
    cancel: Option<CancelRecord>,
}

impl Lifecycle {
    getters! {
        /// The state.
        state(&self) -> TaskState = self.state;
        /// The number of cancels begun: 0 or 1.
        epoch(&self) -> u64 = self.epoch;
        /// The cancel, if one was requested.
        cancel(&self) -> Option<&CancelRecord> = self.cancel.as_ref();
    }

    /// A poll begins.
    pub fn poll(&mut self) -> Result<(), Status> {
        self.apply(TaskEvent::Poll).map(drop)
    }

    /// Cancels the task. Returns true the first time. A later request strengthens the reason and
    /// tightens the remaining allowance; on a completed task it does nothing.
    pub fn request_cancel(&mut self, reason: Reason, cleanup: Cleanup) -> bool {
        let Ok(effect) = self.apply(TaskEvent::RequestCancel) else { return false };
        match (effect, &mut self.cancel) {
            (TaskEffect::None, _) => {}
            (_, None) => self.cancel = Some(CancelRecord { reason, cleanup }),
            (_, Some(record)) => {
                let both = record.reason.combine(record.cleanup, &reason, cleanup);
                record.cleanup = both.cleanup;
                if both.stronger {
                    record.reason = reason;
                }
            }
        }
        let first = effect == TaskEffect::Requested;
        self.epoch += u64::from(first);
        first
    }

    /// The task observes the request. Returns its reason and the cleanup allowance, which bounds
    /// the task from now on.
    pub fn acknowledge(&mut self) -> Result<&CancelRecord, Status> {
        self.apply(TaskEvent::Acknowledge)?;
        self.cancel.as_ref().ok_or(Status::Internal)
    }

    /// The body has ended; the cleanup stack follows.
    pub fn body_ended(&mut self) -> Result<(), Status> {
        self.apply(TaskEvent::BodyEnded).map(drop)
    }

    /// The task completes. Returns the reason if it ends Cancelled.
    pub fn complete(&mut self) -> Result<Option<&Reason>, Status> {
        let effect = self.apply(TaskEvent::Complete)?;
        let cancelled = effect == TaskEffect::Cancelled;
        Ok(self.cancel.as_ref().map(|record| &record.reason).filter(|_| cancelled))
    }

    /// Consumes one poll of the cleanup allowance. Returns false if none is left, or if the cancel
    /// was not observed.
    pub fn consume_cleanup_poll(&mut self) -> bool {
        match &mut self.cancel {
            Some(record) if self.state.acknowledged() && record.cleanup.polls > 0 => {
                record.cleanup.polls -= 1;
                true
            }
            _ => false,
        }
    }

    fn apply(&mut self, event: TaskEvent) -> Result<TaskEffect, Status> {
        let (state, effect) = self.state.step(event)?;
        self.state = state;
        Ok(effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_names_and_bits() {
        let names =
            ["Created", "Running", "CancelRequested", "Cancelling", "Finalizing", "Completed"];
        assert_eq!(TaskState::ALL.map(TaskState::name), names);
        assert_eq!(TaskState::ALL.map(TaskState::mask), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn a_new_task_has_no_cancel() {
        let mut task = Lifecycle::default();
        assert_eq!((task.state(), task.epoch(), task.cancel()), (TaskState::Created, 0, None));
        assert!(!task.consume_cleanup_poll());
    }
}
