//! Which cancels and faults were tried.

use std::collections::BTreeMap;

/// A place where a task could be disturbed: which task, after how many polls, and then for cancels
/// how often, and whether when it is about to be polled again or at once; for faults, which one.
type Place = (u64, u64, usize, bool);

/// Where tasks could have been disturbed, and whether they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<Place, bool>);

impl Coverage {
    /// There is a choice between no cancel and up to `most`; this many were made.
    pub(crate) fn seen(&mut self, (path, polls): (u64, u64), late: bool, most: usize, made: usize) {
        for times in 1..=most {
            let place = (path, polls, times, late);
            *self.0.entry(place).or_default() |= times == made;
        }
    }

    /// There is a choice between no fault and the `nth` one there.
    pub(crate) fn fault(&mut self, (path, polls): (u64, u64), nth: usize, made: bool) {
        *self.0.entry((path, polls, nth, false)).or_default() |= made;
    }

    /// The points of this task: how many were tried, and how many there are to try.
    pub(crate) fn count_of(&self, path: u64) -> (usize, usize) {
        let points = || self.0.iter().filter(|((of, ..), _)| *of == path);
        (points().filter(|(_, tried)| **tried).count(), points().count())
    }

    /// How many were tried, and how many there are to try.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.0.values().filter(|tried| **tried).count(), self.0.len())
    }
}
