//! A generational arena: dense slots, stale keys detected.
//!
//! The generation is one counter per arena, raised at every insertion. It is therefore also the
//! object's creation ordinal (1, 2, 3, ..), which the journal uses as the object's id: it does not
//! depend on how slots are reused, so every host agrees on it.

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// The slot of a value, and the generation that identifies the value among the slot's tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Creation ordinal in the arena; never 0.
    pub generation: u64,
    /// Slot number.
    pub index: u32,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u64,
    value: Option<T>,
}

/// A growable arena. A key goes stale when its value is removed.
///
/// ```
/// use asx_kernel::arena::Arena;
/// let mut arena = Arena::new();
/// let a = arena.insert("a").unwrap();
/// assert_eq!(arena.get(a), Some(&"a"));
/// assert_eq!(arena.remove(a), Some("a"));
/// let b = arena.insert("b").unwrap(); // takes the same slot
/// assert_eq!((a.index, arena.get(a)), (b.index, None));
/// ```
#[derive(Clone, Debug)]
pub struct Arena<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    last_generation: u64,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena::new()
    }
}

impl<T> Arena<T> {
    /// Creates an empty arena.
    pub const fn new() -> Self {
        Arena { slots: Vec::new(), free: Vec::new(), last_generation: 0 }
    }

    /// Stores a value. Returns it if all 2^32 slots are in use.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let Ok(index) = u32::try_from(self.slots.len()) else { return Err(value) };
                self.slots.push(Slot { generation: 0, value: None });
                index
            }
        };
        self.last_generation += 1;
        let generation = self.last_generation;
        self.slots[index as usize] = Slot { generation, value: Some(value) };
        Ok(Key { generation, index })
    }

    /// Reserves room for `more` values and for their removal, so that neither allocates. Changes
    /// nothing on failure.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let fresh = more.saturating_sub(self.free.len());
        self.slots.try_reserve(fresh)?;
        let all = self.slots.len().saturating_add(fresh);
        self.free.try_reserve(all.saturating_sub(self.free.len()))
    }

    /// Returns the value, or `None` if the key is stale.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize);
        slot.filter(|slot| slot.generation == key.generation)?.value.as_ref()
    }

    /// Returns the value mutably, or `None` if the key is stale.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize);
        slot.filter(|slot| slot.generation == key.generation)?.value.as_mut()
    }

    /// Removes the value and frees its slot. Returns `None` if the key is stale.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize);
        let value = slot.filter(|slot| slot.generation == key.generation)?.value.take()?;
        self.free.push(key.index);
        Some(value)
    }

    /// Returns the key of the value in a slot.
    pub fn key_at(&self, index: u32) -> Option<Key> {
        let slot = self.slots.get(index as usize)?;
        slot.value.as_ref().map(|_| Key { generation: slot.generation, index })
    }

    /// Whether the key may have been issued: its slot and its generation exist or existed.
    pub fn was_issued(&self, key: Key) -> bool {
        let slot_exists = (key.index as usize) < self.slots.len();
        slot_exists && (1..=self.last_generation).contains(&key.generation)
    }

    getters! {
        /// The number of values.
        len(&self) -> usize = self.slots.len() - self.free.len();
        /// Whether the arena has no values.
        is_empty(&self) -> bool = self.len() == 0;
        /// The number of slots, used or free. Indices are less than this.
        slots(&self) -> usize = self.slots.len();
    }

    /// Iterates over all values in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let key = Key { generation: slot.generation, index: index as u32 };
            slot.value.as_ref().map(|value| (key, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn generations_are_creation_ordinals_in_any_slot() {
        let mut arena = Arena::default();
        let a = arena.insert('a').unwrap();
        let b = arena.insert('b').unwrap();
        assert_eq!((a.generation, b.generation), (1, 2));
        assert_eq!(arena.remove(a), Some('a'));
        assert_eq!(arena.remove(a), None);
        let c = arena.insert('c').unwrap();
        assert_eq!((c.generation, c.index), (3, a.index));
        assert_eq!((arena.get(a), arena.get(c)), (None, Some(&'c')));
        assert_eq!(arena.get_mut(a), None);
        assert_eq!(arena.remove(a), None);
        *arena.get_mut(c).unwrap() = 'd';
        assert_eq!(arena.iter().collect::<Vec<_>>(), [(c, &'d'), (b, &'b')]);
        assert_eq!(arena.len(), 2);
    }

    #[test]
    fn reserved_room_is_not_exceeded() {
        let mut arena: Arena<u64> = Arena::new();
        arena.try_reserve(5).unwrap();
        let room = (arena.slots.capacity(), arena.free.capacity());
        let keys: Vec<_> = (0..5).map(|n| arena.insert(n).unwrap()).collect();
        keys.iter().for_each(|key| _ = arena.remove(*key));
        assert_eq!((arena.slots.capacity(), arena.free.capacity()), room);
        assert_eq!(arena.slots(), 5);
        assert!(arena.try_reserve(usize::MAX).is_err());
        assert_eq!((arena.slots.capacity(), arena.free.capacity()), room);
    }

    #[test]
    fn missing_and_empty_slots_return_nothing() {
        let mut arena: Arena<u8> = Arena::new();
        let forged = Key { generation: 1, index: 9 };
        assert!(arena.is_empty());
        assert_eq!((arena.get(forged), arena.key_at(9)), (None, None));
        let a = arena.insert(1).unwrap();
        assert!(!arena.is_empty());
        assert_eq!(arena.key_at(0), Some(a));
        arena.remove(a);
        assert_eq!((arena.key_at(0), arena.len()), (None, 0));
        assert_eq!(arena.iter().count(), 0);
        let forged = |index, generation| arena.was_issued(Key { index, generation });
        assert!(arena.was_issued(a));
        assert!(!forged(0, 0) && !forged(0, 2) && !forged(1, 1));
    }
}
