//! The region a task belongs to, as its cell keeps it.
//!
//! Cells come and go by the thousand while their region stays. An `Arc` each would cost two atomic
//! operations per task on a word that all workers share. So the references of cells to their region
//! are counted separately, and a poll takes or returns several at once (see `poll_context`).
//! Without that, `spawn_await` takes a third more atomic operations, and 3 % more of the measure
//! in LAWS.md.
//!
//! # Rules
//! 1. `Region::region_refs` counts the references of cells, and those that polls have in reserve.
//!    While it is not zero, these references share one reference of the `Arc`: the step that leaves
//!    zero adds it, the step that reaches zero drops it. So the region lives as long as one of them
//!    does. A thread that adds has an `Arc` of its own in between; a thread that removes has the
//!    counted reference until its step.
//! 2. A region keeps its parent, and the first region keeps the core. The [`CoreRef`] of any other
//!    region is not counted. It is dropped before the parent is, or never used again
//!    (`region_pool`).

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::sync::Arc;

use super::Region;
use crate::core::Core;
use crate::prim::atomic::Ordering::{AcqRel, Relaxed};
use crate::raw::audit::RegionRefOwner;
use crate::raw::owner::OwnerRef;
use crate::raw::poll_context::{self, PollContext};

/// References that are counted at once, at most.
const BATCH: u32 = 1 << 10;

/// The slot of an owner has room for the reference that is put there.
const _: () = assert!(
    size_of::<Arc<Region>>() == size_of::<*const ()>()
        && align_of::<Arc<Region>>() == align_of::<*const ()>()
);

const fn is_send_and_sync<T: Send + Sync>() {}
const _: () = is_send_and_sync::<Arc<Region>>();

// SAFETY: the slot holds an `Arc<Region>` (rule 14 of cells), which is `Send`.
unsafe impl Send for OwnerRef {}
// SAFETY: as above; it is `Sync`.
unsafe impl Sync for OwnerRef {}

/// References of cells to their region.
impl OwnerRef {
    /// A reference to a region, cheap to create and to drop in a poll.
    #[inline]
    pub(crate) fn of(region: &Arc<Region>) -> OwnerRef {
        if take_from_reserve(region) {
            region.books.shift(RegionRefOwner::Reserve, RegionRefOwner::Cell);
        } else {
            add(region, RegionRefOwner::Cell, 1);
        }
        let mut slot = MaybeUninit::<*const ()>::uninit();
        // SAFETY: rule 14 of cells. Rule 1: counted just now; the `Arc` is never dropped.
        unsafe {
            slot.as_mut_ptr().cast::<Arc<Region>>().write(Arc::from_raw(Arc::as_ptr(region)))
        };
        OwnerRef { slot }
    }

    /// The region.
    #[inline(always)]
    pub(crate) fn region(&self) -> &Arc<Region> {
        // SAFETY: rule 14 of cells: written by `of`. Rule 1: the region lives.
        let region = unsafe { &*self.slot.as_ptr().cast::<Arc<Region>>() };
        region.seal.check_alive();
        region
    }
}

impl Drop for OwnerRef {
    #[inline]
    fn drop(&mut self) {
        let region = Arc::as_ptr(self.region());
        if return_to_reserve(region) {
            return self.region().books.shift(RegionRefOwner::Cell, RegionRefOwner::Reserve);
        }
        // SAFETY: rule 1: this one.
        unsafe { remove(region, RegionRefOwner::Cell, 1) };
    }
}

/// Takes a reference to a region from the reserve of the poll on this thread, if there is a poll.
#[inline]
fn take_from_reserve(region: &Arc<Region>) -> bool {
    let take = |poll: &PollContext| {
        let reserve = &poll.owner_reserve;
        let address = Arc::as_ptr(region).cast();
        while reserve.owner.get() != address {
            reserve.move_to(address);
        }
        let left = match reserve.references.get() {
            0 => {
                // Most polls spawn at most once. Others count more references at a time.
                let batch = (reserve.batch.get() * 2).clamp(1, BATCH);
                reserve.batch.set(batch);
                add(region, RegionRefOwner::Reserve, batch);
                batch
            }
            left => left,
        };
        reserve.references.set(left - 1);
    };
    poll_context::with_poll(take).is_some()
}

/// Puts a reference to a region into the reserve of the poll on this thread, if there is one and it
/// has no references to another region. The caller no longer has it then.
#[inline]
fn return_to_reserve(region: *const Region) -> bool {
    let put = |poll: &PollContext| {
        let reserve = &poll.owner_reserve;
        let left = reserve.references.get();
        let fits = left < u32::MAX && (left == 0 || reserve.owner.get() == region.cast());
        if fits {
            reserve.owner.set(region.cast());
            reserve.references.set(left + 1);
        }
        fits
    };
    poll_context::with_poll(put).unwrap_or(false)
}

/// Gives up the references to a region that the poll on this thread has in reserve.
#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
#[inline]
pub(super) fn leave_region(region: &Arc<Region>) {
    poll_context::with_poll(|poll| {
        if poll.owner_reserve.owner.get() == Arc::as_ptr(region).cast() {
            poll.owner_reserve.release();
        }
    });
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

/// Counts `more` references to a region.
pub(crate) fn add(region: &Arc<Region>, owner: RegionRefOwner, more: u32) {
    if region.region_refs.fetch_add(more as usize, Relaxed) == 0 {
        std::mem::forget(region.clone());
    }
    region.books.enter(|| region.region_refs.load(Relaxed), owner, more);
}

/// Gives up `fewer` references to a region.
///
/// # Safety
/// Rule 1: they were counted, and are not used again.
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

    /// Inside a poll and outside, for one region and for two in turn: the count matches the
    /// references that exist, and one reference of the `Arc` stands for all of them.
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
                (0..made).for_each(|n| kept.push(OwnerRef::of(&regions[n / 7 % 2])));
                let left = kept.len() - dropped;
                kept.truncate(left);
                Ok::<(), ()>(())
            };
            // SAFETY: Send and 'static.
            let (entry, task) = unsafe { make(&loose_region(), Plan::default(), body) };
            assert!(entry.unwrap().unwrap().run() && task.is_finished());
            let region_refs = kept.lock().unwrap();
            let of = |region: &Arc<Region>| {
                region_refs.iter().filter(|h| Arc::ptr_eq(h.region(), region)).count()
            };
            assert_eq!((counted(&one), counted(&two)), (of(&one), of(&two)));
            let held = |count: usize, of: usize| count + usize::from(of > 0);
            assert_eq!(Arc::strong_count(&one), held(alone.0, of(&one)));
            assert_eq!(Arc::strong_count(&two), held(alone.1, of(&two)));
        }
        assert!(kept.lock().unwrap().is_empty());
        let core = Arc::downgrade(&one.core);
        let last = OwnerRef::of(&one);
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
