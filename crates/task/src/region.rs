//! Regions: who owns whom, and how a close goes through the tree.
//!
//! The order of things is the kernel's: [`RegionWord`] counts and says what is next,
//! [`cascade`] goes from a task to its region to the parent. Here is the storage: one short lock
//! per region, an intrusive list of its live tasks, and its live child regions. No user code and no
//! host call runs under the lock; locks of two regions are never held together.
//!
//! [`cascade`]: asx_kernel::cascade

mod allowed;
mod completion_buffer;
mod described;
#[cfg(not(any(loom, target_family = "wasm")))]
mod discard;
pub(crate) mod grace;
pub(crate) mod origin;
#[cfg(not(target_family = "wasm"))]
mod overdue;
mod owner;
mod parent;
pub(crate) mod poll;
mod region_pool;
pub(crate) mod region_ref;
pub(crate) mod resources;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod tree;
#[cfg(target_family = "wasm")]
mod untimed;
pub(crate) mod walk;
mod watch;

use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use asx_journal::Stamp;
use asx_kernel::arena::Key;
use asx_kernel::budget::{Budget, Exhausted};
use asx_kernel::cancel::{Cleanup, Kind, Reason};
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::region::{Duty, Operation, RegionState, RegionWord};
use asx_kernel::status::Status;
use asx_kernel::task::{TaskEffect, TaskState};

use crate::core::timers::TimeDenied;
use crate::core::{Core, Health};
use crate::error::TOO_FAR;
use crate::footprint::{Leave, Object};
use crate::inline_map::InlineMap;
use crate::locals::Locals;
use crate::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::raw::Activity;
use crate::raw::audit::{HomeBooks, Members, Owner, Seal};
use crate::raw::foreign_wakers;
use crate::raw::outcome::Cancelled;
use crate::raw::{Header, Requested, Runnable, Span, TaskRef};
use crate::spinlock::SpinLock;
use completion_buffer::CompletionBuffer;
use grace::{Grace, Graces};
#[cfg(not(target_family = "wasm"))]
pub(crate) use overdue::Cleaning;
use parent::Parent;
use region_ref::CoreRef;
use resources::Resources;
use tree::Tree;
#[cfg(target_family = "wasm")]
pub(crate) use untimed::Cleaning;

/// A region of the tree.
///
/// Fields are in the order of who uses them: what spawning reads, what spawning writes under the
/// lock and what ending writes without it lie apart, with what few use in between. So processors
/// that spawn and end tasks of one region do not take these places from each other.
#[repr(C)]
pub struct Region {
    pub(crate) core: CoreRef,
    pub(crate) id: u64,
    /// What the tasks inside inherit from around it.
    pub(crate) locals: Option<Arc<Locals>>,
    /// How many cells belong to it; see [`region_ref`].
    region_refs: AtomicUsize,
    pub(crate) policy: Policy,
    /// Whether the budget is infinite.
    pub(crate) unbounded: bool,
    /// Whether tasks may see that they are about to be stopped.
    stopping: AtomicBool,
    /// Whether a time for cleanup was stated with the cancel; see `grace`.
    pub(crate) patient: AtomicBool,
    /// How many polls of cleanup a cancel allows in here; 0: as its kind says.
    cleanup_polls: AtomicU32,
    /// How long cleanup may take in here, in nanoseconds; `u64::MAX`: for ever.
    cleanup_time: AtomicU64,
    /// Whether somebody will look soon who cleans up; see `overdue`.
    #[cfg(not(target_family = "wasm"))]
    watched: AtomicBool,
    /// Whether the body of the scope is to stop; says that `inner.reason` is set.
    cancelled: AtomicBool,
    object: Object,
    /// What everything inside is bounded by.
    pub(crate) budget: Budget,
    pub(crate) label: Label,
    pub(crate) span: Span,
    completed: CompletionBuffer,
    inner: SpinLock<Inner>,
    stamp: Stamp,
    /// Goes last: it keeps the core (rule 2 of [`region_ref`]).
    parent: Parent,
    books: HomeBooks,
    /// After all else, in an audit.
    seal: Seal<Region>,
}

/// What people call a region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// Its name, if it was given one.
    pub(crate) name: Option<Arc<str>>,
    /// Where its scope was opened, as far as that is known.
    pub(crate) at: Option<&'static Location<'static>>,
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

/// What changes; what does with every task lies at the end, beside the lock.
#[repr(C)]
pub(crate) struct Inner {
    pub(crate) children: InlineMap<Arc<Region>>,
    finalizers: Vec<Finalizer>,
    pub(crate) cancel: Option<(Arc<Reason>, Cleanup)>,
    failure: Option<TaskRef>,
    /// The finalizer that panicked first.
    broken: Option<TaskRef>,
    /// Why the body of the scope is to stop though the region is open: a child has failed.
    failed: Option<Arc<Reason>>,
    /// What happens when patience is over, while the region is not closed.
    pub(crate) graces: Graces,
    /// Who waits for the close, in the order of asking.
    waiters: InlineMap<Waker>,
    /// Who is told when the body is to stop.
    body: Option<Waker>,
    pub(crate) resources: Option<Box<Resources>>,
    /// How many children may live at once.
    pub(crate) max_children: Option<usize>,
    first: Option<NonNull<Header>>,
    last: Option<NonNull<Header>>,
    members: Members,
    pub(crate) word: RegionWord,
    /// The cancel is a failure among equals: it reaches them as what it is.
    targeted: bool,
    /// Nobody will ask how the tasks inside have failed.
    abandoned: bool,
    /// Nothing new is taken in for the time being.
    pub(crate) shut: bool,
    /// The fold of the outcomes so far, as far as anybody sees it.
    fold: Severity,
}

// SAFETY: the list's pointers are followed under the lock only, to cells the region keeps alive.
unsafe impl Send for Inner {}

/// Makes the task of a finalizer, in the region that finalizes.
pub(crate) type Finalizer = Box<dyn FnOnce(&Arc<Region>) -> Option<Runnable> + Send>;

impl Core {
    /// Creates a region without a parent.
    pub fn root(self: &Arc<Core>) -> Arc<Region> {
        Region::root(self.clone())
    }
}

impl Region {
    pub(crate) fn root(core: Arc<Core>) -> Arc<Region> {
        let core = CoreRef::first(core);
        let policy = Policy::CollectAll;
        let budget = Budget::INFINITE;
        let polls = core.cleanup_polls;
        let time = core.cleanup_time;
        let label = Label::default();
        let root = Region::made(core.next_region(), core, None, policy, budget, None, label);
        root.set_cleanup_polls(polls);
        root.set_cleanup_time(time);
        root.core.region_added();
        root.note(EventKind::RegionOpened { parent: None });
        root.open_span();
        root
    }

    /// A region in new memory.
    #[inline(never)]
    fn made(
        id: u64,
        core: CoreRef,
        parent: Option<Arc<Region>>,
        policy: Policy,
        budget: Budget,
        locals: Option<Arc<Locals>>,
        label: Label,
    ) -> Arc<Region> {
        let inner = Inner {
            word: RegionWord::default(),
            first: None,
            last: None,
            members: Members::open(),
            children: InlineMap::default(),
            finalizers: Vec::new(),
            cancel: None,
            targeted: false,
            failure: None,
            broken: None,
            abandoned: false,
            failed: None,
            shut: false,
            max_children: None,
            resources: None,
            fold: Severity::Ok,
            graces: Graces::default(),
            waiters: InlineMap::default(),
            body: None,
        };
        let region = Arc::new(Region {
            core,
            id,
            parent: Parent(parent),
            policy,
            unbounded: budget == Budget::INFINITE,
            budget,
            locals,
            stopping: AtomicBool::new(false),
            patient: AtomicBool::new(false),
            cleanup_polls: AtomicU32::new(0),
            cleanup_time: AtomicU64::new(u64::MAX),
            #[cfg(not(target_family = "wasm"))]
            watched: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            object: Object::region(),
            label,
            span: Span::default(),
            region_refs: AtomicUsize::new(0),
            completed: CompletionBuffer::new(),
            inner: SpinLock::new(inner),
            stamp: Stamp::default(),
            books: HomeBooks::open(id),
            seal: Seal::open(),
        });
        region.seal.set(&region, "region", id, &region.core.registry);
        region
    }

    /// Opens a region inside this one; its budget can only be tighter.
    pub(crate) fn open_child(
        self: &Arc<Self>,
        policy: Policy,
        budget: Budget,
        locals: Option<Arc<Locals>>,
    ) -> Result<Arc<Region>, Status> {
        self.open_labelled(policy, budget, locals, Label::default())
    }

    /// [`open_child`](Region::open_child) with what people call it.
    pub(crate) fn open_labelled(
        self: &Arc<Self>,
        policy: Policy,
        budget: Budget,
        locals: Option<Arc<Locals>>,
        label: Label,
    ) -> Result<Arc<Region>, Status> {
        let mut inner = self.lock();
        inner.admit_child(&self.core)?;
        self.core.room_for_region()?;
        let child = self.child(policy, budget, locals, label);
        inner.word.child_added();
        inner.children.insert(child.id, child.clone());
        if self.core.recording() {
            self.count_ends();
            self.core.touch(self.stamp());
            child.note(EventKind::RegionOpened { parent: Some(self.id) });
            self.core.touch(self.stamp());
        }
        drop(inner);
        child.open_span();
        Ok(child)
    }

    /// A region inside this one, that nobody knows yet.
    #[inline]
    fn child(
        self: &Arc<Self>,
        policy: Policy,
        mut budget: Budget,
        mut locals: Option<Arc<Locals>>,
        mut label: Label,
    ) -> Arc<Region> {
        let id = self.core.next_region();
        // What is infinite takes nothing from the other.
        if !self.unbounded {
            budget = self.budget.meet(budget);
        }
        let polls = self.cleanup_polls.load(Ordering::Relaxed);
        let time = self.cleanup_time.load(Ordering::Relaxed);
        let kept = region_pool::renewed(|region| {
            region.id = id;
            region.core = CoreRef::inside(self);
            region.parent = Parent(Some(self.clone()));
            region.policy = policy;
            region.unbounded = budget == Budget::INFINITE;
            region.budget = budget;
            region.locals = locals.take();
            region.label = std::mem::take(&mut label);
            region.object = Object::region();
        });
        let child = kept.unwrap_or_else(|| {
            let core = CoreRef::inside(self);
            let parent = Some(self.clone());
            Region::made(id, core, parent, policy, budget, locals, label)
        });
        child.cleanup_polls.store(polls, Ordering::Relaxed);
        child.cleanup_time.store(time, Ordering::Relaxed);
        child
    }

    /// Records something about the region, whose lock is held, or which nobody knows yet.
    #[inline]
    pub(crate) fn note(&self, kind: EventKind) {
        if self.core.recording() {
            self.count_ends();
            let subject = Subject { region: Some(self.id), ..Subject::default() };
            self.core.note_of(self.stamp(), subject, kind);
        }
    }

    /// What is recorded of it next comes after the end of those who have gone. That is so of all
    /// but the spawning of a task, which does not depend on them where there is no limit. The lock
    /// is held.
    #[inline]
    fn count_ends(&self) {
        if let Some(ended) = self.completed.ended() {
            self.stamp.raise(ended.last());
        }
    }

    /// The last stamp of what was recorded of it.
    #[inline]
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Opens the span of a region that was just opened.
    #[inline]
    fn open_span(&self) {
        #[cfg(feature = "tracing")]
        {
            let parent = self.parent.as_deref().map(|parent| (parent.id, &parent.span));
            self.span.open_region(&self.core.panics, self.id, parent, &self.policy);
            // Other threads know the region already, and may have closed it.
            if let Some(outcome) = self.outcome() {
                self.span.end(outcome);
            }
        }
    }

    pub(crate) fn region_id(&self) -> RegionId {
        RegionId(Key { generation: self.id, index: 0 })
    }

    /// Registers a finalizer.
    pub(crate) fn defer(&self, finalizer: Finalizer) -> Result<(), Status> {
        let mut inner = self.lock();
        inner.admit(Operation::Defer)?;
        inner.word.finalizer_added();
        inner.finalizers.push(finalizer);
        Ok(())
    }

    /// Opens or closes the admission gate.
    pub(crate) fn set_admission(&self, open: bool) {
        self.object.write();
        self.lock().shut = !open;
    }

    /// Limits how many tasks and regions live inside at a time.
    pub(crate) fn limit_children(&self, children: u32) {
        self.lock().max_children = Some(children as usize);
    }

    /// Counts a finalizer that is about to be spawned directly.
    pub(crate) fn count_finalizer(&self) -> Result<(), Status> {
        self.object.write();
        let mut inner = self.lock();
        inner.admit(Operation::SpawnFinalizer)?;
        inner.word.task_added();
        Ok(())
    }

    /// Its name, for whatever else belongs to it.
    #[cfg(feature = "lab")]
    pub(crate) fn object(&self) -> Object {
        self.object
    }

    /// Remembers the first failure of a fail-fast region, or that of its finalizers, of which there
    /// is no handle that would tell; whether this is it.
    pub(crate) fn note_failure(&self, task: &TaskRef) -> bool {
        if self.policy != Policy::FailFast && !task.is_finalizer() {
            return false;
        }
        self.object.write();
        let mut inner = self.lock();
        if inner.abandoned {
            return false;
        }
        let place = if task.is_finalizer() { &mut inner.broken } else { &mut inner.failure };
        let first = place.is_none();
        if first {
            *place = Some(task.clone().given_to(Owner::Failure));
        }
        first
    }

    /// The task that failed first, and the finalizer that did, once.
    pub(crate) fn take_failures(&self) -> [Option<TaskRef>; 2] {
        let mut inner = self.lock();
        [inner.failure.take(), inner.broken.take()]
    }

    /// Nobody asks for failures any more: each keeps its region, which must not keep it.
    pub(crate) fn forget_failures(&self) {
        self.lock().abandoned = true;
        drop(self.take_failures());
    }

    /// Cancels everything inside because a task failed, the body of the scope too. The region stays
    /// open until its author is done.
    pub(crate) fn fail(self: &Arc<Self>, kind: Kind, task: u64) {
        let reason = self.reason(kind).with_task(TaskId(Key { generation: task, index: 0 }));
        let reason = Arc::new(reason);
        let cleanup = kind.cleanup();
        self.span.cancel_requested(&reason);
        let body = {
            let mut inner = self.lock();
            inner.failed = Some(reason.clone());
            self.cancelled.store(true, Ordering::Release);
            inner.body.take()
        };
        if let Some(waker) = body {
            self.core.wake(waker);
        }
        self.cancel_all((&reason, cleanup), (&reason, cleanup));
    }

    /// Whether a child has failed and everything inside was asked to stop.
    pub(crate) fn has_failed(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) && self.lock().failed.is_some()
    }

    /// A reason that begins here and now.
    pub(crate) fn reason(&self, kind: Kind) -> Reason {
        Reason::new(kind, self.region_id(), self.core.host.now())
    }

    /// The author of the scope is done: close when nothing lives inside any more.
    pub(crate) fn end(self: &Arc<Self>) {
        self.object.read();
        let duty = {
            let mut inner = self.lock_for_good();
            inner.word.end();
            self.advance(&mut inner)
        };
        self.object.leave(if duty == Duty::Wait { Leave::Early } else { Leave::AfterAll });
        Tree::go_on(self, duty);
    }

    /// Closes the region if no task and no region lives inside: for hosts that are dropped and run
    /// nothing any more.
    pub fn end_if_empty(self: &Arc<Self>) {
        let is_empty = {
            let inner = self.lock();
            inner.word.live_tasks() == 0 && inner.word.open_children() == 0
        };
        if is_empty {
            self.end();
        }
    }

    /// Ends admission and asks everything inside to stop. On a closing region it strengthens.
    pub(crate) fn close(self: &Arc<Self>, reason: Arc<Reason>, cleanup: Cleanup) {
        self.object.write();
        self.span.cancel_requested(&reason);
        let (first, tell, body) = {
            let mut inner = self.lock_for_good();
            if inner.word.state() == RegionState::Closed {
                return;
            }
            let kind = reason.kind;
            let (reason, cleanup, news) = match inner.cancel.take() {
                None => {
                    self.core.region_closing(inner.outstanding());
                    (reason, cleanup, true)
                }
                Some((old, allowed)) => {
                    let both = old.combine(allowed, &reason, cleanup);
                    let news = both.stronger || both.cleanup != allowed;
                    (if both.stronger { reason } else { old }, both.cleanup, news)
                }
            };
            inner.cancel = Some((reason, cleanup));
            self.cancelled.store(true, Ordering::Release);
            let first = inner.word.close();
            self.note(EventKind::RegionCancelled { kind, strengthened: !first });
            if first {
                let from = RegionState::Open;
                let to = RegionState::Closing;
                self.note(EventKind::RegionMoved { from, to });
            }
            let state = inner.word.state();
            // What was told as much before is not told again, unless that goes on record: in a deep
            // tree, where each level asks all that are below it, the work would grow by the square.
            let tell = matches!(state, RegionState::Closing | RegionState::Draining)
                && (news || self.core.recording());
            (first, tell, inner.body.take())
        };
        if let Some(waker) = body {
            self.core.wake(waker);
        }
        if first {
            Tree::settle(self);
        } else if tell {
            self.cancel_inside();
        }
    }

    /// Closes because the body of the scope failed: what is inside is told just that.
    pub(crate) fn close_failed(self: &Arc<Self>) {
        self.lock().targeted = true;
        self.close_as(Kind::FailFast);
    }

    /// [`close`](Region::close) for a reason of this kind that begins here and now.
    pub(crate) fn close_as(self: &Arc<Self>, kind: Kind) {
        self.close(Arc::new(self.reason(kind)), kind.cleanup());
    }

    /// Why a task or region is not taken in, for who can be told by a cancel only.
    pub(crate) fn refusal(&self, status: Status) -> Cancelled {
        let kind = match status {
            Status::RegionNotOpen | Status::RegionClosed => Kind::ParentCancelled,
            _ => Kind::ResourceUnavailable,
        };
        self.body_cancel(false).unwrap_or_else(|| self.refused(kind, status).into())
    }

    /// A reason that says why. On a page the name of the status does: its text would be loaded for
    /// this alone.
    #[cold]
    #[inline(never)]
    fn refused(&self, kind: Kind, status: Status) -> Reason {
        let why = if cfg!(target_family = "wasm") { status.name() } else { status.text() };
        self.reason(kind).with_message(why)
    }

    /// A task of this region cannot wait for a time: it is asked to stop, for this reason.
    #[cold]
    pub(crate) fn refuse_wait(&self, task: &TaskRef, status: Status) -> Arc<Reason> {
        let kind = Kind::ResourceUnavailable;
        let reason = match status {
            Status::CapabilityDenied => {
                let why = match self.core.time_denied() {
                    Some(TimeDenied::Timer) => "timer capability denied to a task's timer",
                    _ => "clock capability denied to a task's timer",
                };
                self.reason(kind).with_message(why)
            }
            Status::TimerDurationExceeded => {
                // A page has no room for the sentence.
                let name = "TIMER_DURATION_EXCEEDED: max_timer_duration";
                let why = if cfg!(target_family = "wasm") { name } else { TOO_FAR };
                self.reason(kind).with_message(why)
            }
            status => self.refused(kind, status),
        };
        let reason = Arc::new(reason.with_refusal(status));
        self.cancel_task(task, &reason, kind.cleanup());
        reason
    }

    /// What went wrong in the tasks of the runtime.
    #[inline]
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// Stops everything inside gently, for good. It closes as soon as nothing lives inside any
    /// more: patience is for what does.
    pub fn shutdown(self: &Arc<Self>, grace: Grace) {
        self.stop_within(grace.soft, grace.hard, Kind::Shutdown);
        self.end();
    }

    /// [`shutdown`](Region::shutdown) of a root; a program goes on in its region until it is asked
    /// to stop.
    pub(crate) fn stop_all(self: &Arc<Self>, grace: Grace) {
        match self.parent.is_none() {
            true => self.shutdown(grace),
            false => self.stop_within(grace.soft, grace.hard, Kind::Shutdown),
        }
    }

    /// Asks one task of this region to stop: true the first time.
    pub(crate) fn cancel_task(
        &self,
        task: &TaskRef,
        reason: &Arc<Reason>,
        cleanup: Cleanup,
    ) -> bool {
        self.cancel_task_with(task, reason, self.allowed(cleanup))
    }

    /// [`cancel_task`](Region::cancel_task), with this allowance whatever the region's is.
    pub(crate) fn cancel_task_with(
        &self,
        task: &TaskRef,
        reason: &Arc<Reason>,
        cleanup: Cleanup,
    ) -> bool {
        task.span.cancel_requested(reason);
        // SAFETY: the caller keeps the task alive.
        let (first, entry) = unsafe { request(task.as_ptr(), reason, cleanup) };
        if let Some(entry) = entry {
            self.core.host.schedule(entry);
        }
        if task.is_blocking() {
            foreign_wakers::notify(task);
        }
        first
    }

    /// A part of a task's budget has run out.
    pub(crate) fn exhausted(&self, task: &TaskRef, what: Exhausted) {
        let kind = what.kind();
        // An alarm may ring for a task that is over by now.
        task.tell_if(|state| state != TaskState::Completed, EventKind::BudgetExhausted { kind });
        let reason = self.reason(kind).with_task(TaskId(Key { generation: task.id(), index: 0 }));
        self.cancel_task(task, &Arc::new(reason), kind.cleanup());
    }

    /// The task sees its cancel, if there is one.
    pub(crate) fn acknowledge(&self, task: &Header) -> Option<Cancelled> {
        let reason = task.acknowledge()?;
        task.region().watch_cleanup();
        if let Some(limits) = task.limits() {
            self.core.lift_limits(limits);
        }
        task.span.cancel_seen(&reason);
        Some(Cancelled::from(reason))
    }

    /// The reason a task is ended by force for.
    pub(crate) fn reason_to_force(&self, task: &Header) -> Arc<Reason> {
        let out_of_polls = || {
            let task = TaskId(Key { generation: task.id(), index: 0 });
            Arc::new(self.reason(Kind::PollQuota).with_task(task))
        };
        task.reason().unwrap_or_else(out_of_polls)
    }

    /// The reason a task of this region was asked to stop for.
    pub(crate) fn reason_of(&self, task: &Header) -> Arc<Reason> {
        task.reason().unwrap_or_else(|| Arc::new(self.reason(Kind::User)))
    }

    /// Asks everything inside to stop: own tasks, then child regions, in creation order.
    fn cancel_inside(&self) {
        let (reason, cleanup, targeted) = {
            let inner = self.lock();
            let Some((reason, cleanup)) = inner.cancel.clone() else { return };
            (reason, cleanup, inner.targeted)
        };
        let limits = self.core.chain;
        let inherited = self.reason(Kind::ParentCancelled).caused_by((*reason).clone(), limits);
        let inherited = Arc::new(inherited);
        let passed_on = cleanup.passed_on();
        let tasks = if targeted { (&reason, cleanup) } else { (&inherited, passed_on) };
        self.cancel_all(tasks, (&inherited, passed_on));
    }

    /// Asks all tasks and then all child regions to stop, each for its reason.
    fn cancel_all(&self, tasks: (&Arc<Reason>, Cleanup), regions: (&Arc<Reason>, Cleanup)) {
        let mut entries = Vec::new();
        let mut jobs = Vec::new();
        let allowed = self.allowed(tasks.1);
        let children: Vec<_> = {
            let inner = self.lock();
            inner.each_task(|task| {
                // SAFETY: the task is of this region, whose lock is held.
                unsafe {
                    if !task.as_ref().is_finalizer() {
                        entries.extend(request(task, tasks.0, allowed).1);
                    }
                    // A page refuses jobs.
                    let job = !cfg!(target_family = "wasm") && task.as_ref().is_blocking();
                    if job && task.as_ref().word.load().has_foreign() {
                        jobs.push(task.addr().get());
                    }
                }
            });
            inner.children()
        };
        self.core.host.schedule_all(entries);
        // What runs on a thread of its own is not polled for the request.
        jobs.into_iter().for_each(|job| foreign_wakers::notify_at(&self.core.panics, job));
        walk::close_all(children, regions.0, regions.1);
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
    let Requested::Live { effect, enqueue, moved } = header.request(reason, cleanup) else {
        return (false, None);
    };
    let first = effect == TaskEffect::Requested;
    #[cfg(not(any(loom, target_family = "wasm")))]
    if first && header.word.load().activity() == Activity::Running {
        header.core().watch_running(header, header.region());
    }
    if moved {
        let lane = if first { header.own_lane() } else { Lane::Cancel };
        header.core().host.dead_entries(lane, 1);
    }
    // SAFETY: the request has counted a reference for it.
    let entry = enqueue.then(|| unsafe { Runnable::new(task) });
    (first, entry)
}

impl Inner {
    /// The child regions, in order. Not inlined: every walk of the tree calls it.
    #[inline(never)]
    pub(crate) fn children(&self) -> Vec<Arc<Region>> {
        self.children.values().cloned().collect()
    }
}
