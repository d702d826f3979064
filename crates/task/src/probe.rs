//! What tests of the laws see and do beyond what programs can: raw looks, and operations that are
//! otherwise part of a combinator. Not for programs, and not stable.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Cleanup, Reason};
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

use crate::hosted::{HostRegion, HostTask};
use crate::raw::poll_context;
use crate::raw::{Activity, Runnable, TaskAttrs, TaskRef, wake_task};
use crate::region::poll;
use crate::region::{Policy, Region};
use crate::runtime::cx::Cx;
use crate::scope::Scope;
use crate::spawn::{Plan, failed, make};
use crate::{Core, Task};

/// A task as its owner never sees it.
#[derive(Clone)]
pub struct TaskProbe(HostTask);

impl Deref for TaskProbe {
    type Target = HostTask;

    fn deref(&self) -> &HostTask {
        &self.0
    }
}

impl TaskProbe {
    /// The task of a context.
    pub fn of(cx: &Cx) -> TaskProbe {
        TaskProbe(HostTask::of(cx))
    }

    /// The task of a handle.
    pub fn of_task<T, E>(task: &Task<T, E>) -> TaskProbe {
        TaskProbe(HostTask::of_task(task))
    }

    /// Its region.
    pub fn region(&self) -> RegionProbe {
        RegionProbe(self.0.region())
    }

    fn task(&self) -> &TaskRef {
        &self.0.0
    }

    /// Its state.
    pub fn state(&self) -> TaskState {
        self.task().word.load().state()
    }

    /// What cleanup is still allowed.
    pub fn cleanup(&self) -> Option<Cleanup> {
        self.task().cleanup()
    }

    /// Its budget as it stands.
    pub fn budget(&self) -> Budget {
        let free = Budget { priority: self.task().priority(), ..Budget::INFINITE };
        if self.state() == TaskState::Completed {
            // Whoever is over has nothing left.
            return Budget { poll_quota: 0, ..free };
        }
        self.task().limits().map_or(free, |limits| limits.left())
    }

    /// The lane it is queued in.
    pub fn lane(&self) -> Option<Lane> {
        let word = self.task().word.load();
        let queued = word.activity() == Activity::Runnable && !word.is_completed();
        // SAFETY: the probe keeps the cell alive.
        queued.then(|| unsafe { Runnable::lent(self.task().as_ptr()) }.place().lane())
    }

    /// Whether it is a finalizer.
    pub fn is_finalizer(&self) -> bool {
        self.task().is_finalizer()
    }

    /// Wakes it from outside.
    pub fn wake(&self) -> Result<(), Status> {
        let word = self.task().word.load();
        let idle = word.activity() == Activity::Waiting && !word.is_completed();
        if idle && poll_context::with_current(|_| ()).is_none() {
            let lane = match (word.state().in_cancel_lane(), self.task().deadline()) {
                (true, _) => Lane::Cancel,
                (false, Some(_)) => Lane::Timed,
                (false, None) => Lane::Ready,
            };
            self.task().region().core.room_in(lane)?;
        }
        wake_task(self.task());
        Ok(())
    }

    /// A waker of it.
    pub fn waker(&self) -> Waker {
        Waker::clone(&self.task().lend_waker())
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
        task.core().lift_limits(limits);
    }
    task.begin_cleaning();
    task.region().watch_cleanup();
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

/// A region as scopes never show it.
#[derive(Clone)]
pub struct RegionProbe(HostRegion);

impl Deref for RegionProbe {
    type Target = HostRegion;

    fn deref(&self) -> &HostRegion {
        &self.0
    }
}

impl RegionProbe {
    /// A region of somebody's.
    pub fn of(region: Arc<Region>) -> RegionProbe {
        RegionProbe(HostRegion::of(region))
    }

    /// The region itself.
    pub fn region(&self) -> &Arc<Region> {
        &self.0.0
    }

    /// The region as a scope whose tasks have errors of type `E`.
    ///
    /// # Safety
    /// `E` is the error type of all tasks of the region, finalizers included, and of its scope if
    /// it has one: a scope takes the error of a failed task out of its cell as its own.
    pub unsafe fn scope<E>(&self) -> Scope<E> {
        Scope::over(self.region().clone(), PhantomData)
    }

    /// Its law.
    pub fn word(&self) -> RegionWord {
        self.region().lock().word
    }

    /// Its state.
    pub fn state(&self) -> RegionState {
        self.word().state()
    }

    /// How the first failure ended, in a fail-fast region.
    pub fn failure(&self) -> Option<u64> {
        self.region().failed_task()
    }

    /// Why it is closing.
    pub fn reason(&self) -> Option<Arc<Reason>> {
        self.region().cancel_reason()
    }

    /// Opens a region inside.
    pub fn open(
        &self,
        policy: Policy,
        budget: Budget,
        max_children: Option<usize>,
    ) -> Result<RegionProbe, Status> {
        let child = self.region().open_child(policy, budget, None)?;
        child.lock().max_children = max_children;
        Ok(RegionProbe::of(child))
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
        self.region().defer(Box::new(move |region| {
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
        self.region().count_finalizer()?;
        // SAFETY: Send and 'static.
        let entry = unsafe { make(self.region(), finalizing(self.region()), body) }.0?;
        entry.into_iter().for_each(|entry| self.region().core.host.schedule_globally(entry));
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
        failed(self.region(), error)
    }

    /// Reserves an obligation.
    pub fn oblige(&self) -> Result<u64, Status> {
        self.region().oblige()
    }

    /// Resolves an obligation by its number.
    pub fn resolve(&self, id: u64, resolution: Resolution) -> Result<(), Status> {
        self.region().resolve(id, resolution)
    }

    /// Where an obligation stands.
    pub fn obligation(&self, id: u64) -> Result<ObligationState, Status> {
        self.region().obligation(id)
    }

    /// Arms a timer of the region.
    pub fn arm(&self, deadline: Time, wakes: Option<Waker>) -> Result<TimerHandle, Status> {
        self.region().arm(deadline, wakes)
    }

    /// Arms a timer in place of another.
    pub fn rearm(
        &self,
        old: TimerHandle,
        deadline: Time,
        wakes: Option<Waker>,
    ) -> Result<TimerHandle, Status> {
        self.region().rearm(old, deadline, wakes)
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
        let at = *place.get_or_insert_with(|| self.region().core.next_place());
        match self.region().watch_close(at, context.waker()) {
            Some(severity) => Poll::Ready(Ok(severity)),
            None => Poll::Pending,
        }
    }

    /// Gives up a wait for the close.
    pub fn forget_close(&self, place: Option<u64>) {
        if let Some(place) = place {
            self.region().forget_close(place);
        }
    }

    /// Tells everything inside that it is about to be stopped.
    pub fn soft_stop(&self) {
        self.region().stop();
    }

    /// Soft stop, close after `soft`, force after `force_after` more.
    pub fn shutdown(&self, soft: Duration, force_after: Option<Duration>) {
        self.region().shutdown_after(soft, force_after);
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
