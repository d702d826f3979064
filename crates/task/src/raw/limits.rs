//! The remaining budget of a task, and the handle of the alarm for its deadline.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::budget::{Budget, Exhausted, Noticed};
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::prim::{Mutex, lock_unseen};

/// A finite budget: the kernel's, counted down.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Never changes: lanes look at it without the lock.
    deadline: Option<Time>,
    /// Whether it no longer counts.
    lifted: AtomicBool,
    left: Mutex<Left>,
}

#[derive(Debug)]
struct Left {
    budget: Budget,
    alarm: Option<TimerHandle>,
    /// Polls taken.
    polls: u64,
    /// Which cancels for want of polls or cost have begun.
    noticed: Noticed,
}

/// What taking a poll came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    /// There was one.
    Taken,
    /// Polls or cost are used up, which is found for the first time.
    Exhausted(Exhausted),
    /// There was no poll left, as before.
    Overdrawn,
}

impl Limits {
    pub(crate) fn new(budget: Budget) -> Limits {
        let left = Mutex::new(Left { budget, alarm: None, polls: 0, noticed: Noticed::default() });
        Limits { deadline: budget.deadline, lifted: AtomicBool::new(false), left }
    }

    /// When the time is up, unless the budget has been lifted.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadline.filter(|_| !self.lifted.load(Relaxed))
    }

    pub(crate) fn left(&self) -> Budget {
        lock_unseen(&self.left).budget
    }

    /// Polls taken so far.
    pub(crate) fn polls(&self) -> u64 {
        lock_unseen(&self.left).polls
    }

    pub(crate) fn begin_poll(&self) -> Poll {
        let left = &mut *lock_unseen(&self.left);
        match left.budget.begin_poll(&mut left.noticed) {
            Ok(true) => {
                left.polls += 1;
                Poll::Taken
            }
            Ok(false) => Poll::Overdrawn,
            Err(exhausted) => Poll::Exhausted(exhausted),
        }
    }

    pub(crate) fn consume_cost(&self, cost: u64) -> Result<(), Exhausted> {
        let left = &mut *lock_unseen(&self.left);
        left.budget.consume_cost(cost).inspect_err(|exhausted| left.noticed.insert(*exhausted))
    }

    /// Sets the alarm that rings at the deadline.
    pub(crate) fn set_alarm(&self, alarm: Option<TimerHandle>) {
        lock_unseen(&self.left).alarm = alarm;
    }

    /// Takes the alarm of the deadline, for the caller to cancel.
    pub(crate) fn take_alarm(&self) -> Option<TimerHandle> {
        lock_unseen(&self.left).alarm.take()
    }

    /// Replaces the budget by an infinite one of the same priority: an allowance for cleanup
    /// bounds the task from now on. The caller cancels the alarm.
    pub(crate) fn lift(&self) {
        let mut left = lock_unseen(&self.left);
        self.lifted.store(true, Relaxed);
        left.budget = Budget { priority: left.budget.priority, ..Budget::INFINITE };
    }
}
