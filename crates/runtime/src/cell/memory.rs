//! Where cells are: the allocator's memory, which the lab uses again from run to run.
//!
//! A search makes the same tasks a hundred thousand times, on one thread. With the feature `lab`,
//! and on a thread that has asked for it, the memory of a cell that is freed is kept for the next
//! one of its size. Everywhere else this is the allocator and nothing more.
//!
//! # Rule
//! 11. *Memory*. With the feature, a cell up to [`LARGEST`](on) is in a block whose layout depends
//!     on its size class alone, whoever allocates or frees it, on whichever thread. A block in a
//!     list is nobody's, and its first word is the next of the list.

#[cfg(all(feature = "lab", not(loom)))]
pub use on::Kept;
#[cfg(all(feature = "lab", not(loom)))]
pub(super) use on::{allocate, free};

/// Room for a cell.
#[cfg(not(all(feature = "lab", not(loom))))]
#[inline(always)]
pub(super) fn allocate<C>() -> std::ptr::NonNull<std::mem::MaybeUninit<C>> {
    std::ptr::NonNull::from(Box::leak(Box::new_uninit()))
}

/// Frees a cell, after what is in it.
///
/// # Safety
/// It came from [`allocate`], is initialised, and nobody uses it any more.
#[cfg(not(all(feature = "lab", not(loom))))]
#[inline(always)]
pub(super) unsafe fn free<C>(cell: std::ptr::NonNull<C>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(cell.as_ptr()) });
}

#[cfg(all(feature = "lab", not(loom)))]
mod on {
    use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::mem::MaybeUninit;
    use std::ptr::{self, NonNull};

    /// Bytes from one class of sizes to the next, and how many classes there are.
    const STEP: usize = 64;
    const CLASSES: usize = 32;
    /// Larger cells are not kept, nor are those that must lie on more than this.
    const LARGEST: usize = STEP * CLASSES;
    const ALIGN: usize = 16;

    /// Blocks that are kept on this thread. Without a destructor, which each use would have to ask
    /// for: who asked for it to be kept frees it.
    struct Lists {
        /// How many have asked.
        asked: Cell<usize>,
        free: [Cell<*mut Block>; CLASSES],
    }

    struct Block {
        next: *mut Block,
    }

    thread_local! {
        static LISTS: Lists = const {
            Lists { asked: Cell::new(0), free: [const { Cell::new(ptr::null_mut()) }; CLASSES] }
        };
    }

    /// The class of a layout, and the layout of all blocks of it.
    const fn class(layout: Layout) -> Option<(usize, Layout)> {
        if layout.size() == 0 || layout.size() > LARGEST || layout.align() > ALIGN {
            return None;
        }
        let class = (layout.size() - 1) / STEP;
        match Layout::from_size_align((class + 1) * STEP, ALIGN) {
            Ok(block) => Some((class, block)),
            Err(_) => None,
        }
    }

    /// Room for a cell.
    #[inline]
    pub(in super::super) fn allocate<C>() -> NonNull<MaybeUninit<C>> {
        let layout = const { Layout::new::<C>() };
        let layout = match const { class(Layout::new::<C>()) } {
            None => layout,
            Some((class, block)) => {
                if let Some(kept) = take(class) {
                    return kept.cast();
                }
                block
            }
        };
        // SAFETY: a cell has a header, so that the size is not zero.
        let block = unsafe { alloc(layout) };
        NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    }

    #[inline]
    fn take(class: usize) -> Option<NonNull<Block>> {
        LISTS.with(|lists| {
            let first = NonNull::new(lists.free[class].get())?;
            // SAFETY: rule 11.
            lists.free[class].set(unsafe { first.as_ref() }.next);
            Some(first)
        })
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
                    if put(class, self.0) {
                        return;
                    }
                    block
                }
            };
            // SAFETY: rule 11: the layout it was allocated with.
            unsafe { dealloc(self.0.as_ptr().cast(), layout) };
        }
    }

    /// Keeps a block, if that is asked for on this thread.
    #[inline]
    fn put(class: usize, mut block: NonNull<Block>) -> bool {
        LISTS.with(|lists| {
            let keeps = lists.asked.get() > 0;
            if keeps {
                // SAFETY: rule 11: nobody else has it, and it is large enough.
                unsafe { block.as_mut() }.next = lists.free[class].replace(block.as_ptr());
            }
            keeps
        })
    }

    /// While one of these lives on a thread, the memory of cells that are freed there is kept for
    /// the next ones.
    #[derive(Debug)]
    pub struct Kept {
        /// Stays on its thread.
        here: PhantomData<*const ()>,
    }

    impl Kept {
        /// Begins to keep it.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Kept {
            LISTS.with(|lists| lists.asked.set(lists.asked.get() + 1));
            Kept { here: PhantomData }
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            let left = LISTS.with(|lists| {
                lists.asked.set(lists.asked.get() - 1);
                lists.asked.get()
            });
            for class in (0..CLASSES).filter(|_| left == 0) {
                let layout = Layout::from_size_align((class + 1) * STEP, ALIGN).ok();
                while let (Some(layout), Some(block)) = (layout, take(class)) {
                    // SAFETY: rule 11.
                    unsafe { dealloc(block.as_ptr().cast(), layout) };
                }
            }
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
            let mut taken = Vec::new();
            taken.extend(std::iter::from_fn(|| take(class)));
            taken.iter().for_each(|block| assert!(put(class, *block)));
            taken.len()
        }

        /// What is freed is used again by what is as large, and by nothing else; what lives stays
        /// as it is.
        #[test]
        fn blocks_are_used_again_by_their_own_class_while_somebody_asks() {
            let (small, large) = (made::<40>(1), made::<3000>(2));
            let kept = (Kept::new(), Kept::new());
            let live = made::<64>(3);
            // SAFETY: made above, and freed once.
            unsafe {
                free(small);
                free(large);
            }
            assert_eq!((count(0), count(1)), (1, 0));
            let other = made::<65>(4);
            assert_eq!(count(0), 1, "another class");
            let again = made::<1>(5);
            assert_eq!((again.cast(), count(0)), (small.cast::<u8>(), 0));
            // SAFETY: made above, and freed once.
            unsafe {
                assert_eq!(live.read(), [3; 64]);
                free(again);
                free(other);
            }
            drop(kept.0);
            assert_eq!((count(0), count(1)), (1, 1), "one still asks");
            drop(kept.1);
            let block = NonNull::<u64>::from(&mut 0).cast();
            assert!(take(0).is_none() && take(1).is_none() && !put(0, block));
            // SAFETY: made above, and freed once.
            unsafe { free(live) };
            assert!(take(0).is_none());
        }
    }
}
