//! Regions as the owners of tasks: the interface of the raw layer, implemented by the region of a
//! task and its core.

use std::sync::Arc;

use asx_journal::Dispatch;
use asx_kernel::budget::Exhausted;
use asx_kernel::cancel::Kind;
use asx_kernel::journal::{EventKind, Subject};

use super::{Region, region_ref};
use crate::core::Core;
#[cfg(feature = "lab")]
use crate::footprint::Object;
use crate::raw::audit::RegionRefOwner;
use crate::raw::contain_panic::PanicCounter;
use crate::raw::owner::{OwnerRef, TaskOwner};
use crate::raw::{Begin, End, Ended, Header, Runnable, Snapshot, TaskRef};

impl Header {
    /// The region of the task.
    #[inline(always)]
    pub(crate) fn region(&self) -> &Arc<Region> {
        self.owner().region()
    }

    /// The core of the task's runtime.
    #[inline(always)]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.region().core
    }
}

impl TaskOwner for OwnerRef {
    #[inline]
    fn id(&self) -> u64 {
        self.region().id
    }

    #[cfg(feature = "lab")]
    #[inline]
    fn object(&self) -> Object {
        self.region().object()
    }

    #[inline(always)]
    fn schedule(&self, entry: Runnable) {
        self.region().core.host.schedule(entry);
    }

    #[cfg(feature = "lab")]
    #[inline]
    fn rewoken(&self) {
        self.region().core.host.rewoken();
    }

    fn stale_wake(&self, task: &TaskRef) {
        self.region().core.stale_wake(task);
    }

    fn exhausted(&self, task: &TaskRef, what: Exhausted) {
        self.region().exhausted(task, what);
    }

    #[inline]
    fn coarse_time(&self) -> u32 {
        self.region().core.coarse.get()
    }

    #[inline]
    fn panics(&self) -> &PanicCounter {
        &self.region().core.panics
    }

    #[cfg_attr(target_family = "wasm", inline(always))]
    fn drop_result(&self, drop: impl FnOnce()) {
        self.region().core.drop_result(drop);
    }

    fn cleanup_polls(&self) -> u64 {
        self.region().allowed(Kind::User.cleanup()).polls
    }

    fn is_cleanup_timed(&self, task: u64) -> bool {
        self.region().has_stated_time() || self.region().allows_any_polls(task)
    }

    #[inline(always)]
    fn recording(&self) -> bool {
        self.region().core.recording()
    }

    #[inline]
    fn note(&self, subject: Subject, kind: EventKind) {
        self.region().core.note(subject, kind);
    }

    #[inline(always)]
    fn note_begin(&self, task: &Header, how: Begin, dispatch: &Dispatch) -> Option<Snapshot> {
        self.region().core.note_begin(task, how, dispatch)
    }

    #[inline(always)]
    fn note_end(&self, task: &Header, end: End) -> Option<(Ended, u64)> {
        self.region().core.note_end(task, end)
    }

    fn clock(&self) -> u64 {
        self.region().core.clock()
    }

    fn mark_of_seen(&self) -> u16 {
        self.region().core.mark_of_seen()
    }

    fn see_mark(&self, mark: u16) {
        self.region().core.see_mark(mark);
    }

    #[inline]
    unsafe fn release(owner: *const (), references: u32, whose: RegionRefOwner) {
        // SAFETY: the caller's promise; the owner of a task is a region.
        unsafe { region_ref::remove(owner.cast(), whose, references) };
    }
}
