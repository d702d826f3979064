//! What the kernel's cascade asks of the regions.

use std::marker::PhantomData;
use std::sync::Arc;

use asx_kernel::cascade::{self, RegionStore};
use asx_kernel::journal::EventKind;
use asx_kernel::region::{Duty, RegionState, RegionWord};

use super::{Finalizer, Inner, Region};
use crate::footprint;

/// The regions as the kernel's cascade sees them: each is named by a reference that lives as long
/// as the one the walk began with, since a region keeps its parent.
pub(super) struct Tree<'a>(PhantomData<&'a Arc<Region>>);

impl<'a> Tree<'a> {
    pub(super) fn settle(region: &'a Arc<Region>) {
        cascade::settle(&mut Tree(PhantomData), region);
    }

    /// Does what a region's word has asked for.
    #[inline]
    pub(super) fn go_on(region: &'a Arc<Region>, duty: Duty) {
        if duty != Duty::Wait {
            cascade::go_on(&mut Tree(PhantomData), region, duty);
        }
    }
}

impl Region {
    /// Has the region, whose lock is held, go on as far as nothing has to be done for it: what has
    /// to be then.
    #[inline]
    pub(super) fn advance(&self, inner: &mut Inner) -> Duty {
        loop {
            let from = inner.word.state();
            let duty = inner.word.advance();
            let to = inner.word.state();
            if from != to {
                self.note(EventKind::RegionMoved { from, to });
            }
            match duty {
                Duty::Moved => {}
                // It holds nothing that is to be released.
                Duty::Release if inner.resources.is_none() => inner.word.released(),
                duty => return duty,
            }
        }
    }
}

impl<'a> RegionStore for Tree<'a> {
    type Region = &'a Arc<Region>;

    fn with_word<R>(&mut self, region: Self::Region, f: impl FnOnce(&mut RegionWord) -> R) -> R {
        let word = &mut region.lock().word;
        let from = word.state();
        let answer = f(word);
        let to = word.state();
        if from != to {
            // Here and not in `moved`: under the lock steps are in order on the record.
            region.note(EventKind::RegionMoved { from, to });
        }
        answer
    }

    fn advance(&mut self, region: Self::Region, event: impl FnOnce(&mut RegionWord)) -> Duty {
        let mut inner = region.lock();
        event(&mut inner.word);
        region.advance(&mut inner)
    }

    fn moved(&mut self, _: Self::Region, _: RegionState, _: RegionState) {}

    fn cancel_children(&mut self, region: Self::Region) {
        region.cancel_inside();
    }

    fn start_finalizer(&mut self, region: Self::Region) {
        let finalizer = region.lock().finalizers.pop();
        // It is begun by whichever task is the last to end.
        let begin = |finalizer: Finalizer| footprint::neutrally(|| finalizer(region));
        if let Some(entry) = finalizer.and_then(begin) {
            region.watch_cleanup();
            region.core.host.schedule_globally(entry);
        }
    }

    fn cancel_timers(&mut self, region: Self::Region) {
        region.cancel_timers();
    }

    fn release_channels(&mut self, region: Self::Region) {
        region.release_channels();
    }

    fn account_leaks(&mut self, region: Self::Region) {
        region.account_leaks();
    }

    fn closed(&mut self, region: Self::Region) -> Option<Self::Region> {
        let (waiters, fold) = {
            let mut inner = region.lock();
            #[cfg(asx_audit)]
            inner.check_closed(region);
            let outcome = inner.fold;
            region.note(EventKind::RegionOutcome { outcome });
            region.core.region_done();
            if inner.cancel.is_some() {
                region.core.closing_done();
            }
            if !inner.graces.is_empty() {
                let graces = std::mem::take(&mut inner.graces);
                drop(graces.cancel(&region.core));
            }
            (std::mem::take(&mut inner.waiters), inner.fold)
        };
        region.span.end(fold);
        let parent = region.parent.as_ref();
        if let Some(parent) = parent {
            let mut inner = parent.lock();
            inner.children.remove(region.id);
            inner.add_to_fold(fold);
            region.core.touch(parent.stamp());
        }
        waiters.take_each(|waker| region.core.wake(waker));
        parent
    }
}
