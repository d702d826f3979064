//! A pool: one block of memory, cut into pieces of few sizes.
//!
//! ```text
//!  | Pool | pieces handed out or free ........ | not yet cut |
//!                                              ^ next        ^ end
//! ```
//! A request is rounded up to a class: a multiple of 16 up to 1 KiB, above that a quarter step
//! between powers of two. A freed piece goes to its class's list and is used again before anything
//! is cut. When nothing is left to cut, a larger free piece is split. Every path is bounded by the
//! number of classes; nothing is searched.
//!
//! Rules of the unsafe code:
//! 1. Pieces lie between the pool's header and `end`, are multiples of 16 and do not overlap.
//! 2. A free piece's first word is the address of the next free one of its class, or null.
//! 3. Whoever frees a piece passes the size it was asked for with: the same class comes out.

#![cfg_attr(feature = "std", allow(dead_code, reason = "with std there are no pools"))]

use crate::memory::PoolStats;
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Classes of small pieces: multiples of 16.
const SMALL: usize = 64;
/// The largest small piece.
const SMALL_MOST: usize = SMALL * Pool::ALIGN;
/// Powers of two above that, four classes each.
const LARGE: usize = 4 * 22;

/// See the module's text.
pub(crate) struct Pool {
    start: *mut u8,
    next: *mut u8,
    end: *mut u8,
    used: usize,
    peak: usize,
    spills: usize,
    /// What cannot be served is refused now, and does not go elsewhere.
    pub(crate) strict: bool,
    free: [*mut u8; SMALL + LARGE],
}

impl Pool {
    /// What every piece is aligned to.
    pub(crate) const ALIGN: usize = 16;
    /// The smallest block that makes sense.
    pub(crate) const LEAST: usize = 16 * 1024;

    /// Makes a pool at the beginning of a block.
    ///
    /// # Safety
    /// The block is aligned to [`ALIGN`](Pool::ALIGN), has `size` bytes, at least
    /// [`LEAST`](Pool::LEAST), and is used by nobody else.
    pub(crate) unsafe fn place(block: NonNull<u8>, size: usize) -> NonNull<Pool> {
        let header = size_of::<Pool>().next_multiple_of(Pool::ALIGN);
        let pool = block.cast::<Pool>();
        // SAFETY: the caller's promise; the header is smaller than `LEAST`.
        unsafe {
            let start = block.as_ptr().add(header);
            let end = block.as_ptr().add(size - size % Pool::ALIGN);
            pool.as_ptr().write(Pool {
                start,
                next: start,
                end,
                used: 0,
                peak: 0,
                spills: 0,
                strict: false,
                free: [null_mut(); SMALL + LARGE],
            });
        }
        pool
    }

    /// A piece of at least `size` bytes, or null.
    pub(crate) fn alloc(&mut self, size: usize, align: usize) -> *mut u8 {
        let piece = match class_of(size) {
            Some(class) if align <= Pool::ALIGN => self.take(class),
            _ => null_mut(),
        };
        if piece.is_null() {
            self.spills += usize::from(!self.strict);
        } else {
            self.used += class_of(size).map_or(0, size_of_class);
            self.peak = self.peak.max(self.used);
        }
        piece
    }

    /// Takes a piece back.
    pub(crate) fn free(&mut self, piece: *mut u8, size: usize) {
        if let Some(class) = class_of(size) {
            self.used -= size_of_class(class);
            self.push(class, piece);
        }
    }

    /// Whether a piece is one of this pool's.
    pub(crate) fn holds(&self, piece: *mut u8) -> bool {
        (self.start as usize..self.end as usize).contains(&(piece as usize))
    }

    /// Whether less than an eighth is left beside what is promised.
    pub(crate) fn is_low(&self, promised: usize) -> bool {
        let size = self.end as usize - self.start as usize;
        (size - self.used).saturating_sub(promised) < size / 8
    }

    pub(crate) fn stats(&self) -> PoolStats {
        PoolStats {
            size: (self.end as usize - self.start as usize) as u64,
            used: self.used as u64,
            peak: self.peak as u64,
            spills: self.spills as u64,
        }
    }

    fn take(&mut self, class: usize) -> *mut u8 {
        let piece = self.pop(class);
        if !piece.is_null() {
            return piece;
        }
        let size = size_of_class(class);
        if self.end as usize - self.next as usize >= size {
            let piece = self.next;
            // SAFETY: rule 1: still inside the block.
            self.next = unsafe { piece.add(size) };
            return piece;
        }
        self.split(class)
    }

    /// Cuts a piece from a larger free one; what is left over becomes free pieces.
    fn split(&mut self, class: usize) -> *mut u8 {
        let size = size_of_class(class);
        for larger in class + 1..self.free.len() {
            let piece = self.pop(larger);
            if piece.is_null() {
                continue;
            }
            let mut left = size_of_class(larger) - size;
            while left > 0 {
                let class = class_below(left);
                let part = size_of_class(class);
                // SAFETY: rule 1: the parts lie behind each other inside the larger piece.
                let at = unsafe { piece.add(size_of_class(larger) - left) };
                self.push(class, at);
                left -= part;
            }
            return piece;
        }
        null_mut()
    }

    fn pop(&mut self, class: usize) -> *mut u8 {
        let Some(head) = self.free.get_mut(class) else { return null_mut() };
        let piece = *head;
        if !piece.is_null() {
            // SAFETY: rule 2.
            *head = unsafe { piece.cast::<*mut u8>().read() };
        }
        piece
    }

    fn push(&mut self, class: usize, piece: *mut u8) {
        if let Some(head) = self.free.get_mut(class) {
            // SAFETY: rules 1 and 2: the piece is free and has room for a pointer.
            unsafe { piece.cast::<*mut u8>().write(*head) };
            *head = piece;
        }
    }
}

/// The class whose pieces hold `size` bytes.
fn class_of(size: usize) -> Option<usize> {
    let size = size.max(1);
    if size <= SMALL_MOST {
        return Some((size - 1) / Pool::ALIGN);
    }
    // Between powers of two there are four steps.
    let power = (size - 1).ilog2() as usize;
    let step = (size - 1 - (1 << power)) / (1 << (power - 2));
    let class = SMALL + (power - 10) * 4 + step;
    (class < SMALL + LARGE).then_some(class)
}

/// The bytes of a class's pieces.
fn size_of_class(class: usize) -> usize {
    if class < SMALL {
        return (class + 1) * Pool::ALIGN;
    }
    let (power, step) = ((class - SMALL) / 4 + 10, (class - SMALL) % 4);
    (1 << power) + (step + 1) * (1 << (power - 2))
}

/// The largest class whose pieces are no larger than `size`, a multiple of 16.
fn class_below(size: usize) -> usize {
    match class_of(size) {
        Some(class) if size_of_class(class) == size => class,
        Some(class) => class.saturating_sub(1),
        None => SMALL + LARGE - 1,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_class_holds_its_size_and_wastes_at_most_a_fifth() {
        for size in 1..200_000 {
            let class = class_of(size).unwrap();
            let own = size_of_class(class);
            assert!(own >= size && own.is_multiple_of(16), "{size}");
            assert!(own - size < 16 || own - size <= size / 4, "{size} {own}");
            assert!(class == 0 || size_of_class(class - 1) < size, "{size}");
            if size.is_multiple_of(16) {
                assert!(size_of_class(class_below(size)) <= size, "{size}");
            }
        }
        assert_eq!(class_of(usize::MAX / 2), None);
    }

    #[test]
    fn pieces_never_overlap_and_freed_ones_are_used_again() {
        let size = 256 * 1024;
        let mut block = vec![0_u128; size / 16];
        let start = NonNull::new(block.as_mut_ptr().cast::<u8>()).unwrap();
        // SAFETY: the block is aligned, large enough and only the pool's.
        let mut pool = unsafe { Pool::place(start, size) };
        // SAFETY: rule 1 of `memory`: one thread.
        let pool = unsafe { pool.as_mut() };
        let mut random = asx_kernel::rng::DetRng::new(7, 0);
        let mut live: BTreeMap<usize, usize> = BTreeMap::new();
        let mut refused = 0;
        for _ in 0..100_000 {
            let most = if random.below(20) == 0 { 20_000 } else { 600 };
            let size = 1 + random.below(most);
            if random.below(5) < 3 {
                let piece = pool.alloc(size, 8) as usize;
                if piece == 0 {
                    refused += 1;
                    continue;
                }
                assert!(piece.is_multiple_of(16) && pool.holds(piece as *mut u8));
                let before = live.range(..piece).next_back();
                assert!(before.is_none_or(|(at, size)| at + size <= piece));
                assert!(live.range(piece..).next().is_none_or(|(at, _)| piece + size <= *at));
                live.insert(piece, size);
            } else if !live.is_empty() {
                let nth = random.below(live.len());
                let (&piece, &size) = live.iter().nth(nth).unwrap();
                live.remove(&piece);
                pool.free(piece as *mut u8, size);
            }
        }
        let stats = pool.stats();
        assert_eq!(stats.spills, refused);
        assert!(refused > 0 && stats.peak <= stats.size);
        for (piece, size) in live {
            pool.free(piece as *mut u8, size);
        }
        assert_eq!(pool.stats().used, 0);
        assert!(pool.alloc(16, 64).is_null());
    }
}
