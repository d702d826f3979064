//! Who comes and goes: a region's list of its live tasks, and its lock.

use std::ptr::NonNull;
use std::sync::Arc;

use asx_kernel::budget::Budget;
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::region::{Duty, Operation, RegionState};
use asx_kernel::status::Status;

use super::tree::Tree;
use super::{Inner, Region};
use crate::core::Core;
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::core::long_poll::LiveTasks;
use crate::footprint::Leave;
use crate::raw::audit::Owner;
use crate::raw::{Header, TaskRef};
use crate::spinlock::Held;

impl Region {
    /// Takes a new task in; refused when the region is not open.
    pub(crate) fn adopt(&self, task: NonNull<Header>, operation: Operation) -> Result<(), Status> {
        // Those who come or go without being the last do not see each other; and a finalizer is
        // begun by whichever task is the last to end.
        if operation != Operation::SpawnFinalizer {
            self.object.read();
        }
        let mut inner = self.lock_among_others();
        if inner.max_children.is_some() {
            drop(inner);
            inner = self.lock();
            self.count_ends();
        }
        if operation == Operation::Create {
            // SAFETY: the caller has made it just now.
            let timed = unsafe { task.as_ref() }.deadline().is_some();
            inner.admit_child(&self.core)?;
            self.core.room_for_task(if timed { Lane::Timed } else { Lane::Ready })?;
        } else {
            inner.admit(operation)?;
            self.core.task_added();
        }
        // A finalizer was counted when the kernel said to start it.
        if operation != Operation::SpawnFinalizer {
            inner.word.task_added();
        }
        inner.push(task);
        // SAFETY: the caller has made it just now.
        self.core.note_spawned(self.stamp(), unsafe { task.as_ref() });
        Ok(())
    }

    /// Whether a task with this budget of its own would be taken in, as far as can be told.
    pub(crate) fn precheck(&self, own: Option<&Budget>) -> Result<(), Status> {
        let timed = self.budget.deadline.or(own.and_then(|own| own.deadline)).is_some();
        self.lock().admit_child(&self.core)?;
        self.core.room_for_more(if timed { Lane::Timed } else { Lane::Ready })
    }

    /// A task of this region has ended and was recorded, if it was, with this stamp. The region's
    /// reference to it is the caller's, and goes.
    ///
    /// # Safety
    /// It has completed, and the reference was counted.
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) unsafe fn task_done(task: NonNull<Header>, severity: Severity, stamp: u64) {
        // SAFETY: the caller's promise.
        let (region, pinned) = unsafe { (&task.as_ref().region(), task.as_ref().is_pinned()) };
        region.object.read();
        // Shortcut: `region::completion_buffer`: a task that ended with Ok in an open region is
        // subtracted from the task count later, with other tasks, but before any read of the count.
        // Law: `region::RegionWord::task_done`.
        // Equal: `tasks_depart_together_and_whoever_looks_sees_none_of_them`,
        // `nobody_departs_before_two_have_met_nor_after_the_end`,
        // `those_who_have_departed_do_not_count_against_a_limit`.
        // Worth: 36 % of `spawn_join` on two workers, by the clock (decision 031).

        let is_buffered = severity == Severity::Ok && !pinned;
        // SAFETY: the caller's promise; nothing is looked at if it is in the buffer.
        if is_buffered && unsafe { region.completed.push(task) } {
            region.object.leave(Leave::Early);
            return;
        }
        // SAFETY: the caller's promise.
        let task = unsafe { TaskRef::from_raw(task, Owner::List) };
        region.task_gone(&task, severity, stamp);
        if pinned {
            region.core.host.pinned(task.pin, false);
        }
    }

    /// Takes a task that has ended off the list, and those in the completion buffer; the region
    /// goes on.
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn task_gone(self: &Arc<Self>, task: &TaskRef, severity: Severity, stamp: u64) {
        if self.completed.any() {
            self.flush_completed(false);
        }
        let (duty, goes_on) = {
            let mut inner = self.lock_among_others();
            inner.add_to_fold(severity);
            inner.unlink(task.as_ptr());
            inner.word.task_done();
            self.completed.ended().unwrap_or(&self.stamp).raise(stamp);
            let goes_on = inner.word.state() == RegionState::Open && !inner.word.is_ending();
            (self.advance(&mut inner), goes_on)
        };
        // Those who end well do not see each other: which of them is the last, and has the region
        // go on, makes no difference.
        if !goes_on && severity != Severity::Ok {
            self.object.write();
        }
        self.object.leave(if duty == Duty::Wait { Leave::Early } else { Leave::Last });
        Tree::go_on(self, duty);
    }

    /// Locks it as it is now.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_, Inner> {
        if self.completed.any() {
            self.flush_completed(false);
        }
        self.lock_as_is()
    }

    /// Locks it without a look at the completion buffer.
    #[inline]
    fn lock_as_is(&self) -> Held<'_, Inner> {
        self.inner.lock()
    }

    /// The same for tasks that come and go: those who meet here are given a way to depart.
    #[inline]
    fn lock_among_others(&self) -> Held<'_, Inner> {
        let (inner, met) = self.inner.lock_or_wait();
        if met && inner.word.state() == RegionState::Open && !inner.word.is_ending() {
            self.completed.open();
        }
        inner
    }

    /// As if two had met at the lock.
    #[cfg(test)]
    pub(crate) fn meet(&self) {
        let _inner = self.lock_as_is();
        self.completed.open();
    }

    /// The same for who ends it: from now on no task is put into the completion buffer.
    #[inline]
    pub(super) fn lock_for_good(&self) -> Held<'_, Inner> {
        let inner = self.lock_as_is();
        if self.completed.shut_unused() {
            return inner;
        }
        drop(inner);
        self.flush_completed(true);
        self.lock_as_is()
    }

    /// Takes the tasks in the completion buffer off the list. `last`: from now on none is put
    /// there.
    #[cold]
    fn flush_completed(&self, last: bool) {
        let gone = {
            let mut inner = self.lock_as_is();
            let gone = self.completed.take(last);
            for task in gone.each() {
                inner.unlink(task);
                inner.word.task_done();
            }
            if let Some(ended) = self.completed.ended() {
                // SAFETY: rule 3 of the completion buffer: they are there until they are dropped.
                let mark = |task: NonNull<Header>| unsafe { task.as_ref() }.word.load().mark();
                self.core.touch_after(ended, gone.each().map(mark));
            }
            gone
        };
        // Not under the lock.
        drop(gone);
    }
}

#[cfg(not(any(loom, target_family = "wasm")))]
impl Region {
    /// Reports tasks of this region and of all regions inside it that were cancelled and stay in
    /// one poll for too long. For the [`PollMonitor`](crate::PollMonitor) of a host, which calls it
    /// on the root region.
    #[cold]
    pub fn check_long_polls(&self) {
        // Subscribers of `tracing` may panic.
        self.core.contain(|| self.core.check_long_polls(self, self.core.host.now()));
    }
}

#[cfg(not(any(loom, target_family = "wasm")))]
impl LiveTasks for Region {
    fn find_task(&self, id: u64) -> Option<TaskRef> {
        if let Some(task) = self.live_task(id) {
            return Some(task);
        }
        let mut regions = self.lock().children();
        while let Some(region) = regions.pop() {
            if let Some(task) = region.live_task(id) {
                return Some(task);
            }
            let children = region.lock().children();
            regions.extend(children);
        }
        None
    }

    fn live_task(&self, id: u64) -> Option<TaskRef> {
        let inner = self.lock();
        let mut found = None;
        inner.each_task(|task| {
            // SAFETY: the region keeps its tasks alive, and its lock is held.
            if unsafe { task.as_ref() }.id() == id {
                // SAFETY: as above.
                found = Some(unsafe { TaskRef::borrowed(task, Owner::Call) });
            }
        });
        found
    }
}

impl Inner {
    /// Whether the region's state and gate admit the operation.
    #[inline]
    pub(crate) fn admit(&self, operation: Operation) -> Result<(), Status> {
        self.word.state().admit(operation)?;
        let shut = operation == Operation::Create && self.shut;
        if shut { Err(Status::AdmissionClosed) } else { Ok(()) }
    }

    /// Whether a task or child region may come, which also counts against the region's own limit.
    #[inline]
    pub(super) fn admit_child(&self, core: &Core) -> Result<(), Status> {
        self.admit(Operation::Create)?;
        let Some(limit) = self.max_children else { return Ok(()) };
        let children = self.word.live_tasks() + self.word.open_children();
        core.room("children", children as usize, limit)
    }

    /// A child has ended like this.
    pub(super) fn add_to_fold(&mut self, severity: Severity) {
        // Of the fold only the severity is ever seen.
        self.fold = self.fold.join(severity);
    }

    /// Every live task, in creation order.
    pub(crate) fn each_task(&self, mut f: impl FnMut(NonNull<Header>)) {
        let mut at = self.first;
        while let Some(task) = at {
            // SAFETY: rule 4 of cells: `self` is locked, and the region keeps listed tasks alive.
            at = unsafe { task.as_ref().links() }.next;
            f(task);
        }
    }

    /// Nothing is left in a region that is closed.
    #[cfg(asx_audit)]
    pub(super) fn check_closed(&self, region: &Region) {
        let mut listed = Vec::new();
        // SAFETY: the region keeps listed tasks alive, and its lock is held.
        self.each_task(|task| listed.push(unsafe { task.as_ref() }.books.describe()));
        let children: Vec<_> = self.children.values().map(|child| child.id).collect();
        let counted = (self.word.live_tasks(), self.word.open_children());
        if !listed.is_empty()
            || !children.is_empty()
            || self.members.count() > 0
            || counted != (0, 0)
        {
            crate::raw::audit::fail(&format!(
                "region {}: it is closed, and has tasks {listed:?} and regions {children:?}, \
                 of which {} are listed and {counted:?} counted",
                region.id,
                self.members.count()
            ));
        }
    }

    fn push(&mut self, task: NonNull<Header>) {
        // SAFETY: rule 4 of cells: `self` is locked, and the region keeps listed tasks alive.
        unsafe {
            self.members.joins(task.as_ref(), self.word.live_tasks().into());
            task.as_ref().links().prev = self.last;
            match self.last {
                Some(last) => last.as_ref().links().next = Some(task),
                None => self.first = Some(task),
            }
        }
        self.last = Some(task);
    }

    fn unlink(&mut self, task: NonNull<Header>) {
        // SAFETY: as in `push`.
        unsafe {
            self.members.leaves(task.as_ref());
            let links = *task.as_ref().links();
            match links.prev {
                Some(prev) => prev.as_ref().links().next = links.next,
                None => self.first = links.next,
            }
            match links.next {
                Some(next) => next.as_ref().links().prev = links.prev,
                None => self.last = links.prev,
            }
        }
    }
}
