//! The one seam to the primitives under everything: std, or loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(not(loom))]
pub(crate) use std::{hint::spin_loop, thread::yield_now};

#[cfg(loom)]
pub(crate) use loom::{hint::spin_loop, thread::yield_now};

/// Locks. No user code runs under any of our locks, so that a poisoned one still holds sound data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
