//! The clock of a runtime.

use asx_kernel::time::Time;

use crate::prim::atomic::AtomicU64;
use crate::prim::atomic::Ordering::{AcqRel, Acquire};

pub(crate) enum Clock {
    /// The machine's monotonic clock, relative to a start.
    Machine(Start),
    /// A clock that only [`set`](Clock::set) advances.
    Manual(AtomicU64),
}

impl Clock {
    /// Creates a clock that starts now.
    pub(crate) fn machine() -> Clock {
        Clock::Machine(Start::now())
    }

    /// Creates a clock at time 0 that only [`set`](Clock::set) advances.
    pub(crate) fn manual() -> Clock {
        Clock::Manual(AtomicU64::new(0))
    }

    /// Returns true if time passes by itself.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Clock::Machine(_))
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        match self {
            Clock::Machine(start) => Time::from_nanos(start.nanos()),
            Clock::Manual(now) => Time::from_nanos(now.load(Acquire)),
        }
    }

    /// Advances a manual clock. An earlier time has no effect.
    pub(crate) fn set(&self, to: Time) {
        if let Clock::Manual(now) = self {
            now.fetch_max(to.as_nanos(), AcqRel);
        }
    }
}

pub(crate) use since::Start;

/// The clock that `Instant` reads, without its arithmetic, which takes a third of the time of a
/// read in nanoseconds. Timers read the clock often.
#[cfg(target_os = "linux")]
mod since {
    use rustix::time::{ClockId, clock_gettime};

    /// An instant, in nanoseconds.
    pub(crate) struct Start(u64);

    impl Start {
        pub(super) fn now() -> Start {
            Start(read())
        }

        /// Returns the time since this instant.
        #[inline]
        pub(super) fn nanos(&self) -> u64 {
            read().saturating_sub(self.0)
        }
    }

    /// Returns the nanoseconds since the machine was started.
    #[inline]
    fn read() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
    }
}

#[cfg(not(target_os = "linux"))]
mod since {
    use asx_kernel::time::nanos;
    use std::time::Instant;

    /// An instant.
    pub(crate) struct Start(Instant);

    impl Start {
        pub(super) fn now() -> Start {
            Start(Instant::now())
        }

        /// Returns the time since this instant.
        pub(super) fn nanos(&self) -> u64 {
            nanos(self.0.elapsed())
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use asx_kernel::time::nanos;
    use std::time::Instant;

    #[test]
    fn the_machine_clock_agrees_with_instant() {
        let outer = Instant::now();
        let clock = Clock::machine();
        let inner = Instant::now();
        for _ in 0..1000 {
            let least = nanos(inner.elapsed());
            let now = clock.now().as_nanos();
            let most = nanos(outer.elapsed());
            assert!((least..=most).contains(&now), "{least} {now} {most}");
            clock.set(Time::from_nanos(u64::MAX));
        }
        assert!(clock.passes());
    }

    #[test]
    fn a_manual_clock_never_goes_back() {
        let clock = Clock::manual();
        let mut read = |to| {
            clock.set(Time::from_nanos(to));
            clock.now().as_nanos()
        };
        assert_eq!([0, 7, 3, 8].map(&mut read), [0, 7, 7, 8]);
        assert!(!clock.passes());
    }
}
