//! A timer in the hand of a future.

use std::borrow::Borrow;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::core::Core;
use crate::core::timer_token::TimerToken;
use crate::error::TOO_FAR;
use crate::footprint;
use crate::raw::foreign_wakers::Registration;
use crate::raw::{is_child_waker, is_task_waker};
use crate::wait::Wait;
use crate::{Cancelled, Cx};

/// At most one timer of the wheel, which is taken out again when this is dropped. The context is
/// borrowed, or its own.
pub(crate) struct Timer<C: Borrow<Cx>> {
    cx: C,
    deadline: Time,
    /// The handle of the timer, without what it would be padded with. Without a timer: [`AHEAD`] if
    /// the deadline was in the future when this was made, so that the clock need not be looked at.
    generation: u64,
    slot: u32,
    registration: Registration,
}

/// No timer: the wheel has fewer slots.
const NONE: u32 = u32::MAX;
const AHEAD: u64 = 1;

impl<'a> Timer<&'a Cx> {
    /// A timer that is armed at once, also for a time that has passed.
    pub(crate) fn armed(cx: &'a Cx, deadline: Time) -> Result<Self, Status> {
        let mut timer = Timer::new(cx, deadline, false);
        timer.arm(&cx.task().lend_waker())?;
        Ok(timer)
    }

    pub(crate) fn cx(&self) -> &'a Cx {
        self.cx
    }
}

impl<C: Borrow<Cx>> Timer<C> {
    pub(crate) fn new(cx: C, deadline: Time, ahead: bool) -> Self {
        let generation = if ahead { AHEAD } else { 0 };
        Timer { cx, deadline, generation, slot: NONE, registration: Registration::NONE }
    }

    /// The context, for as long as this is borrowed.
    #[inline]
    pub(crate) fn context(&self) -> &Cx {
        self.cx.borrow()
    }

    #[inline]
    fn core(&self) -> &Arc<Core> {
        self.context().core()
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn arm(&mut self, waker: &Waker) -> Result<(), Status> {
        let core = self.core();
        if cfg!(feature = "lab") && !is_task_waker(waker) && !is_child_waker(waker) {
            footprint::arms_foreign(self.deadline);
        }
        let armed = TimerToken::by_task(self.context().task(), waker.clone(), core.recording());
        let handle = core.arm(self.deadline, armed)?;
        self.keep(Some(handle));
        Ok(())
    }

    fn keep(&mut self, handle: Option<TimerHandle>) {
        let slot = handle.and_then(|handle| u32::try_from(handle.id).ok());
        self.slot = slot.unwrap_or(NONE);
        self.generation = handle.map_or(0, |handle| handle.generation);
    }

    #[inline]
    fn handle(&self) -> Option<TimerHandle> {
        let id = self.slot.into();
        let generation = self.generation;
        (self.slot != NONE).then_some(TimerHandle { id, generation })
    }

    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Waits for another time from now on. The next poll arms the timer for it.
    pub(crate) fn reset(&mut self, deadline: Time) {
        if let Some(handle) = self.handle() {
            self.core().cancel_timer(handle);
        }
        self.keep(None);
        self.deadline = deadline;
    }

    /// The wait is over, and the next one is for another time.
    #[cfg(feature = "stream")]
    pub(crate) fn renew(&mut self, deadline: Time) {
        self.reset(deadline);
        self.registration = Registration::NONE;
    }

    /// The first step of a poll of whoever waits for nothing but this; see [`Cx::poll_proceed`].
    pub(crate) fn poll_proceed(&mut self, context: &Context<'_>) -> Poll<Result<(), Cancelled>> {
        self.cx.borrow().poll_proceed(context, &mut self.registration)
    }

    /// Waits for the time to come: the waker is woken then. Only the last one is. An error if
    /// nobody would wake it, as the task of the context has ended and nothing of the runtime runs.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Result<(), Cancelled>> {
        match self.handle() {
            None if self.generation != AHEAD && self.is_over() => return Poll::Ready(Ok(())),
            None => {}
            Some(handle) => match self.core().timers.look(handle, |last| last.is(waker)) {
                None => {
                    self.keep(None);
                    // That of a task that has ended may have been abandoned, and any other taken
                    // out with the clock.
                    let gone = self.is_late() || self.core().timers.is_refusing();
                    if !gone || self.is_over() {
                        return Poll::Ready(Ok(()));
                    }
                }
                Some(true) => return Poll::Pending,
                Some(false) => {
                    self.keep(None);
                    self.core().cancel_timer(handle);
                }
            },
        }
        let armed = self.arm(waker);
        if self.is_late() {
            return self.poll_late(armed);
        }
        match armed {
            Ok(()) => Poll::Pending,
            // Who has no timer would wait for ever.
            Err(status) => Poll::Ready(Err(self.refused(status))),
        }
    }

    /// There is no timer to be had: the task is asked to stop, and the wait ends, also where no
    /// cancel is seen.
    #[cold]
    fn refused(&self, status: Status) -> Cancelled {
        let task = self.context().task();
        let reason = task.region().refuse_wait(task, status);
        self.context().checkpoint().err().unwrap_or_else(|| Cancelled::from(reason))
    }

    fn is_over(&self) -> bool {
        self.deadline <= self.core().host.now()
    }

    /// Whether the task has ended. Where there is one thread, nobody waits with its context then.
    fn is_late(&self) -> bool {
        !cfg!(target_family = "wasm") && self.context().task().word.load().is_completed()
    }

    /// The task has ended, so that no cancel reaches who waits: if there is no timer, or nobody to
    /// look at it, that is the answer.
    #[cold]
    fn poll_late(&mut self, armed: Result<(), Status>) -> Poll<Result<(), Cancelled>> {
        // After the timer was armed: who stops to look at timers says so first, and then wakes all.
        fence(SeqCst);
        let (kind, why) = match armed {
            Ok(()) if self.core().host.drives_timers() => return Poll::Pending,
            Ok(()) => (Kind::ResourceUnavailable, "nobody runs the timers: no program is running"),
            Err(Status::RegionClosed) => (Kind::Shutdown, "the runtime is gone"),
            Err(Status::TimerDurationExceeded) => (Kind::ResourceUnavailable, TOO_FAR),
            Err(status) => (Kind::ResourceUnavailable, status.text()),
        };
        if let Some(handle) = self.handle() {
            self.keep(None);
            drop(self.core().disarm(handle));
        }
        let mut reason = self.context().task().region().reason(kind).with_message(why);
        reason.refused = armed.err();
        Poll::Ready(Err(Cancelled::from(reason)))
    }

    /// Notes that the task waits for the timer, there, after a poll with this waker that
    /// [`poll_proceed`](Timer::poll_proceed) let go on.
    pub(crate) fn waits(&mut self, at: &'static Location<'static>, waker: &Waker) {
        self.cx.borrow().waits(Wait::Time, at, waker, &mut self.registration);
    }
}

impl<C: Borrow<Cx>> Drop for Timer<C> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle() {
            self.core().cancel_timer(handle);
        }
    }
}
