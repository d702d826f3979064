//! A worker's run queue: a bounded FIFO with one owner and any number of thieves.
//!
//! ```text
//!             head (anyone: CAS)          tail (owner: store)
//!               v                           v
//! slots:  . . . 4 5 6 7 8 9 . . . . . . . . .        index i lives in slot i % CAPACITY
//!         taken | entries                   | free
//! ```
//!
//! The [`Owner`] pushes at the tail and pops at the head. A [`Stealer`] takes the older half at the
//! head, directly into the thief's own ring. The types separate the roles: there is one `Owner` per
//! ring, it can be sent but not shared, and a thief needs a ring that receives the entries.
//!
//! An entry is an address. The ring neither dereferences nor frees it. Entries left in a ring when
//! its handles are dropped are leaked, so the owner drains it first.
//!
//! # Why each entry is delivered exactly once
//!
//! 1. *Indices never repeat.* `head` and `tail` only grow, by one CAS or one store for each step,
//!    and are 64 bits wide: at one step per nanosecond they would wrap after 584 years. So a CAS on
//!    `head` that succeeds proves that no entry was taken since `head` was read: there is no ABA.
//!    (With 32 bits a busy worker wraps within a minute, and a thief suspended for exactly that
//!    long could deliver stale entries.)
//! 2. *What is taken was written.* A slot is written before the tail that covers it is stored
//!    (release); a thief loads the tail (acquire) before it reads slots below it. The owner reads
//!    what it wrote itself.
//! 3. *What is read is not yet overwritten.* Slots are read before the CAS, so a thief may read
//!    garbage, but then the CAS fails and the garbage is dropped. Index `i`'s slot is overwritten
//!    by the owner only after it loaded (acquire) a `head` beyond `i`. Every such value was stored
//!    by the CAS (release) that took `i`, or by a later one, which continues its release sequence.
//!    So the reads of the thief who took `i` happen before the overwriting.
//! 4. *A thief sees at most `CAPACITY` entries.* It loads `tail` before `head`. Before the owner
//!    stored that tail, it had read a head at most `CAPACITY` behind it, and by the acquire the
//!    thief reads no older head. A `head` beyond the loaded tail means that all of these entries
//!    are gone.
//! 5. *Moved entries are in one ring at a time.* The thief copies them above its own tail, where
//!    only it writes and no other thread reads, and stores its tail only after the CAS made them
//!    its own.
//!
//! None of this orders a push against a load of *another* location. Code that requires a parking
//! worker to see a push needs a `SeqCst` fence (see [`idle`](crate::idle)).

#![forbid(unsafe_code)]

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::prim::{
    Arc,
    atomic::{
        AtomicPtr, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use std::{array, cell::Cell, fmt, iter, marker::PhantomData, ptr, ptr::NonNull};

/// The number of entries a ring holds.
pub const CAPACITY: usize = if cfg!(loom) { 4 } else { 1024 };

const ENTRIES: u64 = CAPACITY as u64;

/// The owner's end of a ring: pushes and pops, on one thread at a time.
///
/// ```
/// use asx_native::ring::Owner;
/// use std::ptr::NonNull;
///
/// let (mut a, mut b) = (1, 2);
/// let (a, b) = (NonNull::from(&mut a), NonNull::from(&mut b));
/// let ring = Owner::new();
/// ring.push(a).unwrap();
/// ring.push(b).unwrap();
/// assert_eq!((ring.pop(), ring.pop(), ring.pop()), (Some(a), Some(b), None));
/// ```
///
/// It cannot be shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<asx_native::ring::Owner<()>>();
/// ```
pub struct Owner<H> {
    ring: Arc<Ring<H>>,
    /// Makes it `!Sync`, so that two threads never push at once.
    unshared: PhantomData<Cell<()>>,
}

impl<H> Owner<H> {
    /// Creates an empty ring.
    pub fn new() -> Owner<H> {
        let slots = array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        let [head, tail] = [0, 0].map(|index| CacheAligned(AtomicU64::new(index)));
        Owner { ring: Arc::new(Ring { head, tail, slots }), unshared: PhantomData }
    }

    /// Returns a handle by which other workers steal from this ring.
    pub fn stealer(&self) -> Stealer<H> {
        Stealer { ring: self.ring.clone() }
    }

    /// Adds an entry behind the others. Returns the entry if the ring is full.
    pub fn push(&self, entry: NonNull<H>) -> Result<(), NonNull<H>> {
        let (tail, room) = self.room();
        if room == 0 {
            return Err(entry);
        }
        self.ring.slot(tail).store(entry.as_ptr(), Relaxed);
        self.ring.tail.0.store(tail + 1, Release);
        Ok(())
    }

    /// Takes the oldest entry.
    pub fn pop(&self) -> Option<NonNull<H>> {
        let Ring { head, tail, .. } = &*self.ring;
        let end = tail.0.load(Relaxed);
        let mut oldest = head.0.load(Relaxed);
        while oldest != end {
            let entry = self.ring.slot(oldest).load(Relaxed);
            // Relaxed: the owner reads only what it wrote, and only it writes.
            match head.0.compare_exchange_weak(oldest, oldest + 1, Relaxed, Relaxed) {
                Ok(_) => return NonNull::new(entry),
                Err(moved) => oldest = moved,
            }
        }
        None
    }

    /// [`pop`](Owner::pop) from a ring that no thread ever steals from: a store instead of a CAS,
    /// which is the most expensive part of a pop on most machines. With a thief, an entry could be
    /// delivered twice.
    pub(crate) fn pop_unstolen(&self) -> Option<NonNull<H>> {
        let Ring { head, tail, .. } = &*self.ring;
        let oldest = head.0.load(Relaxed);
        if oldest == tail.0.load(Relaxed) {
            return None;
        }
        let entry = self.ring.slot(oldest).load(Relaxed);
        head.0.store(oldest + 1, Relaxed);
        NonNull::new(entry)
    }

    /// Removes the entries one by one, oldest first, until there are none.
    pub fn drain(&self) -> impl Iterator<Item = NonNull<H>> {
        iter::from_fn(|| self.pop())
    }

    /// Returns the number of entries; thieves may already be taking some of them.
    pub fn len(&self) -> usize {
        CAPACITY - self.room().1 as usize
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the index of the next push and the number of free slots. Acquires the slots that
    /// became free.
    fn room(&self) -> (u64, u64) {
        let tail = self.ring.tail.0.load(Relaxed);
        (tail, ENTRIES - (tail - self.ring.head.0.load(Acquire)))
    }
}

impl<H> Default for Owner<H> {
    fn default() -> Self {
        Owner::new()
    }
}

impl<H> fmt::Debug for Owner<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The thieves' end of a ring.
pub struct Stealer<H> {
    ring: Arc<Ring<H>>,
}

impl<H> Stealer<H> {
    /// Takes the older half of the entries, rounded up. Returns the oldest, to be run at once; the
    /// others go into the thief's ring, in order, as many as it has room for.
    ///
    /// Returns `None` if all entries that this ring held when the call began are gone.
    pub fn steal_into(&self, thief: &Owner<H>) -> Option<NonNull<H>> {
        let (free, room) = thief.room();
        loop {
            let (head, count) = self.ring.entries();
            let moved = count.div_ceil(2).checked_sub(1)?.min(room);
            let oldest = self.ring.slot(head).load(Relaxed);
            for i in 0..moved {
                let entry = self.ring.slot(head + 1 + i).load(Relaxed);
                thief.ring.slot(free + i).store(entry, Relaxed);
            }
            let next = head + 1 + moved;
            if self.ring.head.0.compare_exchange(head, next, Release, Relaxed).is_ok() {
                thief.ring.tail.0.store(free + moved, Release);
                return NonNull::new(oldest);
            }
        }
    }

    /// Returns the number of entries a moment ago.
    pub fn len(&self) -> usize {
        self.ring.entries().1 as usize
    }

    /// Returns true if there were no entries a moment ago.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<H> Clone for Stealer<H> {
    fn clone(&self) -> Self {
        Stealer { ring: self.ring.clone() }
    }
}

impl<H> fmt::Debug for Stealer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer").field("len", &self.len()).finish_non_exhaustive()
    }
}

struct Ring<H> {
    /// The index of the oldest entry.
    head: CacheAligned<AtomicU64>,
    /// The index after the newest entry.
    tail: CacheAligned<AtomicU64>,
    slots: [AtomicPtr<H>; CAPACITY],
}

/// Aligned to two cache lines, which are fetched in pairs, to avoid false sharing.
#[repr(align(128))]
struct CacheAligned<T>(T);

impl<H> Ring<H> {
    fn slot(&self, index: u64) -> &AtomicPtr<H> {
        &self.slots[(index % ENTRIES) as usize]
    }

    /// Returns the index of the oldest entry and the number of entries, as a thief sees them.
    fn entries(&self) -> (u64, u64) {
        let tail = self.tail.0.load(Acquire);
        let head = self.head.0.load(Relaxed);
        (head, tail.saturating_sub(head))
    }
}
