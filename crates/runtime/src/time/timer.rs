//! A timer in the hand of a future.

use std::task::Waker;

use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::Cx;

/// At most one timer of the wheel, which is taken out again when this is dropped.
pub(crate) struct Timer<'a> {
    cx: &'a Cx,
    deadline: Time,
    handle: Option<TimerHandle>,
}

impl<'a> Timer<'a> {
    pub(crate) fn new(cx: &'a Cx, deadline: Time) -> Timer<'a> {
        Timer { cx, deadline, handle: None }
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
        let kept = match self.handle {
            Some(handle) => core.timers.look(handle, |last| last.will_wake(waker)),
            None => Some(false).filter(|_| core.host.now() < self.deadline),
        };
        match kept {
            None => return true,
            Some(true) => return false,
            Some(false) => self.disarm(),
        }
        self.handle = core.timers.register(&*core.host, self.deadline, waker.clone());
        false
    }

    fn disarm(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.cx.core().timers.cancel(handle);
        }
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.disarm();
    }
}
