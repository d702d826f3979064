//! Where cells are, and the boxes of those who wait for them: memory of the allocator's that each
//! thread uses again.
//!
//! Tasks come and go by the thousand, and most cells are as large as some other that was freed just
//! now. So a thread keeps the memory of cells it has freed for the next ones of their size, which
//! saves most of the allocator's time (6 % of `spawn_await`, as LAWS.md counts), and the system's
//! where a burst of tasks would otherwise be given back to it and asked for again. All threads
//! together keep at most [`MOST`](reused) bytes.
//!
//! Not on a page, whose memory is never given back anyway; not under loom; and not with
//! `--cfg asx_no_reuse`, so that a sanitizer sees who uses a cell that is gone.
//!
//! # Rule
//! 11. *Memory*. A cell up to [`LARGEST`](reused) is in a block whose layout depends on its size
//!     class alone, whoever allocates or frees it, on whichever thread. A block in a list is
//!     nobody's, and its first word is the next of the list.

#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
pub(super) use reused::{allocate, free};

/// Room for a cell.
#[cfg(any(loom, target_family = "wasm", asx_no_reuse))]
#[inline(always)]
pub(super) fn allocate<C>() -> std::ptr::NonNull<std::mem::MaybeUninit<C>> {
    std::ptr::NonNull::from(Box::leak(Box::new_uninit()))
}

/// Frees a cell, after what is in it.
///
/// # Safety
/// It came from [`allocate`], is initialised, and nobody uses it any more.
#[cfg(all(any(loom, target_family = "wasm", asx_no_reuse), not(asx_audit)))]
#[inline(always)]
pub(super) unsafe fn free<C>(cell: std::ptr::NonNull<C>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(cell.as_ptr()) });
}

/// Drops what is in a cell; the audit keeps the memory.
///
/// # Safety
/// It came from [`allocate`], is initialised, and nobody uses it any more.
#[cfg(asx_audit)]
pub(super) unsafe fn free<C>(cell: std::ptr::NonNull<C>) {
    struct Bury<C>(std::ptr::NonNull<C>);
    impl<C> Drop for Bury<C> {
        fn drop(&mut self) {
            // SAFETY: rule 11: what a box of it has; its content was dropped.
            unsafe {
                crate::task::audit::graves::bury(self.0.cast(), std::alloc::Layout::new::<C>())
            };
        }
    }
    let _memory = Bury(cell);
    // SAFETY: the caller's promise.
    unsafe { cell.drop_in_place() };
}

#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
mod reused {
    use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::mem::MaybeUninit;
    use std::ptr::{self, NonNull};
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    /// Bytes from one class of sizes to the next, so that none is wasted, and how many there are.
    const STEP: usize = 8;
    const CLASSES: usize = 256;
    /// Larger cells are not kept, nor are those that must lie on more than this.
    const LARGEST: usize = STEP * CLASSES;
    const ALIGN: usize = 16;

    /// Bytes that all threads keep together at most: little for who has had a hundred thousand
    /// tasks at once, and nobody else comes near.
    const MOST: usize = 32 << 20;
    /// Bytes that a thread is allowed at a time.
    const ALLOWANCE: usize = 256 << 10;

    /// How many allowances are left.
    static ALLOWANCES: AtomicUsize = AtomicUsize::new(MOST / ALLOWANCE);

    thread_local! {
        static LISTS: Lists = const { Lists::new(&ALLOWANCES) };
    }

    /// Blocks that a thread keeps.
    struct Lists {
        free: [Cell<*mut Block>; CLASSES],
        /// Bytes it may keep besides.
        room: Cell<usize>,
        /// Allowances it has, and where they come from.
        taken: Cell<usize>,
        allowances: &'static AtomicUsize,
    }

    struct Block {
        next: *mut Block,
    }

    impl Lists {
        const fn new(allowances: &'static AtomicUsize) -> Lists {
            let free = [const { Cell::new(ptr::null_mut()) }; CLASSES];
            Lists { free, room: Cell::new(0), taken: Cell::new(0), allowances }
        }

        #[inline]
        fn take(&self, class: usize) -> Option<NonNull<Block>> {
            let first = NonNull::new(self.free[class].get())?;
            // SAFETY: rule 11.
            self.free[class].set(unsafe { first.as_ref() }.next);
            self.room.set(self.room.get() + size(class));
            if self.room.get() >= 2 * ALLOWANCE {
                self.give_back(1);
            }
            Some(first)
        }

        /// Keeps a block, if there is room.
        #[inline]
        fn put(&self, class: usize, mut block: NonNull<Block>) -> bool {
            if self.room.get() < size(class) && !self.ask() {
                return false;
            }
            self.room.set(self.room.get() - size(class));
            // SAFETY: rule 11: nobody else has it, and it is large enough.
            unsafe { block.as_mut() }.next = self.free[class].replace(block.as_ptr());
            true
        }

        #[cold]
        fn ask(&self) -> bool {
            let given = self.allowances.try_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if given.is_ok() {
                self.taken.set(self.taken.get() + 1);
                self.room.set(self.room.get() + ALLOWANCE);
            }
            given.is_ok()
        }

        #[cold]
        fn give_back(&self, count: usize) {
            self.taken.set(self.taken.get() - count);
            self.room.set(self.room.get().saturating_sub(count * ALLOWANCE));
            self.allowances.fetch_add(count, Relaxed);
        }
    }

    impl Drop for Lists {
        fn drop(&mut self) {
            for class in 0..CLASSES {
                while let (Some(layout), Some(block)) = (layout(class), self.take(class)) {
                    // SAFETY: rule 11.
                    unsafe { dealloc(block.as_ptr().cast(), layout) };
                }
            }
            self.give_back(self.taken.get());
        }
    }

    const fn size(class: usize) -> usize {
        (class + 1) * STEP
    }

    /// The layout of all blocks of a class.
    const fn layout(class: usize) -> Option<Layout> {
        match Layout::from_size_align(size(class), ALIGN) {
            Ok(block) => Some(block),
            Err(_) => None,
        }
    }

    /// The class of a layout, and the layout of all blocks of it.
    const fn class(of: Layout) -> Option<(usize, Layout)> {
        if of.size() == 0 || of.size() > LARGEST || of.align() > ALIGN {
            return None;
        }
        let class = (of.size() - 1) / STEP;
        match layout(class) {
            Some(block) => Some((class, block)),
            None => None,
        }
    }

    /// Room for a cell.
    #[inline]
    pub(in super::super) fn allocate<C>() -> NonNull<MaybeUninit<C>> {
        let layout = const { Layout::new::<C>() };
        let layout = match const { class(Layout::new::<C>()) } {
            None => layout,
            Some((class, block)) => {
                // A thread that is about to end may have no lists any more.
                if let Ok(Some(kept)) = LISTS.try_with(|lists| lists.take(class)) {
                    return kept.cast();
                }
                block
            }
        };
        // SAFETY: a cell has a header, and a box holds something: the size is not zero.
        let block = unsafe { alloc(layout) };
        NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// Frees a cell, after what is in it.
    ///
    /// # Safety
    /// It came from [`allocate`], is initialised, and nobody uses it any more.
    #[inline]
    pub(in super::super) unsafe fn free<C>(cell: NonNull<C>) {
        // SAFETY: the caller's promise; rule 11 says which layout it has.
        unsafe {
            let _memory = Memory::<C>(cell.cast(), PhantomData);
            ptr::drop_in_place(cell.as_ptr());
        }
    }

    /// Goes after what is in it, even if that panics.
    struct Memory<C>(NonNull<Block>, PhantomData<C>);

    impl<C> Drop for Memory<C> {
        #[inline]
        fn drop(&mut self) {
            let layout = match const { class(Layout::new::<C>()) } {
                None => const { Layout::new::<C>() },
                Some((class, block)) => {
                    if LISTS.try_with(|lists| lists.put(class, self.0)).is_ok_and(|kept| kept) {
                        return;
                    }
                    block
                }
            };
            // SAFETY: rule 11: the layout it was allocated with.
            unsafe { dealloc(self.0.as_ptr().cast(), layout) };
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        type Sized<const N: usize> = [u8; N];

        fn made<const N: usize>(byte: u8) -> NonNull<Sized<N>> {
            let cell = allocate::<Sized<N>>().cast::<Sized<N>>();
            // SAFETY: room for one, and nobody else's.
            unsafe { cell.write([byte; N]) };
            cell
        }

        fn count(class: usize) -> usize {
            LISTS.with(|lists| {
                let mut taken = Vec::new();
                taken.extend(std::iter::from_fn(|| lists.take(class)));
                taken.iter().for_each(|block| assert!(lists.put(class, *block)));
                taken.len()
            })
        }

        /// What is freed is used again by what is as large, and by nothing else; what lives stays
        /// as it is.
        #[test]
        fn blocks_are_used_again_by_their_own_class() {
            let small = made::<40>(1);
            let large = made::<3000>(2);
            let live = made::<36>(3);
            // SAFETY: made above, and freed once.
            unsafe {
                free(small);
                free(large);
            }
            assert_eq!((count(4), count(5)), (1, 0));
            let other = made::<41>(4);
            assert_eq!(count(4), 1, "another class");
            let again = made::<33>(5);
            assert_eq!((again.cast(), count(4)), (small.cast::<u8>(), 0));
            // SAFETY: made above, and freed once.
            unsafe {
                assert_eq!(live.read(), [3; 36]);
                free(again);
                free(live);
                free(other);
            }
            assert_eq!((count(4), count(5)), (2, 1));
        }

        #[test]
        fn threads_keep_so_much_together_and_no_more() {
            static LEFT: AtomicUsize = AtomicUsize::new(3);
            let block = || {
                // SAFETY: not of size zero.
                let block = unsafe { alloc(layout(CLASSES - 1).unwrap()) };
                NonNull::new(block.cast::<Block>()).unwrap()
            };
            let fits = ALLOWANCE / LARGEST;
            let one = Lists::new(&LEFT);
            let other = Lists::new(&LEFT);
            let fill = |lists: &Lists, count: usize| {
                (0..count).for_each(|_| assert!(lists.put(CLASSES - 1, block())));
            };
            fill(&one, 2 * fits);
            fill(&other, fits);
            assert_eq!(LEFT.load(Relaxed), 0);
            for lists in [&one, &other] {
                let block = block();
                assert!(!lists.put(CLASSES - 1, block), "no more");
                // SAFETY: nobody kept it.
                unsafe { dealloc(block.as_ptr().cast(), layout(CLASSES - 1).unwrap()) };
            }
            // Who uses up what it has kept leaves an allowance to others.
            let taken: Vec<_> = std::iter::from_fn(|| one.take(CLASSES - 1)).collect();
            assert_eq!((taken.len(), LEFT.load(Relaxed)), (2 * fits, 1));
            taken.iter().take(fits).for_each(|block| assert!(one.put(CLASSES - 1, *block)));
            taken.iter().skip(fits).for_each(|block| assert!(other.put(CLASSES - 1, *block)));
            assert_eq!(LEFT.load(Relaxed), 0);
            drop((one, other));
            assert_eq!(LEFT.load(Relaxed), 3, "who ends gives back all");
        }

        #[test]
        fn cells_come_and_go_while_their_thread_ends() {
            struct Late(Cell<Option<NonNull<Sized<100>>>>);
            impl Drop for Late {
                fn drop(&mut self) {
                    // SAFETY: made below, and freed once.
                    self.0.take().into_iter().for_each(|cell| unsafe { free(cell) });
                    // SAFETY: made and freed here.
                    unsafe { free(made::<100>(2)) };
                }
            }
            thread_local!(static LATE: Late = const { Late(Cell::new(None)) });
            let early = std::thread::spawn(|| {
                LATE.with(|late| late.0.set(Some(made::<100>(1))));
                LISTS.with(|lists| lists.room.get())
            });
            assert_eq!(early.join().unwrap(), 0);
            let late = std::thread::spawn(|| {
                let room = LISTS.with(|lists| lists.room.get());
                LATE.with(|late| late.0.set(Some(made::<100>(1))));
                room
            });
            assert_eq!(late.join().unwrap(), 0);
        }
    }
}
