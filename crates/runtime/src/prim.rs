//! Locks of state that the polls of one task share.

use std::sync::{Mutex, MutexGuard};

use asx_task::footprint::Object;

/// Locks a mutex and records the access for the lab. No user code runs under these locks, so a
/// poisoned one still holds valid data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    Object::COMMON.write();
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
