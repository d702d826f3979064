//! Who is parked, by name.

/// The parked workers. The counts change under its lock whenever this does.
#[derive(Debug, Default)]
pub(super) struct Parked {
    pub(super) watcher: Option<usize>,
    /// Who went to sleep last is woken first: its caches are warm, and it has the timers.
    pub(super) sleepers: Vec<usize>,
    /// The parked worker that gets up for the timers.
    pub(super) driver: Option<usize>,
    /// Nobody parks any more.
    pub(super) closed: bool,
}

/// What a worker was while it was parked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Was {
    pub(super) watcher: bool,
    pub(super) driver: bool,
}

impl Parked {
    /// Takes a worker off the list, if it is there.
    pub(super) fn remove(&mut self, worker: usize) -> Option<Was> {
        let watcher = self.watcher.take_if(|watcher| *watcher == worker).is_some();
        if !watcher {
            // It is mostly the last.
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
