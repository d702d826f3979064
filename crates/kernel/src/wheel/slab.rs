//! One entry per live timer. Freed entries are reused in LIFO order.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use super::level::Ref;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
/// The maximal number of entries: fewer than half the range of generations, so that no two live
/// timers have the same half of a generation.
pub(super) const MAX_ENTRIES: usize = 1 << 31;
/// Buffers up to this capacity survive emptiness, so that a lone timer does not allocate each time.
pub(super) const KEEP: usize = 64;
/// A wheel with at most this limit keeps all its buffers: their size is bounded, and to shrink and
/// grow them again leaves an allocator with small pieces.
pub(super) const SMALL_LIMIT: usize = 4096;

/// The data of a timer.
#[derive(Debug)]
pub(super) struct Body<T> {
    pub(super) deadline: u64,
    pub(super) generation: u64,
    /// `None` exactly when the entry is free.
    pub(super) token: Option<T>,
}

/// The entries.
#[derive(Debug)]
pub(super) struct Slab<T> {
    pub(super) bodies: Vec<Body<T>>,
    pub(super) free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Slab { bodies: Vec::new(), free: Vec::new() }
    }

    /// Returns the live entry at an index.
    pub(super) fn get(&self, at: u32) -> Option<&Body<T>> {
        self.bodies.get(at as usize).filter(|body| body.token.is_some())
    }

    /// Returns the live entry of a reference in a slot.
    pub(super) fn named(&self, (at, stamp): Ref) -> Option<&Body<T>> {
        self.get(at).filter(|body| body.generation as u32 == stamp)
    }

    /// Reserves room for this many more entries, and for freeing all of them.
    pub(super) fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let fresh = more.saturating_sub(self.free.len());
        self.bodies.try_reserve(fresh)?;
        self.free.try_reserve((self.bodies.len() + fresh).saturating_sub(self.free.len()))
    }

    /// Stores a timer in an entry.
    #[inline]
    pub(super) fn insert(&mut self, body: Body<T>) -> u32 {
        if let Some(at) = self.free.pop() {
            self.bodies[at as usize] = body;
            return at;
        }
        self.bodies.push(body);
        self.bodies.len() as u32 - 1
    }

    /// Frees an entry. Returns its token and deadline if it was live.
    #[inline]
    pub(super) fn remove(&mut self, at: u32) -> Option<(T, u64)> {
        let body = self.bodies.get_mut(at as usize)?;
        let token = body.token.take()?;
        self.free.push(at);
        Some((token, body.deadline))
    }

    /// Releases the storage but for `room` entries. Only when nothing lives.
    pub(super) fn release(&mut self, room: usize) {
        self.bodies.clear();
        self.bodies.shrink_to(room);
        self.free.clear();
        self.free.shrink_to(room);
    }
}
