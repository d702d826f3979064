//! Who holds the lock that others wait for, as far as dumps can know it.
//!
//! A lock notes who took it, which is one store. Those who wait stand in a line, which the first of
//! them [registers](register); a dump asks all lines there are who is in them, and for whom they
//! wait. So neither taking a lock nor waiting for one costs more than that store.

use std::sync::Weak;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

/// A task that holds something, or nobody that is known: where its cell is and a part of its
/// number, since cells are used again. Whether it lives is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder(u64);

impl Holder {
    /// Nobody, or nobody knows who.
    pub const UNKNOWN: Holder = Holder(0);

    /// The task whose cell is at this address, with the number that ends in this.
    #[inline]
    pub(crate) fn new(cell: usize, number: u16) -> Holder {
        // No cell is so far up that these overlap; if one were, two holders would seem to be one.
        Holder(cell as u64 ^ u64::from(number) << 48)
    }
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
pub(crate) use registry::each_waiting;
#[cfg(not(any(loom, target_family = "wasm")))]
pub use registry::register;

/// Lets dumps know of a line, for as long as it lives. Nothing where dumps do not ask.
#[cfg(any(loom, target_family = "wasm"))]
pub fn register(_line: Weak<dyn LockLine>) {}

#[cfg(not(any(loom, target_family = "wasm")))]
mod registry {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    type Lines = Vec<Weak<dyn LockLine>>;

    static LINES: Mutex<Lines> = Mutex::new(Vec::new());

    #[cfg(feature = "lab")]
    thread_local! {
        /// The lines of programs in the lab, each of which runs on one thread. A dump that one of
        /// them takes must not depend on what other threads do.
        static LAB_LINES: std::cell::RefCell<Lines> = const { std::cell::RefCell::new(Vec::new()) };
    }

    fn add(lines: &mut Lines, line: Weak<dyn LockLine>) {
        // Dead entries are removed before the list would have to grow.
        if lines.len() == lines.capacity() {
            lines.retain(|line| line.strong_count() > 0);
        }
        lines.push(line);
    }

    /// Makes a line visible to dumps, for as long as it lives.
    pub fn register(line: Weak<dyn LockLine>) {
        #[cfg(feature = "lab")]
        if crate::footprint::is_on() {
            return LAB_LINES.with_borrow_mut(|lines| add(lines, line));
        }
        add(&mut LINES.lock().unwrap_or_else(PoisonError::into_inner), line);
    }

    /// Calls `tell` for every task that waits for a lock: in the lab of the same thread, elsewhere
    /// of any runtime.
    pub(crate) fn each_waiting(tell: &mut dyn FnMut(&Waker, Holder)) {
        let live = |lines: &Lines| lines.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        #[cfg(feature = "lab")]
        {
            LAB_LINES.with_borrow(live).iter().for_each(|line| line.each_waiting(tell));
            if crate::footprint::is_on() {
                return;
            }
        }
        let live = live(&LINES.lock().unwrap_or_else(PoisonError::into_inner));
        live.iter().for_each(|line| line.each_waiting(tell));
    }
}
