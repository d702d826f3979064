//! A pool: blocks of memory, cut into pieces of few sizes.
//!
//! ```text
//!  | Pool | pieces handed out or free ........ | not yet cut |      | Block | pieces ... |
//!                                              ^ next        ^ end
//! ```
//! A request is rounded up to a class: a multiple of 16 up to 1 KiB, above that a quarter step
//! between powers of two. A freed piece goes to its class's list and is used again before anything
//! is cut. When nothing is left to cut, a larger free piece is split. Every path is bounded by the
//! number of classes; nothing is searched.
//!
//! A pool of a fixed size has one block. One that grows is given more of them, and keeps them until
//! the end; what was not yet cut of the block before becomes free pieces. Large pieces that may be
//! refused, tables and the elements of channels, are blocks of their own there, and given back.
//!
//! Some of what is free is *set aside*: a call that may be refused does not get it (`careful`), one
//! that is on its way does.
//!
//! Rules of the unsafe code:
//! 1. Pieces lie in the pool's blocks behind their headers, are multiples of 16 and do not overlap.
//! 2. A free piece's first word is the address of the next free one of its class, or null.
//! 3. Whoever frees a piece passes the size it was asked for with: the same class comes out.

#![cfg_attr(feature = "std", allow(dead_code, reason = "with std there are no pools"))]

use core::mem::size_of;
use core::ptr::{NonNull, null_mut};

/// Classes of small pieces: multiples of 16.
const SMALL: usize = 64;
/// The largest small piece.
const SMALL_MOST: usize = SMALL * Pool::ALIGN;
/// Powers of two above that, four classes each.
const LARGE: usize = 4 * 22;
/// A piece is large from here on.
const LARGE_PIECE: usize = 32 * 1024;
/// All classes.
const CLASSES: usize = SMALL + LARGE;

/// Calls that add a small thing, a wait or a permit, and do not look at all memory each time.
pub(crate) const CREDIT: u8 = 8;
/// Bytes for all of those.
pub(crate) const SMALL_CALLS: usize = CREDIT as usize * 2048;

/// What must be left for those that cannot be refused.
#[derive(Clone, Copy, Default)]
pub(crate) struct Aside {
    /// Bytes of all pieces together.
    pub(crate) bytes: usize,
    /// Bytes of the largest of them.
    pub(crate) piece: usize,
}

/// What a pool says about itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolStats {
    pub(crate) size: u64,
    pub(crate) used: u64,
    pub(crate) peak: u64,
    pub(crate) spills: u64,
}

/// See the module's text.
pub(crate) struct Pool {
    next: *mut u8,
    end: *mut u8,
    /// Where the first block ends; those after it; those that are one piece.
    first_end: *mut u8,
    blocks: *mut Block,
    large: *mut Block,
    /// Bytes of the first block's pieces, if the pool has a size, and of all blocks.
    fixed: usize,
    whole: usize,
    used: usize,
    peak: usize,
    /// Blocks beyond the size, if there is one, or taken for who cannot be refused.
    spills: usize,
    /// More blocks may be had.
    pub(crate) grows: bool,
    /// What is asked for now may be refused, and does not get what is set aside.
    pub(crate) careful: bool,
    pub(crate) aside: Aside,
    /// The free pieces of each class, and how many there are.
    free: [*mut u8; CLASSES],
    count: [u32; CLASSES],
}

/// What lies in front of a further block's pieces.
struct Block {
    next: *mut Block,
    /// Of a block that is one piece.
    prev: *mut Block,
    /// Bytes in all.
    size: usize,
}

impl Pool {
    /// What every piece is aligned to.
    pub(crate) const ALIGN: usize = 16;
    /// The smallest block that makes sense.
    pub(crate) const LEAST: usize = 16 * 1024;
    /// Bytes of the first block that are the pool's own.
    pub(crate) const HEADER: usize = size_of::<Pool>().next_multiple_of(Pool::ALIGN);
    /// Bytes of a further block that are not for pieces.
    const BLOCK: usize = size_of::<Block>().next_multiple_of(Pool::ALIGN);

    /// Makes a pool at the beginning of a block. `fixed`: it has a size, beyond which it spills if
    /// it grows.
    ///
    /// # Safety
    /// The block is aligned to [`ALIGN`](Pool::ALIGN), has `size` bytes, at least
    /// [`LEAST`](Pool::LEAST), and is used by nobody else.
    pub(crate) unsafe fn place(
        block: NonNull<u8>,
        size: usize,
        fixed: bool,
        grows: bool,
    ) -> NonNull<Pool> {
        let pool = block.cast::<Pool>();
        // SAFETY: the caller's promise; the header is smaller than `LEAST`.
        unsafe {
            let start = block.as_ptr().add(Pool::HEADER);
            let end = block.as_ptr().add(size - size % Pool::ALIGN);
            let whole = end as usize - start as usize;
            pool.as_ptr().write(Pool {
                next: start,
                end,
                first_end: end,
                blocks: null_mut(),
                large: null_mut(),
                fixed: if fixed { whole } else { 0 },
                whole,
                used: 0,
                peak: 0,
                spills: 0,
                grows,
                careful: false,
                aside: Aside::default(),
                free: [null_mut(); CLASSES],
                count: [0; CLASSES],
            });
        }
        pool
    }

    /// Bytes of a block that is enough for a piece of `size` bytes beside what is set aside: those
    /// that are wanted, and those that would do.
    pub(crate) fn wants(&self, size: usize) -> Option<(usize, usize)> {
        let piece = size_of_class(class_of(size)?);
        let aside = if self.careful { self.aside.bytes.checked_add(self.aside.piece)? } else { 0 };
        let least = piece.checked_add(aside)?.checked_add(Pool::BLOCK)?;
        let least = least.checked_next_multiple_of(Pool::ALIGN)?;
        // More than is needed now, so that it is not needed each time.
        Some((least.max(self.whole / 2).max(Pool::LEAST).next_multiple_of(Pool::ALIGN), least))
    }

    /// Takes one more block, which is cut from now on.
    ///
    /// # Safety
    /// As for [`place`](Pool::place), but that it may be as small as [`wants`](Pool::wants) says.
    pub(crate) unsafe fn add(&mut self, block: NonNull<u8>, size: usize) {
        let rest = self.end as usize - self.next as usize;
        self.cut(self.next, rest);
        let head = block.cast::<Block>();
        // SAFETY: the caller's promise: header and pieces lie in the block.
        unsafe {
            head.write(Block { next: self.blocks, prev: null_mut(), size });
            self.next = block.as_ptr().add(Pool::BLOCK);
            self.end = block.as_ptr().add(size);
        }
        self.blocks = head.as_ptr();
        self.whole += size - Pool::BLOCK;
        self.spills += usize::from(self.fixed > 0 || !self.careful);
    }

    /// Takes a further block out, to give it back. At the end only.
    pub(crate) fn pop_block(&mut self) -> Option<NonNull<u8>> {
        let list = if self.blocks.is_null() { &mut self.large } else { &mut self.blocks };
        let block = NonNull::new(*list)?;
        // SAFETY: rule 1: written by `add` or `own`.
        *list = unsafe { block.as_ref() }.next;
        Some(block.cast())
    }

    /// Bytes of a block that is one piece of `size` bytes, if it is to be one.
    pub(crate) fn own_size(&self, size: usize) -> Option<usize> {
        let own = self.grows && self.careful && size >= LARGE_PIECE;
        let bytes = size.checked_add(Pool::BLOCK)?.checked_next_multiple_of(Pool::ALIGN);
        bytes.filter(|_| own)
    }

    /// Takes a block that is one piece: that.
    ///
    /// # Safety
    /// As for [`add`](Pool::add), with the size that [`own_size`](Pool::own_size) says.
    pub(crate) unsafe fn own(&mut self, block: NonNull<u8>, size: usize) -> *mut u8 {
        let head = block.cast::<Block>();
        // SAFETY: the caller's promise; rule 1 for the block that was first.
        unsafe {
            head.write(Block { next: self.large, prev: null_mut(), size });
            if let Some(next) = self.large.as_mut() {
                next.prev = head.as_ptr();
            }
            self.large = head.as_ptr();
            self.spills += usize::from(self.fixed > 0);
            block.as_ptr().add(Pool::BLOCK)
        }
    }

    /// Takes the block out of the list that is this piece of `size` bytes, if one is.
    pub(crate) fn disown(&mut self, piece: *mut u8, size: usize) -> Option<NonNull<u8>> {
        if size < LARGE_PIECE || self.has_cut(piece) {
            return None;
        }
        // SAFETY: rule 1: a large piece that was not cut has a header, which `own` has written, and
        // so have those before and after it.
        unsafe {
            let head = NonNull::new(piece.sub(Pool::BLOCK).cast::<Block>())?;
            let Block { next, prev, .. } = head.read();
            if let Some(next) = next.as_mut() {
                next.prev = prev;
            }
            match prev.as_mut() {
                Some(prev) => prev.next = next,
                None => self.large = next,
            }
            Some(head.cast())
        }
    }

    /// Whether a piece was cut from a block.
    fn has_cut(&self, piece: *mut u8) -> bool {
        let at = piece as usize;
        let start = core::ptr::from_ref(self) as usize;
        let mut block = self.blocks;
        let mut found = (start..self.first_end as usize).contains(&at);
        // SAFETY: rule 1: written by `add`.
        while let (false, Some(head)) = (found, unsafe { block.as_ref() }) {
            found = (block as usize..block as usize + head.size).contains(&at);
            block = head.next;
        }
        found
    }

    /// A piece of at least `size` bytes, or null.
    pub(crate) fn alloc(&mut self, size: usize, align: usize) -> *mut u8 {
        let class = class_of(size).filter(|_| align <= Pool::ALIGN);
        let Some(class) = class else { return null_mut() };
        let bytes = size_of_class(class);
        if self.careful && !self.leaves(class, bytes) {
            return null_mut();
        }
        let piece = self.take(class);
        if !piece.is_null() {
            self.used += bytes;
            self.peak = self.peak.max(self.used);
        }
        piece
    }

    /// Whether a piece can go without what is set aside.
    fn leaves(&self, class: usize, bytes: usize) -> bool {
        let Aside { bytes: aside, piece } = self.aside;
        let ready = self.count.get(class).is_some_and(|count| *count > 0) && bytes < piece;
        // What is left of a part that is cut may be too small to count.
        let more = if ready { 0 } else { bytes.saturating_add(piece) };
        self.has(Aside { bytes: aside.saturating_add(more), piece })
    }

    /// Takes a piece back.
    pub(crate) fn free(&mut self, piece: *mut u8, size: usize) {
        if let Some(class) = class_of(size) {
            let size = size_of_class(class);
            self.used -= size;
            // What was cut last is as if it never was.
            match (self.next as usize).wrapping_sub(piece as usize) == size {
                true => self.next = piece,
                false => self.push(class, piece),
            }
        }
    }

    /// Gives back what a piece no longer needs of the size it was asked for with.
    pub(crate) fn shrink(&mut self, piece: *mut u8, from: usize, to: usize) {
        let (Some(old), Some(new)) = (class_of(from), class_of(to)) else { return };
        let mut old = size_of_class(old);
        let new = size_of_class(new);
        let own = if to < LARGE_PIECE { self.disown(piece, from) } else { None };
        if let Some(head) = own.map(NonNull::cast::<Block>) {
            // It is no large piece any more, and its block one like others.
            // SAFETY: rule 1: written by `own`.
            unsafe {
                (*head.as_ptr()).next = self.blocks;
                old = head.as_ref().size - Pool::BLOCK;
            }
            self.blocks = head.as_ptr();
            self.used += old;
        } else if from >= LARGE_PIECE && !self.has_cut(piece) {
            return;
        }
        self.used -= old - new;
        // SAFETY: rule 1: behind what is kept, and inside the piece.
        self.cut(unsafe { piece.add(new) }, old - new);
    }

    /// Whether pieces of so many bytes together can be had now, in any order of sizes: all that is
    /// not yet cut serves, or twice as much in parts that are large enough each, as some of those
    /// is lost in between.
    pub(crate) fn has(&self, wanted: Aside) -> bool {
        let uncut = self.end as usize - self.next as usize;
        uncut >= wanted.bytes || self.has_in_parts(uncut, wanted)
    }

    #[cold]
    fn has_in_parts(&self, uncut: usize, wanted: Aside) -> bool {
        let Some(first) = class_of(wanted.piece) else { return false };
        let parts = self.count.iter().enumerate().skip(first);
        let spare = |sum: usize, (class, count): (usize, &u32)| {
            sum.saturating_add(size_of_class(class).saturating_mul(*count as usize))
        };
        let uncut = if uncut < wanted.piece { 0 } else { uncut };
        parts.fold(uncut, spare) / 2 >= wanted.bytes
    }

    /// Whether it has a size.
    pub(crate) fn is_fixed(&self) -> bool {
        self.fixed > 0
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let of_fixed = |number: usize| if self.fixed > 0 { number as u64 } else { 0 };
        PoolStats {
            size: self.fixed as u64,
            used: of_fixed(self.used),
            peak: of_fixed(self.peak),
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
            // SAFETY: rule 1: behind what is taken, and inside the larger piece.
            self.cut(unsafe { piece.add(size) }, size_of_class(larger) - size);
            return piece;
        }
        null_mut()
    }

    /// Makes free pieces of some bytes, a multiple of 16: the largest that fit.
    fn cut(&mut self, mut at: *mut u8, mut left: usize) {
        while left > 0 {
            let class = class_below(left);
            let part = size_of_class(class);
            self.push(class, at);
            left -= part;
            // SAFETY: rule 1: the parts lie behind each other; the last ends where the bytes do.
            at = unsafe { at.add(part) };
        }
    }

    fn pop(&mut self, class: usize) -> *mut u8 {
        let (Some(head), Some(count)) = (self.free.get_mut(class), self.count.get_mut(class))
        else {
            return null_mut();
        };
        let piece = *head;
        if !piece.is_null() {
            // SAFETY: rule 2.
            *head = unsafe { piece.cast::<*mut u8>().read() };
            *count -= 1;
        }
        piece
    }

    fn push(&mut self, class: usize, piece: *mut u8) {
        if let (Some(head), Some(count)) = (self.free.get_mut(class), self.count.get_mut(class)) {
            // SAFETY: rules 1 and 2: the piece is free and has room for a pointer.
            unsafe { piece.cast::<*mut u8>().write(*head) };
            *head = piece;
            *count += 1;
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
    let power = (class - SMALL) / 4 + 10;
    let step = (class - SMALL) % 4;
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
        let mut pool = unsafe { Pool::place(start, size, true, false) };
        // SAFETY: rule 1 of `memory`: one thread.
        let pool = unsafe { pool.as_mut() };
        let end = start.as_ptr() as usize + block.len() * 16;
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
                assert!(piece.is_multiple_of(16));
                assert!((start.as_ptr() as usize + Pool::HEADER..end).contains(&piece));
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
        for (piece, size) in &mut live {
            let less = 1 + random.below(*size);
            pool.shrink(*piece as *mut u8, *size, less);
            *size = less;
        }
        let stats = pool.stats();
        assert_eq!(stats.spills, 0);
        assert!(refused > 0 && stats.peak <= stats.size);
        for (piece, size) in live {
            pool.free(piece as *mut u8, size);
        }
        assert_eq!(pool.stats().used, 0);
        assert!(pool.alloc(16, 64).is_null());
    }
    /// Who may be refused gets nothing of what is set aside, others all of it, in any sizes up to
    /// the one that was told.
    #[test]
    fn what_is_set_aside_is_there_for_who_cannot_be_refused() {
        let size = 256 * 1024;
        let mut random = asx_kernel::rng::DetRng::new(9, 0);
        for round in 0..200 {
            let mut block = vec![0_u128; size / 16];
            let start = NonNull::new(block.as_mut_ptr().cast::<u8>()).unwrap();
            // SAFETY: the block is aligned, large enough and only the pool's.
            let mut pool = unsafe { Pool::place(start, size, true, false) };
            // SAFETY: rule 1 of `memory`: one thread.
            let pool = unsafe { pool.as_mut() };
            let wanted = Aside { bytes: 40_000, piece: 1 + random.below(8000) };
            (pool.careful, pool.aside) = (true, wanted);
            let mut live = Vec::new();
            for _ in 0..3000 {
                let size = 1 + random.below(if round % 2 == 0 { 300 } else { 9000 });
                let piece = pool.alloc(size, 8);
                if !piece.is_null() {
                    live.push((piece, size));
                }
                if random.below(3) == 0 && !live.is_empty() {
                    let (piece, size) = live.swap_remove(random.below(live.len()));
                    pool.free(piece, size);
                }
                assert!(pool.has(wanted));
            }
            pool.careful = false;
            let mut left = wanted.bytes;
            while left > 0 {
                let size = (1 + random.below(wanted.piece)).min(left);
                let class = class_of(size).unwrap();
                if size_of_class(class) > left {
                    break;
                }
                assert!(!pool.alloc(size, 8).is_null(), "{round}: {size} of {left}");
                left -= size_of_class(class);
            }
        }
    }

    #[test]
    fn a_pool_that_grows_uses_every_block_and_gives_all_of_them_back() {
        let blocks: Vec<Vec<u128>> = (0..4).map(|n| vec![0; (n + 1) * 2048]).collect();
        let place = |n: usize| NonNull::new(blocks[n].as_ptr().cast_mut().cast::<u8>()).unwrap();
        let bytes = |n: usize| blocks[n].len() * 16;
        // SAFETY: the blocks are aligned, large enough and only the pool's.
        let mut pool = unsafe { Pool::place(place(0), bytes(0), false, true) };
        // SAFETY: rule 1 of `memory`: one thread.
        let pool = unsafe { pool.as_mut() };
        let mut pieces = Vec::new();
        for n in 1..=4 {
            loop {
                let piece = pool.alloc(96, 8);
                if piece.is_null() {
                    break;
                }
                pieces.push(piece);
            }
            let (wanted, least) = pool.wants(96).unwrap();
            assert!(least == 96 + Pool::BLOCK && wanted >= Pool::LEAST);
            if n < 4 {
                // SAFETY: as above.
                unsafe { pool.add(place(n), bytes(n)) }
            }
        }
        let all: usize = (0..4).map(bytes).sum();
        assert!(pieces.len() * 96 > all - Pool::HEADER - 4 * (96 + 16));
        pieces.sort_unstable();
        assert!(pieces.windows(2).all(|two| two[1] as usize - two[0] as usize >= 96));
        pieces.iter().for_each(|piece| pool.free(*piece, 96));
        assert_eq!((pool.used, pool.stats().size), (0, 0));
        let back: Vec<_> = core::iter::from_fn(|| pool.pop_block()).collect();
        assert_eq!(back, [place(3), place(2), place(1)]);
    }

    #[test]
    fn large_pieces_are_blocks_of_their_own_until_they_are_small() {
        let first = vec![0_u128; 2048];
        let blocks: Vec<Vec<u128>> = (0..3).map(|_| vec![0; 4096]).collect();
        let place = |from: &Vec<u128>| NonNull::new(from.as_ptr().cast_mut().cast::<u8>()).unwrap();
        // SAFETY: the blocks are aligned, large enough and only the pool's.
        let mut pool = unsafe { Pool::place(place(&first), 2048 * 16, false, true) };
        // SAFETY: rule 1 of `memory`: one thread.
        let pool = unsafe { pool.as_mut() };
        assert_eq!(pool.own_size(40_000), None);
        pool.careful = true;
        let size = pool.own_size(40_000).unwrap();
        assert_eq!((size, pool.own_size(LARGE_PIECE - 1)), (40_000 + Pool::BLOCK, None));
        // SAFETY: as above.
        let own = |pool: &mut Pool, n: usize| unsafe { pool.own(place(&blocks[n]), 65_536) };
        let pieces = [0, 1, 2].map(|n| own(pool, n));
        assert_eq!(pool.disown(pieces[1], 40_000), Some(place(&blocks[1])));
        assert_eq!(pool.disown(pieces[2], 40_000), Some(place(&blocks[2])));
        // Shorter, but still large; then small, with the rest for others.
        pool.shrink(pieces[0], 60_000, 40_000);
        assert_eq!(pool.used, 0);
        pool.shrink(pieces[0], 40_000, 100);
        assert_eq!((pool.used, pool.disown(pieces[0], 40_000)), (112, None));
        pool.careful = false;
        let piece = pool.alloc(34_000, 8);
        assert!(!piece.is_null() && pool.has_cut(piece) && pool.disown(piece, 34_000).is_none());
        pool.free(piece, 34_000);
        pool.free(pieces[0], 100);
        assert_eq!((pool.used, pool.pop_block()), (0, Some(place(&blocks[0]))));
        assert_eq!(pool.pop_block(), None);
    }
}
