//! One entry per live timer, in one vector; freed entries are reused last in, first out.

use alloc::vec::Vec;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
/// The most entries a slab can index.
pub(super) const MAX_ENTRIES: usize = NIL as usize;
/// Buffers up to this capacity survive emptiness, so that a lone timer does not allocate each time.
pub(super) const KEEP: usize = 64;

/// A timer and where it waits.
///
/// In a slot's list `next` and `prev` are its neighbours; in a queue `next` is its position; in the
/// free list `next` is the entry freed before it.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) deadline: u64,
    pub(super) generation: u64,
    pub(super) next: u32,
    pub(super) prev: u32,
    pub(super) place: u16,
    /// `None` exactly when the entry is free.
    pub(super) token: Option<T>,
}

/// The entries.
#[derive(Debug)]
pub(super) struct Slab<T> {
    pub(super) entries: Vec<Entry<T>>,
    free: u32,
    live: usize,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Slab { entries: Vec::new(), free: NIL, live: 0 }
    }

    /// Live entries.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn at(&mut self, at: u32) -> &mut Entry<T> {
        &mut self.entries[at as usize]
    }

    /// Stores a timer that is not linked anywhere yet.
    pub(super) fn insert(&mut self, deadline: u64, generation: u64, token: T) -> u32 {
        let entry =
            Entry { deadline, generation, next: NIL, prev: NIL, place: 0, token: Some(token) };
        self.live += 1;
        if self.free == NIL {
            self.entries.push(entry);
            return self.entries.len() as u32 - 1;
        }
        let at = self.free;
        let freed = self.at(at);
        let next = freed.next;
        *freed = entry;
        self.free = next;
        at
    }

    /// Frees an entry that has been unlinked.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let free = self.free;
        let entry = self.at(at);
        entry.next = free;
        let token = entry.token.take();
        self.free = at;
        self.live -= 1;
        token
    }

    /// Gives the storage back; only when nothing lives.
    pub(super) fn release(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(KEEP);
        self.free = NIL;
    }

    /// How long the free list is, as far as it makes sense.
    pub(super) fn free_len(&self) -> usize {
        let mut at = self.free;
        let mut len = 0;
        while let Some(entry) = self.entries.get(at as usize)
            && entry.token.is_none()
            && len <= self.entries.len()
        {
            at = entry.next;
            len += 1;
        }
        len
    }
}
