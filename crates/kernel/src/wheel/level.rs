//! The levels of the wheel: 256 lists of entries each, and bitmaps of the non-empty lists.
//!
//! References are appended to a list and never removed from its middle. A traversal checks for each
//! [`Ref`] whether the entry is still the same timer.

use alloc::vec::Vec;
use core::mem::{replace, take};

use super::LEVELS;
use super::slab::{NIL, Slab};

/// The number of slots of a level.
pub(super) const SLOTS: u64 = 256;
/// The number of slots of all levels.
pub(super) const PLACES: usize = LEVELS * SLOTS as usize;

/// An entry that waits in a slot, and the lower half of its generation at that time.
pub(super) type Ref = (u32, u32);

/// A list, and a lower bound of its deadlines.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// At most the earliest deadline in the list.
    pub(super) min: u64,
    /// The entry that had this deadline; it may have been freed.
    pub(super) min_at: u32,
    /// The list, including dead references.
    pub(super) refs: Vec<Ref>,
}

const EMPTY: Slot = Slot { min: u64::MAX, min_at: NIL, refs: Vec::new() };

/// The lists of all levels, at the index level * 256 + slot.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) occupied: [u64; PLACES / 64],
    pub(super) slots: [Slot; PLACES],
}

impl Levels {
    pub(super) const fn new() -> Self {
        Levels { occupied: [0; PLACES / 64], slots: [EMPTY; PLACES] }
    }

    /// Returns the cyclic distance from the slot of `unit` to the next occupied one of the level.
    pub(super) fn distance(&self, level: usize, unit: u64) -> Option<u64> {
        let start = unit % SLOTS;
        let word = (start / 64) as usize;
        let bit = start % 64;
        (0..=4).find_map(|i| {
            let ahead = if i == 0 { u64::MAX << bit } else { u64::MAX };
            let bits = self.occupied[level * 4 + (word + i) % 4] & ahead;
            (bits != 0).then(|| 64 * i as u64 + u64::from(bits.trailing_zeros()) - bit)
        })
    }

    /// Adds an entry to a slot.
    #[inline]
    pub(super) fn push(&mut self, place: usize, at: u32, deadline: u64, generation: u64) {
        let slot = &mut self.slots[place];
        if slot.refs.is_empty() {
            self.occupied[place / 64] |= 1 << (place % 64);
        }
        slot.refs.push((at, generation as u32));
        if deadline < slot.min {
            (slot.min, slot.min_at) = (deadline, at);
        }
    }

    /// Removes and returns the list of a slot.
    pub(super) fn take(&mut self, place: usize) -> Vec<Ref> {
        self.occupied[place / 64] &= !(1 << (place % 64));
        self.slots[place].min = u64::MAX;
        take(&mut self.slots[place].refs)
    }

    /// Empties all slots. Lists with memory for more than `keep` references release it.
    pub(super) fn clear(&mut self, keep: usize) {
        for (word, slots) in self.occupied.iter_mut().zip(self.slots.chunks_mut(64)) {
            if replace(word, 0) != 0 {
                slots.iter_mut().for_each(|slot| {
                    slot.min = u64::MAX;
                    slot.refs.clear();
                    if slot.refs.capacity() > keep {
                        slot.refs = Vec::new();
                    }
                });
            }
        }
    }

    /// Returns the earliest deadline of a slot, and its entry.
    ///
    /// The cached minimum is valid if some live timer has that deadline. If this is a timer that
    /// reused the entry and waits elsewhere, the minimum over all slots is still right.
    pub(super) fn min<T>(&self, place: usize, slab: &Slab<T>) -> Option<(u64, u32)> {
        let slot = &self.slots[place];
        if slab.get(slot.min_at).is_some_and(|body| body.deadline == slot.min) {
            return Some((slot.min, slot.min_at));
        }
        self.walk(place, slab).min()
    }

    /// Iterates over the live entries of a slot, with their deadlines.
    pub(super) fn walk<T>(&self, place: usize, slab: &Slab<T>) -> impl Iterator<Item = (u64, u32)> {
        let refs = self.slots[place].refs.iter();
        refs.filter_map(|entry| Some((slab.named(*entry)?.deadline, entry.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_occupied_slot_is_found_cyclically() {
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
