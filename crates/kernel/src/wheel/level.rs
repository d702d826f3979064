//! The levels of the wheel: 256 lists of entries each, and bitmaps of those that are not empty.
//!
//! A list is a chain of chunks, each a line of cache. What is added goes to the last chunk, and
//! nothing is ever taken out of the middle: whoever reads a list asks for each [`Ref`] whether the
//! entry still is what it was. Chunks that are done with are used again, the last one first.

use alloc::vec::Vec;
use core::mem::replace;

use super::LEVELS;
use super::slab::{Body, NIL, Slab};

/// Slots of a level.
pub(super) const SLOTS: u64 = 256;
/// Slots of all levels.
pub(super) const PLACES: usize = LEVELS * SLOTS as usize;
/// References a chunk holds.
const FULL: u32 = 7;

/// An entry that waits in a slot, and the lower half of the generation it had then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ref {
    pub(super) at: u32,
    stamp: u32,
}

impl Ref {
    pub(super) fn new(at: u32, generation: u64) -> Ref {
        Ref { at, stamp: generation as u32 }
    }
}

/// A part of a list. An end of a list is chunk * 8 + references in it, or NIL.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Chunk {
    refs: [Ref; FULL as usize],
    /// The end of what comes before; of a free chunk, the one freed before.
    before: u32,
}

/// A list, and the earliest deadline put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// No later than any deadline in the list.
    pub(super) min: u64,
    /// The entry that had this deadline; it may be gone.
    pub(super) min_at: u32,
    pub(super) end: u32,
}

const EMPTY: Slot = Slot { min: u64::MAX, min_at: NIL, end: NIL };

/// The lists of all levels by place: level * 256 + slot.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) occupied: [u64; PLACES / 64],
    pub(super) slots: [Slot; PLACES],
    pub(super) chunks: Vec<Chunk>,
    free: u32,
}

impl Levels {
    pub(super) const fn new() -> Self {
        let (occupied, slots) = ([0; PLACES / 64], [EMPTY; PLACES]);
        Levels { occupied, slots, chunks: Vec::new(), free: NIL }
    }

    /// Steps from the slot of `unit` to the next occupied one of the level, going round.
    pub(super) fn distance(&self, level: usize, unit: u64) -> Option<u64> {
        let start = unit % SLOTS;
        let (word, bit) = ((start / 64) as usize, start % 64);
        let here = self.occupied[level * 4 + word] >> bit;
        if here != 0 {
            return Some(u64::from(here.trailing_zeros()));
        }
        (1..=4).find_map(|i| {
            let bits = self.occupied[level * 4 + (word + i) % 4];
            (bits != 0).then(|| 64 * i as u64 - bit + u64::from(bits.trailing_zeros()))
        })
    }

    /// Puts an entry into a slot.
    #[inline]
    pub(super) fn push(&mut self, place: usize, entry: Ref, deadline: u64) {
        if self.slots[place].end % 8 == FULL {
            self.grow(place);
        }
        let slot = &mut self.slots[place];
        self.chunks[(slot.end / 8) as usize].refs[(slot.end % 8) as usize] = entry;
        slot.end += 1;
        if deadline < slot.min {
            (slot.min, slot.min_at) = (deadline, entry.at);
        }
    }

    /// Adds a chunk to a slot without any, or whose last one is full.
    fn grow(&mut self, place: usize) {
        self.occupied[place / 64] |= 1 << (place % 64);
        let chunk = match self.chunks.get(self.free as usize) {
            Some(chunk) => replace(&mut self.free, chunk.before),
            None => {
                self.chunks.push(Chunk { refs: Default::default(), before: NIL });
                self.chunks.len() as u32 - 1
            }
        };
        let end = replace(&mut self.slots[place].end, chunk * 8);
        self.chunks[chunk as usize].before = end;
    }

    /// Empties a slot: the end of the list it had, which is to be [`cut`](Levels::cut) to pieces.
    pub(super) fn take(&mut self, place: usize) -> u32 {
        self.occupied[place / 64] &= !(1 << (place % 64));
        replace(&mut self.slots[place], EMPTY).end
    }

    /// Takes the last chunk off a list: what was in it, and how many of these count.
    pub(super) fn cut(&mut self, end: &mut u32) -> Option<([Ref; FULL as usize], usize)> {
        let (count, at) = (*end % 8, *end / 8);
        let chunk = self.chunks.get_mut(at as usize)?;
        *end = replace(&mut chunk.before, replace(&mut self.free, at));
        Some((chunk.refs, count as usize))
    }

    /// Empties all slots.
    pub(super) fn clear(&mut self) {
        for (word, slots) in self.occupied.iter_mut().zip(self.slots.chunks_mut(64)) {
            if replace(word, 0) != 0 {
                slots.fill(EMPTY);
            }
        }
        self.chunks.clear();
        self.free = NIL;
    }

    /// The earliest deadline of a slot and whose it is.
    ///
    /// What the slot remembers is good if some live timer has that deadline: were it a timer that
    /// came to the entry later and waits elsewhere, the answer over all slots is still right.
    pub(super) fn min<T>(&self, place: usize, slab: &Slab<T>) -> Option<(u64, u32)> {
        let slot = self.slots[place];
        if slab.get(slot.min_at).is_some_and(|body| body.deadline == slot.min) {
            return Some((slot.min, slot.min_at));
        }
        self.walk(place, slab).min()
    }

    /// The live entries of a slot after their deadlines.
    pub(super) fn walk<T>(&self, place: usize, slab: &Slab<T>) -> impl Iterator<Item = (u64, u32)> {
        self.refs(place).filter_map(|entry| Some((slab.named(entry)?.deadline, entry.at)))
    }

    /// What a slot holds, dead or alive.
    pub(super) fn refs(&self, place: usize) -> impl Iterator<Item = Ref> {
        let mut end = self.slots[place].end;
        let chunks = core::iter::from_fn(move || {
            let (chunk, count) = (self.chunks.get((end / 8) as usize)?, end % 8);
            end = chunk.before;
            Some(&chunk.refs[..count as usize])
        });
        chunks.flatten().copied()
    }
}

impl<T> Slab<T> {
    /// The live entry a slot refers to.
    #[inline]
    pub(super) fn named(&self, entry: Ref) -> Option<&Body<T>> {
        self.get(entry.at).filter(|body| body.generation as u32 == entry.stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_occupied_slot_is_found_going_round() {
        for slots in [&[0usize][..], &[63], &[64], &[255], &[3, 66, 200], &[127, 128]] {
            for level in 0..LEVELS {
                let mut levels = Levels::new();
                let places = slots.iter().map(|slot| level * 256 + slot);
                places.for_each(|place| levels.occupied[place / 64] |= 1 << (place % 64));
                for start in 0..600 {
                    let steps = (0..256).find(|n| slots.contains(&((start + n) % 256)));
                    assert_eq!(levels.distance(level, start as u64), steps.map(|n| n as u64));
                    assert_eq!(levels.distance((level + 1) % LEVELS, start as u64), None);
                }
            }
        }
    }
}
