//! The owner of a task, as the task sees it: the one interface of this layer to its region, its
//! core and its host.
//!
//! A task belongs to a region, which belongs to a runtime. Here is neither: an [`OwnerRef`] is a
//! word that only the layer above reads, and [`TaskOwner`] lists the requests of a task. The trait
//! has one implementation, in `region/owner.rs`, so its calls are resolved at compile time and
//! inlined.
//!
//! It is no type parameter of [`Header`]. The vtable of wakers and the poll of a thread are
//! statics, one of each in the program, and the containment of panics recognises a task's waker by
//! the address of that vtable: all of them would need the parameter as well.
//!
//! # Rule
//! 14. *Owner*. The slot of an [`OwnerRef`] is written where the reference is made, and read as
//!     the same type. Both happen in `region/region_ref.rs` only.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use asx_journal::Dispatch;
use asx_kernel::budget::Exhausted;
use asx_kernel::journal::{EventKind, Subject};

use super::audit::RegionRefOwner;
use super::contain_panic::PanicCounter;
use super::runnable::{End, Runnable};
use super::word::{Begin, Ended, Snapshot};
use super::{Header, TaskRef};
#[cfg(feature = "lab")]
use crate::footprint::Object;

/// A reference of a task to its owner, which keeps the owner alive.
pub(crate) struct OwnerRef {
    /// Rule 14.
    pub(crate) slot: MaybeUninit<*const ()>,
}

/// The requests of a task to its owner.
pub(crate) trait TaskOwner {
    /// The number of the region.
    fn id(&self) -> u64;

    /// The name of the region among the objects of the program.
    #[cfg(feature = "lab")]
    fn object(&self) -> Object;

    /// Puts an entry into a queue of the host.
    fn schedule(&self, entry: Runnable);

    /// A task was woken that has an entry or is being polled.
    #[cfg(feature = "lab")]
    fn rewoken(&self);

    /// A task was woken that has ended.
    fn stale_wake(&self, task: &TaskRef);

    /// Cancels a task that has used up a part of its budget.
    fn exhausted(&self, task: &TaskRef, what: Exhausted);

    /// The time in steps of the coarse clock.
    fn coarse_time(&self) -> u32;

    /// The counter for panics of callbacks.
    fn panics(&self) -> &PanicCounter;

    /// Runs the destructor of an unclaimed result; its panic is counted as lost.
    fn drop_result(&self, drop: impl FnOnce());

    /// The number of polls that cleanup may take after an end without a cancel.
    fn cleanup_polls(&self) -> u64;

    /// Whether a time bounds the cleanup of this task, so that it may take any number of polls.
    fn is_cleanup_timed(&self, task: u64) -> bool;

    /// Whether events are recorded.
    fn recording(&self) -> bool;

    /// Records an event in order with the other events of this thread.
    fn note(&self, subject: Subject, kind: EventKind);

    /// Begins a poll and records it. Returns the word before, or `None` if nothing has happened:
    /// the task is not to be polled, or the step needs the lock of its cancel.
    fn note_begin(&self, task: &Header, how: Begin, dispatch: &Dispatch) -> Option<Snapshot>;

    /// Completes a task and records it, as [`note_begin`](TaskOwner::note_begin). Also returns the
    /// stamp.
    fn note_end(&self, task: &Header, end: End) -> Option<(Ended, u64)>;

    /// The last stamp of this thread.
    fn clock(&self) -> u64;

    /// The mark that orders later steps of the task after everything this thread has seen.
    fn mark_of_seen(&self) -> u16;

    /// Orders the events of this thread after those of the thread that left `mark`.
    fn see_mark(&self, mark: u16);

    /// Gives up references to an owner that a poll had in reserve.
    ///
    /// # Safety
    /// They were counted for this owner, and are not used again.
    unsafe fn release(owner: *const (), references: u32, whose: RegionRefOwner);
}

/// References to one owner that a poll has counted and that no task has.
pub(crate) struct OwnerReserve {
    /// The address of the owner. If there are no references, it may be freed, and is only compared.
    pub(crate) owner: Cell<*const ()>,
    pub(crate) references: Cell<u32>,
    /// How many references were counted at once the last time.
    pub(crate) batch: Cell<u32>,
}

impl OwnerReserve {
    pub(super) fn new() -> OwnerReserve {
        OwnerReserve {
            owner: Cell::new(ptr::null()),
            references: Cell::new(0),
            batch: Cell::new(0),
        }
    }

    /// Gives up all references.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn release(&self) {
        let references = self.references.take();
        if references > 0 {
            // SAFETY: they were counted for this owner, and the count is zero from now on.
            unsafe { OwnerRef::release(self.owner.get(), references, RegionRefOwner::Reserve) };
        }
    }

    /// Turns to another owner, without references to it.
    ///
    /// Releasing the last reference to the previous owner may free it, and user values with it.
    /// Their destructors may get here again. So the fields are set before it is released, and may
    /// have changed afterwards.
    #[cold]
    pub(crate) fn move_to(&self, owner: *const ()) {
        let previous = self.owner.replace(owner);
        let references = self.references.take();
        self.batch.set(0);
        if references > 0 {
            // SAFETY: they were counted for the previous owner, and the count is zero now.
            unsafe { OwnerRef::release(previous, references, RegionRefOwner::Reserve) };
        }
    }
}
