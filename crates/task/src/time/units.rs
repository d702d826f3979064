//! Durations as they are said.

use std::time::Duration;

/// `2.secs()` for `Duration::from_secs(2)`.
///
/// What is too long for a `Duration`'s 64 bits of the unit is as long as can be; a negative number
/// (there is an `i32` because plain literals are) is no time at all.
///
/// ```
/// use asx::time::DurationExt;
/// use std::time::Duration;
/// assert_eq!(2.secs(), Duration::from_secs(2));
/// assert_eq!(90.minutes(), Duration::from_secs(5400));
/// assert_eq!(1_u64.millis() + 5.micros(), Duration::from_micros(1005));
/// ```
pub trait DurationExt {
    /// So many microseconds.
    fn micros(self) -> Duration;

    /// So many milliseconds.
    fn millis(self) -> Duration;

    /// So many seconds.
    fn secs(self) -> Duration;

    /// So many minutes.
    fn minutes(self) -> Duration;
}

impl DurationExt for u64 {
    fn micros(self) -> Duration {
        Duration::from_micros(self)
    }

    fn millis(self) -> Duration {
        Duration::from_millis(self)
    }

    fn secs(self) -> Duration {
        Duration::from_secs(self)
    }

    fn minutes(self) -> Duration {
        Duration::from_secs(self.saturating_mul(60))
    }
}

macro_rules! by_u64 {
    ($($int:ty)+) => {$(
        impl DurationExt for $int {
            fn micros(self) -> Duration {
                DurationExt::micros(u64::try_from(self).unwrap_or(0))
            }

            fn millis(self) -> Duration {
                DurationExt::millis(u64::try_from(self).unwrap_or(0))
            }

            fn secs(self) -> Duration {
                DurationExt::secs(u64::try_from(self).unwrap_or(0))
            }

            fn minutes(self) -> Duration {
                DurationExt::minutes(u64::try_from(self).unwrap_or(0))
            }
        }
    )+};
}

by_u64!(u8 u16 u32 usize i32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_durations() {
        assert_eq!(3_u8.millis(), Duration::from_millis(3));
        assert_eq!(3_usize.micros(), Duration::from_micros(3));
        assert_eq!((-3_i32).secs(), Duration::ZERO);
        assert_eq!(u64::MAX.minutes(), Duration::from_secs(u64::MAX));
    }
}
