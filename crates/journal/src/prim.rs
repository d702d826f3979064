//! The synchronization primitives: those of std, or those of loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// Locks a mutex that is invisible to the lab: it never makes one order of polls differ from
/// another. No user code runs under any of our locks, so a poisoned lock still holds valid data.
pub(crate) fn lock_unseen<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
