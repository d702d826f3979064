//! Polls: each lasts from a decision to the last event of the task before its worker's next
//! decision.
//!
//! A trace records when a poll begins, but not when it ends, so the shown length is a lower bound.

use asx_kernel::cancel::Phase;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Lane;
use asx_kernel::task::TaskState;
use std::collections::BTreeMap;

/// One poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// The number of the task, if the decision has one.
    pub(crate) task: Option<u64>,
    pub(crate) worker: u64,
    pub(crate) lane: Lane,
    /// The event of the decision.
    pub(crate) from: usize,
    /// The event after the end.
    pub(crate) to: usize,
}

#[derive(Default)]
pub(super) struct Polls {
    polls: Vec<Poll>,
    /// The current poll of each worker and of each task.
    by_worker: BTreeMap<u64, usize>,
    by_task: BTreeMap<u64, usize>,
}

impl Polls {
    pub(super) fn apply(&mut self, at: usize, event: &Event) {
        let task = event.subject.task;
        if let EventKind::Decision { worker, lane, .. } = event.kind {
            if let Some(before) = self.by_worker.insert(worker, self.polls.len())
                && let Some(task) = self.polls[before].task
                && self.by_task.get(&task) == Some(&before)
            {
                self.by_task.remove(&task);
            }
            if let Some(task) = task {
                self.by_task.insert(task, self.polls.len());
            }
            self.polls.push(Poll { task, worker, lane, from: at, to: at + 1 });
        } else if let Some(task) = task
            && let Some(&poll) = self.by_task.get(&task)
        {
            if is_external(event.kind) {
                self.by_task.remove(&task);
            } else {
                self.polls[poll].to = at + 1;
            }
            if matches!(event.kind, EventKind::TaskEnded { .. }) {
                self.by_task.remove(&task);
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Poll> {
        self.polls
    }
}

/// Whether the event happens to a task from outside its poll: the poll has ended before, or is not
/// aware of the event.
fn is_external(kind: EventKind) -> bool {
    match kind {
        EventKind::TaskSpawned { .. } | EventKind::TimerFired { .. } | EventKind::StaleWake {} => {
            true
        }
        EventKind::TaskMoved { to, .. } => to == TaskState::CancelRequested,
        EventKind::CancelWitness { phase, strengthened, .. } => {
            phase == Phase::Requested || strengthened
        }
        _ => false,
    }
}
