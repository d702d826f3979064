//! The region a task belongs to, as its cell keeps it.
//!
//! Cells come and go by the thousand while their region stays. An `Arc` each would cost two atomic
//! operations per task on a word that all workers share. So the references of cells to their region
//! are counted separately, and a poll takes or returns several at once (see `poll_context`).
//! Without that, `spawn_await` takes a third more atomic operations, and 3 % more of the measure
//! in LAWS.md.
//!
//! # Rule
//! 1. `Region::region_refs` counts the references that cells have, and those a poll has in reserve.
//!    While it is not zero they have one reference of the `Arc` together: who makes it leave zero
//!    adds that, who makes it zero drops it. So the region lives as long as one of them does. In
//!    between, who adds has an `Arc` of its own, and who removes counts until it has.
//! 2. A region keeps its parent, and the first one keeps the core: what the others have of it is
//!    not counted, and gone before their parent is, or never looked at again (`region_pool`).

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use super::Region;
use crate::core::Core;
use crate::prim::atomic::Ordering::{AcqRel, Relaxed};
use crate::raw::audit::RegionRefOwner;
use crate::raw::poll_context;

/// A reference to a region that costs little to make and to drop while a task is polled.
pub(crate) struct RegionRef(ManuallyDrop<Arc<Region>>);

impl RegionRef {
    #[inline]
    pub(crate) fn of(region: &Arc<Region>) -> RegionRef {
        if poll_context::take_region_ref(region) {
            region.books.shift(RegionRefOwner::Reserve, RegionRefOwner::Cell);
        } else {
            add(region, RegionRefOwner::Cell, 1);
        }
        // SAFETY: rule 1: counted just now; a reference never drops what it has here.
        RegionRef(ManuallyDrop::new(unsafe { Arc::from_raw(Arc::as_ptr(region)) }))
    }
}

impl Deref for RegionRef {
    type Target = Arc<Region>;

    #[inline]
    fn deref(&self) -> &Arc<Region> {
        self.0.seal.check_alive();
        &self.0
    }
}

impl Drop for RegionRef {
    #[inline]
    fn drop(&mut self) {
        let region = Arc::as_ptr(&self.0);
        if poll_context::return_region_ref(region) {
            return self.books.shift(RegionRefOwner::Cell, RegionRefOwner::Reserve);
        }
        // SAFETY: rule 1: this one.
        unsafe { remove(region, RegionRefOwner::Cell, 1) };
    }
}

/// The core, as a region keeps it.
pub(crate) struct CoreRef {
    core: ManuallyDrop<Arc<Core>>,
    counted: bool,
}

impl CoreRef {
    /// For a region without a parent.
    pub(super) fn first(core: Arc<Core>) -> CoreRef {
        CoreRef { core: ManuallyDrop::new(core), counted: true }
    }

    /// For a region inside of `parent`, which the caller keeps as long as this.
    pub(super) fn inside(parent: &Arc<Region>) -> CoreRef {
        // SAFETY: rule 2: not counted, and never dropped.
        let core = unsafe { Arc::from_raw(Arc::as_ptr(&parent.core)) };
        CoreRef { core: ManuallyDrop::new(core), counted: false }
    }
}

impl Deref for CoreRef {
    type Target = Arc<Core>;

    #[inline]
    fn deref(&self) -> &Arc<Core> {
        self.core.seal.check_alive();
        &self.core
    }
}

impl Drop for CoreRef {
    fn drop(&mut self) {
        if self.counted {
            // SAFETY: rule 2: it is the one that counts, and is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.core) };
        }
    }
}

#[cfg(all(test, asx_audit))]
impl Region {
    pub(crate) fn check_alive(&self) {
        self.seal.check_alive();
    }
}

/// Counts so many more references to a region.
pub(crate) fn add(region: &Arc<Region>, owner: RegionRefOwner, more: u32) {
    if region.region_refs.fetch_add(more as usize, Relaxed) == 0 {
        std::mem::forget(region.clone());
    }
    region.books.enter(|| region.region_refs.load(Relaxed), owner, more);
}

/// Counts so many references fewer.
///
/// # Safety
/// Rule 1: they were counted, and nobody has them any more.
#[inline]
pub(crate) unsafe fn remove(region: *const Region, owner: RegionRefOwner, fewer: u32) {
    // SAFETY: rule 1: the region lives until the count is zero.
    let counted = unsafe { &*region };
    counted.books.strike(|| counted.region_refs.load(Relaxed), owner, fewer);
    let before = counted.region_refs.fetch_sub(fewer as usize, AcqRel);
    if before == fewer as usize {
        // SAFETY: rule 1: the one reference of them all, which came from an `Arc`.
        drop(unsafe { Arc::from_raw(region) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Cx;
    use crate::region::Policy;
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;
    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;

    fn counted(region: &Region) -> usize {
        region.region_refs.load(Relaxed)
    }

    /// Inside a poll and outside, in one region and in two by turns: what is counted at the end is
    /// what there is, and one reference stands for all of it.
    #[test]
    fn homes_keep_their_region_as_long_as_there_is_one() {
        let one = loose_region();
        let two = loose_region();
        let alone = (Arc::strong_count(&one), Arc::strong_count(&two));
        let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
        for (made, dropped) in [(1, 1), (1, 0), (2, 3), (3000, 10), (10, 3000), (40, 40)] {
            let regions = [one.clone(), two.clone()];
            let own = kept.clone();
            let body = async move |_: Cx| {
                let mut kept = own.lock().unwrap();
                (0..made).for_each(|n| kept.push(RegionRef::of(&regions[n / 7 % 2])));
                let left = kept.len() - dropped;
                kept.truncate(left);
                Ok::<(), ()>(())
            };
            // SAFETY: Send and 'static.
            let (entry, task) = unsafe { make(&loose_region(), Plan::default(), body) };
            assert!(entry.unwrap().unwrap().run() && task.is_finished());
            let region_refs = kept.lock().unwrap();
            let of = |region: &Arc<Region>| {
                region_refs.iter().filter(|h| Arc::ptr_eq(h, region)).count()
            };
            assert_eq!((counted(&one), counted(&two)), (of(&one), of(&two)));
            let held = |count: usize, of: usize| count + usize::from(of > 0);
            assert_eq!(Arc::strong_count(&one), held(alone.0, of(&one)));
            assert_eq!(Arc::strong_count(&two), held(alone.1, of(&two)));
        }
        assert!(kept.lock().unwrap().is_empty());
        let core = Arc::downgrade(&one.core);
        let last = RegionRef::of(&one);
        let weak = Arc::downgrade(&one);
        drop(one);
        assert!(weak.upgrade().is_some());
        drop(last);
        assert!(weak.upgrade().is_none() && core.upgrade().is_none());
    }

    /// Whichever region goes last, the core goes with it, and not before.
    #[test]
    fn a_region_keeps_the_core_of_the_first_one() {
        let first = loose_region();
        let core = Arc::downgrade(&first.core);
        let counted = core.strong_count();
        let open = |of: &Arc<Region>| of.open_child(Policy::CollectAll, Budget::INFINITE, None);
        let inner = open(&open(&first).unwrap()).unwrap();
        assert_eq!(core.strong_count(), counted, "inner regions count nothing");
        inner.parent.as_ref().unwrap().close_as(Kind::User);
        drop(first);
        assert!(Arc::ptr_eq(&inner.core, &core.upgrade().unwrap()));
        assert!(inner.poll_closed(std::task::Waker::noop()));
        drop(inner);
        assert!(core.upgrade().is_none());
    }
}
