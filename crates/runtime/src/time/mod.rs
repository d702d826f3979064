//! Time: the wheel of a runtime's timers, and the futures that wait for it.

mod interval;
mod sleep;
#[cfg(all(test, not(loom)))]
mod tests;
mod timeout;
mod timer;
mod units;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx_kernel::time::Time;
use asx_kernel::wheel::{TimerHandle, Wheel, WheelConfig};

use crate::core::Host;
use crate::prim::{Mutex, lock};

pub use interval::{Interval, MissedTicks, Tick};
pub use sleep::Sleep;
pub use timeout::Timeout;
pub use units::DurationExt;

/// Timers fired under one lock.
const BATCH: usize = 256;

/// Timers that each carry a `T`.
pub(crate) struct Timers<T> {
    start: Time,
    /// Made with the first timer: it is large.
    wheel: Mutex<Option<Box<Wheel<T>>>>,
    /// No later than the earliest deadline; `u64::MAX` without timers.
    next: AtomicU64,
}

impl<T> Timers<T> {
    pub(crate) fn new(now: Time) -> Timers<T> {
        Timers { start: now, wheel: Mutex::new(None), next: AtomicU64::new(u64::MAX) }
    }

    #[inline(never)]
    fn wheel(start: Time) -> Box<Wheel<T>> {
        let config = WheelConfig { max_timer_duration: Duration::MAX, ..WheelConfig::default() };
        Box::new(Wheel::new(config, start))
    }

    /// Adds a timer; `None` if no more fit into memory.
    pub(crate) fn register(
        &self,
        host: &dyn Host,
        deadline: Time,
        token: T,
    ) -> Option<TimerHandle> {
        let (handle, earliest) = {
            let mut wheel = lock(&self.wheel);
            let wheel = wheel.get_or_insert_with(|| Self::wheel(self.start));
            let handle = wheel.register(deadline, token).ok()?;
            let earliest = deadline.as_nanos() < self.next.load(Relaxed);
            if earliest {
                self.next.store(deadline.as_nanos(), Relaxed);
            }
            (handle, earliest)
        };
        if earliest {
            host.timer_moved(deadline);
        }
        Some(handle)
    }

    /// Looks at what a timer carries, if it is still armed. No user code in `look`: it runs under
    /// the lock.
    pub(crate) fn look<R>(&self, handle: TimerHandle, look: impl FnOnce(&T) -> R) -> Option<R> {
        let wheel = lock(&self.wheel);
        wheel.as_ref()?.get(handle).map(|(_, token)| look(token))
    }

    pub(crate) fn cancel(&self, handle: TimerHandle) {
        let token = lock(&self.wheel).as_mut().and_then(|wheel| wheel.cancel(handle));
        drop(token);
    }

    /// How many timers are armed.
    pub(crate) fn len(&self) -> usize {
        lock(&self.wheel).as_ref().map_or(0, |wheel| wheel.len())
    }

    pub(crate) fn next(&self) -> Option<Time> {
        Some(self.next.load(Relaxed)).filter(|next| *next != u64::MAX).map(Time::from_nanos)
    }

    /// Hands out those whose time has come; the next deadline.
    pub(crate) fn fire(&self, now: Time, mut each: impl FnMut(T)) -> Option<Time> {
        let next = self.next()?;
        if next > now {
            return Some(next);
        }
        let mut due = Vec::new();
        loop {
            let (count, next) = {
                let mut wheel = lock(&self.wheel);
                let wheel = wheel.as_mut()?;
                let count = wheel.collect(now, BATCH, &mut due);
                let next = wheel.next_deadline();
                self.next.store(next.map_or(u64::MAX, Time::as_nanos), Relaxed);
                (count, next)
            };
            due.drain(..).for_each(|expired| each(expired.token));
            if count < BATCH {
                return next;
            }
        }
    }
}
