//! A worker's queue of ready entries at the default priority: a ring from which others steal, and a
//! backlog for entries that do not fit. Entries leave it in FIFO order.
//!
//! # Rule
//! 1. A pointer in a ring or backlog came from [`Runnable::into_raw`]. Both hand out each pointer
//!    once, so it is converted back once. The ring guarantees this only if no thread steals from a
//!    queue with `is_only_worker`: [`Queue::steal`] does not, and is the only way to steal.

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr::NonNull;

use asx_runtime::Runnable;

use crate::prim::atomic::AtomicUsize;
use crate::prim::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::prim::{Mutex, lock};
use crate::ring::{CAPACITY, Owner, Stealer};

/// The part of a queue that other workers see.
pub(crate) struct Shared {
    /// True if the runtime has no other worker.
    is_only_worker: bool,
    ring: Stealer<()>,
    backlog: Backlog,
}

#[derive(Default)]
struct Backlog {
    /// Used unless this is the only worker.
    entries: Mutex<VecDeque<Runnable>>,
    len: AtomicUsize,
}

/// A worker's end of its queue.
pub(crate) struct Queue {
    ring: Owner<()>,
    /// The backlog of an only worker, which needs no lock. Its length is in [`Backlog`] too.
    own: RefCell<VecDeque<Runnable>>,
}

impl Queue {
    /// Creates the queue of one of `workers` workers.
    pub(crate) fn of(workers: usize) -> (Queue, Shared) {
        let ring = Owner::new();
        let is_only_worker = workers == 1;
        let shared = Shared { is_only_worker, ring: ring.stealer(), backlog: Backlog::default() };
        (Queue { ring, own: RefCell::default() }, shared)
    }

    #[inline]
    pub(crate) fn push(&self, shared: &Shared, entry: Runnable) {
        if shared.backlog.len.load(Relaxed) > 0 {
            return self.push_slow(shared, entry);
        }
        if let Err(raw) = self.ring.push(entry.into_raw()) {
            self.push_slow(shared, runnable(raw));
        }
    }

    #[inline(never)]
    fn push_slow(&self, shared: &Shared, entry: Runnable) {
        self.with_backlog(shared, |entries| entries.push_back(entry));
    }

    #[inline]
    pub(crate) fn pop(&self, shared: &Shared) -> Option<Runnable> {
        let raw = if shared.is_only_worker { self.ring.pop_unstolen() } else { self.ring.pop() };
        if let Some(raw) = raw {
            return Some(runnable(raw));
        }
        if shared.backlog.len.load(Relaxed) == 0 { None } else { self.refill(shared) }
    }

    /// Takes the first entry of the backlog, and moves more of them into the empty ring.
    #[cold]
    fn refill(&self, shared: &Shared) -> Option<Runnable> {
        self.with_backlog(shared, |entries| {
            let first = entries.pop_front();
            let batch = entries.len().min(CAPACITY / 2);
            for entry in entries.drain(..batch) {
                if let Err(raw) = self.ring.push(entry.into_raw()) {
                    unreachable!("half a ring fits into an empty one: {raw:?}");
                }
            }
            first
        })
    }

    /// Runs `f` on the backlog of this queue, and publishes its length.
    #[inline]
    fn with_backlog<R>(&self, shared: &Shared, f: impl FnOnce(&mut VecDeque<Runnable>) -> R) -> R {
        let change = |entries: &mut VecDeque<Runnable>| {
            let result = f(entries);
            shared.backlog.len.store(entries.len(), Release);
            result
        };
        match shared.is_only_worker {
            true => change(&mut self.own.borrow_mut()),
            false => change(&mut lock(&shared.backlog.entries)),
        }
    }

    #[inline]
    pub(crate) fn len(&self, shared: &Shared) -> usize {
        self.ring.len() + shared.backlog.len.load(Relaxed)
    }

    /// Takes half of another worker's entries: returns one to run, and moves the others into this
    /// queue, which must be empty.
    pub(crate) fn steal(&self, victim: &Shared) -> Option<Runnable> {
        if victim.is_only_worker {
            return None;
        }
        if let Some(raw) = victim.ring.steal_into(&self.ring) {
            return Some(runnable(raw));
        }
        if victim.backlog.len.load(Acquire) == 0 {
            return None;
        }
        let mut entries = lock(&victim.backlog.entries);
        let first = entries.pop_front()?;
        let batch = (entries.len() / 2).min(CAPACITY / 2);
        let mut taken = entries.drain(..batch);
        for entry in taken.by_ref() {
            if let Err(raw) = self.ring.push(entry.into_raw()) {
                unreachable!("half a ring fits into an empty one: {raw:?}");
            }
        }
        drop(taken);
        victim.backlog.len.store(entries.len(), Release);
        Some(first)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Each entry owns a reference to its task.
        while let Some(raw) = self.ring.pop() {
            drop(runnable(raw));
        }
    }
}

impl Shared {
    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.backlog.len.load(Acquire)
    }
}

fn runnable(raw: NonNull<()>) -> Runnable {
    // SAFETY: rule 1.
    unsafe { Runnable::from_raw(raw) }
}
