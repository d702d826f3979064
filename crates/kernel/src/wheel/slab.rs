//! One entry per live timer; freed entries are reused last in, first out.

use alloc::vec::Vec;

/// No entry.
pub(super) const NIL: u32 = u32::MAX;
/// The most entries there can be, so that the references to them (see `level`), up to three for
/// each, can be counted in 32 bits.
pub(super) const MAX_ENTRIES: usize = 1 << 29;
/// Buffers up to this capacity survive emptiness, so that a lone timer does not allocate each time.
pub(super) const KEEP: usize = 64;

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
    pub(super) free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Slab { bodies: Vec::new(), free: Vec::new() }
    }

    /// How many live.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.bodies.len() - self.free.len()
    }

    /// The live entry at an index.
    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&Body<T>> {
        self.bodies.get(at as usize).filter(|body| body.token.is_some())
    }

    /// Makes an entry for a timer.
    #[inline]
    pub(super) fn insert(&mut self, body: Body<T>) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.bodies[at as usize] = body;
                at
            }
            None => {
                self.bodies.push(body);
                self.bodies.len() as u32 - 1
            }
        }
    }

    /// Frees an entry if it lives and is of this generation: its token and deadline.
    #[inline]
    pub(super) fn remove(&mut self, at: usize, generation: u64) -> Option<(T, u64)> {
        let body = self.bodies.get_mut(at).filter(|body| body.generation == generation)?;
        let token = body.token.take()?;
        self.free.push(at as u32);
        Some((token, body.deadline))
    }

    /// Gives the storage back; only when nothing lives.
    pub(super) fn release(&mut self) {
        self.bodies.clear();
        self.bodies.shrink_to(KEEP);
        self.free.clear();
        self.free.shrink_to(KEEP);
    }
}
