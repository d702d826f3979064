//! What a worker does when it found nothing: spin, yield, park.

use crate::budget::tighter;
use crate::time::Time;

/// One step of backing off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffStep {
    /// Look again at once.
    Spin,
    /// Give the processor away, then look again.
    Yield,
    /// Sleep until woken or until [`park_until`].
    Park,
}

settings! {
    /// The policy as data.
    #[derive(Copy)]
    pub struct Backoff {
        /// How many times to spin.
        spins: u32 = 8,
        /// How many times to yield after that.
        yields: u32 = 2,
    }
}

impl Backoff {
    /// What to do after `failures` earlier looks in a row that found nothing.
    ///
    /// ```
    /// use asx_kernel::lanes::{Backoff, BackoffStep};
    /// assert_eq!(Backoff::default().step(0), BackoffStep::Spin);
    /// ```
    pub const fn step(self, failures: u32) -> BackoffStep {
        if failures < self.spins {
            BackoffStep::Spin
        } else if failures - self.spins < self.yields {
            BackoffStep::Yield
        } else {
            BackoffStep::Park
        }
    }
}

/// Until when to park: the earlier of the next timer and the earliest live budget deadline, for
/// ever if there is neither.
pub fn park_until(next_timer: Option<Time>, earliest_deadline: Option<Time>) -> Option<Time> {
    tighter(next_timer, earliest_deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn eight_spins_two_yields_then_park() {
        use BackoffStep::*;
        let steps: Vec<_> = (0..12).map(|n| Backoff::default().step(n)).collect();
        assert_eq!(steps[..8], [Spin; 8]);
        assert_eq!(steps[8..], [Yield, Yield, Park, Park]);
        assert_eq!(Backoff { spins: 0, yields: 0 }.step(0), Park);
    }

    #[test]
    fn parks_until_the_earlier_of_timer_and_deadline() {
        let at = |n| Some(Time::from_nanos(n));
        assert_eq!(park_until(at(5), at(3)), at(3));
        assert_eq!(park_until(at(3), at(5)), at(3));
        assert_eq!((park_until(at(5), None), park_until(None, at(3))), (at(5), at(3)));
        assert_eq!(park_until(None, None), None);
    }
}
