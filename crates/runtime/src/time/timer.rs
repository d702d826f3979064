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
    /// The deadline was in the future when this was made: no need to look at the clock again.
    ahead: bool,
}

impl<'a> Timer<'a> {
    pub(crate) fn new(cx: &'a Cx, deadline: Time, ahead: bool) -> Timer<'a> {
        Timer { cx, deadline, handle: None, ahead }
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
            Some(handle) => match core.timers.look(handle, |last| last.will_wake(waker)) {
                None => {
                    (self.handle, self.ahead) = (None, false);
                    return true;
                }
                Some(true) => return false,
                Some(false) => core.timers.cancel(handle),
            },
        }
        self.handle = core.timers.register(&*core.host, self.deadline, waker.clone());
        false
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            self.cx.core().timers.cancel(handle);
        }
    }
}
