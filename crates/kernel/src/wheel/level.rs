//! The levels of the wheel: 256 lists of entries each, and bitmaps of those that are not empty.

use super::LEVELS;
use super::slab::{Link, NIL, Slab};

/// Slots of a level.
pub(super) const SLOTS: u64 = 256;
/// Slots of all levels.
pub(super) const PLACES: usize = LEVELS * SLOTS as usize;

/// A list, and the earliest deadline put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// No later than any deadline in the list.
    pub(super) min: u64,
    /// The entry that had this deadline; it may be gone.
    pub(super) min_at: u32,
    pub(super) head: u32,
}

const EMPTY: Slot = Slot { min: u64::MAX, min_at: NIL, head: NIL };

/// The lists of all levels by place: level * 256 + slot.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) occupied: [u64; PLACES / 64],
    pub(super) slots: [Slot; PLACES],
}

impl Levels {
    pub(super) const fn new() -> Self {
        Levels { occupied: [0; PLACES / 64], slots: [EMPTY; PLACES] }
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

    /// Puts an entry in front of a slot's list.
    #[inline]
    pub(super) fn push<T>(&mut self, place: usize, at: u32, deadline: u64, slab: &mut Slab<T>) {
        let list = &mut self.slots[place];
        slab.set_link(at, Link::anchored(place as u32, list.head));
        match slab.link_mut(list.head) {
            Some(first) => first.prev = at,
            None => self.occupied[place / 64] |= 1 << (place % 64),
        }
        list.head = at;
        if deadline < list.min {
            (list.min, list.min_at) = (deadline, at);
        }
    }

    /// Empties a slot: the first entry of the list it had.
    pub(super) fn take(&mut self, place: usize) -> u32 {
        self.occupied[place / 64] &= !(1 << (place % 64));
        core::mem::replace(&mut self.slots[place], EMPTY).head
    }

    /// The earliest deadline of a slot and whose it is.
    ///
    /// What the slot remembers is good if some live timer has that deadline: were it a timer that
    /// came to the entry later and waits elsewhere, the answer over all slots is still right.
    pub(super) fn min<T>(&self, place: usize, slab: &Slab<T>) -> (u64, u32) {
        let list = self.slots[place];
        if slab.get(list.min_at).is_some_and(|body| body.deadline == list.min) {
            return (list.min, list.min_at);
        }
        self.walk(place, slab).min().unwrap_or((u64::MAX, NIL))
    }

    /// The entries of a slot after their deadlines.
    pub(super) fn walk<T>(&self, place: usize, slab: &Slab<T>) -> impl Iterator<Item = (u64, u32)> {
        let mut at = self.slots[place].head;
        core::iter::from_fn(move || {
            let found = (slab.get(at)?.deadline, at);
            at = slab.link(at).next;
            Some(found)
        })
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
