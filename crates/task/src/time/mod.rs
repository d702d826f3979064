//! Time: the futures that wait for it, and how to say how long.

mod delay_queue;
mod interval;
mod lateness;
mod sleep;
#[cfg(feature = "stream")]
mod ticks;
mod timeout;
mod timer;
mod units;

use std::future::Future;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::status::Coded;
use asx_kernel::time::Time;

use crate::error::TimerError;
use crate::task::budget::Limits;
use crate::task::cx::Cx;
use crate::task::outcome::Cancelled;

pub use delay_queue::{DelayQueue, Delayed, NextDue};
pub use interval::{Interval, MissedTicks, Tick};
pub use sleep::Sleep;
#[cfg(feature = "stream")]
pub use ticks::Ticks;
pub use timeout::Timeout;
pub use units::DurationExt;

/// Time.
impl Cx {
    /// Waits for a while.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Sleep<'_> {
        let deadline = self.within_budget(self.now() + duration);
        Sleep::new(self, deadline, !duration.is_zero())
    }

    /// Waits until a time; one that has passed is over at once.
    #[track_caller]
    pub fn sleep_until(&self, deadline: Time) -> Sleep<'_> {
        Sleep::new(self, self.within_budget(deadline), false)
    }

    /// As [`sleep_until`](Cx::sleep_until), with the timer armed at once: an error if there can be
    /// no such timer, if the task's deadline has passed (which cancels it), or if it is cancelled.
    /// A time that has passed lets others run first.
    #[track_caller]
    pub fn try_sleep(&self, until: Time) -> Result<Sleep<'_>, TimerError> {
        let left = self.task().limits().map(Limits::left);
        let missed = left.and_then(|left| left.check_deadline(self.now()).err());
        if let Some(exhausted) = missed
            && !self.task().word.load().state().in_cancel_lane()
        {
            self.task().region.exhausted(self.task(), exhausted);
            return Err(TimerError::new(exhausted.status()));
        }
        self.checkpoint().map_err(|_| TimerError::Cancelled)?;
        if let Some(exhausted) = missed {
            return Err(TimerError::new(exhausted.status()));
        }
        Sleep::armed(self, self.within_budget(until)).map_err(TimerError::new)
    }

    /// No wait is longer than the task's budget.
    #[inline]
    fn within_budget(&self, end: Time) -> Time {
        let deadline = self.task().limits().and_then(|limits| limits.left().deadline);
        deadline.map_or(end, |deadline| end.min(deadline))
    }

    /// Runs `body`, and cancels it (`Timeout`) if it takes longer; it is then waited for, so that
    /// it can clean up.
    ///
    /// A future of another crate does not look for cancels: await it with
    /// [`abandon_on_cancel`](Cx::abandon_on_cancel), if it loses nothing when it is dropped. A body
    /// in which nothing has looked for a second after its time is reported
    /// ([`Health::unheeded_timeouts`](crate::Health::unheeded_timeouts), an event of `tracing`, a
    /// failure in the lab).
    #[track_caller]
    pub fn timeout<'a, F, B, T, E>(&'a self, limit: Duration, body: F) -> Timeout<'a, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled>,
    {
        let deadline = self.now() + limit;
        Timeout::new(self, Kind::Timeout, deadline, body(self))
    }

    /// Runs `body`, and cancels it (`Deadline`) if it is not done by then; else as
    /// [`timeout`](Cx::timeout).
    #[track_caller]
    pub fn deadline<'a, F, B, T, E>(&'a self, deadline: Time, body: F) -> Timeout<'a, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled>,
    {
        Timeout::new(self, Kind::Deadline, deadline, body(self))
    }
}
