//! Regions: who owns whom, and how a close goes through the tree.
//!
//! The order of things is the kernel's: [`RegionWord`] counts and says what is next,
//! [`cascade`] goes from a task to its region to the parent. Here is the storage: one short lock
//! per region, an intrusive list of its live tasks, and its live child regions. No user code and no
//! host call runs under the lock; locks of two regions are never held together.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use asx_kernel::arena::Key;
use asx_kernel::budget::{Budget, Exhausted};
use asx_kernel::cancel::{ChainLimits, Cleanup, Kind, Reason};
use asx_kernel::cascade::{self, RegionStore};
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::outcome::{Fold, Severity, Stop};
use asx_kernel::region::{Operation, RegionState, RegionWord};
use asx_kernel::status::Status;
use asx_kernel::task::TaskEffect;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::cell::{Header, Requested, Runnable, TaskRef};
use crate::core::{Alarm, Core, Health};
use crate::dump::{RegionInfo, TaskInfo};
use crate::local::Locals;
use crate::outcome::Cancelled;
use crate::prim::atomic::{AtomicBool, Ordering};
use crate::short::{Held, ShortLock};
use crate::stop::Grace;

/// From forcing what is inside to forcing what is around it.
const FORCE_AGAIN: Duration = Duration::from_millis(10);

/// A region of the tree.
pub struct Region {
    pub(crate) core: Arc<Core>,
    pub(crate) id: u64,
    parent: Option<Arc<Region>>,
    pub(crate) policy: Policy,
    /// What everything inside is bounded by.
    pub(crate) budget: Budget,
    /// Whether that is nothing.
    pub(crate) unbounded: bool,
    /// What the tasks inside inherit from around it.
    pub(crate) locals: Option<Arc<Locals>>,
    /// Whether tasks may see that they are about to be stopped.
    stopping: AtomicBool,
    /// Whether the body of the scope is to stop; says that `inner.reason` is set.
    cancelled: AtomicBool,
    inner: ShortLock<Inner>,
}

/// What a child's failure means to a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The first error or panic cancels everything else in the scope and is its result.
    #[default]
    FailFast,
    /// Children fail on their own; their handles tell.
    CollectAll,
}

struct Inner {
    word: RegionWord,
    first: Option<NonNull<Header>>,
    last: Option<NonNull<Header>>,
    children: BTreeMap<u64, Arc<Region>>,
    finalizers: Vec<Finalizer>,
    cancel: Option<(Arc<Reason>, Cleanup)>,
    failure: Option<TaskRef>,
    fold: Fold<(), ()>,
    /// The reason that was added to the fold last.
    folded: Option<Arc<Reason>>,
    /// What a close makes needless: the steps of a gentle stop.
    alarms: Vec<TimerHandle>,
    /// Who waits for the close.
    waiter: Option<Waker>,
    /// Who is told when the body is to stop.
    body: Option<Waker>,
}

// SAFETY: the list's pointers are followed under the lock only, to cells the region keeps alive.
unsafe impl Send for Inner {}

/// Makes the task of a finalizer, in the region that finalizes.
pub(crate) type Finalizer = Box<dyn FnOnce(&Arc<Region>) -> Option<Runnable> + Send>;

impl Region {
    pub(crate) fn root(core: Arc<Core>) -> Arc<Region> {
        Region::build(core, None, Policy::CollectAll, Budget::INFINITE, None)
    }

    fn build(
        core: Arc<Core>,
        parent: Option<Arc<Region>>,
        policy: Policy,
        budget: Budget,
        locals: Option<Arc<Locals>>,
    ) -> Arc<Region> {
        let id = core.next_id();
        let inner = Inner {
            word: RegionWord::default(),
            first: None,
            last: None,
            children: BTreeMap::new(),
            finalizers: Vec::new(),
            cancel: None,
            failure: None,
            fold: Fold::default(),
            folded: None,
            alarms: Vec::new(),
            waiter: None,
            body: None,
        };
        Arc::new(Region {
            core,
            id,
            parent,
            policy,
            unbounded: budget == Budget::INFINITE,
            budget,
            locals,
            stopping: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            inner: ShortLock::new(inner),
        })
    }

    /// Opens a region inside this one; its budget can only be tighter.
    pub(crate) fn open_child(
        self: &Arc<Self>,
        policy: Policy,
        budget: Budget,
        locals: Option<Arc<Locals>>,
    ) -> Result<Arc<Region>, Status> {
        let mut inner = self.lock();
        inner.word.state().admit(Operation::Create)?;
        let budget = self.budget.meet(budget);
        let child = Region::build(self.core.clone(), Some(self.clone()), policy, budget, locals);
        inner.word.child_added();
        inner.children.insert(child.id, child.clone());
        Ok(child)
    }

    fn lock(&self) -> Held<'_, Inner> {
        self.inner.lock()
    }

    pub(crate) fn region_id(&self) -> RegionId {
        RegionId(Key { generation: self.id, index: 0 })
    }

    /// Takes a new task in; refused when the region is not open.
    pub(crate) fn adopt(&self, task: NonNull<Header>, operation: Operation) -> Result<(), Status> {
        let mut inner = self.lock();
        inner.word.state().admit(operation)?;
        // A finalizer was counted when the kernel said to start it.
        if operation != Operation::SpawnFinalizer {
            inner.word.task_added();
        }
        inner.push(task);
        Ok(())
    }

    /// Registers a finalizer.
    pub(crate) fn defer(&self, finalizer: Finalizer) -> Result<(), Status> {
        let mut inner = self.lock();
        inner.word.state().admit(Operation::Defer)?;
        inner.word.finalizer_added();
        inner.finalizers.push(finalizer);
        Ok(())
    }

    /// A task of this region has ended.
    pub(crate) fn task_done(self: &Arc<Self>, task: &TaskRef, severity: Severity) {
        let settle = {
            let mut inner = self.lock();
            if severity != Severity::Ok {
                inner.add_to_fold(task, severity);
            }
            inner.unlink(task.as_ptr());
            inner.word.task_done();
            inner.word.is_ending() || inner.word.state() != RegionState::Open
        };
        if settle {
            Tree::settle(self);
        }
    }

    /// Remembers the first failure of a fail-fast region; whether this is it.
    pub(crate) fn note_failure(&self, task: &TaskRef) -> bool {
        if self.policy != Policy::FailFast {
            return false;
        }
        let mut inner = self.lock();
        let first = inner.failure.is_none() && inner.word.state() != RegionState::Finalizing;
        if first {
            inner.failure = Some(task.clone());
        }
        first
    }

    /// The task that failed first, once.
    pub(crate) fn take_failure(&self) -> Option<TaskRef> {
        self.lock().failure.take()
    }

    /// Cancels everything inside because a task failed.
    pub(crate) fn fail(self: &Arc<Self>, kind: Kind, task: u64) {
        let reason = self.reason(kind).with_task(TaskId(Key { generation: task, index: 0 }));
        self.close(Arc::new(reason), kind.cleanup());
    }

    /// A reason that begins here and now.
    pub(crate) fn reason(&self, kind: Kind) -> Reason {
        Reason::new(kind, self.region_id(), self.core.host.now())
    }

    /// The author of the scope is done: close when nothing lives inside any more.
    pub(crate) fn end(self: &Arc<Self>) {
        self.lock().word.end();
        Tree::settle(self);
    }

    /// Ends admission and asks everything inside to stop. On a closing region it strengthens.
    pub(crate) fn close(self: &Arc<Self>, reason: Arc<Reason>, cleanup: Cleanup) {
        let (first, body) = {
            let mut inner = self.lock();
            if inner.word.state() == RegionState::Closed {
                return;
            }
            let (reason, cleanup) = match inner.cancel.take() {
                None => (reason, cleanup),
                Some((old, allowed)) => {
                    let stronger = old.weaker_than(&reason);
                    (if stronger { reason } else { old }, allowed.combine(cleanup))
                }
            };
            inner.cancel = Some((reason, cleanup));
            self.cancelled.store(true, Ordering::Release);
            (inner.word.close(), inner.body.take())
        };
        if let Some(waker) = body {
            waker.wake();
        }
        if !first {
            self.cancel_inside();
        }
        Tree::settle(self);
    }

    /// [`close`](Region::close) for a reason of this kind that begins here and now.
    pub(crate) fn close_as(self: &Arc<Self>, kind: Kind) {
        self.close(Arc::new(self.reason(kind)), kind.cleanup());
    }

    /// The cancel of this region as the body of its scope sees it.
    pub(crate) fn body_cancel(&self, _observe: bool) -> Option<Cancelled> {
        if !self.cancelled.load(Ordering::Acquire) {
            return None;
        }
        self.lock().cancel.as_ref().map(|(reason, _)| Cancelled::from(reason.clone()))
    }

    /// Why a task is not taken in.
    pub(crate) fn refusal(&self) -> Cancelled {
        self.body_cancel(false).unwrap_or_else(|| self.reason(Kind::ParentCancelled).into())
    }

    /// Has the waker woken when the body is to stop.
    pub(crate) fn watch_body(&self, waker: &Waker) {
        let mut inner = self.lock();
        if inner.body.as_ref().is_none_or(|old| !old.will_wake(waker)) {
            let old = inner.body.replace(waker.clone());
            drop(inner);
            drop(old);
        }
    }

    /// What went wrong in the tasks of the runtime.
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// Stops everything inside gently, for good.
    pub fn shutdown(self: &Arc<Self>, grace: Grace) {
        self.stop_within(grace.soft, grace.hard, Kind::Shutdown);
    }

    /// Whether the region is closed; if not, the waker is woken when it is, unless another one is
    /// given meanwhile.
    pub fn poll_closed(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if inner.word.state() == RegionState::Closed {
            return true;
        }
        let old = inner.waiter.replace(waker.clone());
        drop(inner);
        drop(old);
        false
    }

    /// Tells everything inside that it is about to be stopped.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.core.wake_stopping();
    }

    /// Whether this region or one around it is about to be stopped.
    pub(crate) fn is_stopping(&self) -> bool {
        let around = std::iter::successors(Some(self), |region| region.parent.as_deref());
        around.into_iter().any(|region| region.stopping.load(Ordering::Acquire))
    }

    /// Stops what is inside in three steps: it is told, after `soft` it is cancelled, and after
    /// `hard` more what still lives is ended by force.
    pub(crate) fn stop_within(self: &Arc<Self>, soft: Duration, hard: Duration, kind: Kind) {
        let host = &*self.core.host;
        self.stop();
        let cancel = host.now() + soft;
        let weak = || Arc::downgrade(self);
        self.arm([(cancel, Alarm::Cancel(weak(), kind)), (cancel + hard, Alarm::Force(weak()))]);
    }

    /// Sets alarms that go with the region.
    fn arm<const N: usize>(&self, alarms: [(Time, Alarm); N]) {
        let timers = &self.core.alarms;
        let armed = alarms.map(|(at, alarm)| timers.register(&*self.core.host, at, alarm));
        let mut inner = self.lock();
        if inner.word.state() != RegionState::Closed {
            return inner.alarms.extend(armed.into_iter().flatten());
        }
        drop(inner);
        armed.into_iter().flatten().for_each(|alarm| timers.cancel(alarm));
    }

    /// Ends by force what still lives in a closing region, innermost first: whoever only waits for
    /// what is inside gets the chance to end by itself.
    pub(crate) fn force(self: &Arc<Self>) {
        if self.force_innermost() {
            // All that was set before has rung, or is of no use any more.
            let old = std::mem::take(&mut self.lock().alarms);
            old.into_iter().for_each(|alarm| self.core.alarms.cancel(alarm));
            let again = self.core.host.now() + FORCE_AGAIN;
            self.arm([(again, Alarm::Force(Arc::downgrade(self)))]);
        }
    }

    /// Ends by force what has no region inside; whether there are such that have.
    fn force_innermost(&self) -> bool {
        let mut entries = Vec::new();
        let children: Vec<_> = {
            let inner = self.lock();
            if inner.word.state() != RegionState::Open && inner.children.is_empty() {
                inner.each_task(|task| {
                    // SAFETY: the region keeps its tasks alive, and its lock is held.
                    if unsafe { task.as_ref() }.word.force() {
                        // SAFETY: it was made scheduled just now.
                        entries.push(unsafe { Runnable::new(task) });
                    }
                });
            }
            inner.children.values().cloned().collect()
        };
        self.core.host.schedule_all(entries);
        for child in &children {
            child.force_innermost();
        }
        !children.is_empty()
    }

    /// What is inside, for people.
    pub(crate) fn describe(&self, into: &mut Vec<RegionInfo>) {
        let children: Vec<_> = {
            let inner = self.lock();
            let mut tasks = Vec::new();
            inner.each_task(|task| {
                // SAFETY: the region keeps its tasks alive, and its lock is held.
                tasks.push(TaskInfo::of(unsafe { task.as_ref() }));
            });
            into.push(RegionInfo {
                id: self.id,
                parent: self.parent.as_ref().map(|parent| parent.id),
                state: inner.word.state(),
                finalizers: inner.word.finalizers(),
                reason: inner.cancel.as_ref().map(|(reason, _)| reason.clone()),
                tasks,
            });
            inner.children.values().cloned().collect()
        };
        children.iter().for_each(|child| child.describe(into));
    }

    /// Asks one task of this region to stop: true the first time.
    pub(crate) fn cancel_task(
        &self,
        task: &TaskRef,
        reason: &Arc<Reason>,
        cleanup: Cleanup,
    ) -> bool {
        // SAFETY: the caller keeps the task alive.
        let (first, entry) = unsafe { request(task.as_ptr(), reason, cleanup) };
        if let Some(entry) = entry {
            self.core.host.schedule(entry);
        }
        first
    }

    /// A part of a task's budget has run out.
    pub(crate) fn exhausted(&self, task: &TaskRef, what: Exhausted) {
        let kind = what.kind();
        let reason = self.reason(kind).with_task(TaskId(Key { generation: task.id, index: 0 }));
        self.cancel_task(task, &Arc::new(reason), kind.cleanup());
    }

    /// The task sees its cancel, if there is one.
    pub(crate) fn acknowledge(&self, task: &Header) -> Option<Cancelled> {
        task.word.acknowledge()?;
        task.reason().map(Cancelled::from)
    }

    /// The reason a task of this region was asked to stop for.
    pub(crate) fn reason_of(&self, task: &Header) -> Arc<Reason> {
        task.reason().unwrap_or_else(|| Arc::new(self.reason(Kind::User)))
    }

    /// Asks everything inside to stop: own tasks, then child regions, in creation order.
    fn cancel_inside(&self) {
        let Some((reason, cleanup)) = self.lock().cancel.clone() else { return };
        let limits = ChainLimits::default();
        let inherited = self.reason(Kind::ParentCancelled).caused_by((*reason).clone(), limits);
        let inherited = (Arc::new(inherited), cleanup.passed_on());
        // A failure among equals reaches them as what it is.
        let targeted = reason.kind == Kind::FailFast;
        let (own, allowed) =
            if targeted { (&reason, cleanup) } else { (&inherited.0, inherited.1) };
        let mut entries = Vec::new();
        let children: Vec<_> = {
            let inner = self.lock();
            inner.each_task(|task| {
                // SAFETY: the task is of this region, whose lock is held.
                unsafe {
                    if !task.as_ref().is_finalizer() {
                        entries.extend(request(task, own, allowed).1);
                    }
                }
            });
            inner.children.values().cloned().collect()
        };
        self.core.host.schedule_all(entries);
        for child in children {
            child.close(inherited.0.clone(), inherited.1);
        }
    }
}

/// Asks a task to stop: whether for the first time, and the entry to schedule.
///
/// # Safety
/// The task is alive.
unsafe fn request(
    task: NonNull<Header>,
    reason: &Arc<Reason>,
    cleanup: Cleanup,
) -> (bool, Option<Runnable>) {
    // SAFETY: the caller's promise.
    let header = unsafe { task.as_ref() };
    if header.word.load().is_completed() {
        return (false, None);
    }
    header.strengthen(reason, cleanup);
    let Requested::Live { effect, enqueue, extra } = header.word.request_cancel() else {
        return (false, None);
    };
    if extra {
        header.word.add_reference();
    }
    // SAFETY: it was made scheduled just now, or a reference was added.
    let entry = enqueue.then(|| unsafe { Runnable::new(task) });
    (effect == TaskEffect::Requested, entry)
}

impl Inner {
    /// Every live task, in creation order.
    fn each_task(&self, mut f: impl FnMut(NonNull<Header>)) {
        let mut at = self.first;
        while let Some(task) = at {
            // SAFETY: rule 4 of cells: `self` is locked, and the region keeps listed tasks alive.
            at = unsafe { task.as_ref().links() }.next;
            f(task);
        }
    }

    fn push(&mut self, task: NonNull<Header>) {
        // SAFETY: rule 4 of cells: `self` is locked, and the region keeps listed tasks alive.
        unsafe {
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

    fn add_to_fold(&mut self, task: &TaskRef, severity: Severity) {
        let reason = task.reason();
        if severity == Severity::Cancelled {
            // Many tasks cancelled at once share their reason: one says it all.
            let same = |old: &Arc<Reason>| reason.as_ref().is_some_and(|new| Arc::ptr_eq(old, new));
            if self.folded.as_ref().is_some_and(same) {
                return;
            }
            self.folded = reason.clone();
        }
        let outcome = match (severity, reason) {
            (Severity::Cancelled, Some(reason)) => Err(Stop::Cancelled((*reason).clone())),
            (Severity::Panicked, _) => Err(Stop::Panicked("".into())),
            (Severity::Ok, _) => Ok(()),
            _ => Err(Stop::Err(())),
        };
        self.fold.add(task.id, outcome);
    }
}

/// The regions as the kernel's cascade sees them: each is named by a reference that lives as long
/// as the one the walk began with, since a region keeps its parent.
struct Tree<'a>(PhantomData<&'a Arc<Region>>);

impl<'a> Tree<'a> {
    fn settle(region: &'a Arc<Region>) {
        cascade::settle(&mut Tree(PhantomData), region);
    }
}

impl<'a> RegionStore for Tree<'a> {
    type Region = &'a Arc<Region>;

    fn with_word<R>(&mut self, region: Self::Region, f: impl FnOnce(&mut RegionWord) -> R) -> R {
        f(&mut region.lock().word)
    }

    fn moved(&mut self, _: Self::Region, _: RegionState, _: RegionState) {}

    fn cancel_children(&mut self, region: Self::Region) {
        region.cancel_inside();
    }

    fn start_finalizer(&mut self, region: Self::Region) {
        let finalizer = region.lock().finalizers.pop();
        if let Some(entry) = finalizer.and_then(|finalizer| finalizer(region)) {
            region.core.host.schedule(entry);
        }
    }

    fn release(&mut self, _: Self::Region) {}

    fn account_leaks(&mut self, _: Self::Region) {}

    fn closed(&mut self, region: Self::Region) -> Option<Self::Region> {
        let (waiter, fold, alarms) = {
            let mut inner = region.lock();
            (inner.waiter.take(), inner.fold.clone(), std::mem::take(&mut inner.alarms))
        };
        alarms.into_iter().for_each(|alarm| region.core.alarms.cancel(alarm));
        let parent = region.parent.as_ref();
        if let Some(parent) = parent {
            let mut inner = parent.lock();
            inner.children.remove(&region.id);
            if let Some(outcome) = fold.outcome() {
                inner.fold.add(region.id, outcome.clone());
            }
        }
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        parent
    }
}
