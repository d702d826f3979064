//! Locks of the standard library that a poll holds where it is [left](crate::fiber::leave).
//!
//! A task may hold a `std::sync::Mutex` around an operation that does not wait. On threads another
//! task that wants the lock then blocks its worker until the first goes on. Here both are on one
//! thread, and if that blocked nobody would go on. So on Linux, where such locks (those of
//! `parking_lot` too) wait by the system call `futex`, through the function `syscall` of the C
//! library, this has a `syscall` of its own: on the stack of a fiber, instead of waiting, it leaves
//! the stack until the word that is waited for has changed. Everywhere else, and for every other
//! call, it is the system's.
//!
//! # Rules
//! 1. [`syscall`] has the meaning of the C library's for every call that it passes on: the same
//!    registers, and errors in `errno`.
//! 2. A word that a `futex` call waits for lives until the call returns.

/// A word that somebody waits for, by its address, and what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    address: usize,
    value: u32,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::Word;
    use crate::fiber;

    const FUTEX: i64 = 202;
    const WAIT: i64 = 0;
    const WAIT_BITSET: i64 = 9;
    /// What an operation may have besides: a process of its own, the real-time clock.
    const FLAGS: i64 = 128 | 256;

    /// How often it is looked at whether another thread gives up a lock: some hundred microseconds
    /// on a machine that has nothing else to do, and much more on others. So for a lock that tasks
    /// were seen to have it is [`FEW`].
    const LOOKS: u32 = 200;
    const FEW: u32 = 2;

    /// How many locks are remembered that tasks had.
    const REMEMBERED: usize = 16;

    thread_local! {
        /// The word for which the poll waits that has just left its stack.
        static WAITS_FOR: Cell<Option<Word>> = const { Cell::new(None) };
        /// The addresses of words that no other thread has changed, and the place of the next.
        static OF_TASKS: Cell<([usize; REMEMBERED], usize)> =
            const { Cell::new(([0; REMEMBERED], 0)) };
    }

    /// The word for which the poll waits that has just left its stack, if that is why.
    pub(crate) fn take_waits_for() -> Option<Word> {
        WAITS_FOR.take()
    }

    impl Word {
        /// Whether it is still what it was.
        pub(crate) fn is_same(self) -> bool {
            // SAFETY: rule 2: who waits for it has not returned.
            let word = unsafe { AtomicU32::from_ptr(self.address as *mut u32) };
            word.load(SeqCst) == self.value
        }
    }

    impl Word {
        /// Whether another thread changes it in a moment. If a task of this one is to do so, it
        /// never changes as long as this looks.
        fn changes_soon(self) -> bool {
            let (mut known, next) = OF_TASKS.get();
            let is_known = known.contains(&self.address);
            let changes = (0..if is_known { FEW } else { LOOKS }).any(|_| {
                std::thread::yield_now();
                !self.is_same()
            });
            if !changes && !is_known {
                known[next] = self.address;
                OF_TASKS.set((known, (next + 1) % REMEMBERED));
            }
            changes
        }
    }

    /// Makes this part of every program that has the lab, so that [`syscall`] is found here.
    pub(crate) fn install() {
        std::hint::black_box(syscall as *const () as usize);
    }

    unsafe extern "C" {
        fn __errno_location() -> *mut i32;
    }

    /// The C library's function of this name.
    ///
    /// # Safety
    /// That of the system call.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn syscall(
        number: i64,
        one: i64,
        two: i64,
        three: i64,
        four: i64,
        five: i64,
        six: i64,
    ) -> i64 {
        let operation = two & !FLAGS;
        let waits = number == FUTEX && (operation == WAIT || operation == WAIT_BITSET);
        if waits && four == 0 && fiber::can_wait() {
            let word = Word { address: one as usize, value: three as u32 };
            if !word.changes_soon() {
                WAITS_FOR.set(Some(word));
                fiber::leave();
            }
            return 0;
        }
        let answer: i64;
        // SAFETY: rule 1; the caller's promise.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") number => answer,
                in("rdi") one,
                in("rsi") two,
                in("rdx") three,
                in("r10") four,
                in("r8") five,
                in("r9") six,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        if (-4095..0).contains(&answer) {
            // SAFETY: it is this thread's.
            unsafe { *__errno_location() = -answer as i32 };
            return -1;
        }
        answer
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
mod imp {
    use super::Word;

    pub(crate) fn take_waits_for() -> Option<Word> {
        None
    }

    impl Word {
        pub(crate) fn is_same(self) -> bool {
            let Word { address: _, value: _ } = self;
            false
        }
    }

    pub(crate) fn install() {}
}

pub(crate) use imp::{install, take_waits_for};
