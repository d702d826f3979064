//! Where memory comes from.
//!
//! Without std the library is its own allocator: over `malloc` and `free`, or over two functions
//! that the program sets once, before the first runtime. Whatever a runtime allocates lies in a
//! pool of its own. One with ASX_FLAG_POOL has a size: its block is reserved when the runtime is
//! created. Others grow: they are given further blocks by the allocator.
//!
//! A pool grows when a call that may be refused asks for more than there is, beside what is set
//! aside for the others (`Reserve::check`); if the allocator has nothing, that call is refused,
//! before it has changed anything. Who cannot be refused finds what it needs in the pool, and so
//! the allocator's answer never comes in the middle of a change.
//!
//! The kernel allocates through the one global allocator, which must therefore know whose call is
//! under way. A table says which thread is inside which runtime: every runtime has a seat in it,
//! which is marked when a call enters and cleared when it leaves or calls the program: a callback,
//! a hook, or the program's allocator. It is the one thing in the process that runtimes share,
//! beside the allocator itself.
//!
//! With std the program's allocator is used for everything and pools hold nothing. So it is with
//! runtimes that grow where threads cannot be told apart.
//!
//! Rules of the unsafe code:
//! 1. A pool is used by the thread that is inside its runtime, and by no other: a runtime's calls
//!    all come from its owner's thread. Nobody else follows a seat's pointer, because the owner
//!    may be about to free what it points to.
//! 2. A piece is freed by who gave it: by the pool inside whose runtime it was allocated, or
//!    outside of all by the program's functions if they are set, else by `free`. Hence whatever a
//!    runtime has allocated is dropped inside it.
//! 3. The program's functions are written before the state says that they are set, and never again.
//! 4. Seats are never freed: who has come upon one may look at it for ever.

use crate::error::{Checked, Field, field};
use crate::pool::{Aside, Pool, PoolStats};
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ffi::c_void;

/// Gives `size` bytes aligned for every type of C, or NULL. It runs inside a call, whose runtime
/// returns ASX_E_REENTRANT to it; it may use other runtimes.
pub type AsxAllocFn = unsafe extern "C" fn(hook: *mut c_void, size: usize) -> *mut c_void;
/// Frees memory of the allocation function. The same rules apply to its calls.
pub type AsxFreeFn = unsafe extern "C" fn(hook: *mut c_void, pointer: *mut c_void);

/// Runtimes of a process that can have a pool of a fixed size (ASX_FLAG_POOL) at once; those
/// without one are not counted.
pub const ASX_POOLS_MOST: usize = 64;

/// A runtime's memory, or none of its own.
pub(crate) struct Reserve(Option<Held>);

pub(crate) use imp::{Held, seal, set_allocator};

impl Reserve {
    /// A pool of so many bytes, in the given memory or in some of its own. A strict one is all
    /// there is.
    pub(crate) fn pool(size: usize, memory: *mut c_void, strict: bool) -> Answer<Reserve> {
        Reserve::fits(size, memory)?;
        Held::create(size, memory, strict).map(|held| Reserve(Some(held)))
    }

    /// A pool that grows, and begins with so many bytes.
    pub(crate) fn growing(first: usize) -> Answer<Reserve> {
        Held::growing(first).map(Reserve)
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

    /// What is allocated from now on, on this thread, is the runtime's.
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

    /// Gives everything back. Nothing in it is in use any more.
    pub(crate) fn release(self) {
        if let Some(held) = self.0 {
            held.release();
        }
    }

    /// Sets some bytes aside for those that cannot be refused, and sees to it that so many and the
    /// promised ones are there. Refused if they are not to be had; what was set aside stays.
    #[inline]
    pub(crate) fn check(&self, aside: Aside, promised: usize) -> Answer {
        match &self.0 {
            Some(held) => held.set_aside(aside, promised),
            None => Ok(()),
        }
    }

    /// Allocates something that may be refused: what is set aside is not touched.
    #[inline]
    pub(crate) fn strictly<R>(&self, allocate: impl FnOnce() -> R) -> R {
        let Some(held) = &self.0 else { return allocate() };
        held.set_careful(true);
        let result = allocate();
        held.set_careful(false);
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
        pub(super) fn create(_: usize, _: *mut c_void, _: bool) -> Answer<Held> {
            Ok(Held)
        }
        pub(super) fn growing(_: usize) -> Answer<Option<Held>> {
            Ok(None)
        }
        pub(super) fn enter(&self) {}
        pub(super) fn leave(&self) {}
        pub(super) fn release(self) {}
        pub(super) fn set_aside(&self, _: Aside, _: usize) -> Answer {
            Ok(())
        }
        pub(super) fn set_careful(&self, _: bool) {}
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
    use crate::sync::os_thread;
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::mem::size_of;
    use core::ptr::{NonNull, null_mut};
    use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

    /// A runtime: its pool, where that ends if it has a size, and the thread inside it (0: none).
    struct Seat {
        pool: AtomicPtr<Pool>,
        end: AtomicUsize,
        thread: AtomicUsize,
    }

    impl Seat {
        const fn vacant() -> Seat {
            Seat {
                pool: AtomicPtr::new(null_mut()),
                end: AtomicUsize::new(0),
                thread: AtomicUsize::new(0),
            }
        }

        /// Takes it for a pool at `start`, if it is vacant.
        fn take(&self, start: NonNull<u8>) -> bool {
            let old = null_mut();
            let new = start.as_ptr().cast();
            let order = Ordering::AcqRel;
            self.pool.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
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
            self.recall(thread);
            result
        }

        /// Remembers that a thread is here, where it is looked for first.
        #[inline(always)]
        fn recall(&self, thread: usize) {
            let seat = core::ptr::from_ref(self).cast_mut();
            if let Some(hint) = HINTS.get(hint_of(thread)) {
                hint.store(seat, Ordering::Relaxed);
            }
        }
    }

    /// Seats for runtimes that grow, and where further ones are.
    struct Row {
        seats: [Seat; ROW],
        /// Seats taken so far are below this.
        taken: AtomicUsize,
        next: AtomicPtr<Row>,
    }

    const ROW: usize = 256;

    static SEATS: [Seat; ASX_POOLS_MOST] = [const { Seat::vacant() }; ASX_POOLS_MOST];
    /// Seats taken so far are below this.
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    /// The first row; there are more only where there were more runtimes at once, and those stay.
    static ROWS: Row = Row::empty();
    /// Where threads were seen last, by their numbers.
    static HINTS: [AtomicPtr<Seat>; HINTS_MOST] =
        [const { AtomicPtr::new(null_mut()) }; HINTS_MOST];
    const HINTS_MOST: usize = 64;

    /// Where a thread is remembered: thread pointers are far apart, and differ in these bits.
    #[inline(always)]
    fn hint_of(thread: usize) -> usize {
        (thread >> 6 ^ thread >> 12 ^ thread >> 18) % HINTS_MOST
    }

    impl Row {
        const fn empty() -> Row {
            Row {
                seats: [const { Seat::vacant() }; ROW],
                taken: AtomicUsize::new(0),
                next: AtomicPtr::new(null_mut()),
            }
        }

        fn next(&self) -> Option<&'static Row> {
            // SAFETY: rule 4: null, or a row that is never freed.
            unsafe { self.next.load(Ordering::Acquire).as_ref() }
        }

        /// Takes a vacant seat, of a new row if there is none.
        fn take(start: NonNull<u8>) -> Answer<&'static Seat> {
            let mut row = &ROWS;
            loop {
                let found = row.seats.iter().enumerate().find(|(_, seat)| seat.take(start));
                if let Some((at, seat)) = found {
                    row.taken.fetch_max(at + 1, Ordering::AcqRel);
                    return Ok(seat);
                }
                row = match row.next() {
                    Some(next) => next,
                    None => row.extend()?,
                };
            }
        }

        /// Puts a row behind the last one, or finds that another thread has.
        #[cold]
        fn extend(&self) -> Answer<&'static Row> {
            let new = NonNull::new(system_alloc(size_of::<Row>()).cast::<Row>());
            let new = new.ok_or(Status::ResourceExhausted)?;
            // SAFETY: the block has so many bytes, and is aligned.
            unsafe { new.write(Row::empty()) };
            let put = self.next.compare_exchange(
                null_mut(),
                new.as_ptr(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if put.is_err() {
                system_free(new.as_ptr().cast());
            }
            self.next().ok_or(Status::Internal)
        }

        /// The seat that a thread is on.
        fn find(thread: usize) -> Option<&'static Seat> {
            let mut row = Some(&ROWS);
            while let Some(at) = row {
                let taken = at.seats.iter().take(at.taken.load(Ordering::Relaxed));
                let mut found = taken.filter(|seat| seat.thread.load(Ordering::Relaxed) == thread);
                if let Some(seat) = found.next() {
                    return Some(seat);
                }
                row = at.next();
            }
            None
        }
    }

    /// A pool and its seat.
    #[derive(Clone, Copy)]
    pub(crate) struct Held {
        pool: NonNull<Pool>,
        seat: &'static Seat,
        own_memory: bool,
    }

    impl Held {
        pub(super) fn create(size: usize, memory: *mut c_void, strict: bool) -> Answer<Held> {
            let own_memory = memory.is_null();
            let used = |seat: &Seat| seat.overlaps(memory as usize, size);
            if !own_memory && SEATS.iter().any(used) {
                return Err(Status::InvalidArgument);
            }
            let memory = if own_memory { system_alloc(size) } else { memory.cast() };
            let memory = NonNull::new(memory).ok_or(Status::ResourceExhausted)?;
            let found = SEATS.iter().enumerate().find(|(_, seat)| seat.take(memory));
            let Some((at, seat)) = found else {
                if own_memory {
                    system_free(memory.as_ptr());
                }
                return Err(Status::ResourceExhausted);
            };
            seat.end.store(memory.as_ptr() as usize + size, Ordering::Relaxed);
            TAKEN.fetch_max(at + 1, Ordering::AcqRel);
            // SAFETY: the block has `size` bytes, is aligned, and is ours until it is released.
            let pool = unsafe { Pool::place(memory, size, true, !strict) };
            Ok(Held { pool, seat, own_memory })
        }

        pub(super) fn growing(first: usize) -> Answer<Option<Held>> {
            if cfg!(not(unix)) {
                return Ok(None);
            }
            let size = first.saturating_add(Pool::HEADER).max(Pool::LEAST);
            let memory = NonNull::new(system_alloc(size)).ok_or(Status::ResourceExhausted)?;
            let seat = Row::take(memory).inspect_err(|_| system_free(memory.as_ptr()))?;
            // SAFETY: the block has `size` bytes, is aligned, and is ours until it is released.
            let pool = unsafe { Pool::place(memory, size, false, true) };
            Ok(Some(Held { pool, seat, own_memory: true }))
        }

        #[inline(always)]
        pub(super) fn enter(&self) {
            let me = os_thread();
            self.seat.thread.store(me, Ordering::Relaxed);
            self.seat.recall(me);
        }

        #[inline(always)]
        pub(super) fn leave(&self) {
            self.seat.thread.store(0, Ordering::Relaxed);
        }

        pub(super) fn release(self) {
            self.leave();
            self.seat.end.store(0, Ordering::Relaxed);
            self.seat.pool.store(null_mut(), Ordering::Release);
            // SAFETY: rule 1: the runtime is gone, and what it had is its last call's.
            while let Some(block) = unsafe { (*self.pool.as_ptr()).pop_block() } {
                system_free(block.as_ptr());
            }
            if self.own_memory {
                system_free(self.pool.as_ptr().cast());
            }
        }

        pub(super) fn set_aside(&self, aside: Aside, promised: usize) -> Answer {
            // SAFETY: rule 1: asked by the runtime's own calls.
            let pool = unsafe { &mut *self.pool.as_ptr() };
            // What a pool that grows has promised it gets when it is asked for.
            let promised = if pool.grows { 0 } else { promised };
            let bytes = aside.bytes.saturating_add(promised);
            if pool.has(Aside { bytes, ..aside }) {
                pool.aside = aside;
                return Ok(());
            }
            // The new block has all of it.
            let before = core::mem::take(&mut pool.aside);
            let grown = self.grow(bytes);
            // SAFETY: rule 1, as above; the program has run meanwhile.
            unsafe { (*self.pool.as_ptr()).aside = if grown { aside } else { before } };
            if grown { Ok(()) } else { Err(Status::ResourceExhausted) }
        }

        pub(super) fn set_careful(&self, careful: bool) {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { (*self.pool.as_ptr()).careful = careful }
        }

        pub(super) fn stats(&self) -> PoolStats {
            // SAFETY: rule 1: asked by the runtime's own calls.
            unsafe { self.pool.as_ref() }.stats()
        }

        /// Makes room for so many bytes, beside what is set aside.
        #[cold]
        fn grow(&self, bytes: usize) -> bool {
            self.set_careful(true);
            // SAFETY: rule 1: asked by the runtime's own calls.
            let grown = unsafe { grow(self.seat, self.pool, bytes) };
            self.set_careful(false);
            grown
        }
    }

    /// Gives a pool one more block, with room for a piece of so many bytes; whether it has it now.
    ///
    /// # Safety
    /// Rule 1: by the thread that is inside.
    #[cold]
    unsafe fn grow(seat: &Seat, pool: NonNull<Pool>, bytes: usize) -> bool {
        // SAFETY: the caller's promise.
        let pool_ref = unsafe { pool.as_ref() };
        let Some((wanted, least)) = pool_ref.wants(bytes).filter(|_| pool_ref.grows) else {
            return false;
        };
        let get = |size| Some((NonNull::new(seat.outside(|| system_alloc(size)))?, size));
        let Some((block, size)) = get(wanted).or_else(|| get(least)) else { return false };
        // SAFETY: the caller's promise; the block has `size` bytes, aligned, and is the pool's.
        unsafe { (*pool.as_ptr()).add(block, size) };
        true
    }

    /// A piece that is a block of so many bytes, or null.
    ///
    /// # Safety
    /// As for [`grow`].
    #[cold]
    unsafe fn take_own(seat: &Seat, pool: NonNull<Pool>, size: usize) -> *mut u8 {
        match NonNull::new(seat.outside(|| system_alloc(size))) {
            // SAFETY: the caller's promise; the block has `size` bytes, aligned, and is the pool's.
            Some(block) => unsafe { (*pool.as_ptr()).own(block, size) },
            None => null_mut(),
        }
    }

    /// The pool this thread is inside of, and its seat.
    #[inline]
    fn current() -> Option<(&'static Seat, NonNull<Pool>)> {
        let me = os_thread();
        let on = |seat: &&'static Seat| seat.thread.load(Ordering::Relaxed) == me;
        let hint = HINTS.get(hint_of(me))?.load(Ordering::Relaxed);
        // SAFETY: rule 4: null, or a seat, which is never freed.
        let seat = unsafe { hint.as_ref() }.filter(on).or_else(|| seat_of(me))?;
        Some((seat, NonNull::new(seat.pool.load(Ordering::Relaxed))?))
    }

    #[cold]
    fn seat_of(thread: usize) -> Option<&'static Seat> {
        let on = |seat: &&'static Seat| seat.thread.load(Ordering::Relaxed) == thread;
        let fixed = SEATS.iter().take(TAKEN.load(Ordering::Relaxed)).find(on);
        fixed.or_else(|| Row::find(thread))
    }

    /// The allocator of the shipped library.
    struct Library;

    #[global_allocator]
    static GLOBAL: Library = Library;

    // SAFETY: blocks are aligned and disjoint, as `malloc`'s and the pools' are; rule 2.
    unsafe impl GlobalAlloc for Library {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let size = layout.size();
            let align = layout.align();
            let Some((seat, mut pool)) = current() else {
                return if align > Pool::ALIGN { null_mut() } else { system_alloc(size) };
            };
            // SAFETY: rule 1: this thread is inside.
            unsafe {
                let own = pool.as_ref().own_size(size);
                if own.is_none() || pool.as_ref().is_fixed() {
                    let piece = pool.as_mut().alloc(size, align);
                    if !piece.is_null() || align > Pool::ALIGN {
                        return piece;
                    }
                }
                match own {
                    Some(own) => take_own(seat, pool, own),
                    None if grow(seat, pool, size) => pool.as_mut().alloc(size, align),
                    None => null_mut(),
                }
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            let Some((seat, mut pool)) = current() else { return system_free(block) };
            // SAFETY: rules 1 and 2: this thread is inside.
            let pool = unsafe { pool.as_mut() };
            match pool.disown(block, layout.size()) {
                Some(own) => seat.outside(|| system_free(own.as_ptr())),
                None => pool.free(block, layout.size()),
            }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if size <= layout.size() {
                // To shrink must not fail: what is too much is given back where it can be.
                if let Some((_, mut pool)) = current() {
                    // SAFETY: rules 1 and 2: this thread is inside.
                    unsafe { pool.as_mut() }.shrink(block, layout.size(), size);
                }
                return block;
            }
            // SAFETY: the size is not zero and, rounded up, fits: what the caller promises.
            let new =
                unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
            if !new.is_null() {
                // SAFETY: both have so many bytes and are apart; the old one is given back once.
                unsafe {
                    core::ptr::copy_nonoverlapping(block, new, layout.size());
                    self.dealloc(block, layout);
                }
            }
            new
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
        let old = UNSET;
        let order = Ordering::AcqRel;
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
