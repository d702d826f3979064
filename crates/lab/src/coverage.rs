//! Which cancels were tried.

use std::collections::BTreeMap;

/// Where tasks could have been cancelled, and where they were: once, and twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<(u64, u64), [bool; 2]>);

impl Coverage {
    /// A task was cancelled here so often, or could have been.
    pub(crate) fn seen(&mut self, point: (u64, u64), times: usize) {
        let tried = self.0.entry(point).or_default();
        if let Some(at) = times.checked_sub(1) {
            tried[at] = true;
        }
    }

    /// How many cancels were tried, and how many there are to try.
    pub(crate) fn count(&self) -> (usize, usize) {
        let tried = self.0.values().flatten().filter(|tried| **tried).count();
        (tried, 2 * self.0.len())
    }
}
