//! What one thread owns though others may know of it: no lock, and nobody else gets in.
//!
//! # Rule
//! 1. The value is borrowed only on the thread that made it: [`Own::here`] and [`Own::cell`]
//!    compare the number of the thread, which no other ever has, and a `RefCell` is not shared with
//!    other threads. Whoever drops it, on whichever thread, is the last one.

use std::cell::{RefCell, RefMut};

use asx_runtime::footprint;

/// A value of the thread that made it.
pub(crate) struct Own<T> {
    owner: u64,
    value: RefCell<T>,
}

// SAFETY: rule 1; the last one to hold it may be another thread, to which `T` is then sent.
unsafe impl<T: Send> Sync for Own<T> {}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Own<T> {
        Own { owner: footprint::this_thread(), value: RefCell::new(value) }
    }

    /// The value; nothing on any other thread than the owner's.
    #[inline]
    pub(crate) fn here(&self) -> Option<RefMut<'_, T>> {
        self.is_here().then(|| self.value.borrow_mut())
    }

    /// Whether this is the owner's thread.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        footprint::is_thread(self.owner)
    }

    /// The value's cell, which stays on this thread: for who borrows it again and again.
    ///
    /// # Panics
    /// On any other thread than the owner's.
    #[inline]
    pub(crate) fn cell(&self) -> &RefCell<T> {
        assert!(self.is_here(), "on the thread of its owner");
        &self.value
    }

    /// The value.
    ///
    /// # Panics
    /// On any other thread than the owner's.
    #[inline]
    pub(crate) fn get(&self) -> RefMut<'_, T> {
        self.here().expect("on the thread of its owner")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_thread_gets_at_the_value() {
        let own = Own::new(7);
        assert!(std::thread::scope(|s| s.spawn(|| own.here().is_none()).join().unwrap()));
        *own.get() += 1;
        assert_eq!(own.here().map(|value| *value), Some(8));
    }
}
