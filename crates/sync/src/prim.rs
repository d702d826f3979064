//! The one seam to the primitives under everything: std, or loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};

use std::panic::Location;

use asx_task::footprint::Object;

/// State that tasks share, behind a lock, with a name in footprints.
pub(crate) struct Shared<T> {
    object: Object,
    state: Mutex<T>,
}

impl<T> Shared<T> {
    /// New state, named after the task that makes it.
    pub(crate) fn new(state: T) -> Shared<T> {
        Shared { object: Object::new(), state: Mutex::new(state) }
    }

    /// New state that may be in a `static`, named after the place where it is made.
    #[cfg(not(loom))]
    pub(crate) const fn made_at(place: &Location<'_>, state: T) -> Shared<T> {
        Shared { object: Object::made_at(place), state: Mutex::new(state) }
    }

    /// The same for models.
    #[cfg(loom)]
    pub(crate) fn made_at(place: &Location<'_>, state: T) -> Shared<T> {
        Shared { object: Object::made_at(place), state: Mutex::new(state) }
    }
}

/// Locks state that tasks share.
pub(crate) fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, T> {
    shared.object.write();
    lock_unseen(&shared.state)
}

/// Locks something that makes no order of polls differ from another. No user code runs under any of
/// our locks, so that a poisoned one still holds sound data.
pub(crate) fn lock_unseen<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
