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
use crate::raw::limits::Limits;
use crate::raw::outcome::Cancelled;
use crate::runtime::cx::Cx;

pub use delay_queue::{DelayQueue, Delayed, NextDue};
pub use interval::{Interval, MissedTicks, Tick};
pub use sleep::Sleep;
#[cfg(feature = "stream")]
pub use ticks::Ticks;
pub use timeout::{Timed, Timeout, TimeoutOrLate};
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
            self.task().region().exhausted(self.task(), exhausted);
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

    /// Runs `body` with a time limit.
    ///
    /// At the limit the body is cancelled ([`Kind::Timeout`]), and the call waits until the body
    /// has returned, so that it can clean up. An inner timeout can only shorten an outer one.
    ///
    /// A body that returns an error keeps its error. A body that returns a value **after it has
    /// observed the cancel loses that value**: it is dropped, and the result is the cancel. Use
    /// [`timeout_or_late`](Cx::timeout_or_late) to get the value, for example a message that the
    /// body received or the number of bytes it has written. A body that did not observe the cancel
    /// has run to completion, so its value is returned even if the limit has passed.
    ///
    /// A future of another crate does not observe cancels. Await it with
    /// [`abandon_on_cancel`](Cx::abandon_on_cancel), if it loses nothing when it is dropped. A body
    /// in which nothing observes the cancel within a second is reported
    /// ([`Health::unheeded_timeouts`](crate::Health::unheeded_timeouts), an event of `tracing`, a
    /// failure in the lab).
    ///
    /// # Errors
    /// The error of the body, or the cancel if the body observed it and then returned a value.
    ///
    /// The error is also a cancel if the context belongs to another task (`ResourceUnavailable`),
    /// and outside of tasks. There the body cannot observe the cancel and is dropped at the limit.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, which is cancel safe only if the body is. A cancel of
    /// the task reaches the body, as it does without a timeout.
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

    /// Runs `body` until a deadline: [`timeout`](Cx::timeout) with a point in time. The cancel has
    /// [`Kind::Deadline`]. [`deadline_or_late`](Cx::deadline_or_late) also returns late values.
    ///
    /// # Errors
    /// As [`timeout`](Cx::timeout).
    ///
    /// # Cancel safety
    /// As [`timeout`](Cx::timeout).
    #[track_caller]
    pub fn deadline<'a, F, B, T, E>(&'a self, deadline: Time, body: F) -> Timeout<'a, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled>,
    {
        Timeout::new(self, Kind::Deadline, deadline, body(self))
    }

    /// Runs `body` with a time limit, and also returns a value that the body returns after it has
    /// observed the cancel.
    ///
    /// This is [`timeout`](Cx::timeout), except that a late value is not dropped. The result says
    /// which of the two it is: [`Timed::InTime`] where `timeout` returns the value, and
    /// [`Timed::Late`] where `timeout` returns the cancel.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use asx::time::Timed;
    ///
    /// /// Sends as many numbers as the receiver takes; returns how many.
    /// async fn fill(cx: &Cx, sender: &channel::Sender<u32>) -> Result<u32, Cancelled> {
    ///     for sent in 0.. {
    ///         match sender.reserve(cx).await {
    ///             Ok(slot) => slot.send(sent),
    ///             Err(_) => return Ok(sent), // cancelled: a partial result
    ///         };
    ///     }
    ///     unreachable!("the channel has room for four")
    /// }
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), Cancelled> {
    ///     let (sender, _receiver) = channel::bounded(4);
    ///     match cx.timeout_or_late(1.millis(), |cx| fill(cx, &sender)).await? {
    ///         Timed::InTime(_) => unreachable!("nothing is received"),
    ///         Timed::Late { value, .. } => assert_eq!(value, 4),
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The error of the body.
    ///
    /// The error is a cancel if the context belongs to another task (`ResourceUnavailable`), and
    /// outside of tasks. There the body cannot observe the cancel and is dropped at the limit.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, and with it a value that it would have returned. It is
    /// cancel safe only if the body is.
    #[track_caller]
    pub fn timeout_or_late<'a, F, B, T, E>(
        &'a self,
        limit: Duration,
        body: F,
    ) -> TimeoutOrLate<'a, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled>,
    {
        TimeoutOrLate::new(self.timeout(limit, body))
    }

    /// Runs `body` until a deadline: [`timeout_or_late`](Cx::timeout_or_late) with a point in time.
    /// The cancel has [`Kind::Deadline`].
    ///
    /// # Errors
    /// As [`timeout_or_late`](Cx::timeout_or_late).
    ///
    /// # Cancel safety
    /// As [`timeout_or_late`](Cx::timeout_or_late).
    #[track_caller]
    pub fn deadline_or_late<'a, F, B, T, E>(
        &'a self,
        deadline: Time,
        body: F,
    ) -> TimeoutOrLate<'a, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled>,
    {
        TimeoutOrLate::new(self.deadline(deadline, body))
    }
}
