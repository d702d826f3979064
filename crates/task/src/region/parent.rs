//! The region around a region, and everything inside one, however deep the tree is.
//!
//! Trees are as deep as programs make them, so nothing here calls itself for each level: a thread's
//! stack would not last.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::Region;

/// What a region keeps of the one around it.
pub(super) struct Parent(pub(super) Option<Arc<Region>>);

impl Deref for Parent {
    type Target = Option<Arc<Region>>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Parent {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Parent {
    #[inline]
    fn drop(&mut self) {
        if let Some(parent) = self.0.take() {
            drop_upwards(parent);
        }
    }
}

/// Drops a reference; if it was the last one of its region, goes on with the region around that.
fn drop_upwards(region: Arc<Region>) {
    let mut next = Some(region);
    while let Some(region) = next {
        next = Arc::into_inner(region).and_then(|mut region| {
            let parent = region.parent.take();
            // Before its parent, which may be what keeps the core (rule 2 of `region_ref`).
            drop(region);
            parent
        });
    }
}

impl Region {
    /// Visits this region and everything inside, parents before children, the oldest first. `visit`
    /// answers the children to go on with.
    pub(crate) fn each_inside(&self, visit: &mut dyn FnMut(&Region) -> Vec<Arc<Region>>) {
        let mut rest = visit(self);
        rest.reverse();
        while let Some(region) = rest.pop() {
            let first = rest.len();
            rest.extend(visit(&region));
            rest[first..].reverse();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;

    use super::*;
    use crate::Dump;
    use crate::region::Policy;
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;

    fn open(parent: &Arc<Region>) -> Arc<Region> {
        parent.open_child(Policy::CollectAll, Budget::INFINITE, None).unwrap()
    }

    #[test]
    fn parents_are_visited_before_children_and_older_before_younger() {
        let root = loose_region();
        let a = open(&root);
        let b = open(&root);
        let a1 = open(&a);
        let a2 = open(&a);
        let b1 = open(&b);
        let a11 = open(&a1);
        let mut seen = Vec::new();
        root.each_inside(&mut |region| {
            seen.push(region.id);
            region.lock().children()
        });
        assert_eq!(seen, [&root, &a, &a1, &a11, &a2, &b, &b1].map(|region| region.id));
        root.close_as(Kind::User);
        assert!(a11.outcome().is_some() && root.outcome().is_some());
    }

    #[test]
    fn every_walk_of_a_deep_tree_fits_a_small_stack() {
        let run = || {
            let root = loose_region();
            let mut inner = root.clone();
            for _ in 0..100_000 {
                inner = open(&inner);
            }
            let body = |_| std::future::pending::<Result<(), crate::Cancelled>>();
            // SAFETY: Send and 'static.
            let (entry, task) = unsafe { make(&inner, Plan::default(), body) };
            assert!(entry.unwrap().unwrap().run());
            assert_eq!(Dump::of(&root).tasks(), 1);
            #[cfg(feature = "lab")]
            {
                let number = task.to_ref().id();
                // SAFETY: nothing is polled meanwhile.
                assert_eq!(unsafe { crate::waits::waiters(&root) }.len(), 1);
                assert!(root.waits_number(number) && !root.waits_number(number + 1));
                assert!(root.cancel_number(number));
                root.abandon();
            }
            root.close_as(Kind::User);
            root.force_inside(true, true);
            assert!(task.is_finished());
            assert!(inner.outcome().is_some() && root.outcome().is_some());
            drop((root, task));
            drop(inner);
        };
        let small = thread::Builder::new().stack_size(256 * 1024);
        small.spawn(run).unwrap().join().unwrap();
    }
}
