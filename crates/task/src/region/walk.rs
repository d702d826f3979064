//! Asking child regions to stop, however deep they are.
//!
//! A region that is asked asks its children, parents before children, the first born first. Done by
//! calls inside calls, a deep tree would take more stack than a thread has. So the first call on a
//! thread keeps a list; those inside it put their children on top and leave the rest to it, which
//! comes to the same order.

use std::sync::Arc;

use asx_kernel::cancel::{Cleanup, Reason};

use super::Region;

/// Asks the regions to stop, one after the other, each with all that is inside before the next.
#[cfg(not(loom))]
pub(super) fn close_all(regions: Vec<Arc<Region>>, reason: &Arc<Reason>, cleanup: Cleanup) {
    if !regions.is_empty() && list::add(&regions, reason, cleanup) {
        let _end = list::End;
        while let Some((region, reason, cleanup)) = list::next() {
            region.close(reason, cleanup);
        }
    }
}

/// Whether a tree of regions is being asked to stop on this thread.
#[cfg(feature = "lab")]
pub(crate) fn is_walking() -> bool {
    #[cfg(not(loom))]
    return list::is_worked_off();
    #[cfg(loom)]
    false
}

/// Under loom threads are not threads; trees are small.
#[cfg(loom)]
pub(super) fn close_all(regions: Vec<Arc<Region>>, reason: &Arc<Reason>, cleanup: Cleanup) {
    for region in regions {
        region.close(reason.clone(), cleanup);
    }
}

#[cfg(not(loom))]
mod list {
    use std::cell::RefCell;
    use std::mem::{self, ManuallyDrop};

    use super::{Arc, Cleanup, Reason, Region};

    type Ask = (Arc<Region>, Arc<Reason>, Cleanup);

    thread_local! {
        /// Those still to be asked, the next one last; `None` while nobody works it off.
        ///
        /// Without a destructor, so that a thread which is about to end has it, too: destructors of
        /// its other values may cancel regions. Whoever works it off leaves `None`.
        static LIST: RefCell<ManuallyDrop<Option<Vec<Ask>>>> =
            const { RefCell::new(ManuallyDrop::new(None)) };
    }

    /// Puts them on top: whether the caller is to work the list off.
    pub(super) fn add(regions: &[Arc<Region>], reason: &Arc<Reason>, cleanup: Cleanup) -> bool {
        let asks = regions.iter().rev().map(|region| (region.clone(), reason.clone(), cleanup));
        LIST.with_borrow_mut(|list| {
            let is_first = list.is_none();
            list.get_or_insert_default().extend(asks);
            is_first
        })
    }

    /// Whether somebody works the list off on this thread.
    #[cfg(feature = "lab")]
    pub(super) fn is_worked_off() -> bool {
        LIST.with_borrow(|list| list.is_some())
    }

    pub(super) fn next() -> Option<Ask> {
        LIST.with_borrow_mut(|list| list.as_mut()?.pop())
    }

    /// The list is worked off, or a panic leaves it: nobody may count on it any more.
    pub(super) struct End;

    impl Drop for End {
        fn drop(&mut self) {
            // What is in it is dropped when it is free for others.
            drop(LIST.with_borrow_mut(|list| mem::take(&mut **list)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::task::{Wake, Waker};

    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;

    use super::*;
    use crate::region::Policy;
    use crate::test_util::loose_region;

    struct Bad;

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }

    /// A thread that is about to end has a stack like any other.
    #[test]
    fn a_deep_tree_can_be_cancelled_by_the_destructor_of_a_local_value_of_a_thread() {
        struct CancelsAtEnd(Arc<Region>);
        impl Drop for CancelsAtEnd {
            fn drop(&mut self) {
                self.0.close_as(Kind::User);
            }
        }
        thread_local! {
            static HELD: std::cell::RefCell<Option<CancelsAtEnd>> =
                const { std::cell::RefCell::new(None) };
        }
        let root = loose_region();
        let held = root.clone();
        let run = move || {
            // Registered before anything of the runtime's, and so dropped after that.
            HELD.set(Some(CancelsAtEnd(held.clone())));
            let mut inner = held;
            for _ in 0..20_000 {
                inner = inner.open_child(Policy::CollectAll, Budget::INFINITE, None).unwrap();
            }
            let open = |parent: &Arc<Region>| {
                parent.open_child(Policy::CollectAll, Budget::INFINITE, None).unwrap()
            };
            let first = open(&inner);
            open(&first);
            first.close_as(Kind::User);
        };
        let small = std::thread::Builder::new().stack_size(256 * 1024);
        small.spawn(run).unwrap().join().unwrap();
        assert!(root.poll_closed(Waker::noop()));
    }

    /// Every region of the tree is asked, though each of their bodies' wakers panics; and so are
    /// those of the next tree.
    #[test]
    fn a_waker_that_panics_keeps_no_region_from_being_asked() {
        for _ in 0..2 {
            let root = loose_region();
            let open = |parent: &Arc<Region>| {
                let child = parent.open_child(Policy::FailFast, Budget::INFINITE, None).unwrap();
                child.watch_body(&Waker::from(Arc::new(Bad)));
                child
            };
            let mut regions: Vec<_> = (0..3).map(|_| open(&root)).collect();
            let inner: Vec<_> = regions.iter().map(open).collect();
            regions.extend(inner);
            root.close_as(Kind::User);
            assert!(regions.iter().all(|region| region.is_body_cancelled()));
            regions.iter().for_each(|region| assert!(region.poll_closed(Waker::noop())));
            assert!(root.poll_closed(Waker::noop()));
            assert_eq!(root.health().callback_panics, 6);
        }
    }
}
