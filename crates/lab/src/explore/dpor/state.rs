//! The state before a step: who sleeps, what is owed, what is being tried.

use super::wakeup::{NONE, Wakeups};
use crate::explore::trace::Print;

/// The state before a step, and what was and will be tried from there.
#[derive(Debug)]
pub(super) struct State {
    pub(super) enabled: Vec<u32>,
    /// The tasks whose next step is covered elsewhere, and what it touches.
    pub(super) sleep: Vec<(u32, Print)>,
    /// How many of them slept from the start.
    pub(super) inherited: usize,
    pub(super) wakeups: u32,
    pub(super) task: u32,
    /// Where the task was among the enabled.
    pub(super) index: usize,
    /// The choices in the step: count and value.
    pub(super) picks: Vec<(u32, u32)>,
    /// What the step touched, over all choices.
    pub(super) print: Print,
    /// Cancels in the steps before, and in this one.
    pub(super) cancels: usize,
    pub(super) injected: usize,
}

impl State {
    pub(super) fn new() -> State {
        State {
            enabled: Vec::new(),
            sleep: Vec::new(),
            inherited: 0,
            wakeups: NONE,
            task: 0,
            index: 0,
            picks: Vec::new(),
            print: Print::default(),
            cancels: 0,
            injected: 0,
        }
    }

    /// Starts with the first tree that nobody covers meanwhile; gives its subtrees.
    pub(super) fn wake(&mut self, wakeups: &mut Wakeups) -> Option<u32> {
        while let Some((task, child)) = wakeups.pop(&mut self.wakeups) {
            if self.sleep.iter().all(|(asleep, _)| *asleep != task) {
                self.start(task);
                return Some(child);
            }
            wakeups.discard(child);
        }
        None
    }

    pub(super) fn start(&mut self, task: u32) {
        (self.task, self.print) = (task, Print::default());
        self.picks.clear();
    }
}
