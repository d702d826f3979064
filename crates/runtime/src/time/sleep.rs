//! Waiting until a time.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use super::{Armed, Owner};
use crate::cx::Wait;
use crate::{CancelSafe, Cancelled, Cx};

/// The future of [`Cx::sleep`] and [`Cx::sleep_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep<'a> {
    cx: &'a Cx,
    deadline: Time,
    timer: Option<TimerHandle>,
    /// The deadline was in the future when this was made: no need to look at the clock again.
    ahead: bool,
    at: &'static Location<'static>,
}

impl<'a> Sleep<'a> {
    #[track_caller]
    pub(crate) fn new(cx: &'a Cx, deadline: Time, ahead: bool) -> Sleep<'a> {
        Sleep { cx, deadline, timer: None, ahead, at: Location::caller() }
    }

    /// When it ends.
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}

impl Future for Sleep<'_> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.cx.checkpoint()?;
        let core = self.cx.core();
        match self.timer {
            Some(timer) if core.timers.is_armed(timer) => {}
            Some(_) => {
                self.timer = None;
                return Poll::Ready(Ok(()));
            }
            None if !self.ahead && self.deadline <= core.host.now() => return Poll::Ready(Ok(())),
            None => {
                let armed = Armed {
                    owner: Owner::Task(self.cx.task().id),
                    wakes: Some(cx.waker().clone()),
                };
                self.timer = core.arm(self.deadline, armed).ok();
            }
        }
        self.cx.waits(Wait::Time, self.at);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            drop(self.cx.core().disarm(timer));
        }
    }
}

impl CancelSafe for Sleep<'_> {}
