//! Looking at regions, and waiting for their close.

use std::sync::Arc;
use std::task::Waker;

use asx_kernel::cancel::Reason;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;

use super::Region;
use crate::dump::{RegionInfo, TaskInfo};
use crate::prim::atomic::Ordering;
use crate::raw::is_task_waker;
use crate::raw::outcome::Cancelled;

impl Region {
    /// Whether the body of its scope is to stop.
    #[inline]
    pub(crate) fn is_body_cancelled(&self) -> bool {
        self.object.read();
        self.cancelled.load(Ordering::Acquire)
    }

    /// The cancel of this region as the body of its scope sees it.
    pub(crate) fn body_cancel(&self, _observe: bool) -> Option<Cancelled> {
        if !self.is_body_cancelled() {
            return None;
        }
        let inner = self.lock();
        let closed = inner.cancel.as_ref().map(|(reason, _)| reason);
        closed.or(inner.failed.as_ref()).map(|reason| Cancelled::from(reason.clone()))
    }

    /// Has the waker woken when the body is to stop.
    pub(crate) fn watch_body(&self, waker: &Waker) {
        // Cloned and dropped outside the lock.
        let waker = waker.clone();
        let old = self.lock().body.replace(waker);
        self.core.drop_waker(old);
    }

    /// Whether the region is closed; if not, the waker is woken when it is, unless another one is
    /// given meanwhile.
    pub fn poll_closed(&self, waker: &Waker) -> bool {
        self.watch_close(0, waker).is_some()
    }

    /// How the region has closed; if it has not, the waker is woken when it does. `place` is where
    /// it is noted.
    pub(crate) fn watch_close(&self, place: u64, waker: &Waker) -> Option<Severity> {
        // A task's own is counted and nothing else; any other is cloned and dropped outside the
        // lock, and only if it is needed. Pages have the second way only.
        if cfg!(target_family = "wasm") || !is_task_waker(waker) {
            return self.outcome().or_else(|| self.watch_close_with(place, waker.clone()));
        }
        let mut inner = self.lock();
        if inner.word.state() == RegionState::Closed {
            return Some(inner.fold);
        }
        let old = inner.waiters.insert(place, waker.clone());
        drop(inner);
        self.core.drop_waker(old);
        None
    }

    fn watch_close_with(&self, place: u64, waker: Waker) -> Option<Severity> {
        let mut inner = self.lock();
        if inner.word.state() == RegionState::Closed {
            let fold = inner.fold;
            drop(inner);
            self.core.drop_waker(Some(waker));
            return Some(fold);
        }
        let old = inner.waiters.insert(place, waker);
        drop(inner);
        self.core.drop_waker(old);
        None
    }

    /// Forgets a waker noted by [`watch_close`](Region::watch_close).
    pub(crate) fn forget_close(&self, place: u64) {
        let waker = self.lock().waiters.remove(place);
        self.core.drop_waker(waker);
    }

    /// The topmost region around it: the root, or else the one below that.
    pub(crate) fn top(self: &Arc<Self>, root: bool) -> Arc<Region> {
        let mut top = self;
        while let Some(parent) = top.parent.as_ref()
            && (root || parent.parent.is_some())
        {
            top = parent;
        }
        top.clone()
    }

    /// Whether it is the root of its runtime.
    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.outcome().is_some()
    }

    /// How it has closed.
    pub(crate) fn outcome(&self) -> Option<Severity> {
        let inner = self.lock();
        (inner.word.state() == RegionState::Closed).then(|| inner.fold)
    }

    /// Why it is closing.
    pub(crate) fn cancel_reason(&self) -> Option<Arc<Reason>> {
        self.lock().cancel.as_ref().map(|(reason, _)| reason.clone())
    }

    /// The number of the task that failed first, in a fail-fast region.
    pub(crate) fn failed_task(&self) -> Option<u64> {
        self.lock().failure.as_ref().map(|task| task.id())
    }

    /// Returns the number of regions inside, including itself.
    #[cfg(feature = "lab")]
    pub fn count_inside(&self) -> usize {
        let mut count = 0;
        self.each_inside(&mut |region| {
            count += 1;
            region.lock().children()
        });
        count
    }

    /// Who waits for whom inside.
    #[cfg(feature = "lab")]
    pub(crate) fn survey(&self, into: &mut crate::wait_list::Survey) {
        use crate::raw::task_number;
        use crate::wait_list::{Need, On, Waiter};
        self.each_inside(&mut |region| {
            let inner = region.lock();
            let closers: Vec<_> = inner.waiters.values().filter_map(task_number).collect();
            // One of the region's, and one of the body's as long as it is there.
            let for_cancels = if inner.word.is_ending() { 1 } else { 2 };
            let body = inner.body.as_ref().and_then(task_number);
            into.bodies.extend(body.map(|body| (body, for_cancels)));
            let mut ends = Vec::new();
            inner.each_task(|task| {
                // SAFETY: the region keeps its tasks alive, and its lock is held.
                let header = unsafe { task.as_ref() };
                let id = header.id();
                let joined = Need { from: vec![On::End(id)], each: true };
                into.needs.extend(header.joined_by().map(|by| (by, joined)));
                ends.push(On::Close(id));
                let wakers = header.wakers.count();
                into.tasks.push(Waiter {
                    task: TaskInfo::of(header, self.core.host.now()),
                    wakers,
                    needs: Vec::new(),
                    kept_from: Vec::new(),
                    given: Vec::new(),
                });
            });
            let closed = Need { from: ends, each: true };
            into.needs.extend(closers.iter().map(|by| (*by, closed.clone())));
            inner.children()
        });
    }

    /// What is inside, for people.
    pub(crate) fn describe(&self, into: &mut Vec<RegionInfo>) {
        self.each_inside(&mut |region| {
            let inner = region.lock();
            let mut tasks = Vec::new();
            let now = region.core.host.now();
            inner.each_task(|task| {
                // SAFETY: the region keeps its tasks alive, and its lock is held.
                tasks.push(TaskInfo::of(unsafe { task.as_ref() }, now));
            });
            let reason = inner.cancel.as_ref().map(|(reason, _)| reason.clone());
            into.push(RegionInfo {
                id: region.id,
                name: region.label.name.clone(),
                opened: region.label.at,
                cancelled_for: reason.as_ref().map(|reason| now - reason.timestamp),
                force_in: inner.graces.force().map(|force| force - now),
                parent: region.parent.as_ref().map(|parent| parent.id),
                state: inner.word.state(),
                finalizers: inner.word.finalizers(),
                reason,
                tasks,
                obligations: inner.obligations(),
            });
            inner.children()
        });
    }
}
