//! A timer in the hand of a future.

use std::panic::Location;
use std::task::Waker;

use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::Cx;
use crate::cell::Armed;
use crate::cx::Wait;
use crate::foreign::Ticket;

/// At most one timer of the wheel, which is taken out again when this is dropped.
pub(crate) struct Timer<'a> {
    cx: &'a Cx,
    deadline: Time,
    /// The handle of the timer, without what it would be padded with. Without a timer: [`AHEAD`] if
    /// the deadline was in the future when this was made, so that the clock need not be looked at.
    generation: u64,
    slot: u32,
    ticket: Ticket,
}

/// No timer: the wheel has fewer slots.
const NONE: u32 = u32::MAX;
const AHEAD: u64 = 1;

impl<'a> Timer<'a> {
    pub(crate) fn new(cx: &'a Cx, deadline: Time, ahead: bool) -> Timer<'a> {
        let generation = if ahead { AHEAD } else { 0 };
        Timer { cx, deadline, generation, slot: NONE, ticket: Ticket::NONE }
    }

    /// A timer that is armed at once, also for a time that has passed.
    pub(crate) fn armed(cx: &'a Cx, deadline: Time) -> Result<Timer<'a>, Status> {
        let mut timer = Timer::new(cx, deadline, false);
        timer.arm(&cx.task().lend_waker())?;
        Ok(timer)
    }

    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn arm(&mut self, waker: &Waker) -> Result<(), Status> {
        let core = self.cx.core();
        let armed = Armed::by_task(self.cx.task(), waker.clone(), core.recording());
        self.keep(Some(core.arm(self.deadline, armed)?));
        Ok(())
    }

    fn keep(&mut self, handle: Option<TimerHandle>) {
        let slot = handle.and_then(|handle| u32::try_from(handle.id).ok());
        self.slot = slot.unwrap_or(NONE);
        self.generation = handle.map_or(0, |handle| handle.generation);
    }

    #[inline]
    fn handle(&self) -> Option<TimerHandle> {
        let (id, generation) = (self.slot.into(), self.generation);
        (self.slot != NONE).then_some(TimerHandle { id, generation })
    }

    pub(crate) fn cx(&self) -> &'a Cx {
        self.cx
    }

    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether the time has come; if not, the waker is woken when it does. Only the last one is.
    pub(crate) fn poll(&mut self, waker: &Waker) -> bool {
        let core = self.cx.core();
        match self.handle() {
            None if self.generation != AHEAD && self.deadline <= core.host.now() => return true,
            None => {}
            Some(handle) => match core.timers.look(handle, |last| last.is(waker)) {
                None => {
                    self.keep(None);
                    return true;
                }
                Some(true) => return false,
                Some(false) => {
                    self.keep(None);
                    core.cancel_timer(handle);
                }
            },
        }
        if let Err(status) = self.arm(waker) {
            // Who has no timer would wait for ever.
            self.cx.task().region.refuse_wait(self.cx.task(), status);
        }
        false
    }

    /// Notes that the task waits for the timer, there, after a poll with this waker.
    pub(crate) fn waits(&mut self, at: &'static Location<'static>, waker: &Waker) {
        self.cx.waits(Wait::Time, at, waker, &mut self.ticket);
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle() {
            self.cx.core().cancel_timer(handle);
        }
    }
}
