//! The audit build (`--cfg asx_audit`): who owns each reference to a task or region is written down
//! and compared with what is counted, and freed memory is kept and watched.
//!
//! Without the flag all of this is nothing: types without size and empty functions.
//!
//! # Rules
//! 1. *Books*. Each task has books: how many references each kind of `Owner` has. A reference is
//!    entered after the step of the word that counts it, and struck off before the step that gives
//!    it up; one that goes from one owner to another is moved. So at every moment the books have at
//!    most as many references as the word counts, whatever other threads do meanwhile. Regions
//!    count references the same way, by `RegionRefOwner`.
//! 2. *Comparison*. Books change under a lock. While it is held their sum does not change, and by
//!    rule 1 the word counts at least that, whenever it is read. So who holds it can compare the
//!    two without a false alarm; a saturated count (rule 12 of cells) is not compared.
//! 3. *Free*. Who gives up the last reference has struck it off before; nobody else has any, so
//!    that the books are empty then, exactly.
//! 4. *Reserve*. What a poll has in reserve (rule 10 of cells) is on the books, and changed by its
//!    thread alone: at the end of a poll the books have exactly what the poll has left.
//! 5. *Graves*. A freed cell, region or core is filled with `POISON` and not used again before
//!    `MOST` bytes were freed after it; when it leaves, and when its core is dropped, the poison
//!    must be intact. Each has a word that says whether it lives, which is looked at when it is
//!    used through a reference.
//! 6. *End*. When a runtime on threads has ended, its tasks have no owners but those that programs
//!    hold: handles, contexts, wakers. Other threads may still be in the middle of giving one up;
//!    so what is left is reported only if it stays for `PATIENCE`.

#[cfg(asx_audit)]
mod account;
#[cfg(asx_audit)]
mod books;
#[cfg(asx_audit)]
pub(crate) mod graves;
#[cfg(not(asx_audit))]
mod off;
#[cfg(asx_audit)]
mod registry;
#[cfg(asx_audit)]
mod seal;
#[cfg(all(test, asx_audit))]
mod tests;

#[cfg(asx_audit)]
pub(crate) use books::{Books, HomeBooks, Members, Tag};
#[cfg(asx_audit)]
pub use graves::check;
#[cfg(asx_audit)]
pub(crate) use graves::fail;
#[cfg(not(asx_audit))]
pub(crate) use off::{Books, HomeBooks, Members, Registry, Seal, Tag};
#[cfg(asx_audit)]
pub(crate) use registry::Registry;
#[cfg(asx_audit)]
pub(crate) use seal::Seal;

use std::fmt;

#[cfg(all(asx_audit, not(asx_no_reuse)))]
compile_error!("an audit build uses no memory again: add --cfg asx_no_reuse");

/// The end of a runtime, when it is dropped: nothing is left then but what programs hold.
#[doc(hidden)]
pub struct End(#[cfg_attr(not(asx_audit), allow(dead_code))] pub(crate) Registry);

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("End")
    }
}

/// Who has a reference to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The region's list of live tasks; after the end of the task, whoever takes it off the list.
    List,
    /// The handle.
    Handle,
    /// A context.
    Context,
    /// A waker.
    Waker,
    /// The place in the cell of another task that this one awaits.
    JoinWaker,
    /// An entry of a queue.
    Entry,
    /// Who polls the task.
    Poll,
    /// What a poll has counted in advance.
    Reserve,
    /// The alarm of its deadline.
    Alarm,
    /// Its region, which remembers the first failure.
    Failure,
    /// A probe of tests.
    Probe,
    /// Somebody, for the length of a call.
    Call,
}

impl Owner {
    /// Who owns a clone of such a reference, unless that is said.
    #[cfg(asx_audit)]
    fn of_clone(self) -> Owner {
        match self {
            Owner::Context | Owner::Probe => self,
            _ => Owner::Call,
        }
    }
}

/// Who has a reference to a region, of those that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionRefOwner {
    /// A cell of a task.
    Cell,
    /// What a poll has counted in advance, or has not given back yet.
    Reserve,
}
