//! The completion cascade: task -> region -> parent, implemented once for all hosts.
//!
//! When a task or region ends, its parent may be able to proceed. When the last
//! child of a region has ended, the region finalizes, releases its resources (timers, then permits
//! and queues), accounts for leaks and closes. It may in turn be the last child of its parent. A
//! host provides the storage ([`RegionStore`]: arenas in the model, cells behind short locks in the
//! runtime); this module defines the order of the steps.

use crate::region::{Duty, RegionState, RegionWord};

/// The storage of regions, and the implementation of their duties.
pub trait RegionStore {
    /// Identifies a region.
    type Region: Copy;

    /// Runs `f` with exclusive access to the region's word.
    fn with_word<R>(&mut self, region: Self::Region, f: impl FnOnce(&mut RegionWord) -> R) -> R;
    /// Applies `event` to the region's word, and then takes all steps that need no action of the
    /// host. Returns the first duty that does. A store with locks can override this to use one
    /// critical section.
    fn advance(&mut self, region: Self::Region, event: impl FnOnce(&mut RegionWord)) -> Duty {
        self.with_word(region, event);
        loop {
            let step = |word: &mut RegionWord| (word.state(), word.advance(), word.state());
            let (from, duty, to) = self.with_word(region, step);
            if from != to {
                self.moved(region, from, to);
            }
            if duty != Duty::Moved {
                return duty;
            }
        }
    }
    /// The region's state has changed.
    fn moved(&mut self, region: Self::Region, from: RegionState, to: RegionState);
    /// Cancels everything inside: the region's tasks first, then child regions, in creation order.
    fn cancel_children(&mut self, region: Self::Region);
    /// Starts the finalizer that was registered last.
    fn start_finalizer(&mut self, region: Self::Region);
    /// Cancels the region's timers.
    fn cancel_timers(&mut self, region: Self::Region);
    /// Aborts the region's permits and drains its queues.
    fn release_channels(&mut self, region: Self::Region);
    /// Turns each outstanding obligation into a leak, in id order, and reports the leaks.
    fn account_leaks(&mut self, region: Self::Region);
    /// The region is Closed: publishes the outcome and wakes waiters. Returns the parent, which
    /// now has one child less.
    fn closed(&mut self, region: Self::Region) -> Option<Self::Region>;
}

/// Handles the completion of a task of `region`.
pub fn task_done<S: RegionStore>(store: &mut S, region: S::Region) {
    let duty = store.advance(region, RegionWord::task_done);
    go_on(store, region, duty);
}

/// Takes every step that `region`, and then its ancestors, can take now.
pub fn settle<S: RegionStore>(store: &mut S, region: S::Region) {
    go_on(store, region, Duty::Moved);
}

/// Performs a duty returned by [`RegionStore::advance`], and all duties that follow from it.
pub fn go_on<S: RegionStore>(store: &mut S, mut region: S::Region, mut duty: Duty) {
    while duty != Duty::Wait {
        let mut event: fn(&mut RegionWord) = |_| ();
        match duty {
            Duty::Wait | Duty::Moved => {}
            Duty::CancelChildren => store.cancel_children(region),
            Duty::StartFinalizer => store.start_finalizer(region),
            Duty::Release => {
                store.cancel_timers(region);
                store.release_channels(region);
                event = RegionWord::released;
            }
            Duty::AccountLeaks => {
                store.account_leaks(region);
                event = RegionWord::leaks_accounted;
            }
            Duty::Closed => {
                let Some(parent) = store.closed(region) else { return };
                region = parent;
                event = RegionWord::child_done;
            }
        }
        duty = store.advance(region, event);
    }
}
