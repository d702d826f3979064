//! Who holds the lock that others wait for, as far as dumps can know it.
//!
//! A lock notes who took it, which is one store. Those who wait stand in a line, which the first of
//! them [registers](register); a dump asks all lines there are who is in them, and for whom they
//! wait. So neither taking a lock nor waiting for one costs more than that store.

use std::sync::Weak;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

/// A task that holds something, or nobody that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder(u64);

/// Tasks are numbered by their runtime; what is above tells one runtime from another.
const NUMBER_BITS: u32 = 48;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

impl Holder {
    /// Nobody, or nobody knows who.
    pub const UNKNOWN: Holder = Holder(0);

    /// The task with this number, of the runtime at this address.
    #[inline]
    pub(crate) fn new(number: u64, runtime: usize) -> Holder {
        // What is allocated differs in these bits at the latest.
        Holder(number | (runtime as u64 >> 4) << NUMBER_BITS)
    }

    /// The number of the task, if it is one of the runtime at this address.
    #[cfg_attr(any(loom, target_family = "wasm"), allow(dead_code, reason = "nobody asks"))]
    pub(crate) fn number(self, runtime: usize) -> Option<u64> {
        let number = self.0 & NUMBER;
        (number != 0 && self == Holder::new(number, runtime)).then_some(number)
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

    /// Everybody who waits for a lock, of whatever runtime.
    pub(crate) fn each_waiting(tell: &mut dyn FnMut(&Waker, Holder)) {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        let live: Vec<_> = lines.iter().filter_map(Weak::upgrade).collect();
        drop(lines);
        live.iter().for_each(|line| line.each_waiting(tell));
    }
}
