//! Entries for the queues of hosts.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::lanes::{Place, Priority};

use super::{BLOCKING, Header, TaskRef};
use crate::task::audit::Owner;

/// An entry for a queue: a task that is to be polled. It owns a reference (rule 1).
///
/// A task that is asked to stop while it is in some queue has a second entry, in the cancel lane.
/// The entry taken first runs the task; the other then finds nothing to run, and is dropped.
#[must_use = "the task it is for waits to be run"]
pub struct Runnable(pub(super) TaskRef);

impl Runnable {
    /// # Safety
    /// Rule 1: a reference was counted for this entry.
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Runnable {
        // SAFETY: the caller's promise.
        let (task, entry) = unsafe { (header.as_ref(), TaskRef::from_raw(header, Owner::Entry)) };
        task.books.enter(&task.word, Owner::Entry, 1);
        Runnable(entry)
    }

    /// An entry that is looked at, and owns nothing.
    ///
    /// # Safety
    /// Rule 1: the cell is alive as long as this.
    pub(crate) unsafe fn lent(header: NonNull<Header>) -> ManuallyDrop<Runnable> {
        // SAFETY: the caller's promise; it is not dropped.
        ManuallyDrop::new(Runnable(unsafe { TaskRef::from_raw(header, Owner::Entry) }))
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.0
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0.as_ptr()
    }

    /// The task, for the one who polls it: the reference is the poll's now, and goes with the step
    /// of the word that ends it.
    pub(crate) fn into_task(self) -> ManuallyDrop<TaskRef> {
        ManuallyDrop::new(self.0.given_to(Owner::Poll))
    }

    /// The worker the task is pinned to: only there may it be run.
    #[inline]
    pub fn pin(&self) -> Option<u16> {
        Some(self.header().pin).filter(|pin| *pin < BLOCKING)
    }

    /// Whether the task is in the ready lane at the usual priority: most are.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub fn is_plain(&self) -> bool {
        let header = self.header();
        (header.attrs.is_none() || header.is_unbounded())
            && !header.word.load().state().in_cancel_lane()
    }

    /// Where the task belongs in the lanes.
    pub fn place(&self) -> Place {
        let header = self.header();
        let own = header.priority();
        if header.word.load().state().in_cancel_lane() {
            return Place::cancel(own.max(Priority(header.cleanup_priority.load(Relaxed))));
        }
        match header.deadline() {
            Some(deadline) => Place::timed(deadline),
            None => Place::ready(own),
        }
    }

    /// The number of the task.
    #[inline]
    pub fn id(&self) -> u64 {
        self.header().id()
    }

    /// The number of its region.
    pub fn region(&self) -> u64 {
        self.header().region.id
    }

    /// The name of the task, if it was given one.
    #[inline]
    pub fn name(&self) -> Option<Arc<str>> {
        self.header().attrs.as_ref()?.name.clone()
    }

    /// The entry as a pointer, for a queue of pointers.
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        self.0.into_raw().cast()
    }

    /// The entry of a pointer.
    ///
    /// # Safety
    /// The pointer came from [`Runnable::into_raw`] and is used once.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Runnable {
        // SAFETY: the caller's promise.
        Runnable(unsafe { TaskRef::from_raw(raw.cast(), Owner::Entry) })
    }
}
