//! Typed ids: an arena [`Key`] with the type of its object.

use crate::arena::Key;
use crate::handle::{Handle, Tag};
use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $tag:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Key);

        impl $name {
            /// Returns the creation ordinal, which is the id in the journal.
            pub const fn ordinal(self) -> u64 {
                self.0.generation
            }

            /// Returns the opaque handle for this id, with a snapshot of the state mask.
            pub const fn handle(self, mask: u16) -> Handle {
                Handle::new(Tag::$tag, mask, self.0)
            }

            /// Returns the id of a handle, if the handle has this type.
            pub fn from_handle(handle: Handle) -> Option<Self> {
                (handle.tag() == Some(Tag::$tag)).then(|| $name(handle.key()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0.generation)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(/** A region. */ RegionId, Region, "r");
id!(/** A task. */ TaskId, Task, "t");
id!(/** An obligation. */ ObligationId, Obligation, "o");
id!(/** A channel. */ ChannelId, Channel, "c");

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn ids_print_their_ordinal_and_survive_a_handle() {
        let id = TaskId(Key { generation: 7, index: 3 });
        assert_eq!(format!("{id} {id:?} {}", id.ordinal()), "t7 t7 7");
        assert_eq!(TaskId::from_handle(id.handle(1)), Some(id));
        assert_eq!(RegionId::from_handle(id.handle(1)), None);
        let region = RegionId(Key { generation: 2, index: 0 });
        assert_eq!(format!("{region}"), "r2");
    }
}
