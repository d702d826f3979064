//! What goes with a region: values it has inherited, finalizers that did not run, wakers.

use super::{Inner, Region};
use crate::core::Core;
use crate::locals::Locals;

/// What is the user's is dropped one by one: a panic in one of them is counted, and the others go
/// all the same.
impl Drop for Region {
    fn drop(&mut self) {
        let locals = self.locals.take();
        let inner = self.inner.get_mut();
        let waits = inner.body.is_some() || !inner.waiters.is_empty();
        // A region kept for its memory has none of it, and its core may be gone (rule 2 of
        // `region_ref`).
        if locals.is_some() || waits || !inner.finalizers.is_empty() {
            Locals::discard(locals, |locals| self.core.discard(locals));
            inner.drop_callbacks(&self.core);
        }
    }
}

impl Inner {
    /// Drops the wakers and finalizers.
    pub(super) fn drop_callbacks(&mut self, core: &Core) {
        core.drop_waker(self.body.take());
        std::mem::take(&mut self.waiters).take_each(|waker| core.drop_waker(Some(waker)));
        while let Some(finalizer) = self.finalizers.pop() {
            core.discard(finalizer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use super::*;
    use crate::test_util::loose_region;

    /// Panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a bomb");
        }
    }

    impl std::task::Wake for Bomb {
        fn wake(self: Arc<Self>) {}
    }

    /// A region that is not closed goes with all it has: two panics at once would abort.
    #[test]
    fn what_goes_with_a_region_is_dropped_one_by_one() {
        let region = loose_region();
        let core = region.core.clone();
        let waker = || Waker::from(Arc::new(Bomb));
        region.watch_body(&waker());
        (0..2).for_each(|place| assert!(region.watch_close(place, &waker()).is_none()));
        for _ in 0..2 {
            let bomb = Bomb;
            let finalizer = move |_: &Arc<Region>| {
                let _bomb = &bomb;
                None
            };
            region.defer(Box::new(finalizer)).unwrap();
        }
        drop(region);
        assert_eq!(core.health().callback_panics, 5);
    }
}
