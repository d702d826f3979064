//! One entry per live timer; freed entries are reused last in, first out.
//!
//! An entry is split in two: its links are small and touched when a neighbour comes or goes, so
//! they lie close together in a vector of their own.

use alloc::vec::Vec;
use core::mem::replace;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
/// From here on `Link::prev` is not an entry but says where the timer waits (see `place`).
pub(super) const ANCHOR: u32 = 0xFFFF_0000;
/// The most entries a slab can index.
pub(super) const MAX_ENTRIES: usize = ANCHOR as usize;
/// Buffers up to this capacity survive emptiness, so that a lone timer does not allocate each time.
pub(super) const KEEP: usize = 64;

/// Where a timer is linked.
///
/// In a slot's list: the neighbours; `prev` of the first is `ANCHOR` plus the list's place. In a
/// queue: the position and `ANCHOR` plus the queue's place. When free: the entry freed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) next: u32,
    pub(super) prev: u32,
}

impl Link {
    /// The first of a list, or the member of a queue at position `next`.
    pub(super) const fn anchored(place: u32, next: u32) -> Link {
        Link { next, prev: ANCHOR + place }
    }

    /// The list this is the first of, or the queue it is in.
    pub(super) const fn place(self) -> Option<u32> {
        self.prev.checked_sub(ANCHOR)
    }
}

/// What a timer is.
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
    links: Vec<Link>,
    free: u32,
    /// How many live.
    pub(super) live: usize,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Slab { bodies: Vec::new(), links: Vec::new(), free: NIL, live: 0 }
    }

    /// The live entry at an index.
    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&Body<T>> {
        self.bodies.get(at as usize).filter(|body| body.token.is_some())
    }

    pub(super) fn link(&self, at: u32) -> Link {
        self.links[at as usize]
    }

    /// The link of an entry; nothing for NIL and for an anchor, which are beyond all entries.
    pub(super) fn link_mut(&mut self, at: u32) -> Option<&mut Link> {
        self.links.get_mut(at as usize)
    }

    /// Links an entry.
    #[inline]
    pub(super) fn set_link(&mut self, at: u32, link: Link) {
        self.links[at as usize] = link;
    }

    /// Notes where the members of a queue stand.
    pub(super) fn moved(&mut self, queue: u32) -> impl FnMut(u32, u32) {
        move |at, position| self.set_link(at, Link::anchored(queue, position))
    }

    /// An entry for a timer; the caller links and fills it.
    #[inline]
    pub(super) fn reserve(&mut self) -> u32 {
        self.live += 1;
        let Some(link) = self.links.get(self.free as usize) else { return self.grow() };
        replace(&mut self.free, link.next)
    }

    #[inline(never)]
    fn grow(&mut self) -> u32 {
        self.bodies.push(Body { deadline: 0, generation: 0, token: None });
        self.links.push(Link { next: NIL, prev: NIL });
        self.links.len() as u32 - 1
    }

    /// Frees an entry if it lives and is of this generation: its token and how it was linked.
    #[inline]
    pub(super) fn remove(&mut self, at: usize, generation: u64) -> Option<(T, Link)> {
        let body = self.bodies.get_mut(at).filter(|body| body.generation == generation)?;
        let token = body.token.take()?;
        self.live -= 1;
        let freed = Link { next: replace(&mut self.free, at as u32), prev: NIL };
        Some((token, replace(&mut self.links[at], freed)))
    }

    /// Gives the storage back; only when nothing lives.
    pub(super) fn release(&mut self) {
        self.bodies.clear();
        self.bodies.shrink_to(KEEP);
        self.links.clear();
        self.links.shrink_to(KEEP);
        self.free = NIL;
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bodies.capacity().max(self.links.capacity())
    }

    /// How long the free list is, as far as it is well formed.
    pub(super) fn free_len(&self) -> usize {
        let dead = |at: u32| self.bodies.get(at as usize).is_some_and(|b| b.token.is_none());
        let next = |at: &u32| Some(self.link(*at).next).filter(|at| dead(*at));
        let first = Some(self.free).filter(|at| dead(*at));
        core::iter::successors(first, next).take(self.links.len()).count()
    }
}
