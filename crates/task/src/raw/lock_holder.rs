//! Tasks as holders of locks, and the tasks that wait for one.

#[cfg(not(any(loom, target_family = "wasm")))]
use std::collections::HashMap;
use std::ptr;
use std::task::Waker;

#[cfg(not(any(loom, target_family = "wasm")))]
use crate::holders;
use crate::holders::Holder;
use crate::raw::poll_context;
use crate::raw::{Header, with_task};

impl Holder {
    /// The task that is polled on this thread, if one is.
    #[inline]
    pub fn current() -> Holder {
        poll_context::with_current(|task| Holder::of_task(task)).unwrap_or(Holder::UNKNOWN)
    }

    /// The task of this waker, if it is the task's own.
    pub fn of_waker(waker: &Waker) -> Holder {
        with_task(waker, Holder::of_task).unwrap_or(Holder::UNKNOWN)
    }

    #[inline]
    pub(crate) fn of_task(task: &Header) -> Holder {
        Holder::new(ptr::from_ref(task).addr(), task.id() as u16)
    }
}

/// Returns the holder of the lock that each waiting task waits for.
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) fn lock_waits() -> HashMap<Holder, Holder> {
    let mut found = HashMap::new();
    holders::each_waiting(&mut |waker, holder| {
        found.insert(Holder::of_waker(waker), holder);
    });
    found
}
