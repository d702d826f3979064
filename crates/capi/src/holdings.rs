//! The memory of regions: taken piece by piece, given back all at once when the region is Closed.
//!
//! ```text
//!  region --> | chunk: piece | piece | .. free | --> | chunk: .. |       nothing is freed alone
//! ```
//! A chunk is a block of the runtime's own memory: of its pool, or of the allocator. A region's
//! chunks are freed after the drop callbacks of what was inside, which may still use them.
//!
//! With ghost monitors every piece has guard bytes behind it, looked at when the region closes.
//! Then the chunks are overwritten, and without a pool kept for a while: whoever writes there is
//! noticed when they are freed at last. (A pool has no memory to keep things in that are over.)
//!
//! Rules of the unsafe code:
//! 1. A chunk's block has `size` bytes, is the chunk's alone, and lives as long as the chunk.
//! 2. Pieces lie inside of their chunk and do not overlap: `used` only grows.
//! 3. What the program was given is its own until the region is Closed: it is not looked at here
//!    but for the guards, which are not the program's.

use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::vec::Vec;
use asx_kernel::ids::RegionId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;

/// What every chunk is aligned to.
const ALIGN: usize = 16;
/// The first chunk of a region, and the largest that is made though less would do.
const CHUNK: (usize, usize) = (256, 4096);
/// Guard bytes behind a piece, and what they are.
pub(crate) const GUARD: (usize, u8) = (16, 0xFD);
/// What memory is overwritten with when its region is Closed.
pub(crate) const POISON: u8 = 0xDD;
/// Bytes that are kept to see who still writes there.
pub(crate) const MOST_KEPT: usize = 64 * 1024;

/// A block of memory and how much of it is taken.
pub(crate) struct Chunk {
    block: NonNull<u8>,
    pub(crate) size: usize,
    used: usize,
}

impl Chunk {
    fn new(size: usize) -> Answer<Chunk> {
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| Status::ResourceExhausted)?;
        // SAFETY: no chunk has no bytes.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) });
        Ok(Chunk { block: block.ok_or(Status::ResourceExhausted)?, size, used: 0 })
    }

    /// Where a piece would begin and end, if it fits.
    fn place(&self, size: usize, align: usize) -> Option<(usize, usize)> {
        let base = self.block.as_ptr() as usize;
        let start = (base + self.used).checked_next_multiple_of(align)? - base;
        let end = start.checked_add(size)?;
        (end <= self.size).then_some((start, end))
    }

    /// Whether so many bytes from `at` on are all the same.
    pub(crate) fn is_all(&self, at: usize, size: usize, byte: u8) -> bool {
        // SAFETY: rules 1 and 3: read byte by byte, inside of the block.
        (at..at + size).all(|at| unsafe { self.block.as_ptr().add(at).read() } == byte)
    }

    pub(crate) fn fill(&mut self, at: usize, size: usize, byte: u8) {
        // SAFETY: rules 1 and 3, as above.
        unsafe { self.block.as_ptr().add(at).write_bytes(byte, size) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::from_size_align(self.size, ALIGN) {
            // SAFETY: rule 1: made so in `new`.
            unsafe { dealloc(self.block.as_ptr(), layout) }
        }
    }
}

/// The memory of a region.
pub(crate) struct Holding {
    pub(crate) region: RegionId,
    pub(crate) chunks: Vec<Chunk>,
    /// Where guards are: the chunk, and their place in it.
    pub(crate) guards: Vec<(usize, usize)>,
}

impl Holding {
    /// How many guards were overwritten.
    pub(crate) fn broken_guards(&self) -> usize {
        let whole = |(chunk, at): &&(usize, usize)| {
            self.chunks.get(*chunk).is_none_or(|chunk| chunk.is_all(*at, GUARD.0, GUARD.1))
        };
        self.guards.len() - self.guards.iter().filter(whole).count()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.size).sum()
    }
}

/// The memory of all regions.
#[derive(Default)]
pub(crate) struct Storage {
    /// In the order of their ids.
    pub(crate) holdings: Vec<Holding>,
    /// Overwritten, and to be looked at before they are freed.
    pub(crate) kept: Vec<Holding>,
    /// Closed regions that had storage, as far as they were seen to.
    pub(crate) seen: u64,
}

impl Storage {
    /// Makes room for a piece, and takes nothing yet. Whether that took a chunk.
    pub(crate) fn reserve(
        &mut self,
        region: RegionId,
        size: usize,
        align: usize,
        guard: usize,
    ) -> Answer<bool> {
        let exhausted = |_| Status::ResourceExhausted;
        let at = match self.find(region) {
            Ok(at) => at,
            Err(at) => {
                self.holdings.try_reserve(1).map_err(exhausted)?;
                let holding = Holding { region, chunks: Vec::new(), guards: Vec::new() };
                self.holdings.insert(at, holding);
                at
            }
        };
        let holding = self.holdings.get_mut(at).ok_or(Status::Internal)?;
        let whole = size.checked_add(guard).ok_or(Status::ResourceExhausted)?;
        if guard > 0 {
            holding.guards.try_reserve(1).map_err(exhausted)?;
            // A close allocates nothing: all that is held may have to be kept.
            self.kept.try_reserve(self.holdings.len()).map_err(exhausted)?;
        }
        let holding = self.holdings.get_mut(at).ok_or(Status::Internal)?;
        let last = holding.chunks.last();
        if last.is_some_and(|last| last.place(whole, align).is_some()) {
            return Ok(false);
        }
        let next = last.map_or(CHUNK.0, |last| last.size.saturating_mul(2).min(CHUNK.1));
        holding.chunks.try_reserve(1).map_err(exhausted)?;
        // A block is aligned to less than the piece may have to be.
        let least = whole.checked_add(align.saturating_sub(ALIGN));
        let least = least.ok_or(Status::ResourceExhausted)?;
        let chunk = match least.max(next) {
            more if more > least => Chunk::new(more).or_else(|_| Chunk::new(least)),
            least => Chunk::new(least),
        };
        holding.chunks.push(chunk?);
        Ok(true)
    }

    /// Takes the piece that room was made for.
    pub(crate) fn take(
        &mut self,
        region: RegionId,
        size: usize,
        align: usize,
        guard: usize,
    ) -> Answer<*mut c_void> {
        let at = self.find(region).map_err(|_| Status::Internal)?;
        let holding = self.holdings.get_mut(at).ok_or(Status::Internal)?;
        let nth = holding.chunks.len();
        let chunk = holding.chunks.last_mut().ok_or(Status::Internal)?;
        let place = chunk.place(size.saturating_add(guard), align);
        let (start, end) = place.ok_or(Status::Internal)?;
        if guard > 0 {
            chunk.fill(end - guard, guard, GUARD.1);
            holding.guards.push((nth - 1, end - guard));
        }
        chunk.used = end;
        // SAFETY: rule 2: inside of the block.
        Ok(unsafe { chunk.block.as_ptr().add(start) }.cast())
    }

    /// Gives back room that was made and not taken.
    pub(crate) fn undo(&mut self, region: RegionId) {
        let Ok(at) = self.find(region) else { return };
        let Some(holding) = self.holdings.get_mut(at) else { return };
        let _ = holding.chunks.pop_if(|last| last.used == 0);
        if holding.chunks.is_empty() {
            self.holdings.remove(at);
        }
    }

    fn find(&self, region: RegionId) -> Result<usize, usize> {
        self.holdings.binary_search_by(|holding| holding.region.cmp(&region))
    }

    /// Whether a closed region had storage that was not seen to yet.
    #[inline(always)]
    pub(crate) fn is_due(&self, reclaims: u64) -> bool {
        self.seen != reclaims
    }
}
