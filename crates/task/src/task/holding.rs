//! Tasks as holders of locks.

#[cfg(not(any(loom, target_family = "wasm")))]
use std::collections::HashMap;
use std::sync::Arc;
use std::task::Waker;

use crate::core::Core;
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::holders;
use crate::holders::Holder;
use crate::task::cell::{Header, with_task};
use crate::task::context;
use crate::task::cx::Cx;

impl Holder {
    /// The task of this context.
    #[inline]
    pub fn of(cx: &Cx) -> Holder {
        of_task(cx.task())
    }

    /// The task that is polled on this thread, if one is.
    #[inline]
    pub fn current() -> Holder {
        context::with_current(|task| of_task(task)).unwrap_or(Holder::UNKNOWN)
    }

    /// The task of this waker, if it is the task's own.
    pub fn of_waker(waker: &Waker) -> Holder {
        with_task(waker, of_task).unwrap_or(Holder::UNKNOWN)
    }
}

#[inline]
fn of_task(task: &Header) -> Holder {
    Holder::new(task.id(), address(&task.region.core))
}

#[inline]
fn address(core: &Arc<Core>) -> usize {
    Arc::as_ptr(core).addr()
}

/// Of the tasks of a runtime that wait for a lock, by number: the number of its holder.
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) fn lock_waits(core: &Arc<Core>) -> HashMap<u64, u64> {
    let mut found = HashMap::new();
    holders::each_waiting(&mut |waker, holder| {
        let waiter = Holder::of_waker(waker).number(address(core));
        found.extend(waiter.zip(holder.number(address(core))));
    });
    found
}
