//! The list of parked workers.

/// The parked workers. The counts change under the same lock.
#[derive(Debug, Default)]
pub(super) struct Parked {
    pub(super) watcher: Option<usize>,
    /// In the order in which they parked. The newest is woken first: its caches are warm, and it
    /// may be the one that waits for the timers.
    pub(super) sleepers: Vec<usize>,
    /// The parked worker that wakes for the timers.
    pub(super) driver: Option<usize>,
    /// No worker may park any more.
    pub(super) closed: bool,
}

/// The role of a worker that was parked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Was {
    pub(super) watcher: bool,
    pub(super) driver: bool,
}

impl Parked {
    /// Removes a worker from the list, if it is parked.
    pub(super) fn remove(&mut self, worker: usize) -> Option<Was> {
        let watcher = self.watcher.take_if(|watcher| *watcher == worker).is_some();
        if !watcher {
            // It is usually the last one.
            let at = self.sleepers.iter().rposition(|&other| other == worker)?;
            self.sleepers.remove(at);
        }
        let driver = self.driver.take_if(|driver| *driver == worker).is_some();
        Some(Was { watcher, driver })
    }

    pub(super) fn newest_sleeper(&self) -> Option<usize> {
        self.sleepers.last().copied()
    }
}
