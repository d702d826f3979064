//! The one host timer that stands for the whole timer wheel.
//!
//! The host arms a single `setTimeout` for the wheel's next deadline. The delay is rounded up to
//! whole milliseconds, so it never rings early, and cut at what the platform can count to: a
//! longer wait rings early on purpose, finds nothing due and is planned again.

use crate::status::Status;
use crate::time::{Time, nanos};

/// The longest delay a host timer takes; anything above would ring at once.
pub const MAX_DELAY_MS: u32 = i32::MAX as u32;

/// What to arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimer {
    /// The delay. Zero: the deadline has passed, so wake the pump and arm nothing.
    pub after_ms: u32,
    /// Whether the wait was cut short: when it rings, plan again.
    pub chunked: bool,
}

/// The host timer for the wheel's next deadline; `None` if the wheel is empty.
///
/// ```
/// use asx_kernel::{pump::{plan_timer, HostTimer}, time::Time};
/// let timer = plan_timer(Time::ZERO, Some(Time::from_nanos(1_000_001)));
/// assert_eq!(timer, Some(HostTimer { after_ms: 2, chunked: false }));
/// ```
pub fn plan_timer(now: Time, next_deadline: Option<Time>) -> Option<HostTimer> {
    let wait_ms = nanos(next_deadline? - now).div_ceil(1_000_000);
    let after_ms = u32::try_from(wait_ms).unwrap_or(u32::MAX).min(MAX_DELAY_MS);
    Some(HostTimer { after_ms, chunked: wait_ms > u64::from(after_ms) })
}

/// A host timer rang for a timer that was cancelled or had fired already: a diagnostic, no wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleTimer {
    /// The timer's id.
    pub id: u64,
    /// The generation the ring was for.
    pub generation: u64,
}

errors! {
    StaleTimer {
        StaleTimer { id, generation } => Status::StaleHandle,
            "timer {id} of generation {generation} rang after its end";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Coded;
    use core::time::Duration;
    use std::string::ToString;

    fn plan(now: u64, deadline: u64) -> (u32, bool) {
        let timer = plan_timer(Time::from_nanos(now), Some(Time::from_nanos(deadline))).unwrap();
        (timer.after_ms, timer.chunked)
    }

    #[test]
    fn waits_are_rounded_up_to_whole_milliseconds() {
        assert_eq!(plan_timer(Time::ZERO, None), None);
        assert_eq!(plan(7, 7), (0, false));
        assert_eq!(plan(8, 7), (0, false));
        assert_eq!(plan(7, 8), (1, false));
        assert_eq!(plan(0, 1_000_000), (1, false));
        assert_eq!(plan(0, 1_000_001), (2, false));
    }

    #[test]
    fn waits_beyond_the_platform_are_chunked_and_reach_the_deadline() {
        let max = u64::from(MAX_DELAY_MS) * 1_000_000;
        assert_eq!(MAX_DELAY_MS, 2_147_483_647);
        assert_eq!(plan(0, max), (MAX_DELAY_MS, false));
        assert_eq!(plan(0, max + 1), (MAX_DELAY_MS, true));
        assert_eq!(plan(0, u64::MAX), (MAX_DELAY_MS, true));

        let mut now = Time::ZERO;
        let deadline = Time::from_nanos(2 * max + 5);
        let mut hops = 0;
        while let Some(timer) = plan_timer(now, Some(deadline)).filter(|t| t.after_ms > 0) {
            now = now + Duration::from_millis(u64::from(timer.after_ms));
            hops += 1;
            assert_eq!(timer.chunked, hops < 3);
            assert_eq!(now >= deadline, !timer.chunked);
        }
        assert_eq!(hops, 3);
    }

    #[test]
    fn a_stale_ring_says_which_timer() {
        let stale = StaleTimer { id: 4, generation: 9 };
        assert_eq!(stale.status(), Status::StaleHandle);
        assert_eq!(stale.to_string(), "timer 4 of generation 9 rang after its end");
    }
}
