//! Which cancels were tried.

use std::collections::BTreeMap;

/// A place where a task could be cancelled: which task, after how many polls, how often, and
/// whether when it is about to be polled again or at once.
type Place = (u64, u64, usize, bool);

/// Where tasks could have been cancelled, and whether they were.
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

    /// How many cancels were tried, and how many there are to try.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.0.values().filter(|tried| **tried).count(), self.0.len())
    }
}
