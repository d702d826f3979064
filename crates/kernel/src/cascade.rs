//! The completion cascade: task -> region -> parent, written once.
//!
//! Whatever ends, somebody above may now be able to go on: a region whose last child has ended
//! finalizes, releases what it holds (timers, then permits and queues), accounts for leaks and
//! closes; that may be the last child its parent waited for. A host brings the storage
//! ([`RegionStore`]: arenas in the model, cells behind short locks in the runtime), the order of
//! things is here.

use crate::region::{Duty, RegionState, RegionWord};

/// Where regions live, and how their duties are performed.
pub trait RegionStore {
    /// Names a region.
    type Region: Copy;

    /// Runs `f` on the region's word, alone.
    fn with_word<R>(&mut self, region: Self::Region, f: impl FnOnce(&mut RegionWord) -> R) -> R;
    /// Has `event` happen to the region's word, and then takes its steps as far as nothing has to
    /// be done for them: what has to be then. A store with locks needs only one for all of it.
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
    /// Asks everything inside to stop: own tasks first, then child regions, in creation order.
    fn cancel_children(&mut self, region: Self::Region);
    /// Starts the finalizer registered last.
    fn start_finalizer(&mut self, region: Self::Region);
    /// Cancels the region's timers.
    fn cancel_timers(&mut self, region: Self::Region);
    /// Aborts the region's permits and drains its queues.
    fn release_channels(&mut self, region: Self::Region);
    /// Turns each outstanding obligation into a leak, in id order, and reports them.
    fn account_leaks(&mut self, region: Self::Region);
    /// The region is Closed: outcome and waiters; answers the parent, which has one child less.
    fn closed(&mut self, region: Self::Region) -> Option<Self::Region>;
}

/// A task of `region` has completed.
pub fn task_done<S: RegionStore>(store: &mut S, region: S::Region) {
    let duty = store.advance(region, RegionWord::task_done);
    go_on(store, region, duty);
}

/// Takes every step that `region`, and then its ancestors, can take now.
pub fn settle<S: RegionStore>(store: &mut S, region: S::Region) {
    go_on(store, region, Duty::Moved);
}

/// Does what [`RegionStore::advance`] has answered, and whatever follows from that.
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
