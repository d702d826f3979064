//! The synchronization primitives of this crate: those of std, or of loom in its models.

#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

/// Locks a mutex. No user code runs under these locks, so the data of a poisoned one is valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs two threads in a model. `swap` says which of them starts, and both should be tried: loom
/// remembers only the last access to an atomic, and so misses some orders in which the starting
/// thread is overtaken.
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
