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

use crate::abi::{AsxRegion, AsxTask};
use crate::ghost::ASX_GHOST_STORAGE;
use crate::guard::{self, AsxRuntime, Out};
use crate::state::Core;
use alloc::alloc::{alloc_zeroed, dealloc};
use alloc::vec::Vec;
use asx_kernel::ids::RegionId;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::alloc::Layout;
use core::ffi::c_void;
use core::mem::{replace, take};
use core::ptr::NonNull;

/// The largest alignment of a region's memory.
pub const ASX_ALIGN_MOST: usize = 4096;

/// What every chunk is aligned to.
const ALIGN: usize = 16;
/// The first chunk of a region, and the largest that is made though less would do.
const CHUNK: (usize, usize) = (256, 4096);
/// Guard bytes behind a piece, and what they are.
const GUARD: (usize, u8) = (16, 0xFD);
/// What memory is overwritten with when its region is Closed.
const POISON: u8 = 0xDD;
/// Bytes that are kept to see who still writes there.
const MOST_KEPT: usize = 64 * 1024;

/// A block of memory and how much of it is taken.
struct Chunk {
    block: NonNull<u8>,
    size: usize,
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
    fn is_all(&self, at: usize, size: usize, byte: u8) -> bool {
        // SAFETY: rules 1 and 3: read byte by byte, inside of the block.
        (at..at + size).all(|at| unsafe { self.block.as_ptr().add(at).read() } == byte)
    }

    fn fill(&mut self, at: usize, size: usize, byte: u8) {
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
struct Holding {
    region: RegionId,
    chunks: Vec<Chunk>,
    /// Where guards are: the chunk, and their place in it.
    guards: Vec<(usize, usize)>,
}

impl Holding {
    /// How many guards were overwritten.
    fn broken_guards(&self) -> usize {
        let whole = |(chunk, at): &&(usize, usize)| {
            self.chunks.get(*chunk).is_none_or(|chunk| chunk.is_all(*at, GUARD.0, GUARD.1))
        };
        self.guards.len() - self.guards.iter().filter(whole).count()
    }

    fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.size).sum()
    }
}

/// The memory of all regions.
#[derive(Default)]
pub(crate) struct Storage {
    /// In the order of their ids.
    holdings: Vec<Holding>,
    /// Overwritten, and to be looked at before they are freed.
    kept: Vec<Holding>,
    /// Closed regions that had storage, as far as they were seen to.
    seen: u64,
}

impl Storage {
    /// Makes room for a piece, and takes nothing yet. Whether that took a chunk.
    fn reserve(
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
    fn take(
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
    fn undo(&mut self, region: RegionId) {
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

impl Core {
    /// Gives a region memory; nothing has changed if it is refused.
    fn region_alloc(
        &mut self,
        rt: &AsxRuntime,
        region: RegionId,
        size: usize,
        align: usize,
    ) -> Answer<*mut c_void> {
        if self.world.region_handle(region)?.allows(RegionState::Closed.mask()) {
            return Err(Status::RegionClosed);
        }
        let guard = if self.ghosts.is_on() { GUARD.0 } else { 0 };
        let storage = &mut self.storage;
        let bytes = size.checked_next_multiple_of(align).ok_or(Status::ResourceExhausted)?;
        let made = rt.reserve.strictly(|| storage.reserve(region, size, align, guard));
        // What lives must still be able to end, and what channels were promised be theirs.
        let promised = self.stores.promised();
        let left =
            made.and_then(|more| if more { self.make_room(rt, 0, promised) } else { Ok(()) });
        let counted = left.and_then(|()| self.world.use_storage(region, bytes));
        counted.inspect_err(|_| self.storage.undo(region))?;
        self.storage.take(region, size, align, guard)
    }

    /// Frees the memory of regions that are Closed. Whether misuse was noticed.
    pub(crate) fn reclaim(&mut self) -> bool {
        let reclaims = self.world.reclaims();
        if !self.storage.is_due(reclaims) {
            return false;
        }
        self.storage.seen = reclaims;
        let closed = |core: &Core, region| {
            let handle = core.world.region_handle(region);
            handle.map_or(true, |handle| handle.allows(RegionState::Closed.mask()))
        };
        let mut at = 0;
        while let Some(region) = self.storage.holdings.get(at).map(|holding| holding.region) {
            if closed(self, region) {
                let holding = self.storage.holdings.remove(at);
                self.retire(holding);
            } else {
                at += 1;
            }
        }
        self.ghosts.reports() > 0
    }

    /// A region's memory is not the program's any more.
    fn retire(&mut self, mut holding: Holding) {
        if !self.ghosts.is_on() {
            return;
        }
        self.note_storage(holding.broken_guards(), holding.region);
        holding.guards = Vec::new();
        for chunk in &mut holding.chunks {
            chunk.fill(0, chunk.size, POISON);
        }
        let kept = &mut self.storage.kept;
        if self.keeps_storage && kept.len() < kept.capacity() {
            kept.push(holding);
            self.look_at_kept(MOST_KEPT);
        }
    }

    /// Looks whether anybody has written into memory of Closed regions, and keeps so much of it.
    pub(crate) fn look_at_kept(&mut self, most: usize) {
        let mut kept = take(&mut self.storage.kept);
        for holding in &mut kept {
            let region = holding.region;
            let touched = |chunk: &&mut Chunk| !chunk.is_all(0, chunk.size, POISON);
            let touched: usize = holding.chunks.iter_mut().filter(touched).count();
            self.note_storage(touched, region);
            // Told once.
            holding.chunks.iter_mut().for_each(|chunk| chunk.fill(0, chunk.size, POISON));
        }
        let mut bytes: usize = kept.iter().map(Holding::bytes).sum();
        while bytes > most && !kept.is_empty() {
            bytes -= kept.remove(0).bytes();
        }
        let _ = replace(&mut self.storage.kept, kept);
    }

    /// The runtime ends: looks at everything that is left.
    pub(crate) fn end_storage(&mut self) {
        let all = take(&mut self.storage.holdings);
        for holding in all {
            self.note_storage(holding.broken_guards(), holding.region);
        }
        self.look_at_kept(0);
    }

    fn note_storage(&mut self, times: usize, region: RegionId) {
        let AsxRegion { bits, generation } = self.region_handle(region);
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        self.ghosts.note_many(times, ASX_GHOST_STORAGE, 0, (bits, generation), AsxTask::NONE);
    }
}

export! {
    /// Memory of a region's own: `size` bytes of zeros, aligned to `align`. It is the program's
    /// until the region is Closed, and all of it is given back then, after the drop callbacks of
    /// what was inside; nothing is freed alone. Counts as asx_region_use_storage does, rounded up
    /// to the alignment. With ASX_FLAG_GHOSTS it is overwritten when it is given back, and whoever
    /// writes behind its end, or into it afterwards, is reported (ASX_GHOST_STORAGE).
    ///
    /// Pre: `size` is not 0; `align` is a power of two, at most ASX_ALIGN_MOST; `out` is writable.
    /// Thread: the owner's. Owns: the memory is the region's. Answers: ASX_OK;
    /// ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_REGION_CLOSED; ASX_RESOURCE_EXHAUSTED when the
    /// memory limit, the pool or the allocator has no more; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_region_alloc(
        rt,
        region: AsxRegion,
        size: usize,
        align: usize,
        out: *mut *mut c_void,
    ) {
        let id = region.id()?;
        let () = guard::ensure(size > 0)?;
        let () = guard::ensure(align.is_power_of_two() && align <= ASX_ALIGN_MOST)?;
        let out = Out::new(out)?;
        |core| {
            let made = core.region_alloc(AsxRuntime::of(rt)?, id, size, align);
            if let Err(status @ (Status::RegionClosed | Status::StaleHandle)) = made {
                let handle = (region.bits, region.generation);
                let by = core.current_handle();
                core.ghosts.note(ASX_GHOST_STORAGE, status.number(), handle, by);
            }
            out.set(made?);
            Ok(())
        }
    }
}
