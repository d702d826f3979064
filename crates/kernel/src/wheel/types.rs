//! Configuration, handles and results of the wheel.

use core::time::Duration;

use crate::status::Status;
use crate::time::{Time, nanos};

settings! {
    /// The limits of a timer structure.
    pub struct WheelConfig {
        /// Timers at least this far away go to the overflow heap (24 h).
        max_wheel_duration: Duration = Duration::from_hours(24),
        /// Timers further away than this are refused (7 d).
        max_timer_duration: Duration = Duration::from_hours(7 * 24),
        /// The maximal number of live timers (no limit but memory).
        limit: usize = usize::MAX,
        /// Whether nearly due timers fire together (off).
        coalesce: Option<Coalesce> = None,
        /// The id of slot 0; ids wrap after `u64::MAX` (0).
        first_id: u64 = 0,
        /// The generation of the first registration; generations wrap after `u64::MAX` (1).
        first_generation: u64 = 1,
    }
}

/// Fires timers early so that they fire together.
///
/// Let B be the least multiple of `window` that is not before now. If at least `min_group_size`
/// live timers have a deadline not after B, all of them become due, in the usual order. Such a
/// group remains due until its last timer is collected or cancelled. A timer that is registered
/// meanwhile with a deadline not after B joins it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coalesce {
    /// The interval at which groups form; zero means no grouping.
    pub window: Duration,
    /// The minimal number of timers in a group.
    pub min_group_size: usize,
}

impl Coalesce {
    /// Returns B, as above. Past the end of time every deadline is before B.
    pub(crate) fn boundary(&self, now: Time) -> Time {
        let now = now.as_nanos();
        let window = nanos(self.window);
        if window == 0 {
            return Time::from_nanos(now);
        }
        Time::from_nanos(now.checked_next_multiple_of(window).unwrap_or(u64::MAX))
    }
}

/// Identifies one registration of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerHandle {
    /// The slot, which is reused but not while its timer is live.
    pub id: u64,
    /// The generation, which identifies the registration.
    pub generation: u64,
}

/// A due timer that was removed from the structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    /// Its handle, which is stale now.
    pub handle: TimerHandle,
    /// The deadline with which it was registered.
    pub deadline: Time,
    /// The token with which it was registered.
    pub token: T,
}

refusals! {
    /// The reason why a registration was refused, with the token. Nothing has changed.
    pub enum RegisterError {
        /// The deadline is more than `max_timer_duration` away.
        DurationExceeded => Status::TimerDurationExceeded,
        /// The limit of live timers is reached.
        Exhausted => Status::ResourceExhausted,
    }
}

impl<T> RegisterError<T> {
    /// Refuses a timer that is too far away, or one beyond the limit.
    #[inline]
    pub(crate) fn unless(in_range: bool, room: bool, token: T) -> Result<T, RegisterError<T>> {
        match (in_range, room) {
            (true, true) => Ok(token),
            (true, false) => Err(RegisterError::Exhausted(token)),
            (false, _) => Err(RegisterError::DurationExceeded(token)),
        }
    }
}

/// The handle of the new timer, and the token of the replaced one if that was live.
pub(crate) type Updated<T> = Result<(TimerHandle, Option<T>), RegisterError<T>>;

/// The place of a live timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Due: the next collect returns it.
    Ready,
    /// On a level of the wheel, 0 (finest) to 3.
    Level(u8),
    /// Too far away for the wheel.
    Overflow,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Coded;
    use std::format;

    #[test]
    fn refusals_have_a_code_and_return_the_token() {
        let far: RegisterError<u8> = RegisterError::DurationExceeded(3);
        let many: RegisterError<u8> = RegisterError::Exhausted(4);
        assert_eq!(far.status(), Status::TimerDurationExceeded);
        assert_eq!(many.status(), Status::ResourceExhausted);
        assert_eq!(format!("{far:?} {many:?}"), "DurationExceeded(..) Exhausted(..)");
        assert_eq!(format!("{far}"), Status::TimerDurationExceeded.text());
        assert_eq!((far.into_inner(), many.into_inner()), (3, 4));
    }

    #[test]
    fn defaults_are_a_day_on_the_wheel_and_a_week_at_most() {
        let config = WheelConfig::default();
        assert_eq!(config.max_wheel_duration, Duration::from_secs(86_400));
        assert_eq!(config.max_timer_duration, Duration::from_secs(604_800));
        assert_eq!((config.limit, config.coalesce.is_none()), (usize::MAX, true));
        assert_eq!((config.first_id, config.first_generation), (0, 1));
    }

    #[test]
    fn a_group_ends_at_the_next_multiple_of_the_window() {
        let at = |window, now| {
            let window = Duration::from_nanos(window);
            Coalesce { window, min_group_size: 1 }.boundary(Time::from_nanos(now)).as_nanos()
        };
        assert_eq!([at(10, 0), at(10, 1), at(10, 10), at(10, 11)], [0, 10, 10, 20]);
        assert_eq!([at(0, 7), at(1, 7), at(10, u64::MAX - 1)], [7, 7, u64::MAX]);
    }
}
