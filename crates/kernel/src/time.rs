//! Logical time: nanoseconds since the start of a run, provided by the host.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// An instant, in nanoseconds since the host's epoch.
///
/// ```
/// # use asx_kernel as asx;
/// use asx::time::Time;
/// use core::time::Duration;
/// let t = Time::from_millis(5) + Duration::from_millis(2);
/// assert_eq!(t.as_nanos(), 7_000_000);
/// assert_eq!(t - Time::from_millis(9), Duration::ZERO); // never negative
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The host's epoch.
    pub const ZERO: Time = Time(0);
    /// The latest representable instant.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Returns the instant `millis` milliseconds after the epoch, saturating.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

/// Returns `span` in nanoseconds, saturating at `u64::MAX` (about 584 years).
pub const fn nanos(span: Duration) -> u64 {
    let n = span.as_nanos();
    if n > u64::MAX as u128 { u64::MAX } else { n as u64 }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::MAX`].
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(nanos(span)))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Returns the span since `earlier`, or zero if `earlier` is later.
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn addition_and_subtraction_saturate() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
        assert_eq!(Time::ZERO - Time::MAX, Duration::ZERO);
        assert_eq!(Time::from_nanos(7) - Time::from_nanos(3), Duration::from_nanos(4));
        assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
    }

    #[test]
    fn prints_nanoseconds() {
        assert_eq!(format!("{} {:?}", Time::from_nanos(12), Time::ZERO), "12ns 0ns");
        assert_eq!(nanos(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(nanos(Duration::from_secs(1)), 1_000_000_000);
        assert_eq!(nanos(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1)), u64::MAX);
        assert_eq!(nanos(Duration::from_nanos(u64::MAX - 1)), u64::MAX - 1);
        assert_eq!(Time::from_nanos(7).as_nanos(), 7);
    }
}
