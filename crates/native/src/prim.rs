//! The one seam to the primitives under everything: std, or loom when it explores interleavings.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

/// Locks. No user code runs under any of our locks, so that a poisoned one still holds sound data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs two threads in a model. `swap` says which of them starts, and both should be tried: loom
/// remembers only the last access to an atomic, and so overlooks some orders in which the thread
/// that starts is overtaken.
#[cfg(all(test, loom))]
pub(crate) fn race<A: 'static, B: 'static>(
    swap: bool,
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
) -> (A, B) {
    if swap {
        let a = loom::thread::spawn(a);
        let b = b();
        (a.join().unwrap(), b)
    } else {
        let b = loom::thread::spawn(b);
        (a(), b.join().unwrap())
    }
}
