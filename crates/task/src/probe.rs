//! What tests of the laws see and do beyond what programs can: raw looks, and operations that are
//! otherwise part of a combinator. Not for programs, and not stable.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Cleanup, Kind, Reason};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::{Operation, RegionState, RegionWord};
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Placement, TimerHandle};

pub use crate::dump::quoted;

use crate::region::{Policy, Region};
use crate::scope::Scope;
use crate::spawn::{Plan, failed, make};
use crate::task::audit::Owner;
use crate::task::cell::{Activity, Runnable, TaskAttrs, TaskRef};
use crate::task::context;
use crate::task::cx::Cx;
use crate::task::poll;
use crate::{Core, Task};

/// A task as its owner never sees it.
#[derive(Clone)]
pub struct TaskProbe(TaskRef);

impl TaskProbe {
    /// The task of a context.
    pub fn of(cx: &Cx) -> TaskProbe {
        TaskProbe(cx.task().clone().given_to(Owner::Probe))
    }

    /// The task of a handle.
    pub fn of_task<T, E>(task: &Task<T, E>) -> TaskProbe {
        TaskProbe(task.to_ref().given_to(Owner::Probe))
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Its region.
    pub fn region(&self) -> RegionProbe {
        RegionProbe(self.0.region.clone())
    }

    /// Its state.
    pub fn state(&self) -> TaskState {
        self.0.word.load().state()
    }

    /// Why it was asked to stop.
    pub fn reason(&self) -> Option<Arc<Reason>> {
        self.0.reason()
    }

    /// What cleanup is still allowed.
    pub fn cleanup(&self) -> Option<Cleanup> {
        self.0.cleanup()
    }

    /// Its budget as it stands.
    pub fn budget(&self) -> Budget {
        let free = Budget { priority: self.0.priority(), ..Budget::INFINITE };
        if self.state() == TaskState::Completed {
            // Whoever is over has nothing left.
            return Budget { poll_quota: 0, ..free };
        }
        self.0.limits().map_or(free, |limits| limits.left())
    }

    /// The lane it is queued in.
    pub fn lane(&self) -> Option<Lane> {
        let word = self.0.word.load();
        let queued = word.activity() == Activity::Runnable && !word.is_completed();
        // SAFETY: the probe keeps the cell alive.
        queued.then(|| unsafe { Runnable::lent(self.0.as_ptr()) }.place().lane())
    }

    /// Whether it is a finalizer.
    pub fn is_finalizer(&self) -> bool {
        self.0.is_finalizer()
    }

    /// Asks it to stop: whether for the first time.
    pub fn cancel(&self, kind: Kind, message: Option<Arc<str>>) -> Result<bool, Status> {
        let word = self.0.word.load();
        if word.is_completed() || self.0.is_finalizer() {
            return Ok(false);
        }
        let adds = match word.activity() {
            Activity::Runnable => self.lane() != Some(Lane::Cancel),
            Activity::Waiting => !word.state().acknowledged(),
            Activity::Running => false,
        };
        if adds {
            self.0.region.core.room_in(Lane::Cancel)?;
        }
        let reason = asked(&self.0.region, kind, message);
        Ok(self.0.region.cancel_task(&self.0, &Arc::new(reason), kind.cleanup()))
    }

    /// Wakes it from outside.
    pub fn wake(&self) -> Result<(), Status> {
        let word = self.0.word.load();
        let idle = word.activity() == Activity::Waiting && !word.is_completed();
        if idle && context::with_current(|_| ()).is_none() {
            let lane = match (word.state().in_cancel_lane(), self.0.deadline()) {
                (true, _) => Lane::Cancel,
                (false, Some(_)) => Lane::Timed,
                (false, None) => Lane::Ready,
            };
            self.0.region.core.room_in(lane)?;
        }
        poll::wake(&self.0);
        Ok(())
    }

    /// A waker of it.
    pub fn waker(&self) -> Waker {
        Waker::clone(&self.0.lend_waker())
    }
}

fn finalizing(region: &Region) -> Plan {
    let attrs = Some(Box::new(TaskAttrs { finalizer: true, ..TaskAttrs::default() }));
    let budget = Some(region.finalizer_budget());
    Plan { operation: Operation::SpawnFinalizer, attrs, budget, ..Plan::default() }
}

/// The body of a task is over, and what it left to be done comes next.
pub fn body_ended(cx: &Cx) {
    let task = cx.task();
    if task.body_ended(Severity::Ok) || task.is_finalizer() {
        return;
    }
    if let Some(limits) = task.limits() {
        limits.lift(&task.region.core);
    }
    task.begin_cleaning();
    task.region.watch_cleanup();
}

/// Called by a future that is dropped by force: what it had to resolve is resolved, and its waits
/// end next.
pub fn resolved(cx: &Cx) {
    poll::note_overrun(cx.task());
}

/// An error came out of cleanup.
pub fn cleanup_error(cx: &Cx) {
    cx.task().tell(EventKind::CleanupError {});
}

/// A reason as somebody asks for it here and now.
fn asked(region: &Region, kind: Kind, message: Option<Arc<str>>) -> Reason {
    let asker = context::with_current(|task| Cx::of(task.clone()).id());
    let mut reason = region.reason(kind);
    (reason.origin_task, reason.message) = (asker, message);
    reason
}

/// A region as scopes never show it.
#[derive(Clone)]
pub struct RegionProbe(pub Arc<Region>);

impl RegionProbe {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The region as a scope whose tasks have errors of type `E`.
    ///
    /// # Safety
    /// `E` is the error type of all tasks of the region, finalizers included, and of its scope if
    /// it has one: a scope takes the error of a failed task out of its cell as its own.
    pub unsafe fn scope<E>(&self) -> Scope<E> {
        Scope::over(self.0.clone(), PhantomData)
    }

    /// Opens a region inside, with the one scope it has.
    pub fn open_scope<E>(
        &self,
        policy: Policy,
        budget: Budget,
    ) -> Result<(RegionProbe, Scope<E>), Status> {
        let child = self.open(policy, budget, None)?;
        // SAFETY: the region is new, and this scope is the only one that starts tasks in it.
        let scope = unsafe { child.scope() };
        Ok((child, scope))
    }

    /// Its law.
    pub fn word(&self) -> RegionWord {
        self.0.lock().word
    }

    /// Its state.
    pub fn state(&self) -> RegionState {
        self.word().state()
    }

    /// How it has closed.
    pub fn outcome(&self) -> Option<Severity> {
        self.0.outcome()
    }

    /// How the first failure ended, in a fail-fast region.
    pub fn failure(&self) -> Option<u64> {
        self.0.failed_task()
    }

    /// Why it is closing.
    pub fn reason(&self) -> Option<Arc<Reason>> {
        self.0.cancel_reason()
    }

    /// Opens a region inside.
    pub fn open(
        &self,
        policy: Policy,
        budget: Budget,
        max_children: Option<usize>,
    ) -> Result<RegionProbe, Status> {
        let child = self.0.open_child(policy, budget, None)?;
        child.lock().max_children = max_children;
        Ok(RegionProbe(child))
    }

    /// Its author is done.
    pub fn end(&self) {
        self.0.end();
    }

    /// Registers a finalizer that may fail.
    ///
    /// # Safety
    /// As [`scope`](RegionProbe::scope), for `E`.
    pub unsafe fn defer<F, B, E>(&self, body: F) -> Result<(), Status>
    where
        F: FnOnce(Cx) -> B + Send + 'static,
        B: Future<Output = Result<(), E>> + Send + 'static,
        E: Send + 'static,
    {
        self.0.defer(Box::new(move |region| {
            let plan = finalizing(region);
            // SAFETY: Send and 'static.
            unsafe { make(region, plan, body) }.0.ok().flatten()
        }))
    }

    /// Starts a finalizer in a region that is finalizing.
    ///
    /// # Safety
    /// As [`scope`](RegionProbe::scope), for `E`.
    pub unsafe fn spawn_finalizer<F, B, E>(&self, body: F) -> Result<(), Status>
    where
        F: FnOnce(Cx) -> B + Send + 'static,
        B: Future<Output = Result<(), E>> + Send + 'static,
        E: Send + 'static,
    {
        self.0.count_finalizer()?;
        // SAFETY: Send and 'static.
        let entry = unsafe { make(&self.0, finalizing(&self.0), body) }.0?;
        entry.into_iter().for_each(|entry| self.0.core.host.schedule_globally(entry));
        Ok(())
    }

    /// Records a task that failed to start.
    ///
    /// # Safety
    /// As [`scope`](RegionProbe::scope), for `E`.
    pub unsafe fn spawn_failed<E>(&self, error: E) -> Result<Task<(), E>, Status>
    where
        E: Send + 'static,
    {
        failed(&self.0, error)
    }

    /// Closes it with a reason: whether for the first time.
    pub fn close(
        &self,
        kind: Kind,
        message: Option<Arc<str>>,
        force_after: Option<Duration>,
    ) -> bool {
        let state = self.state();
        if state == RegionState::Closed {
            return false;
        }
        let reason = asked(&self.0, kind, message);
        self.0.close(Arc::new(reason), kind.cleanup());
        if let Some(after) = force_after {
            self.0.force_after(after);
        }
        state == RegionState::Open
    }

    /// Opens or shuts its gate.
    pub fn set_admission(&self, open: bool) {
        self.0.lock().shut = !open;
    }

    /// Reserves an obligation.
    pub fn oblige(&self) -> Result<u64, Status> {
        self.0.oblige()
    }

    /// Resolves an obligation by its number.
    pub fn resolve(&self, id: u64, resolution: Resolution) -> Result<(), Status> {
        self.0.resolve(id, resolution)
    }

    /// Where an obligation stands.
    pub fn obligation(&self, id: u64) -> Result<ObligationState, Status> {
        self.0.obligation(id)
    }

    /// Arms a timer of the region.
    pub fn arm(&self, deadline: Time, wakes: Option<Waker>) -> Result<TimerHandle, Status> {
        self.0.arm(deadline, wakes)
    }

    /// Arms a timer in place of another.
    pub fn rearm(
        &self,
        old: TimerHandle,
        deadline: Time,
        wakes: Option<Waker>,
    ) -> Result<TimerHandle, Status> {
        self.0.rearm(old, deadline, wakes)
    }

    /// Waits for the close, as a checked operation.
    pub fn poll_close(
        &self,
        cx: &Cx,
        place: &mut Option<u64>,
        context: &Context<'_>,
    ) -> Poll<Result<Severity, Status>> {
        if cx.checkpoint().is_err() {
            return Poll::Ready(Err(Status::Cancelled));
        }
        let at = *place.get_or_insert_with(|| self.0.core.next_place());
        match self.0.watch_close(at, context.waker()) {
            Some(severity) => Poll::Ready(Ok(severity)),
            None => Poll::Pending,
        }
    }

    /// Gives up a wait for the close.
    pub fn forget_close(&self, place: Option<u64>) {
        if let Some(place) = place {
            self.0.forget_close(place);
        }
    }

    /// Tells everything inside that it is about to be stopped.
    pub fn soft_stop(&self) {
        self.0.stop();
    }

    /// Soft stop, close after `soft`, force after `force_after` more.
    pub fn shutdown(&self, soft: Duration, force_after: Option<Duration>) {
        self.0.shutdown_after(soft, force_after);
    }
}

/// Looks at what all share.
impl Core {
    /// Live timers, the earliest deadline, and the slots they use.
    #[doc(hidden)]
    pub fn probe_timers(&self) -> (usize, Option<Time>, usize) {
        self.timers.with_wheel(|wheel| match wheel {
            Some(wheel) => (wheel.len(), wheel.next_deadline(), wheel.storage()),
            None => (0, None, 0),
        })
    }

    /// A timer's deadline and where it waits.
    #[doc(hidden)]
    pub fn probe_timer(&self, handle: TimerHandle) -> Option<(Time, Option<Placement>)> {
        self.timers.with_wheel(|wheel| {
            let wheel = wheel?;
            let (deadline, _) = wheel.get(handle)?;
            Some((deadline, wheel.level_of(handle)))
        })
    }

    /// Takes a timer out: whether it was armed. Whoever sleeps by it is woken.
    #[doc(hidden)]
    pub fn probe_disarm(&self, handle: TimerHandle) -> bool {
        self.cancel_timer(handle)
    }

    /// How many tasks were numbered so far.
    #[doc(hidden)]
    pub fn probe_tasks_made(&self) -> u64 {
        self.tasks_made()
    }

    /// How many regions' obligations were numbered so far.
    #[doc(hidden)]
    pub fn probe_obligations_made(&self) -> u64 {
        self.next_obligation.load(Relaxed) - 1
    }
}
