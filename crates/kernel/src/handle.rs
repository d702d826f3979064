//! The 64-bit handle word: type tag, state snapshot, slot.
//!
//! ```text
//!  63        48 47        32 31                    0
//! +------------+------------+-----------------------+
//! |  type tag  | state mask |      arena index      |   + generation: u64
//! +------------+------------+-----------------------+
//! ```
//! The mask has one bit per state. It is a snapshot for O(1) admission checks; the slot has the
//! current state. Equality ignores the mask.

use crate::arena::Key;

named_enum! {
    /// The type of object that a handle names.
    pub enum Tag {
        /// A region.
        Region = 1,
        /// A task.
        Task = 2,
        /// An obligation.
        Obligation = 3,
        /// A cancel witness.
        CancelWitness = 4,
        /// A timer.
        Timer = 5,
        /// A channel.
        Channel = 6,
    }
}

/// An opaque handle: the word and the slot's generation.
///
/// ```
/// use asx_kernel::{arena::Key, handle::{Handle, Tag}};
/// let key = Key { generation: 9, index: 4 };
/// let open = Handle::new(Tag::Region, 1, key);
/// let closing = Handle::new(Tag::Region, 2, key);
/// assert_eq!(open, closing); // the state snapshot does not count
/// assert!(open.allows(1) && !closing.allows(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    word: u64,
    generation: u64,
}

impl Handle {
    /// Builds a handle.
    pub const fn new(tag: Tag, mask: u16, key: Key) -> Handle {
        let word = ((tag as u64) << 48) | ((mask as u64) << 32) | key.index as u64;
        Handle { word, generation: key.generation }
    }

    /// Creates a handle from raw parts that a foreign caller passes in. Nothing is checked.
    pub const fn from_raw(word: u64, generation: u64) -> Handle {
        Handle { word, generation }
    }

    /// Returns the raw word.
    pub const fn word(self) -> u64 {
        self.word
    }

    /// Returns the generation.
    pub const fn generation(self) -> u64 {
        self.generation
    }

    /// Returns the type tag, or `None` if it is unknown.
    pub fn tag(self) -> Option<Tag> {
        let raw = (self.word >> 48) as u16;
        Tag::ALL.into_iter().find(|tag| *tag as u16 == raw)
    }

    /// Returns the state snapshot.
    pub const fn mask(self) -> u16 {
        (self.word >> 32) as u16
    }

    /// Whether the snapshot is among the allowed states.
    pub const fn allows(self, allowed: u16) -> bool {
        self.mask() & allowed != 0
    }

    /// Returns the arena key.
    pub const fn key(self) -> Key {
        Key { generation: self.generation, index: self.word as u32 }
    }

    const fn identity(self) -> (u64, u64) {
        (self.word & !(0xFFFF << 32), self.generation)
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Handle) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Handle {}

impl core::hash::Hash for Handle {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_has_the_documented_layout() {
        let key = Key { generation: 5, index: 0xDEAD_BEEF };
        let h = Handle::new(Tag::Channel, 0xABCD, key);
        assert_eq!(h.word(), 0x0006_ABCD_DEAD_BEEF);
        assert_eq!((h.mask(), h.key(), h.generation()), (0xABCD, key, 5));
        for tag in Tag::ALL {
            assert_eq!(Handle::new(tag, 0, key).tag(), Some(tag));
        }
        assert_eq!(Handle::from_raw(h.word(), 5), h);
        assert_eq!(Handle::from_raw(7 << 48, 0).tag(), None);
        assert_eq!(Handle::from_raw(0, 0).tag(), None);
    }

    #[test]
    fn equality_and_hash_ignore_the_mask_only() {
        use core::hash::BuildHasher;
        let key = Key { generation: 5, index: 1 };
        let a = Handle::new(Tag::Task, 1, key);
        let b = Handle::new(Tag::Task, 2, key);
        let hasher = std::collections::hash_map::RandomState::new();
        assert_eq!((a, hasher.hash_one(a)), (b, hasher.hash_one(b)));
        assert_ne!(a, Handle::new(Tag::Region, 1, key));
        assert_ne!(a, Handle::new(Tag::Task, 1, Key { generation: 6, index: 1 }));
        assert_ne!(a, Handle::new(Tag::Task, 1, Key { generation: 5, index: 2 }));
        assert_ne!(hasher.hash_one(a), hasher.hash_one(Handle::new(Tag::Region, 1, key)));
        assert!(a.allows(3) && !a.allows(2) && !a.allows(0));
    }
}
