//! The memory of regions, as programs ask for it; how it is kept is in `holdings`.

use crate::abi::{AsxRegionId, AsxTaskId};
use crate::error::Why;
use crate::ghost::ASX_GHOST_STORAGE;
use crate::guard::{self, Out, Runtime};
use crate::holdings::{Chunk, GUARD, Holding, MOST_KEPT, POISON};
use crate::state::Core;
use alloc::vec::Vec;
use asx_kernel::ids::RegionId;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ffi::c_void;
use core::mem::{replace, take};

/// The largest alignment of a region's memory.
pub const ASX_ALIGN_MOST: usize = 4096;

impl Core {
    /// Gives a region memory; nothing has changed if it is refused.
    fn region_alloc(
        &mut self,
        rt: &Runtime,
        region: RegionId,
        size: usize,
        align: usize,
    ) -> Answer<*mut c_void> {
        if self.world.region_handle(region)?.allows(RegionState::Closed.mask()) {
            return Err(Status::RegionClosed);
        }
        if isize::try_from(size.saturating_add(align)).is_err() {
            self.blamed = Some(("size", Why::Overflow));
            return Err(Status::ResourceExhausted);
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
        let AsxRegionId { bits, generation } = self.region_handle(region);
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        self.ghosts.note_many(times, ASX_GHOST_STORAGE, 0, (bits, generation), AsxTaskId::NONE);
    }
}

export! {
    /// Allocates `size` zeroed bytes, aligned to `align`, that live as long as the region. They are
    /// freed all at once when the region is Closed, after the drop callbacks of everything inside.
    /// They count as with asx_region_use_storage, rounded up to the alignment. With ASX_FLAG_GHOSTS
    /// freed memory is overwritten, and writes behind its end or after it was freed are reported
    /// (ASX_GHOST_STORAGE).
    ///
    /// - Parameters: `size` is not 0; `align` is a power of two, at most ASX_ALIGN_MOST; `out` is
    ///   writable.
    /// - Ownership: the memory is the region's.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_CLOSED;
    ///   ASX_E_RESOURCE_EXHAUSTED when the memory limit, the pool or the allocator has no more;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_alloc(
        rt,
        region: AsxRegionId,
        size: usize,
        align: usize,
        out: *mut *mut c_void,
    ) {
        let id = region.id()?;
        let () = guard::ensure(size > 0)?;
        let () = guard::ensure(align.is_power_of_two() && align <= ASX_ALIGN_MOST)?;
        let out = Out::new(out)?;
        |core| {
            let made = core.region_alloc(Runtime::of(rt)?, id, size, align);
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
