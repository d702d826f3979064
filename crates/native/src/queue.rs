//! A worker's own ready queue: a ring others steal from, and behind it a backlog for what does not
//! fit. Entries of the usual priority leave it in the order they came.
//!
//! # Rule
//! 1. A pointer in a ring or backlog came from [`Runnable::into_raw`], and both hand each pointer
//!    out once; so it is turned back once. For the ring this needs that nobody steals from a queue
//!    that is `alone`: [`Queue::steal`] does not, and only it steals.

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
    /// There is no other worker.
    alone: bool,
    ring: Stealer<()>,
    backlog: Backlog,
}

#[derive(Default)]
struct Backlog {
    /// Unless the worker is alone.
    entries: Mutex<VecDeque<Runnable>>,
    len: AtomicUsize,
}

/// A worker's end of its queue.
pub(crate) struct Queue {
    ring: Owner<()>,
    /// The backlog of a worker that is alone, which needs no lock; its length is where others look.
    own: RefCell<VecDeque<Runnable>>,
}

impl Queue {
    /// The queue of one of so many workers.
    pub(crate) fn of(workers: usize) -> (Queue, Shared) {
        let ring = Owner::new();
        let alone = workers == 1;
        let shared = Shared { alone, ring: ring.stealer(), backlog: Backlog::default() };
        (Queue { ring, own: RefCell::default() }, shared)
    }

    #[inline]
    pub(crate) fn push(&self, shared: &Shared, entry: Runnable) {
        if shared.backlog.len.load(Relaxed) > 0 {
            return self.push_behind(shared, entry);
        }
        if let Err(raw) = self.ring.push(entry.into_raw()) {
            self.push_behind(shared, runnable(raw));
        }
    }

    #[inline(never)]
    fn push_behind(&self, shared: &Shared, entry: Runnable) {
        self.with_backlog(shared, |entries| entries.push_back(entry));
    }

    #[inline]
    pub(crate) fn pop(&self, shared: &Shared) -> Option<Runnable> {
        let raw = if shared.alone { self.ring.pop_alone() } else { self.ring.pop() };
        if let Some(raw) = raw {
            return Some(runnable(raw));
        }
        if shared.backlog.len.load(Relaxed) == 0 { None } else { self.refill(shared) }
    }

    /// The first entry of the backlog, and more of them into the ring, which is empty.
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

    /// Runs `f` on the backlog of this queue, and tells its length.
    #[inline]
    fn with_backlog<R>(&self, shared: &Shared, f: impl FnOnce(&mut VecDeque<Runnable>) -> R) -> R {
        let change = |entries: &mut VecDeque<Runnable>| {
            let answer = f(entries);
            shared.backlog.len.store(entries.len(), Release);
            answer
        };
        match shared.alone {
            true => change(&mut self.own.borrow_mut()),
            false => change(&mut lock(&shared.backlog.entries)),
        }
    }

    #[inline]
    pub(crate) fn len(&self, shared: &Shared) -> usize {
        self.ring.len() + shared.backlog.len.load(Relaxed)
    }

    /// Takes half of what another worker has: one entry to run, the rest into this queue, which is
    /// empty.
    pub(crate) fn steal(&self, victim: &Shared) -> Option<Runnable> {
        if victim.alone {
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
