//! The one seam to the primitives under everything: std, or loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub use loom::sync::MutexGuard;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic};

#[cfg(not(loom))]
pub(crate) use std::{hint::spin_loop, thread::yield_now};

#[cfg(loom)]
pub(crate) use loom::{hint::spin_loop, thread::yield_now};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// The standard cell with loom's face: who touches what is inside says from when until when.
#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Lends what is inside, to be looked at.
    #[cfg(feature = "lab")]
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Lends what is inside, to be changed.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Locks something that polls have in common.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    crate::footprint::Object::COMMON.write();
    lock_unseen(mutex)
}

/// Locks something that makes no order of polls differ from another. No user code runs under any of
/// our locks, so that a poisoned one still holds sound data.
pub(crate) fn lock_unseen<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
