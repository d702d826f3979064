//! When a worker checks the timers, and when a sleeping one wakes for them.

use std::cell::Cell;
use std::time::Duration;

use asx_kernel::time::Time;

use super::LATE;
use crate::prim::atomic::AtomicU64;
use crate::prim::atomic::Ordering::Relaxed;

/// Nanoseconds. Sleepers wake for timers at multiples of this, or when they have slept that long,
/// so that one wakeup serves many timers.
const SLACK: u64 = 1_000_000;
/// The slack if [`MANY`] timers or more were due since the last sleep.
const SLACK_IF_MANY: u64 = 1_900_000;
const MANY: usize = 32;
/// The largest number of polls between two checks of the timers.
pub(super) const POLLS_PER_CHECK: u64 = 64;
/// Nanoseconds between two checks of the timers, unless a single poll takes longer. If
/// [`POLLS_PER_CHECK`] polls take more time than this, checks are more frequent.
const TIME_PER_CHECK: u64 = 1_000_000;

/// When a busy worker checks the timers: after [`POLLS_PER_CHECK`] polls, or as many as take
/// [`TIME_PER_CHECK`] at the pace of the previous polls.
#[derive(Debug)]
pub(super) struct Pace {
    /// The number of polls at which the next check is due.
    due: Cell<u64>,
    polls: Cell<u64>,
    /// The time of the last check; unknown after a pause.
    last: Cell<Option<Time>>,
    /// The value of `due` while the next check is an early one, for sockets only.
    postponed: Cell<Option<u64>>,
}

impl Default for Pace {
    fn default() -> Self {
        let polls = Cell::new(POLLS_PER_CHECK);
        let due = Cell::new(POLLS_PER_CHECK);
        Pace { due, polls, last: Cell::new(None), postponed: Cell::new(None) }
    }
}

impl Pace {
    #[inline]
    pub(super) fn is_due(&self, polls: u64) -> bool {
        polls >= self.due.get()
    }

    /// Makes a check due after the current poll, for sockets only.
    pub(super) fn check_sockets_soon(&self) {
        if self.postponed.get().is_none() {
            self.postponed.set(Some(self.due.replace(0)));
        }
    }

    /// Returns true if the check that is due now is an early one. The next check is then due when
    /// it was before.
    pub(super) fn is_for_sockets_only(&self, polls: u64) -> bool {
        let Some(due) = self.postponed.take() else { return false };
        self.due.set(due);
        !self.is_due(polls)
    }

    /// Called when the worker runs out of work. While idle it checks the timers by itself.
    pub(super) fn pause(&self) {
        self.last.set(None);
    }

    /// Called when the worker checks the timers.
    #[cold]
    pub(super) fn checked(&self, polls: u64, now: Time) {
        let span = self.last.replace(Some(now)).map(|last| (now - last).as_nanos() as u64);
        let before = self.polls.get();
        let next = match span {
            Some(span) if span > TIME_PER_CHECK => (before * TIME_PER_CHECK / span).max(1),
            Some(_) => (before * 2).min(POLLS_PER_CHECK),
            None => before,
        };
        self.polls.set(next);
        self.due.set(polls + next);
    }
}

/// The number of timers that were due since the worker slept.
#[derive(Default)]
pub(super) struct Due(Cell<usize>);

impl Due {
    pub(super) fn add(&self, timers: usize) {
        self.0.update(|before| before.saturating_add(timers));
    }

    /// Returns the shortest time the worker is to sleep, and resets the count.
    pub(super) fn slack(&self) -> u64 {
        if self.0.take() < MANY { SLACK } else { SLACK_IF_MANY }
    }
}

/// Returns when a worker that parks now wakes for a timer: at a multiple of `slack`, and not before
/// it has slept that long. The timer, which is not due yet, is late by at most `slack`.
pub(super) fn park_deadline(timer: Time, now: Time, slack: u64) -> Time {
    let round = timer.as_nanos().div_ceil(slack).saturating_mul(slack);
    Time::from_nanos(round).max(now + Duration::from_nanos(slack))
}

/// Announces, until it is dropped, that a sleeping worker wakes by itself soon after the next timer
/// is due, at the latest. There is none while an earlier one is announced.
pub(super) struct TimerBackstop<'a> {
    backstop: &'a AtomicU64,
    pub(super) until: Time,
}

impl<'a> TimerBackstop<'a> {
    pub(super) fn at(backstop: &'a AtomicU64, next: Option<Time>) -> Option<TimerBackstop<'a>> {
        let until = next? + LATE;
        let before = backstop.fetch_min(until.as_nanos(), Relaxed);
        (before > until.as_nanos()).then_some(TimerBackstop { backstop, until })
    }
}

impl Drop for TimerBackstop<'_> {
    fn drop(&mut self) {
        let _ = self.backstop.compare_exchange(self.until.as_nanos(), u64::MAX, Relaxed, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn timers_that_become_due_while_others_are_fired_count_with_them() {
        let due = Due::default();
        assert_eq!(due.slack(), SLACK);
        [MANY - 1, 0, 1, 0].into_iter().for_each(|timers| due.add(timers));
        assert_eq!([due.slack(), due.slack()], [SLACK_IF_MANY, SLACK]);
        due.add(MANY - 1);
        assert_eq!(due.slack(), SLACK);
    }

    /// Returns the numbers of polls between checks, if each poll takes `poll` nanoseconds after
    /// some fast ones.
    fn checks(poll: u64) -> Vec<u64> {
        let pace = Pace::default();
        let mut now = 0;
        let mut last = 0;
        let mut between = Vec::new();
        for polls in 1..2000 {
            now += if polls <= 256 { 100 } else { poll };
            if pace.is_due(polls) {
                pace.checked(polls, Time::from_nanos(now));
                between.push(polls - last);
                last = polls;
            }
        }
        between
    }

    #[test]
    fn timers_are_checked_every_64_polls_or_every_millisecond() {
        assert!(checks(100).iter().all(|polls| *polls == POLLS_PER_CHECK));
        // The first slow window is as long as those before it.
        let slow = checks(1_000_000);
        assert_eq!(slow[..5], [64, 64, 64, 64, 64]);
        assert!(slow[5..].iter().all(|polls| *polls <= 2), "{slow:?}");
        let medium = checks(100_000);
        assert!(medium[6..].iter().all(|polls| *polls <= 20), "{medium:?}");
        assert!(checks(u64::MAX / 4000).iter().max() == Some(&POLLS_PER_CHECK));
    }

    #[test]
    fn an_early_check_of_sockets_does_not_change_the_pace() {
        let pace = Pace::default();
        pace.check_sockets_soon();
        pace.check_sockets_soon();
        assert!(pace.is_due(1) && pace.is_for_sockets_only(1));
        assert!(!pace.is_due(2) && !pace.is_due(POLLS_PER_CHECK - 1));
        assert!(pace.is_due(POLLS_PER_CHECK) && !pace.is_for_sockets_only(POLLS_PER_CHECK));
        // An early check that coincides with a regular one is a regular one.
        pace.check_sockets_soon();
        assert!(pace.is_due(POLLS_PER_CHECK) && !pace.is_for_sockets_only(POLLS_PER_CHECK));
    }

    #[test]
    fn park_deadline_is_never_early_and_at_most_the_slack_late() {
        for unit in [SLACK, SLACK_IF_MANY] {
            let slack = unit as i64;
            let end = i64::MAX / 2;
            let spans = [0, 1, slack / 2, slack - 1, slack, slack + 1, 9 * slack + 3, 10 * slack];
            for now in [0, 1, slack - 1, slack, 7 * slack + 60_000, end] {
                for ahead in spans {
                    let timer = Time::from_nanos((now + ahead) as u64);
                    let up =
                        park_deadline(timer, Time::from_nanos(now as u64), unit).as_nanos() as i64;
                    assert!((now + ahead..=now + ahead + slack).contains(&up), "{now} {ahead}");
                    assert!(up >= now + slack, "{now} {ahead}");
                    assert!(up % slack == 0 || up == now + slack, "{now} {ahead}");
                }
            }
            assert_eq!(park_deadline(Time::MAX, Time::ZERO, unit), Time::MAX);
        }
    }
}
