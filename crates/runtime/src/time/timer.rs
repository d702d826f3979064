//! A timer in the hand of a future.

use std::task::Waker;

use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use super::{Armed, Owner};
use crate::Cx;

/// At most one timer of the wheel, which is taken out again when this is dropped.
pub(crate) struct Timer<'a> {
    cx: &'a Cx,
    deadline: Time,
    handle: Option<TimerHandle>,
    /// The deadline was in the future when this was made: no need to look at the clock again.
    ahead: bool,
}

impl<'a> Timer<'a> {
    pub(crate) fn new(cx: &'a Cx, deadline: Time, ahead: bool) -> Timer<'a> {
        Timer { cx, deadline, handle: None, ahead }
    }

    /// A timer that is armed at once, also for a time that has passed.
    pub(crate) fn armed(cx: &'a Cx, deadline: Time) -> Result<Timer<'a>, Status> {
        let wakes = Some(Waker::clone(&cx.task().lend_waker()));
        let armed = Armed { owner: Owner::Task(cx.task().id()), wakes };
        let handle = Some(cx.core().arm(deadline, armed)?);
        Ok(Timer { cx, deadline, handle, ahead: false })
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
        match self.handle {
            None if !self.ahead && self.deadline <= core.host.now() => return true,
            None => {}
            Some(handle) => match core.timers.look(handle, |last| last.is(waker)) {
                None => {
                    (self.handle, self.ahead) = (None, false);
                    return true;
                }
                Some(true) => return false,
                Some(false) => drop(core.disarm(handle)),
            },
        }
        let owner = Owner::Task(self.cx.task().id());
        let armed = Armed { owner, wakes: Some(waker.clone()) };
        self.handle = core.arm(self.deadline, armed).ok();
        false
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            drop(self.cx.core().disarm(handle));
        }
    }
}
