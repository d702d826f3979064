//! The memory of cells, and of boxed join wakers: a cache of freed blocks.
//!
//! Tasks are created and completed in great numbers, and most cells are as large as one that was
//! freed just before. The cache saves most of the allocator's time (6 % of `spawn_await`, as
//! LAWS.md counts), and page faults where a burst of tasks would return its memory to the system
//! and request it again. [`reused`] states how much it keeps.
//!
//! There is no cache on wasm, where memory is never returned to the system; under loom; and with
//! `--cfg asx_no_reuse`, so that a sanitizer detects accesses to a freed cell.
//!
//! # Rule
//! 11. *Memory*. A cell up to [`LARGEST`](reused) is in a block. All blocks of a size class have
//!     the same layout, on every thread. The lists of a thread own the blocks in them. A depot owns
//!     the magazines in it, which are accessed under its lock. A free block starts with a
//!     [`Block`](reused). Its links lead to blocks of the same owner.

#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
mod reused;

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
/// It came from [`allocate`], is initialised, and is not used any more.
#[cfg(all(any(loom, target_family = "wasm", asx_no_reuse), not(asx_audit)))]
#[inline(always)]
pub(super) unsafe fn free<C>(cell: std::ptr::NonNull<C>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(cell.as_ptr()) });
}

/// Drops what is in a cell; the audit keeps the memory.
///
/// # Safety
/// It came from [`allocate`], is initialised, and is not used any more.
#[cfg(asx_audit)]
pub(super) unsafe fn free<C>(cell: std::ptr::NonNull<C>) {
    struct Bury<C>(std::ptr::NonNull<C>);
    impl<C> Drop for Bury<C> {
        fn drop(&mut self) {
            // SAFETY: rule 11: the layout of its box. The content was dropped.
            unsafe {
                crate::raw::audit::graves::bury(self.0.cast(), std::alloc::Layout::new::<C>())
            };
        }
    }
    let _memory = Bury(cell);
    // SAFETY: the caller's promise.
    unsafe { cell.drop_in_place() };
}
