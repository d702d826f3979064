//! The number of workers in each state, packed into one word, and decisions that depend only on it.

use super::ParkKind;

/// The workers by state; their sum is always the number of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) active: u16,
    pub(super) searching: u16,
    pub(super) asleep: u16,
    pub(super) watching: bool,
    /// A parked worker wakes for the next timer, and no worker has been Active since it parked.
    pub(super) timers_covered: bool,
}

impl Counts {
    pub(super) const fn pack(self) -> u64 {
        self.active as u64
            | (self.searching as u64) << 16
            | (self.asleep as u64) << 32
            | (self.watching as u64) << 48
            | (self.timers_covered as u64) << 49
    }

    pub(super) const fn unpack(word: u64) -> Counts {
        Counts {
            active: word as u16,
            searching: (word >> 16) as u16,
            asleep: (word >> 32) as u16,
            watching: word >> 48 & 1 == 1,
            timers_covered: word >> 49 & 1 == 1,
        }
    }

    /// Parks one of the searchers. With `prefers_watch` it watches even if no worker is Active,
    /// provided that another worker wakes for the timers.
    pub(super) fn park(&mut self, prefers_watch: bool) -> ParkKind {
        self.searching -= 1;
        let watches = self.active > 0 || (prefers_watch && self.timers_covered);
        if watches && !self.watching {
            self.watching = true;
            return ParkKind::Watch;
        }
        self.asleep += 1;
        // A watcher may be left. It finds that no worker is Active, and sleeps.
        if self.active + self.searching > 0 || self.timers_covered {
            return ParkKind::Sleep;
        }
        self.timers_covered = true;
        ParkKind::Last
    }

    pub(super) fn parked(self) -> u16 {
        self.asleep + u16::from(self.watching)
    }

    /// Returns true if a worker sleeps and none will find local work of an Active worker by itself.
    pub(super) fn needs_helper(self) -> bool {
        self.searching == 0 && !self.watching && self.asleep > 0
    }

    /// Returns true if a worker is parked and none is searching.
    pub(super) fn needs_searcher(self) -> bool {
        self.searching == 0 && self.parked() > 0
    }
}
