//! What is left of a task's budget, and the alarm for its deadline.

use asx_kernel::budget::Budget;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::cell::TaskRef;
use crate::core::{Alarm, Core};
use crate::prim::{Mutex, lock};

/// A finite budget: the kernel's, counted down.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Never changes, so that lanes need no lock.
    pub(crate) deadline: Option<Time>,
    left: Mutex<Left>,
}

#[derive(Debug)]
struct Left {
    budget: Budget,
    alarm: Option<TimerHandle>,
}

impl Limits {
    pub(crate) fn new(budget: Budget) -> Limits {
        let left = Mutex::new(Left { budget, alarm: None });
        Limits { deadline: budget.deadline, left }
    }

    pub(crate) fn left(&self) -> Budget {
        lock(&self.left).budget
    }

    pub(crate) fn consume_poll(&self) -> bool {
        lock(&self.left).budget.consume_poll().is_ok()
    }

    pub(crate) fn consume_cost(&self, cost: u64) -> bool {
        lock(&self.left).budget.consume_cost(cost).is_ok()
    }

    /// Has the task cancelled when its deadline comes.
    pub(crate) fn watch(&self, core: &Core, task: impl FnOnce() -> TaskRef) {
        if let Some(deadline) = self.deadline {
            let alarm = core.alarms.register(&*core.host, deadline, Alarm::Deadline(task()));
            lock(&self.left).alarm = alarm;
        }
    }

    /// The task is over.
    pub(crate) fn forget(&self, core: &Core) {
        let alarm = lock(&self.left).alarm.take();
        if let Some(alarm) = alarm {
            core.alarms.cancel(alarm);
        }
    }
}
