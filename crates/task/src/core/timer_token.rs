//! The token of a timer: a waker, in two words. A token with more data is a pointer to a box,
//! stored as the data of a waker with a vtable that is private to this file.
//!
//! # Rule
//! 9. *Boxes*. A waker with the vtable [`BOXED`] is made by [`TimerToken::boxed`] only, from a box
//!    it then owns. It never leaves its [`TimerToken`], so only its drop is ever called, and not
//!    that either if the box is taken out.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

use asx_kernel::wheel::TimerHandle;

use crate::core::Core;
use crate::core::alarm::Alarm;
use crate::raw::{TaskRef, is_task_waker, task_of};

static BOXED: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, drop_box);

/// A timer: its owner, and the waker that it wakes.
pub(crate) struct TimerToken(Waker);

/// The owner of a timer.
pub(crate) enum TimerOwner {
    /// A task that waits; its number.
    Task(u64),
    /// A region.
    Region(Arc<dyn TimerRegion>),
    /// The runtime itself.
    Alarm(Alarm),
}

/// A region as the owner of timers.
pub(crate) trait TimerRegion: Send + Sync {
    /// The number of the region.
    fn id(&self) -> u64;

    /// Removes a timer that has fired from the list of the region.
    fn forget_timer(&self, timer: TimerHandle);
}

struct Boxed {
    owner: TimerOwner,
    wakes: Option<Waker>,
}

impl TimerToken {
    /// Creates a token for a wait of a task. The owner is stored only if the timer is `recorded`.
    pub(crate) fn by_task(task: &TaskRef, waker: Waker, recorded: bool) -> TimerToken {
        if recorded && task_of(&waker) != Some(task.as_ptr()) {
            return TimerToken::boxed(TimerOwner::Task(task.id()), Some(waker));
        }
        TimerToken(waker)
    }

    pub(crate) fn boxed(owner: TimerOwner, wakes: Option<Waker>) -> TimerToken {
        let data = Box::into_raw(Box::new(Boxed { owner, wakes })).cast_const().cast();
        // SAFETY: rule 9; the functions of the vtable may be called on any thread.
        TimerToken(unsafe { Waker::from_raw(RawWaker::new(data, &BOXED)) })
    }

    fn as_boxed(&self) -> Option<&Boxed> {
        // SAFETY: rule 9.
        ptr::eq(self.0.vtable(), &BOXED).then(|| unsafe { &*self.0.data().cast() })
    }

    /// Whether it wakes the same task as `waker`.
    pub(crate) fn is(&self, waker: &Waker) -> bool {
        match self.as_boxed() {
            None => self.0.will_wake(waker),
            Some(boxed) => boxed.wakes.as_ref().is_some_and(|own| own.will_wake(waker)),
        }
    }

    /// The owner as the journal has it: the number of the task plus one and the number of the
    /// region plus one; 0 if it is not known.
    #[inline]
    pub(crate) fn owner(&self) -> (u64, u64) {
        if let Some(task) = task_of(&self.0) {
            // SAFETY: rule 1: the waker keeps the task alive.
            return (unsafe { task.as_ref() }.id() + 1, 0);
        }
        match self.as_boxed().map(|boxed| &boxed.owner) {
            None => (0, 0),
            Some(TimerOwner::Task(id)) => (id + 1, 0),
            Some(TimerOwner::Region(region)) => (0, region.id() + 1),
            Some(TimerOwner::Alarm(_)) => (0, 0),
        }
    }

    /// Whether the timer belongs to a region.
    pub(crate) fn is_of_region(&self) -> bool {
        self.as_boxed().is_some_and(|boxed| matches!(boxed.owner, TimerOwner::Region(_)))
    }

    /// Creates a token for an alarm.
    pub(crate) fn alarm(alarm: Alarm) -> TimerToken {
        TimerToken::boxed(TimerOwner::Alarm(alarm), None)
    }

    /// Returns the alarm, if it is one.
    pub(crate) fn into_alarm(self) -> Option<Alarm> {
        match self.into_boxed().ok()?.owner {
            TimerOwner::Alarm(alarm) => Some(alarm),
            _ => None,
        }
    }

    /// Whether this is an alarm that ends or reports work that takes too long.
    #[cfg(feature = "lab")]
    pub(crate) fn enforces(&self) -> bool {
        self.as_boxed().is_some_and(|boxed| match &boxed.owner {
            TimerOwner::Alarm(alarm) => alarm.enforces(),
            _ => false,
        })
    }

    /// Takes the content of the box, or returns the waker if there is no box.
    fn into_boxed(self) -> Result<Box<Boxed>, Waker> {
        if self.as_boxed().is_none() {
            return Err(self.0);
        }
        let waker = ManuallyDrop::new(self.0);
        // SAFETY: rule 9: this waker owns the box, and is not dropped.
        Ok(unsafe { Box::from_raw(waker.data().cast_mut().cast::<Boxed>()) })
    }

    /// Fires the timer.
    pub(crate) fn fire(self, core: &Core, handle: TimerHandle) {
        if is_task_waker(&self.0) {
            return self.0.wake();
        }
        match self.into_boxed() {
            Err(waker) => core.wake(waker),
            Ok(mut boxed) => {
                if let TimerOwner::Region(region) = &boxed.owner {
                    region.forget_timer(handle);
                }
                if let Some(waker) = boxed.wakes.take() {
                    core.wake(waker);
                }
            }
        }
    }

    /// Drops a token that will not fire.
    #[inline]
    pub(crate) fn discard(self, core: &Core) {
        if !is_task_waker(&self.0) {
            core.discard(self);
        }
    }
}

unsafe fn clone(_: *const ()) -> RawWaker {
    RawWaker::new(ptr::null(), Waker::noop().vtable())
}

unsafe fn ignore(_: *const ()) {}

unsafe fn drop_box(data: *const ()) {
    // SAFETY: rule 9: this is the one drop of the waker that owns the box.
    drop(unsafe { Box::from_raw(data.cast_mut().cast::<Boxed>()) });
}
