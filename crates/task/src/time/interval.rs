//! Doing something again and again.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use asx_kernel::time::{Time, nanos};

use super::timer::Timer;
use crate::footprint;
use crate::{CancelSafe, Cancelled, Cx};

impl Cx {
    /// Ticks once every `period`, the first time one period from now.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx};
    /// # use std::time::Duration;
    /// async fn beat(cx: &Cx) -> Result<(), Cancelled> {
    ///     let mut interval = cx.interval(Duration::from_secs(1));
    ///     loop {
    ///         interval.tick(cx).await?;
    ///         println!("still here");
    ///     }
    /// }
    /// ```
    pub fn interval(&self, period: Duration) -> Interval {
        self.interval_at(self.now() + period, period)
    }

    /// Ticks once every `period`, the first time at `first`.
    pub fn interval_at(&self, first: Time, period: Duration) -> Interval {
        let period = period.max(Duration::from_nanos(1));
        Interval { next: first, period, missed: MissedTicks::default() }
    }
}

/// Ticks at regular times; see [`Cx::interval`]. A period of zero counts as a nanosecond.
#[derive(Clone, Debug)]
pub struct Interval {
    next: Time,
    period: Duration,
    missed: MissedTicks,
}

/// What follows a tick that was taken later than it was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// The ticks that were missed come at once, one after the other.
    #[default]
    Burst,
    /// The next tick comes a period after this one was taken.
    Delay,
    /// The ticks that were missed are left out; the next one is in step with the first.
    Skip,
}

impl MissedTicks {
    /// The tick after the one that was due at `due` and is taken at `now`, which is not earlier.
    fn after(self, due: Time, now: Time, period: Duration) -> Time {
        match self {
            MissedTicks::Burst => due + period,
            MissedTicks::Delay => now + period,
            MissedTicks::Skip => {
                let into = nanos(now - due) % nanos(period);
                now + (period - Duration::from_nanos(into))
            }
        }
    }
}

impl Interval {
    /// What to do about ticks that were missed: [`MissedTicks::Burst`] unless set.
    #[must_use]
    pub fn missed(self, missed: MissedTicks) -> Interval {
        Interval { missed, ..self }
    }

    /// The time from one tick to the next.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// When the next tick is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Begins anew: the next tick is one period from now.
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let mut beat = cx.interval_at(cx.now(), 10.minutes());
    /// beat.tick(&cx).await?; // at once
    /// beat.reset_after(&cx, 1.millis());
    /// beat.tick(&cx).await?;
    /// beat.reset(&cx);
    /// assert!(beat.next() > cx.now() + 9.minutes());
    /// # Ok::<(), asx::Cancelled>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self, cx: &Cx) {
        self.next = cx.now() + self.period;
    }

    /// The next tick is now.
    pub fn reset_immediately(&mut self, cx: &Cx) {
        self.next = cx.now();
    }

    /// The next tick is after `delay`, whatever the period.
    pub fn reset_after(&mut self, cx: &Cx, delay: Duration) {
        self.next = cx.now() + delay;
    }

    /// The next tick is at `next`, whatever the period.
    pub fn reset_at(&mut self, next: Time) {
        self.next = next;
    }

    /// Waits for the next tick: when it was due.
    ///
    /// Cancel-checked, and cancel-safe: a tick is taken when this is done, or not at all.
    #[track_caller]
    pub fn tick<'a>(&'a mut self, cx: &'a Cx) -> Tick<'a> {
        let timer = Timer::new(cx, self.next, false);
        Tick { interval: self, timer, at: Location::caller() }
    }

    /// The tick that was due at `due` is taken now.
    pub(super) fn taken(&mut self, due: Time, now: Time) {
        self.next = self.missed.after(due, now.max(due), self.period);
    }
}

/// The future of [`Interval::tick`]; gives `Result<Time, Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Tick<'a> {
    interval: &'a mut Interval,
    timer: Timer<&'a Cx>,
    at: &'static Location<'static>,
}

impl Future for Tick<'_> {
    type Output = Result<Time, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let context = self.timer.cx();
        let _after = footprint::after_operation();
        ready!(self.timer.poll_proceed(cx))?;
        match self.timer.poll(cx.waker()) {
            Poll::Ready(over) => over?,
            Poll::Pending => {
                let Tick { timer, at, .. } = &mut *self;
                timer.waits(at, cx.waker());
                return Poll::Pending;
            }
        }
        let due = self.timer.deadline();
        self.interval.taken(due, context.now());
        Poll::Ready(Ok(due))
    }
}

impl CancelSafe for Tick<'_> {}

impl fmt::Debug for Tick<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tick({})", self.timer.deadline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_late_tick_is_the_policy_s() {
        let after = |missed: MissedTicks, now| {
            missed.after(Time::from_millis(20), Time::from_millis(now), Duration::from_millis(10))
        };
        for (now, burst, delay, skip) in
            [(20, 30, 30, 30), (25, 30, 35, 30), (30, 30, 40, 40), (47, 30, 57, 50)]
        {
            assert_eq!(after(MissedTicks::Burst, now), Time::from_millis(burst));
            assert_eq!(after(MissedTicks::Delay, now), Time::from_millis(delay));
            assert_eq!(after(MissedTicks::Skip, now), Time::from_millis(skip));
        }
    }

    #[test]
    fn ticks_at_the_end_of_time_stay_there() {
        for missed in [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip] {
            assert_eq!(missed.after(Time::ZERO, Time::MAX, Duration::MAX), Time::MAX);
        }
    }
}
