//! One level of the wheel: 256 lists of entries and a bitmap of those that are not empty.

use super::slab::{NIL, Slab};

/// Slots of a level.
pub(super) const SLOTS: u64 = 256;

/// A list, and the earliest deadline in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// [`EMPTY`], [`UNKNOWN`] or the earliest deadline.
    pub(super) min: u64,
    pub(super) head: u32,
}

/// `Slot::min` of an empty list.
pub(super) const EMPTY: u64 = u64::MAX;
/// `Slot::min` after the earliest entry has left; no waiting timer has this deadline.
pub(super) const UNKNOWN: u64 = 0;

/// The lists of one level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) occupied: [u64; 4],
    pub(super) slots: [Slot; SLOTS as usize],
}

impl Level {
    pub(super) const fn new() -> Self {
        Level { occupied: [0; 4], slots: [Slot { min: EMPTY, head: NIL }; SLOTS as usize] }
    }

    /// Steps from the slot of `unit` to the next occupied one, going round.
    pub(super) fn distance(&self, unit: u64) -> Option<u64> {
        let start = unit % SLOTS;
        let (word, bit) = ((start / 64) as usize, start % 64);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return Some(u64::from(here.trailing_zeros()));
        }
        (1..=4).find_map(|i| {
            let bits = self.occupied[(word + i) % 4];
            (bits != 0).then(|| 64 * i as u64 - bit + u64::from(bits.trailing_zeros()))
        })
    }

    /// Puts an entry in front of a slot's list.
    pub(super) fn push<T>(&mut self, slot: usize, at: u32, slab: &mut Slab<T>) {
        let list = &mut self.slots[slot];
        let entry = slab.at(at);
        entry.next = list.head;
        entry.prev = NIL;
        list.min = list.min.min(entry.deadline);
        if list.head == NIL {
            self.occupied[slot / 64] |= 1 << (slot % 64);
        } else {
            slab.at(list.head).prev = at;
        }
        list.head = at;
    }

    /// Takes an entry out of a slot's list.
    pub(super) fn unlink<T>(&mut self, slot: usize, at: u32, slab: &mut Slab<T>) {
        let entry = slab.at(at);
        let (deadline, next, prev) = (entry.deadline, entry.next, entry.prev);
        if next != NIL {
            slab.at(next).prev = prev;
        }
        if prev != NIL {
            slab.at(prev).next = next;
        } else if next != NIL {
            self.slots[slot].head = next;
        } else {
            self.take(slot);
            return;
        }
        let list = &mut self.slots[slot];
        if deadline == list.min {
            list.min = UNKNOWN;
        }
    }

    /// Empties a slot: the first entry of the list it had.
    pub(super) fn take(&mut self, slot: usize) -> u32 {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        core::mem::replace(&mut self.slots[slot], Slot { min: EMPTY, head: NIL }).head
    }

    /// The earliest deadline of a slot.
    pub(super) fn min<T>(&self, slot: usize, slab: &Slab<T>) -> u64 {
        let list = self.slots[slot];
        if list.min != UNKNOWN {
            return list.min;
        }
        self.walk(slot, slab).map(|(_, deadline)| deadline).min().unwrap_or(EMPTY)
    }

    /// The entries of a slot with their deadlines.
    pub(super) fn walk<T>(&self, slot: usize, slab: &Slab<T>) -> impl Iterator<Item = (u32, u64)> {
        let mut at = self.slots[slot].head;
        core::iter::from_fn(move || {
            let entry = slab.entries.get(at as usize)?;
            let found = (at, entry.deadline);
            at = entry.next;
            Some(found)
        })
    }
}
