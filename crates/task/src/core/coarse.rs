//! A clock that costs a load to read, for what need not be exact.
//!
//! Who reads the host's clock anyway, to look at timers or after a sleep, leaves the time here. So
//! it is late by no more than that takes: 64 polls, or the poll that goes on.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx_kernel::time::Time;

/// How far it moves at once.
pub(crate) const STEP: Duration = Duration::from_millis(125);

/// A time in steps, which wraps.
#[derive(Default)]
pub(crate) struct Coarse(AtomicU32);

impl Coarse {
    pub(crate) fn new(now: Time) -> Coarse {
        Coarse(AtomicU32::new(steps(now)))
    }

    /// The time that was left here last.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Leaves the time. Written only when it has moved, as everybody reads it.
    #[inline]
    pub(crate) fn set(&self, now: Time) {
        let now = steps(now);
        if self.get() != now {
            self.0.store(now, Relaxed);
        }
    }
}

/// A time in steps.
#[inline]
pub(crate) fn steps(time: Time) -> u32 {
    (time.as_nanos() / STEP.as_nanos() as u64) as u32
}
