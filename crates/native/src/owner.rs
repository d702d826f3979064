//! The runtime that owns a thread, and when a drop may join threads.
//!
//! Dropping a runtime joins its threads. The drop can run on any thread, including one that belongs
//! to this or another runtime: a third-party waker may own the last reference to a runtime, and
//! workers wake and drop such wakers. A thread must not join itself, and threads of several
//! runtimes must not join each other in a cycle.
//!
//! # Why joins form no cycle
//! 1. The dropping thread sets the `dropped` flag of its target, fences, and then reads the flag of
//!    the runtime that owns the thread. It joins only if that flag is clear, or if no runtime owns
//!    it.
//! 2. Assume a cycle: thread *i* drops runtime *i* and joins thread *i + 1*, which runtime *i*
//!    owns. Thread *i + 1* therefore reads flag *i*.
//! 3. Let thread *k* run the last of all fences. Flag *k - 1* was set before the fence of thread
//!    *k - 1*, so thread *k* reads it as set and does not join. This contradicts step 2.
//!
//! A cycle of length one is a runtime that is dropped on its own thread. Threads that are not
//! joined end by themselves: they see that the runtime is closed.

use std::cell::RefCell;
use std::sync::Arc;

use crate::prim::atomic::Ordering::{Relaxed, SeqCst};
use crate::prim::atomic::{AtomicBool, fence};

thread_local! {
    static OWNER: RefCell<Option<Arc<Owner>>> = const { RefCell::new(None) };
}

/// A runtime as the owner of threads.
pub(crate) struct Owner {
    /// The drop of the runtime has begun.
    dropped: AtomicBool,
}

impl Owner {
    pub(crate) fn new() -> Arc<Owner> {
        Arc::new(Owner { dropped: AtomicBool::new(false) })
    }

    /// Makes this the owner of the calling thread until the thread ends.
    pub(crate) fn adopt(self: &Arc<Self>) {
        OWNER.set(Some(self.clone()));
    }

    /// Marks the runtime as dropped; returns whether the calling thread may join its threads.
    pub(crate) fn mark_dropped(&self) -> bool {
        // Without its thread-local the thread is about to end. Another thread may be joining it.
        OWNER.try_with(|owner| self.mark_dropped_by(owner.borrow().as_deref())).unwrap_or(false)
    }

    /// [`mark_dropped`](Owner::mark_dropped) on a thread with this owner.
    fn mark_dropped_by(&self, owner: Option<&Owner>) -> bool {
        self.dropped.store(true, Relaxed);
        fence(SeqCst);
        !owner.is_some_and(|owner| owner.dropped.load(Relaxed))
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::prim::race;

    #[test]
    fn two_threads_drop_the_owner_of_the_other_at_most_one_joins() {
        for swap in [false, true] {
            loom::model(move || {
                let [a, b] = [Owner::new(), Owner::new()];
                let (a2, b2) = (a.clone(), b.clone());
                let joins = race(
                    swap,
                    move || a.mark_dropped_by(Some(&b)),
                    move || b2.mark_dropped_by(Some(&a2)),
                );
                assert_ne!(joins, (true, true), "each would join the other");
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn mark_dropped_on_own_thread_forbids_join() {
        let thread = std::thread::spawn(|| {
            let owner = Owner::new();
            let other = Owner::new();
            assert!(other.mark_dropped(), "no owner");
            owner.adopt();
            assert!(other.mark_dropped(), "the owner is in use");
            let joins_self = owner.mark_dropped();
            (joins_self, other.mark_dropped())
        });
        assert_eq!(thread.join().unwrap(), (false, false));
    }
}
