//! Polls: from a decision to the last thing the task did before its worker decided again.
//!
//! A trace says when a poll begins, not when it ends. What is shown is what it was at least.

use asx_kernel::cancel::Phase;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Lane;
use asx_kernel::task::TaskState;
use std::collections::BTreeMap;

/// One poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// The number of the task, if the decision names one.
    pub(crate) task: Option<u64>,
    pub(crate) worker: u64,
    pub(crate) lane: Lane,
    /// The decision.
    pub(crate) from: usize,
    /// The event after it.
    pub(crate) to: usize,
}

#[derive(Default)]
pub(super) struct Polls {
    polls: Vec<Poll>,
    /// The poll under way, by worker and by task.
    by_worker: BTreeMap<u64, usize>,
    by_task: BTreeMap<u64, usize>,
}

impl Polls {
    pub(super) fn look(&mut self, at: usize, event: &Event) {
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
            if is_done_to_it(event.kind) {
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

/// Others do this to a task: its own poll is over by then, or does not know of it.
fn is_done_to_it(kind: EventKind) -> bool {
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
