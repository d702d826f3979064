//! Regions that are over, to be used again.
//!
//! A scope opens a region and is the last to know it when it returns: all inside has ended. So its
//! thread keeps the memory of a few, and most of what is in it, for the next that are opened: what
//! is closed is nearly what a new one is like. That saves the allocator's time, and the making of
//! half a kilobyte in one place that is then copied to another: 6.3 % of a run of `check_then_act`
//! in the lab (`valgrind --tool=callgrind target/release/asx-bench-lab --count check_then_act
//! random asx 500`, with and without).
//!
//! Not on a page, under loom, or with `--cfg asx_no_reuse`; as with cells.

#[cfg(any(loom, target_family = "wasm", asx_no_reuse))]
mod kept {
    use std::sync::Arc;

    use super::super::Region;

    /// None is kept.
    #[inline(always)]
    pub(in crate::region) fn renewed(_: impl FnOnce(&mut Region)) -> Option<Arc<Region>> {
        None
    }

    impl Region {
        /// Gives up a region.
        #[inline(always)]
        pub(crate) fn recycle(_: Arc<Region>) {}
    }
}

pub(super) use kept::renewed;

#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
mod kept {
    use std::cell::Cell;
    use std::mem;
    use std::sync::Arc;

    use asx_kernel::outcome::Severity;
    use asx_kernel::region::{RegionState, RegionWord};

    use super::super::{Graces, Inner, Region, Span, Stamp};
    use crate::inline_map::InlineMap;
    use crate::locals::Locals;
    use crate::region::region_ref;

    /// How many a thread keeps: scopes inside each other, or in tasks that run by turns.
    const MOST: usize = 8;

    thread_local! {
        static SPARE: Spare = const { Spare { first: Cell::new(None), count: Cell::new(0) } };
    }

    /// A list: each has the next one for a parent.
    struct Spare {
        first: Cell<Option<Arc<Region>>>,
        count: Cell<usize>,
    }

    impl Spare {
        /// The first one, to be made new by `renew`.
        #[inline]
        fn take(&self, renew: impl FnOnce(&mut Region)) -> Option<Arc<Region>> {
            let mut first = self.first.take()?;
            // Nobody else knows it.
            let region = Arc::get_mut(&mut first)?;
            self.first.set(region.parent.take());
            self.count.set(self.count.get() - 1);
            renew(region);
            Some(first)
        }

        /// Keeps a region, if it is over and nobody else knows it; then the answer is its parent.
        #[inline]
        fn keep(&self, mut region: Arc<Region>) -> Option<Arc<Region>> {
            let own = Arc::get_mut(&mut region)?;
            // One without a parent keeps the core.
            let closed = own.inner.get_mut().word.state() == RegionState::Closed;
            if !closed || own.parent.is_none() {
                return None;
            }
            own.clear();
            let count = self.count.get();
            if count >= MOST {
                return None;
            }
            self.count.set(count + 1);
            let parent = mem::replace(&mut *own.parent, self.first.take());
            self.first.set(Some(region));
            parent
        }
    }

    /// A region that was kept, after `renew` has given it what it has of its own.
    #[inline]
    pub(in crate::region) fn renewed(renew: impl FnOnce(&mut Region)) -> Option<Arc<Region>> {
        // A thread that is about to end may keep none any more.
        SPARE.try_with(|spare| spare.take(renew)).ok().flatten()
    }

    impl Region {
        /// Gives up a region: it is kept, if it is over and nobody else knows it.
        #[inline]
        pub(crate) fn recycle(region: Arc<Region>) {
            region_ref::leave_region(&region);
            let parent = SPARE.try_with(|spare| spare.keep(region));
            // What it had of the core goes with the parent, and is not looked at any more.
            drop(parent);
        }

        /// Drops what it has, and is as if it was new.
        #[inline]
        fn clear(&mut self) {
            // Of scopes, and of nothing else that is usual.
            self.core.drop_waker(self.inner.get_mut().body.take());
            if self.has_more() {
                self.drop_more();
            }
            *self.stopping.get_mut() = false;
            *self.patient.get_mut() = false;
            *self.watched.get_mut() = false;
            *self.cancelled.get_mut() = false;
            self.span = Span::default();
            self.completed.renew();
            self.stamp = Stamp::default();
            let inner = self.inner.get_mut();
            (inner.first, inner.last, inner.max_children) = (None, None, None);
            inner.word = RegionWord::default();
            (inner.targeted, inner.abandoned, inner.shut) = (false, false, false);
            inner.fold = Severity::Ok;
        }

        /// Whether it has anything that few have.
        #[inline]
        fn has_more(&mut self) -> bool {
            let Region { locals, inner, .. } = self;
            let Inner { children, finalizers, cancel, failure, broken, failed, .. } =
                inner.get_mut();
            let kept = failure.is_some() || broken.is_some() || !children.is_empty();
            let asked = cancel.is_some() || failed.is_some();
            if locals.is_some() || kept || asked || !finalizers.is_empty() {
                return true;
            }
            let Inner { graces, waiters, resources, .. } = inner.get_mut();
            !graces.is_empty() || !waiters.is_empty() || resources.is_some()
        }

        /// Drops that, some of which may be the user's.
        #[cold]
        fn drop_more(&mut self) {
            Locals::discard(self.locals.take(), |locals| self.core.discard(locals));
            let inner = self.inner.get_mut();
            inner.drop_callbacks(&self.core);
            inner.children = InlineMap::default();
            inner.cancel = None;
            (inner.failure, inner.broken, inner.failed) = (None, None, None);
            inner.graces = Graces::default();
            inner.resources = None;
        }
    }

    /// How many this thread has.
    #[cfg(test)]
    pub(super) fn count() -> usize {
        SPARE.with(|spare| spare.count.get())
    }
}

#[cfg(all(test, not(any(loom, target_family = "wasm", asx_no_reuse))))]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;
    use asx_kernel::region::{Operation, RegionState};

    use super::super::{Policy, Region};
    use super::kept::count;
    use crate::test_util::loose_region;

    fn open(parent: &Arc<Region>, policy: Policy) -> Arc<Region> {
        parent.open_child(policy, Budget::INFINITE, None).unwrap()
    }

    /// Whatever the last one was like, closed by its author or cancelled: the next one in its
    /// memory is like any other.
    #[test]
    fn a_region_in_used_memory_is_as_new() {
        let root = loose_region();
        let mut last = std::ptr::null();
        for round in 0..4 {
            let region = open(&root, Policy::FailFast);
            if round > 0 {
                assert!(std::ptr::eq(last, &*region), "in the memory of the last one");
            }
            last = &*region;
            assert!(!region.is_body_cancelled() && !region.has_failed());
            assert!(region.outcome().is_none() && region.cancel_reason().is_none());
            {
                let inner = region.lock();
                assert_eq!(inner.word.state(), RegionState::Open);
                assert!(inner.admit(Operation::Create).is_ok() && inner.first.is_none());
                assert!(inner.body.is_none() && inner.resources.is_none() && !inner.targeted);
            }
            region.watch_body(Waker::noop());
            region.lock().max_children = Some(3);
            match round % 2 {
                0 => region.close_failed(),
                _ => region.end(),
            }
            assert!(region.poll_closed(Waker::noop()));
            Region::recycle(region);
        }
    }

    /// Nothing that somebody still knows, that lives, or that keeps the core is used again; and
    /// what is kept keeps nobody else.
    #[test]
    fn only_what_is_over_and_unknown_is_kept() {
        let root = loose_region();
        let alone = Arc::strong_count(&root);
        let known = open(&root, Policy::CollectAll);
        let live = open(&root, Policy::CollectAll);
        known.end();
        let knows = known.clone();
        let lives = Arc::as_ptr(&live);
        Region::recycle(known);
        Region::recycle(live);
        let next = open(&root, Policy::CollectAll);
        assert!(!Arc::ptr_eq(&next, &knows) && !std::ptr::eq(lives, &*next));
        next.end();
        Region::recycle(next);
        drop(knows);
        root.close_as(Kind::User);
        assert_eq!(Arc::strong_count(&root), alone, "who is kept has no parent");
        let core = Arc::downgrade(&root.core);
        let weak = Arc::downgrade(&root);
        Region::recycle(root);
        assert!(weak.upgrade().is_none() && core.upgrade().is_none());
    }

    #[test]
    fn a_thread_keeps_a_few() {
        let root = loose_region();
        let open = || open(&root, Policy::CollectAll);
        let regions: Vec<_> = std::iter::repeat_with(open).take(30).collect();
        for region in regions {
            region.end();
            Region::recycle(region);
        }
        assert_eq!(count(), 8);
        let again: Vec<_> = std::iter::repeat_with(open).take(5).collect();
        assert_eq!(count(), 3);
        drop(again);
    }
}
