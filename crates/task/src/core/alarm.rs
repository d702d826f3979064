//! Alarms: the timers of the runtime itself.

use std::task::Waker;

use asx_kernel::budget::Exhausted;
use asx_kernel::time::Time;

use crate::core::Core;
use crate::core::timer_token::TimerToken;
use crate::raw::TaskRef;
use crate::raw::audit::Owner;
use crate::raw::contain_panic;
use crate::raw::limits::Limits;
use crate::raw::owner::TaskOwner;

/// An alarm, by the action it takes when it rings.
pub(crate) enum Alarm {
    /// Cancels a task: its deadline has passed.
    Deadline(TaskRef),
    /// Calls the layer above.
    Call(Box<dyn Ring>),
    /// Wakes a waker.
    Wake(Waker),
}

/// An alarm of the layer above.
pub(crate) trait Ring: Send + Sync {
    /// Rings the alarm.
    fn ring(self: Box<Self>);

    /// Whether it ends or reports work that takes too long, rather than cancelling it.
    #[cfg(feature = "lab")]
    fn enforces(&self) -> bool;
}

impl Alarm {
    fn ring(self) {
        match self {
            Alarm::Deadline(task) => task.owner().exhausted(&task, Exhausted::Deadline),
            Alarm::Call(alarm) => alarm.ring(),
            Alarm::Wake(waker) => contain_panic::wake(waker),
        }
    }

    /// Whether it ends or reports work that takes too long, rather than cancelling it.
    #[cfg(feature = "lab")]
    pub(crate) fn enforces(&self) -> bool {
        match self {
            Alarm::Deadline(_) => false,
            Alarm::Call(alarm) => alarm.enforces(),
            Alarm::Wake(_) => true,
        }
    }
}

impl Core {
    /// Rings the alarms that are due: deadlines first, in the order of their times and then of
    /// their tasks, and the others in the order of their times.
    pub(super) fn ring_alarms(&self, now: Time) {
        let mut deadlines = Vec::<(Time, TaskRef)>::new();
        let mut rest = Vec::new();
        self.alarms.fire(now, |expired| match expired.token.into_alarm() {
            // They come by time, and tasks mostly in the order of their numbers.
            Some(Alarm::Deadline(task)) => {
                let key = (expired.deadline, task.id());
                let at = deadlines.partition_point(|(time, task)| (*time, task.id()) <= key);
                deadlines.insert(at, (expired.deadline, task));
            }
            other => rest.extend(other),
        });
        for (_, task) in deadlines {
            Alarm::Deadline(task).ring();
        }
        rest.into_iter().for_each(Alarm::ring);
    }

    /// Cancels the task when its deadline comes.
    pub(crate) fn watch_deadline(&self, limits: &Limits, task: impl FnOnce() -> TaskRef) {
        if let Some(deadline) = limits.deadline() {
            let alarm = TimerToken::alarm(Alarm::Deadline(task().given_to(Owner::Alarm)));
            limits.set_alarm(self.alarms.register(&*self.host, deadline, alarm).ok());
        }
    }

    /// Lifts the limits of a task that has observed its cancel.
    pub(crate) fn lift_limits(&self, limits: &Limits) {
        limits.lift();
        self.forget_deadline(limits);
    }

    /// Cancels the alarm for a deadline that no longer counts.
    pub(crate) fn forget_deadline(&self, limits: &Limits) {
        if let Some(alarm) = limits.take_alarm() {
            drop(self.alarms.cancel(alarm));
        }
    }
}
