//! The one seam to the primitives under everything: std, or loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};

/// Locks something that polls have in common.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    asx_task::footprint::Object::VALUES.write();
    lock_unseen(mutex)
}

/// Locks something that makes no order of polls differ from another. No user code runs under any of
/// our locks, so that a poisoned one still holds sound data.
pub(crate) fn lock_unseen<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
