//! A cache of freed blocks: magazines per thread and a depot that all threads share, after Bonwick
//! and Adams, "Magazines and Vmem" (USENIX 2001).
//!
//! ```text
//!   allocate <-- head  <-- (empty) <-- spare <-- (none) <-- depot <-- (empty) <-- allocator
//!   free     --> head  --> (full)  --> spare --> (full) --> depot --> (surplus) --> allocator
//! ```
//!
//! A thread keeps two lists of blocks for each size class, `head` and `spare`, of at most one
//! magazine each. Only full magazines are exchanged with the depot, as a whole and under its lock.
//! So a thread that only frees blocks (a worker that completes tasks) feeds a thread that only
//! allocates them (one in `block_on` that spawns tasks).
//!
//! # Bounds
//! 1. A thread caches at most two magazines of each class: 16 KiB.
//! 2. A block is requested from the allocator only while the depot of its class is empty and the
//!    calling thread has none. All other blocks of the class are then live, or cached by other
//!    threads. So there are never more blocks of a class than have been live at once, plus two
//!    magazines for each thread.
//! 3. All depots together keep at most [`MOST`] bytes.
//! 4. A depot releases magazines that it did not need for a while: see [`Depot::surplus`].

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes from one size class to the next, and the number of classes.
const STEP: usize = 8;
const CLASSES: usize = 256;
/// Larger blocks are not cached, nor are those with a larger alignment than `ALIGN`.
const LARGEST: usize = STEP * CLASSES;
const ALIGN: usize = 16;

/// Bytes in all depots at most.
const MOST: usize = 32 << 20;
/// Bytes in a magazine at most.
const MAGAZINE: usize = 8 << 10;

static DEPOTS: Depots = Depots::new(MOST);

thread_local! {
    static LISTS: Lists = const { Lists::new(&DEPOTS) };
}

/// A free block.
struct Block {
    /// The next one of its list or magazine.
    next: *mut Block,
    /// The next magazine: only in the first block of a magazine in a depot.
    next_magazine: *mut Block,
}

/// Blocks cached by a thread.
struct Lists {
    classes: [List; CLASSES],
    depots: &'static Depots,
}

struct List {
    /// Blocks to take from and to add to.
    head: Cell<*mut Block>,
    /// The number of blocks in `head`: a magazine at most.
    count: Cell<usize>,
    /// A full magazine, or null.
    spare: Cell<*mut Block>,
}

impl Lists {
    const fn new(depots: &'static Depots) -> Lists {
        Lists { classes: [const { List::new() }; CLASSES], depots }
    }

    /// Takes a cached block, if there is one.
    #[inline]
    fn take(&self, class: usize) -> Option<NonNull<Block>> {
        let list = &self.classes[class];
        let first = match NonNull::new(list.head.get()) {
            Some(first) => first,
            None => self.refill(class)?,
        };
        // SAFETY: rule 11.
        list.head.set(unsafe { first.as_ref() }.next);
        list.count.set(list.count.get() - 1);
        Some(first)
    }

    /// Caches a block.
    #[inline]
    fn put(&self, class: usize, mut block: NonNull<Block>) {
        let list = &self.classes[class];
        if list.count.get() == magazine(class) {
            self.rotate(class);
        }
        // SAFETY: rule 11: this thread owns the block, and it is large enough.
        unsafe { block.as_mut() }.next = list.head.replace(block.as_ptr());
        list.count.set(list.count.get() + 1);
    }

    /// Refills an empty list with the spare magazine or one of the depot. Returns its first block.
    #[cold]
    fn refill(&self, class: usize) -> Option<NonNull<Block>> {
        let list = &self.classes[class];
        let spare = NonNull::new(list.spare.replace(ptr::null_mut()));
        let full = spare.or_else(|| self.depots.pop(class))?;
        list.head.set(full.as_ptr());
        list.count.set(magazine(class));
        Some(full)
    }

    /// Makes a full list the spare magazine. The one before it goes to the depot.
    #[cold]
    fn rotate(&self, class: usize) {
        let list = &self.classes[class];
        let full = list.head.replace(ptr::null_mut());
        list.count.set(0);
        if let Some(before) = NonNull::new(list.spare.replace(full)) {
            self.depots.push(class, before);
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for class in 0..CLASSES {
            let List { head, spare, .. } = &self.classes[class];
            free_all(class, head.replace(ptr::null_mut()));
            free_all(class, spare.replace(ptr::null_mut()));
        }
    }
}

impl List {
    const fn new() -> List {
        let [head, spare] = [const { Cell::new(ptr::null_mut()) }; 2];
        List { head, count: Cell::new(0), spare }
    }
}

/// The depots of all classes.
struct Depots {
    classes: [Mutex<Depot>; CLASSES],
    /// Bytes in all of them, and how many there may be. The count orders nothing: a depot is
    /// accessed under its lock.
    bytes: AtomicUsize,
    most: usize,
}

/// Full magazines of a class.
struct Depot {
    first: *mut Block,
    count: usize,
    /// Magazines that were not needed during the last epoch, nor since: as many of those that come
    /// next are released.
    surplus: usize,
    /// The smallest and the largest `count` of this epoch.
    low: usize,
    high: usize,
    /// Exchanges in this epoch. It ends when the depot could have been emptied and filled twice, so
    /// that `low` is zero in a program that repeats a burst of tasks.
    exchanges: usize,
}

// SAFETY: rule 11: no thread owns the blocks in a depot.
unsafe impl Send for Depot {}

impl Depots {
    const fn new(most: usize) -> Depots {
        let classes = [const { Mutex::new(Depot::new()) }; CLASSES];
        Depots { classes, bytes: AtomicUsize::new(0), most }
    }

    fn lock(&self, class: usize) -> MutexGuard<'_, Depot> {
        self.classes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a full magazine.
    fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        let full = self.lock(class).pop()?;
        self.bytes.fetch_sub(magazine(class) * size(class), Relaxed);
        Some(full)
    }

    /// Keeps a full magazine, or releases it if there are enough.
    fn push(&self, class: usize, full: NonNull<Block>) {
        let bytes = magazine(class) * size(class);
        let fits = self.bytes.fetch_add(bytes, Relaxed) + bytes <= self.most;
        if !fits || !self.lock(class).push(full) {
            self.bytes.fetch_sub(bytes, Relaxed);
            free_all(class, full.as_ptr());
        }
    }
}

impl Depot {
    const fn new() -> Depot {
        Depot { first: ptr::null_mut(), count: 0, surplus: 0, low: 0, high: 0, exchanges: 0 }
    }

    fn pop(&mut self) -> Option<NonNull<Block>> {
        let full = NonNull::new(self.first)?;
        // SAFETY: rule 11.
        self.first = unsafe { full.as_ref() }.next_magazine;
        self.count -= 1;
        self.exchanged();
        Some(full)
    }

    /// Keeps a magazine, unless there are too many: false.
    fn push(&mut self, mut full: NonNull<Block>) -> bool {
        let keeps = self.surplus == 0;
        if keeps {
            // SAFETY: rule 11: the caller owns the magazine.
            unsafe { full.as_mut() }.next_magazine = self.first;
            self.first = full.as_ptr();
            self.count += 1;
        } else {
            self.surplus -= 1;
        }
        self.exchanged();
        keeps
    }

    fn exchanged(&mut self) {
        self.surplus = self.surplus.min(self.count);
        self.low = self.low.min(self.count);
        self.high = self.high.max(self.count);
        self.exchanges += 1;
        if self.exchanges > 4 * (self.high + 4) {
            *self = Depot {
                surplus: self.low,
                low: self.count,
                high: self.count,
                exchanges: 0,
                ..*self
            };
        }
    }
}

/// Gives a list of blocks to the allocator.
fn free_all(class: usize, mut list: *mut Block) {
    while let Some(block) = NonNull::new(list) {
        // SAFETY: rule 11: the caller owns the list, and the layout is that of its class.
        unsafe {
            list = block.as_ref().next;
            dealloc(block.as_ptr().cast(), layout(class));
        }
    }
}

const fn size(class: usize) -> usize {
    (class + 1) * STEP
}

/// The number of blocks in a magazine of a class.
const fn magazine(class: usize) -> usize {
    MAGAZINE / size(class)
}

/// The layout of all blocks of a class.
const fn layout(class: usize) -> Layout {
    match Layout::from_size_align(size(class), ALIGN) {
        Ok(block) => block,
        Err(_) => panic!("small, and aligned to a power of two"),
    }
}

/// The class of a layout, if blocks for it are cached.
const fn class(of: Layout) -> Option<usize> {
    if of.size() == 0 || of.size() > LARGEST || of.align() > ALIGN {
        return None;
    }
    let size = if of.size() < size_of::<Block>() { size_of::<Block>() } else { of.size() };
    Some((size - 1) / STEP)
}

/// Allocates memory for a cell.
#[inline]
pub(in super::super) fn allocate<C>() -> NonNull<MaybeUninit<C>> {
    let layout = match const { class(Layout::new::<C>()) } {
        None => const { Layout::new::<C>() },
        Some(class) => {
            // The lists of a thread that is about to end may have been dropped.
            if let Ok(Some(cached)) = LISTS.try_with(|lists| lists.take(class)) {
                return cached.cast();
            }
            layout(class)
        }
    };
    // SAFETY: a cell has a header, and a box a value: the size is not zero.
    let block = unsafe { alloc(layout) };
    NonNull::new(block.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Drops a cell and frees its memory.
///
/// # Safety
/// It came from [`allocate`], is initialised, and is not used any more.
#[inline]
pub(in super::super) unsafe fn free<C>(cell: NonNull<C>) {
    // SAFETY: the caller's promise; rule 11 gives the layout.
    unsafe {
        let _memory = Memory::<C>(cell.cast(), PhantomData);
        ptr::drop_in_place(cell.as_ptr());
    }
}

/// Freed after the value in it was dropped, even if that panics.
struct Memory<C>(NonNull<Block>, PhantomData<C>);

impl<C> Drop for Memory<C> {
    #[inline]
    fn drop(&mut self) {
        let layout = match const { class(Layout::new::<C>()) } {
            None => const { Layout::new::<C>() },
            Some(class) => {
                if LISTS.try_with(|lists| lists.put(class, self.0)).is_ok() {
                    return;
                }
                layout(class)
            }
        };
        // SAFETY: rule 11: the layout it was allocated with.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) };
    }
}

#[cfg(test)]
mod tests;
