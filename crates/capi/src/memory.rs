//! Where memory comes from.
//!
//! Without std the library is its own allocator: over `malloc` and `free`, or over two functions
//! that the program sets once, before the first runtime. A runtime with a pool reserves one block
//! when it is created, and everything it allocates from then on lies in it.
//!
//! The kernel allocates through the one global allocator, which must therefore know whose call is
//! under way. A small table says which thread is inside which pooled runtime; entries are set when
//! a call enters and cleared when it leaves, callbacks of the program excluded. It is the one
//! thing in the process that all runtimes share, beside the allocator itself.
//!
//! With std the program's allocator is used for everything and pools hold nothing.
//!
//! Rules of the unsafe code:
//! 1. A pool is used by the thread that is inside its runtime, and by no other: a runtime's calls
//!    all come from its owner's thread.
//! 2. A block is freed by who gave it: by the pool whose range it lies in, else by the program's
//!    functions if they are set, else by `free`.
//! 3. The program's functions are written before the state says that they are set, and never again.

use crate::pool::Pool;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ffi::c_void;

/// Gives `size` bytes aligned for every type of C, or NULL.
pub type AsxAllocFn = unsafe extern "C" fn(hook: *mut c_void, size: usize) -> *mut c_void;
/// Takes back what the other gave.
pub type AsxFreeFn = unsafe extern "C" fn(hook: *mut c_void, pointer: *mut c_void);

/// A runtime's pool, or none.
pub(crate) struct Reserve(Option<Held>);

/// What a pool says about itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolStats {
    pub(crate) size: u64,
    pub(crate) used: u64,
    pub(crate) peak: u64,
    pub(crate) spills: u64,
}

pub(crate) use imp::{Held, seal, set_allocator};

impl Reserve {
    /// No pool.
    pub(crate) const NONE: Reserve = Reserve(None);

    /// A pool of so many bytes, in the given memory or in some of its own.
    pub(crate) fn create(size: usize, memory: *mut c_void) -> Answer<Reserve> {
        crate::guard::ensure((memory as usize).is_multiple_of(Pool::ALIGN))?;
        crate::guard::ensure(size >= Pool::LEAST)?;
        Held::create(size, memory).map(|held| Reserve(Some(held)))
    }

    /// A copy for the time after the runtime, which holds the other one, is gone.
    pub(crate) fn alias(&self) -> Reserve {
        Reserve(self.0)
    }

    /// What is allocated from now on, on this thread, comes from the pool.
    #[inline]
    pub(crate) fn enter(&self) {
        if let Some(held) = &self.0 {
            held.enter();
        }
    }

    /// No longer.
    #[inline]
    pub(crate) fn leave(&self) {
        if let Some(held) = &self.0 {
            held.leave();
        }
    }

    /// Gives the block back. Nothing in it is in use any more.
    pub(crate) fn release(self) {
        if let Some(held) = self.0 {
            held.release();
        }
    }

    /// Refuses new things while little is left, so that what lives can end properly.
    pub(crate) fn check(&self) -> Answer {
        match self.0.as_ref().map(Held::is_low) {
            Some(true) => Err(Status::ResourceExhausted),
            _ => Ok(()),
        }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.0.as_ref().map(Held::stats).unwrap_or_default()
    }
}

#[cfg(any(feature = "std", test))]
mod imp {
    use super::*;

    /// Nothing: with std there are no pools.
    #[derive(Clone, Copy)]
    pub(crate) struct Held;

    impl Held {
        pub(super) fn create(_: usize, _: *mut c_void) -> Answer<Held> {
            Ok(Held)
        }
        pub(super) fn enter(&self) {}
        pub(super) fn leave(&self) {}
        pub(super) fn release(self) {}
        pub(super) fn is_low(&self) -> bool {
            false
        }
        pub(super) fn stats(&self) -> PoolStats {
            PoolStats::default()
        }
    }

    /// Nothing can be set anyway.
    pub(crate) fn seal() {}

    /// Refused: the allocator is the Rust program's.
    pub(crate) fn set_allocator(_: AsxAllocFn, _: AsxFreeFn, _: *mut c_void) -> Answer {
        Err(Status::CapabilityDenied)
    }
}

#[cfg(not(any(feature = "std", test)))]
mod imp {
    use super::*;
    use crate::guard::os_thread;
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::ptr::{NonNull, null_mut};
    use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

    /// Pooled runtimes at once.
    const SEATS: usize = 64;

    /// One pooled runtime: its pool, and the thread inside it (0: none).
    struct Seat {
        pool: AtomicPtr<Pool>,
        thread: AtomicUsize,
    }

    static SEAT: [Seat; SEATS] =
        [const { Seat { pool: AtomicPtr::new(null_mut()), thread: AtomicUsize::new(0) } }; SEATS];
    /// Seats taken so far are below this.
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    /// A pool and its seat.
    #[derive(Clone, Copy)]
    pub(crate) struct Held {
        pool: NonNull<Pool>,
        seat: usize,
        own_memory: bool,
    }

    impl Held {
        pub(super) fn create(size: usize, memory: *mut c_void) -> Answer<Held> {
            seal();
            let own_memory = memory.is_null();
            let memory = if own_memory { system_alloc(size) } else { memory.cast() };
            let memory = NonNull::new(memory).ok_or(Status::ResourceExhausted)?;
            // SAFETY: the block has `size` bytes, is aligned, and is ours until it is released.
            let pool = unsafe { Pool::place(memory, size) };
            let vacant = |seat: &Seat| {
                let pool = pool.as_ptr();
                let (old, order) = (null_mut(), Ordering::AcqRel);
                seat.pool.compare_exchange(old, pool, order, Ordering::Relaxed).is_ok()
            };
            let Some(seat) = SEAT.iter().position(vacant) else {
                if own_memory {
                    system_free(memory.as_ptr());
                }
                return Err(Status::ResourceExhausted);
            };
            TAKEN.fetch_max(seat + 1, Ordering::AcqRel);
            Ok(Held { pool, seat, own_memory })
        }

        fn seat(&self) -> Option<&'static Seat> {
            SEAT.get(self.seat)
        }

        pub(super) fn enter(&self) {
            if let Some(seat) = self.seat() {
                seat.thread.store(os_thread(), Ordering::Relaxed);
            }
        }

        pub(super) fn leave(&self) {
            if let Some(seat) = self.seat() {
                seat.thread.store(0, Ordering::Relaxed);
            }
        }

        pub(super) fn release(self) {
            if let Some(seat) = self.seat() {
                seat.thread.store(0, Ordering::Relaxed);
                seat.pool.store(null_mut(), Ordering::Release);
            }
            if self.own_memory {
                system_free(self.pool.as_ptr().cast());
            }
        }

        pub(super) fn is_low(&self) -> bool {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { self.pool.as_ref() }.is_low()
        }

        pub(super) fn stats(&self) -> PoolStats {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { self.pool.as_ref() }.stats()
        }
    }

    /// The pool this thread is inside of.
    fn current() -> Option<NonNull<Pool>> {
        let taken = TAKEN.load(Ordering::Relaxed);
        if taken == 0 {
            return None;
        }
        let me = os_thread();
        let seat = SEAT.iter().take(taken).find(|s| s.thread.load(Ordering::Relaxed) == me)?;
        NonNull::new(seat.pool.load(Ordering::Relaxed))
    }

    /// The pool a block lies in.
    fn owner(block: *mut u8) -> Option<NonNull<Pool>> {
        let taken = TAKEN.load(Ordering::Relaxed);
        let pools = SEAT.iter().take(taken).map(|seat| seat.pool.load(Ordering::Relaxed));
        // SAFETY: a seat's pool is placed before it is seated and lives until it is unseated; its
        // range never changes.
        pools.filter_map(NonNull::new).find(|pool| unsafe { pool.as_ref() }.holds(block))
    }

    /// The allocator of the shipped library.
    struct Library;

    #[global_allocator]
    static GLOBAL: Library = Library;

    // SAFETY: blocks are aligned and disjoint, as `malloc`'s and the pool's are; rule 2.
    unsafe impl GlobalAlloc for Library {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if let Some(mut pool) = current() {
                // SAFETY: rule 1: this thread is inside.
                let block = unsafe { pool.as_mut() }.alloc(layout.size(), layout.align());
                if !block.is_null() {
                    return block;
                }
            }
            if layout.align() > Pool::ALIGN { null_mut() } else { system_alloc(layout.size()) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            match owner(block) {
                // SAFETY: rules 1 and 2: a runtime's blocks are freed by its own thread.
                Some(mut pool) => unsafe { pool.as_mut() }.free(block, layout.size()),
                None => system_free(block),
            }
        }
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        unsafe extern "C" {
            safe fn abort() -> !;
        }
        abort()
    }

    // The precompiled `core` names these two, though nothing unwinds: whoever got here is lost.
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() -> ! {
        panic!()
    }

    unsafe extern "C" {
        safe fn malloc(size: usize) -> *mut c_void;
        fn free(pointer: *mut c_void);
    }

    /// Whether the program has set its functions.
    static STATE: AtomicU32 = AtomicU32::new(UNSET);
    const UNSET: u32 = 0;
    const SETTING: u32 = 1;
    const SET: u32 = 2;
    const SEALED: u32 = 3;

    struct Functions(UnsafeCell<Option<(AsxAllocFn, AsxFreeFn, *mut c_void)>>);

    // SAFETY: rule 3: written once before anybody reads.
    unsafe impl Sync for Functions {}

    static FUNCTIONS: Functions = Functions(UnsafeCell::new(None));

    /// The first runtime is being created: from now on nothing can be set.
    pub(crate) fn seal() {
        let order = Ordering::AcqRel;
        let _ = STATE.compare_exchange(UNSET, SEALED, order, Ordering::Acquire);
    }

    pub(crate) fn set_allocator(give: AsxAllocFn, take: AsxFreeFn, hook: *mut c_void) -> Answer {
        let (old, order) = (UNSET, Ordering::AcqRel);
        if STATE.compare_exchange(old, SETTING, order, Ordering::Acquire).is_err() {
            return Err(Status::InvalidTransition);
        }
        // SAFETY: rule 3: whoever takes the state from UNSET to SETTING writes, alone.
        unsafe { *FUNCTIONS.0.get() = Some((give, take, hook)) };
        STATE.store(SET, Ordering::Release);
        Ok(())
    }

    fn functions() -> Option<(AsxAllocFn, AsxFreeFn, *mut c_void)> {
        if STATE.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: rule 3: written before the state said so.
        unsafe { *FUNCTIONS.0.get() }
    }

    fn system_alloc(size: usize) -> *mut u8 {
        match functions() {
            // SAFETY: given together by the program.
            Some((give, _, hook)) => unsafe { give(hook, size) }.cast(),
            None => malloc(size).cast(),
        }
    }

    fn system_free(block: *mut u8) {
        match functions() {
            // SAFETY: given together by the program; rule 2.
            Some((_, take, hook)) => unsafe { take(hook, block.cast()) },
            // SAFETY: rule 2.
            None => unsafe { free(block.cast()) },
        }
    }
}
