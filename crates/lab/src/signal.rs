//! Tells the machine that the root has something to look at.
//!
//! Its waker is cloned and dropped several times a run, so that it counts nothing: the flag behind
//! it lives for ever, and is used again by the next machine once this one is gone.
//!
//! # Rule
//! 1. What a waker points to is a flag that was leaked: whoever still has one, on whichever thread,
//!    may set it. If it is another machine's by then, that one looks once for nothing.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::task::{RawWaker, RawWakerVTable, Waker};

/// A flag, and a waker that sets it.
pub(crate) struct Signal {
    given: &'static AtomicBool,
    waker: Waker,
}

impl Signal {
    pub(crate) fn new() -> Signal {
        let given = unused().pop().unwrap_or_else(|| Box::leak(Box::default()));
        given.store(false, Relaxed);
        // SAFETY: rule 1.
        let waker = unsafe { Waker::from_raw(raw(ptr::from_ref(given).cast())) };
        Signal { given, waker }
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether it was given, since this was asked last.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // What is given in between is for what is looked at now.
        let given = self.given.load(Relaxed);
        if given {
            self.given.store(false, Relaxed);
        }
        given
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        unused().push(self.given);
    }
}

/// Flags of machines that are gone.
fn unused() -> MutexGuard<'static, Vec<&'static AtomicBool>> {
    static UNUSED: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());
    UNUSED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(raw, give, give, |_| ());

fn raw(flag: *const ()) -> RawWaker {
    RawWaker::new(flag, &VTABLE)
}

unsafe fn give(flag: *const ()) {
    // SAFETY: rule 1.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_is_seen_once_and_a_late_one_harms_nobody() {
        let signal = Signal::new();
        let one = signal.waker().clone();
        let two = signal.waker().clone();
        assert!(!signal.take());
        one.wake_by_ref();
        one.wake();
        assert!(signal.take() && !signal.take());
        drop(signal);
        let next = Signal::new();
        std::thread::scope(|s| s.spawn(|| two.wake()).join().unwrap());
        next.take();
        next.waker().wake_by_ref();
        assert!(next.take());
    }
}
