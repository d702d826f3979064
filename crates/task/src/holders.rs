//! Who holds the lock that others wait for, as far as dumps can know it.
//!
//! A lock notes who took it, which is one store. Those who wait stand in a line, which the first of
//! them [registers](register); a dump asks all lines there are who is in them, and for whom they
//! wait. So neither taking a lock nor waiting for one costs more than that store.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Waker;

use crate::Cx;
use crate::core::Core;
use crate::task::cell::{Header, with_task};
use crate::task::context;

/// A task that holds something, or nobody that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder(u64);

/// Tasks are numbered by their runtime; what is above tells one runtime from another.
const NUMBER: u32 = 48;

impl Holder {
    /// Nobody, or nobody knows who.
    pub const UNKNOWN: Holder = Holder(0);

    /// The task of this context.
    #[inline]
    pub fn of(cx: &Cx) -> Holder {
        Holder::of_task(cx.task())
    }

    /// The task that is polled on this thread, if one is.
    #[inline]
    pub fn current() -> Holder {
        context::with_current(|task| Holder::of_task(task)).unwrap_or(Holder::UNKNOWN)
    }

    /// The task of this waker, if it is the task's own.
    pub fn of_waker(waker: &Waker) -> Holder {
        with_task(waker, Holder::of_task).unwrap_or(Holder::UNKNOWN)
    }

    #[inline]
    fn of_task(task: &Header) -> Holder {
        Holder(task.id() | mark(&task.region.core))
    }

    /// The number of the task, if it is one of this runtime.
    #[cfg_attr(any(loom, target_family = "wasm"), allow(dead_code, reason = "nobody asks"))]
    fn number(self, core: &Arc<Core>) -> Option<u64> {
        let number = self.0 & ((1 << NUMBER) - 1);
        (number != 0 && self.0 - number == mark(core)).then_some(number)
    }
}

/// What the holders of a runtime have in common: a part of its address that runtimes differ in.
#[inline]
fn mark(core: &Arc<Core>) -> u64 {
    (Arc::as_ptr(core).addr() as u64 >> 4) << NUMBER
}

/// A place for a [`Holder`]. It says nothing of what else was done to the lock.
#[derive(Debug, Default)]
pub struct HolderCell(AtomicU64);

impl HolderCell {
    /// Nobody.
    pub const fn new() -> HolderCell {
        HolderCell(AtomicU64::new(0))
    }

    /// Who is noted.
    #[inline]
    pub fn get(&self) -> Holder {
        Holder(self.0.load(Relaxed))
    }

    /// Notes another.
    #[inline]
    pub fn set(&self, holder: Holder) {
        self.0.store(holder.0, Relaxed);
    }
}

/// A line of those who wait for a lock.
pub trait LockLine: Send + Sync {
    /// Tells of everybody in line, and who holds the lock. Nobody is woken or dropped in there.
    fn each_waiting(&self, tell: &mut dyn FnMut(&Waker, Holder));
}

#[cfg(not(any(loom, target_family = "wasm")))]
pub use registry::register;
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) use registry::waits;

/// Lets dumps know of a line, for as long as it lives. Nothing where dumps do not ask.
#[cfg(any(loom, target_family = "wasm"))]
pub fn register(_line: Weak<dyn LockLine>) {}

#[cfg(not(any(loom, target_family = "wasm")))]
mod registry {
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};

    use super::*;

    static LINES: Mutex<Vec<Weak<dyn LockLine>>> = Mutex::new(Vec::new());

    /// Lets dumps know of a line, for as long as it lives.
    pub fn register(line: Weak<dyn LockLine>) {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are gone go when there would have to be room for more.
        if lines.len() == lines.capacity() {
            lines.retain(|line| line.strong_count() > 0);
        }
        lines.push(line);
    }

    /// Of the tasks of a runtime that wait for a lock, by number: the number of its holder.
    pub(crate) fn waits(core: &Arc<Core>) -> HashMap<u64, u64> {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<_> = lines.iter().filter_map(Weak::upgrade).collect();
        let mut found = HashMap::new();
        for line in lines {
            line.each_waiting(&mut |waker, holder| {
                let waiter = Holder::of_waker(waker).number(core);
                found.extend(waiter.zip(holder.number(core)));
            });
        }
        found
    }
}
