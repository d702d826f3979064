//! The single host timer for the whole timer wheel.
//!
//! The host arms one `setTimeout` for the wheel's next deadline. The delay is rounded up to whole
//! milliseconds, so it never fires early, and limited to the platform's maximum: a longer wait
//! fires early on purpose, finds no timer due and is planned again.

use crate::status::Status;
use crate::time::{Time, nanos};

/// The longest delay of a host timer; browsers fire longer ones immediately.
pub const MAX_DELAY_MS: u32 = i32::MAX as u32;

/// A host timer to arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimer {
    /// The delay. Zero: the deadline has passed, so wake the pump and arm nothing.
    pub after_ms: u32,
    /// Whether the wait was shortened: plan again when it fires.
    pub chunked: bool,
}

/// Returns the host timer for the wheel's next deadline, or `None` if the wheel is empty.
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

/// A host timer that fired for a wheel timer that was cancelled or had fired before. It is reported
/// and causes no wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleTimer {
    /// The timer's id.
    pub id: u64,
    /// The generation that the host timer was armed for.
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
    fn a_stale_timer_is_described_with_its_id() {
        let stale = StaleTimer { id: 4, generation: 9 };
        assert_eq!(stale.status(), Status::StaleHandle);
        assert_eq!(stale.to_string(), "timer 4 of generation 9 rang after its end");
    }
}
