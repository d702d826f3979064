//! A lock for a few instructions.
//!
//! Channels lock for every message, and hold the lock for some ten nanoseconds in which nothing of
//! the user's runs. Letting go of this lock is a plain store, about half of what an uncontended
//! standard lock costs. The price is that who waits cannot be woken: it spins, then gives its
//! processor away, then sleeps a little, so that a holder that was put to sleep gets to run
//! whatever the priorities are. Timers are armed and cancelled as quickly; who fires them holds the
//! lock for up to 256 of them, or while the wheel turns, which who waits then sleeps through. Where
//! more than that happens under a lock as a rule, use a standard one.
//!
//! # Rules
//! 1. The value is touched only by who has changed `held` from false to true and not yet stored
//!    false, through the guard, which cannot be sent to another thread.

#[cfg(all(feature = "lab", debug_assertions, not(loom)))]
pub(crate) use imp::count;
#[cfg(not(loom))]
pub(crate) use imp::pause;
#[cfg(not(loom))]
pub use imp::{Held, SpinLock};

#[cfg(loom)]
pub(crate) fn pause(_: u32) {
    crate::prim::yield_now();
}

#[cfg(loom)]
pub use crate::prim::MutexGuard as Held;

/// Under loom the standard lock takes its place: loom cannot explore a spin.
#[cfg(loom)]
pub struct ModelLock<T>(crate::prim::Mutex<T>);

#[cfg(loom)]
pub use ModelLock as SpinLock;

#[cfg(loom)]
impl<T> ModelLock<T> {
    /// A lock that nobody has.
    pub fn new(value: T) -> Self {
        ModelLock(crate::prim::Mutex::new(value))
    }

    /// Waits for the lock, if somebody has it.
    pub fn lock(&self) -> Held<'_, T> {
        crate::prim::lock(&self.0)
    }

    /// It is not told, and models that want to have met somebody say so.
    pub(crate) fn lock_or_wait(&self) -> (Held<'_, T>, bool) {
        (self.lock(), false)
    }

    /// Runs `f` on the value, alone.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock())
    }
}

#[cfg(not(loom))]
mod imp {
    use std::cell::UnsafeCell;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::time::Duration;

    const SPINS: u32 = 64;
    const YIELDS: u32 = 128;
    const NAP: Duration = Duration::from_micros(50);

    /// A lock for a few instructions, under which no code of the user's runs.
    pub struct SpinLock<T> {
        held: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: rule 1: the value is used by one thread at a time, as if it were sent there.
    unsafe impl<T: Send> Sync for SpinLock<T> {}

    /// The value, for as long as the lock is held.
    pub struct Held<'a, T> {
        lock: &'a SpinLock<T>,
        /// Not for another thread.
        here: PhantomData<*mut ()>,
    }

    /// How many of these locks this thread holds, where tests look at that: at a point of the lab
    /// none may be held, as others who want it would wait for ever.
    #[cfg(all(feature = "lab", debug_assertions))]
    pub(crate) mod count {
        use std::cell::Cell;

        thread_local! {
            static HELD: Cell<usize> = const { Cell::new(0) };
        }

        pub(super) fn add(more: isize) {
            HELD.set(HELD.get().wrapping_add_signed(more));
        }

        /// Whether the calling thread holds one.
        pub(crate) fn any() -> bool {
            HELD.get() > 0
        }
    }

    impl<T> Drop for Held<'_, T> {
        #[inline]
        fn drop(&mut self) {
            #[cfg(all(feature = "lab", debug_assertions))]
            count::add(-1);
            self.lock.held.store(false, Release);
        }
    }

    impl<T> Deref for Held<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            // SAFETY: rule 1: held until the guard goes.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for Held<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: rule 1: held until the guard goes.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> SpinLock<T> {
        /// A lock that nobody has.
        pub const fn new(value: T) -> Self {
            SpinLock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        /// The value, for who alone knows of it.
        #[cfg(not(target_family = "wasm"))]
        #[inline]
        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.value.get_mut()
        }

        /// Waits for the lock, if somebody has it.
        #[inline]
        pub fn lock(&self) -> Held<'_, T> {
            self.lock_or_wait().0
        }

        /// Also whether somebody else had it.
        #[inline]
        pub(crate) fn lock_or_wait(&self) -> (Held<'_, T>, bool) {
            let waits = self.held.compare_exchange(false, true, Acquire, Relaxed).is_err();
            if waits {
                self.wait();
            }
            #[cfg(all(feature = "lab", debug_assertions))]
            count::add(1);
            (Held { lock: self, here: PhantomData }, waits)
        }

        /// Runs `f` on the value, alone.
        #[inline]
        pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
            f(&mut self.lock())
        }

        #[cold]
        fn wait(&self) {
            let mut rounds = 0_u32;
            loop {
                if !self.held.load(Relaxed)
                    && self.held.compare_exchange_weak(false, true, Acquire, Relaxed).is_ok()
                {
                    return;
                }
                pause(rounds);
                rounds = rounds.saturating_add(1);
            }
        }
    }

    /// Waits for somebody who is about to be done, after so many rounds in vain.
    pub(crate) fn pause(rounds: u32) {
        match rounds {
            0..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(NAP),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::panic::{AssertUnwindSafe, catch_unwind};

        #[test]
        fn threads_take_turns() {
            let lock = SpinLock::new(0_u64);
            std::thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        (0..50_000).for_each(|_| lock.with(|n| *n = std::hint::black_box(*n) + 1))
                    });
                }
            });
            assert_eq!(lock.with(|n| *n), 200_000);
        }

        #[test]
        fn a_panic_inside_lets_go() {
            let lock = SpinLock::new(1);
            let panic = catch_unwind(AssertUnwindSafe(|| lock.with(|_| panic!("inside"))));
            assert!(panic.is_err());
            assert_eq!(lock.with(|n| *n), 1);
        }

        #[test]
        fn who_finds_it_held_waits_until_it_is_free() {
            let lock = SpinLock::new(0);
            let (entered, enter) = std::sync::mpsc::channel();
            std::thread::scope(|s| {
                let holder = s.spawn(|| {
                    lock.with(|n| {
                        entered.send(()).unwrap();
                        // Long enough for the other to go through spinning and yielding.
                        std::thread::sleep(20 * NAP);
                        *n = 1;
                    });
                });
                enter.recv().unwrap();
                assert_eq!(lock.with(|n| *n), 1);
                holder.join().unwrap();
            });
        }
    }
}
