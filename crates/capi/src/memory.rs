//! Where memory comes from.
//!
//! Without std the library is its own allocator: over `malloc` and `free`, or over two functions
//! that the program sets once, before the first runtime. A runtime with a pool reserves one block
//! when it is created, and everything it allocates from then on lies in it.
//!
//! The kernel allocates through the one global allocator, which must therefore know whose call is
//! under way. A small table says which thread is inside which pooled runtime; an entry is set when
//! a call enters and cleared when it leaves or calls the program: a callback, a hook, or the
//! program's allocator. It is the one thing in the process that runtimes share, beside the
//! allocator itself. A runtime without a pool has no seat in it; its allocations only look for
//! their own thread there.
//!
//! With std the program's allocator is used for everything and pools hold nothing.
//!
//! Rules of the unsafe code:
//! 1. A pool is used by the thread that is inside its runtime, and by no other: a runtime's calls
//!    all come from its owner's thread. Nobody else follows a seat's pointer, because the owner
//!    may be about to free what it points to.
//! 2. A block is freed by who gave it: by the pool, inside the same runtime, if it lies in that,
//!    else by the program's functions if they are set, else by `free`. Hence whatever a runtime has
//!    allocated is dropped inside it.
//! 3. The program's functions are written before the state says that they are set, and never again.

use crate::error::{Checked, Field, field};
use crate::pool::Pool;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ffi::c_void;

/// Gives `size` bytes aligned for every type of C, or NULL. It runs inside of a call: the runtime
/// that call is of answers it ASX_REENTRANT; other runtimes it may use.
pub type AsxAllocFn = unsafe extern "C" fn(hook: *mut c_void, size: usize) -> *mut c_void;
/// Takes back what the other gave. What it may call is the same.
pub type AsxFreeFn = unsafe extern "C" fn(hook: *mut c_void, pointer: *mut c_void);

/// Runtimes of a process that can have a pool (ASX_FLAG_POOL) at once; those without one are not
/// counted.
pub const ASX_POOLS_MOST: usize = 64;

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
        Reserve::fits(size, memory)?;
        Held::create(size, memory).map(|held| Reserve(Some(held)))
    }

    /// Whether a pool of so many bytes can be at all, and in the given memory.
    pub(crate) fn fits(size: usize, memory: *mut c_void) -> Checked {
        let start = memory as usize;
        field(start.is_multiple_of(Pool::ALIGN), Field::PoolMemory)?;
        field(size >= Pool::LEAST, Field::PoolBytes)?;
        // No memory that was given can be larger.
        let fits = isize::try_from(size).is_ok() && start.checked_add(size).is_some();
        field(memory.is_null() || fits, Field::PoolBytes)
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

    /// Refuses new things while little is left beside what is promised, so that what lives can go
    /// on and end properly.
    #[inline(always)]
    pub(crate) fn check(&self, promised: usize) -> Answer {
        match &self.0 {
            Some(held) if held.is_low(promised) => Err(Status::ResourceExhausted),
            _ => Ok(()),
        }
    }

    /// Allocates something large, for which a pool that has no room is not left.
    pub(crate) fn strictly<R>(&self, allocate: impl FnOnce() -> R) -> R {
        let Some(held) = &self.0 else { return allocate() };
        held.set_strict(true);
        let result = allocate();
        held.set_strict(false);
        result
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
        pub(super) fn is_low(&self, _: usize) -> bool {
            false
        }
        pub(super) fn set_strict(&self, _: bool) {}
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

    /// One pooled runtime: its pool, where that ends, and the thread inside it (0: none).
    struct Seat {
        pool: AtomicPtr<Pool>,
        end: AtomicUsize,
        thread: AtomicUsize,
    }

    impl Seat {
        const VACANT: Seat = Seat {
            pool: AtomicPtr::new(null_mut()),
            end: AtomicUsize::new(0),
            thread: AtomicUsize::new(0),
        };

        /// Takes a vacant one for a pool at `start`.
        fn take(start: NonNull<u8>, size: usize) -> Answer<&'static Seat> {
            let (old, new, order) = (null_mut(), start.as_ptr().cast(), Ordering::AcqRel);
            let vacant = |seat: &Seat| {
                seat.pool.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
            };
            let found = SEATS.iter().enumerate().find(|(_, seat)| vacant(seat));
            let (at, seat) = found.ok_or(Status::ResourceExhausted)?;
            seat.end.store(start.as_ptr() as usize + size, Ordering::Relaxed);
            TAKEN.fetch_max(at + 1, Ordering::AcqRel);
            Ok(seat)
        }

        /// Whether a pool is there that has some of these bytes.
        fn overlaps(&self, start: usize, size: usize) -> bool {
            let pool = self.pool.load(Ordering::Acquire) as usize;
            // 0, so that nothing overlaps, while the seat is being taken or given up.
            let end = self.end.load(Ordering::Relaxed);
            pool != 0 && pool < start + size && start < end
        }

        /// Runs something of the program's, which may be inside of other runtimes meanwhile.
        fn outside<R>(&self, run: impl FnOnce() -> R) -> R {
            let thread = self.thread.swap(0, Ordering::Relaxed);
            let result = run();
            self.thread.store(thread, Ordering::Relaxed);
            result
        }
    }

    static SEATS: [Seat; ASX_POOLS_MOST] = [Seat::VACANT; ASX_POOLS_MOST];
    /// Seats taken so far are below this.
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    /// A pool and its seat.
    #[derive(Clone, Copy)]
    pub(crate) struct Held {
        pool: NonNull<Pool>,
        seat: &'static Seat,
        own_memory: bool,
    }

    impl Held {
        pub(super) fn create(size: usize, memory: *mut c_void) -> Answer<Held> {
            let own_memory = memory.is_null();
            let used = |seat: &Seat| seat.overlaps(memory as usize, size);
            if !own_memory && SEATS.iter().any(used) {
                return Err(Status::InvalidArgument);
            }
            let memory = if own_memory { system_alloc(size) } else { memory.cast() };
            let memory = NonNull::new(memory).ok_or(Status::ResourceExhausted)?;
            let seat = Seat::take(memory, size).inspect_err(|_| {
                if own_memory {
                    system_free(memory.as_ptr());
                }
            })?;
            // SAFETY: the block has `size` bytes, is aligned, and is ours until it is released.
            let pool = unsafe { Pool::place(memory, size) };
            Ok(Held { pool, seat, own_memory })
        }

        pub(super) fn enter(&self) {
            self.seat.thread.store(os_thread(), Ordering::Relaxed);
        }

        pub(super) fn leave(&self) {
            self.seat.thread.store(0, Ordering::Relaxed);
        }

        pub(super) fn release(self) {
            self.leave();
            self.seat.end.store(0, Ordering::Relaxed);
            self.seat.pool.store(null_mut(), Ordering::Release);
            if self.own_memory {
                system_free(self.pool.as_ptr().cast());
            }
        }

        pub(super) fn is_low(&self, promised: usize) -> bool {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { self.pool.as_ref() }.is_low(promised)
        }

        pub(super) fn set_strict(&self, strict: bool) {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { (*self.pool.as_ptr()).strict = strict }
        }

        pub(super) fn stats(&self) -> PoolStats {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { self.pool.as_ref() }.stats()
        }
    }

    /// The pool this thread is inside of, and its seat.
    fn current() -> Option<(&'static Seat, NonNull<Pool>)> {
        let taken = TAKEN.load(Ordering::Relaxed);
        if taken == 0 {
            return None;
        }
        let me = os_thread();
        let seat = SEATS.iter().take(taken).find(|s| s.thread.load(Ordering::Relaxed) == me)?;
        Some((seat, NonNull::new(seat.pool.load(Ordering::Relaxed))?))
    }

    /// The allocator of the shipped library.
    struct Library;

    #[global_allocator]
    static GLOBAL: Library = Library;

    // SAFETY: blocks are aligned and disjoint, as `malloc`'s and the pool's are; rule 2.
    unsafe impl GlobalAlloc for Library {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let (size, align) = (layout.size(), layout.align());
            let system = || if align > Pool::ALIGN { null_mut() } else { system_alloc(size) };
            let Some((seat, mut pool)) = current() else { return system() };
            // SAFETY: rule 1: this thread is inside.
            let pool = unsafe { pool.as_mut() };
            let block = pool.alloc(size, align);
            if block.is_null() && !pool.strict { seat.outside(system) } else { block }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            let Some((seat, mut pool)) = current() else { return system_free(block) };
            // SAFETY: rules 1 and 2: this thread is inside.
            let pool = unsafe { pool.as_mut() };
            match pool.holds(block) {
                true => pool.free(block, layout.size()),
                false => seat.outside(|| system_free(block)),
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
