//! Waiting until a time.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::status::Status;
use asx_kernel::time::Time;

use super::timer::Timer;
use crate::footprint;
use crate::{CancelSafe, Cancelled, Cx};

/// The future of [`Cx::sleep`] and [`Cx::sleep_until`]; gives `Result<(), Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep<'a> {
    timer: Timer<&'a Cx>,
    at: &'static Location<'static>,
}

impl<'a> Sleep<'a> {
    #[track_caller]
    pub(crate) fn new(cx: &'a Cx, deadline: Time, ahead: bool) -> Sleep<'a> {
        Sleep::over(Timer::new(cx, deadline, ahead))
    }

    #[track_caller]
    pub(crate) fn armed(cx: &'a Cx, deadline: Time) -> Result<Sleep<'a>, Status> {
        Ok(Sleep::over(Timer::armed(cx, deadline)?))
    }

    #[track_caller]
    fn over(timer: Timer<&'a Cx>) -> Sleep<'a> {
        Sleep { timer, at: Location::caller() }
    }

    /// When it ends.
    pub fn deadline(&self) -> Time {
        self.timer.deadline()
    }

    /// Lets it end at another time, also if it has ended already: earlier or later, though not
    /// later than the task's budget allows. It is to be awaited again for that.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, channel::Receiver, select, time::DurationExt};
    /// /// Returns when nothing has come for a second.
    /// async fn idle(cx: &Cx, rx: &mut Receiver<u32>) -> Result<(), Cancelled> {
    ///     let mut quiet = cx.sleep(1.secs());
    ///     loop {
    ///         select! {
    ///             over = &mut quiet => return over,
    ///             came = rx.next(cx) => match came? {
    ///                 Some(_) => quiet.reset(cx.now() + 1.secs()),
    ///                 None => return Ok(()),
    ///             },
    ///         }
    ///     }
    /// }
    /// ```
    pub fn reset(&mut self, deadline: Time) {
        let deadline = self.timer.cx().within_budget(deadline);
        self.timer.reset(deadline);
    }
}

impl Future for Sleep<'_> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        ready!(self.timer.poll_proceed(cx))?;
        if let Poll::Ready(over) = self.timer.poll(cx.waker()) {
            return Poll::Ready(over);
        }
        let Sleep { timer, at } = &mut *self;
        timer.waits(at, cx.waker());
        Poll::Pending
    }
}

impl CancelSafe for Sleep<'_> {}

impl fmt::Debug for Sleep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sleep({})", self.deadline())
    }
}
