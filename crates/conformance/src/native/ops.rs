//! Ops on regions, tasks, obligations and timers.

use super::script::{Caller, Own, Script, ScriptError};
use super::{Answer, World, found, ready, scope};
use crate::body::BodyRunner;
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{BudgetKeys, Move, Name, Op};
use asx_kernel::budget::Budget;
use asx_kernel::lanes::Priority;
use asx_kernel::obligation::ObligationState;
use asx_kernel::session::Resolution;
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use asx_runtime::probe::{RegionProbe, TaskProbe};
use asx_runtime::{Cx, Policy, Scope};
use core::task::{Poll, Waker};
use std::sync::{Arc, Mutex};

type By<'a, 'b> = Option<&'a Caller<'b>>;

impl World {
    /// Does an op, for the script or for a task.
    pub(super) fn operate(
        self: &Arc<Self>,
        op: &Op,
        mut caller: Option<Caller<'_>>,
    ) -> Poll<Reply> {
        let by = caller.as_ref();
        let answer = match op {
            Op::Check(subject) => self.look(subject, scope(by)).map(Poll::Ready),
            Op::Law(law) => ready(crate::laws::answer(law, self.seed)),
            Op::Browser(op) => ready(self.page_op(op)),
            Op::Advance { when } => {
                (self.clock)(when.from(self.now()));
                ready(Reply::ok())
            }
            Op::Open { .. }
            | Op::End { .. }
            | Op::Close { .. }
            | Op::Gate { .. }
            | Op::Defer { .. }
            | Op::Finalizer { .. } => self.region_op(op, by),
            Op::Spawn { .. }
            | Op::SpawnFailed { .. }
            | Op::Cancel { .. }
            | Op::Wake { .. }
            | Op::Spend { .. }
            | Op::TryMove(_) => self.task_op(op, by),
            Op::Oblige { .. } | Op::Commit { .. } | Op::Abort { .. } => self.obligation_op(op, by),
            Op::Arm { .. } | Op::Disarm { .. } | Op::Update { .. } => self.timer_op(op, by),
            Op::TryReserve { .. }
            | Op::Send { .. }
            | Op::AbortPermit { .. }
            | Op::DropPermit { .. } => self.permit_op(op, caller.as_mut()),
            _ => self.channel_op(op, by),
        };
        answer.unwrap_or_else(|status| Poll::Ready(Reply::status(status)))
    }

    pub(super) fn now(&self) -> Time {
        self.core.now()
    }

    fn region_op(self: &Arc<Self>, op: &Op, by: By<'_, '_>) -> Answer {
        match op {
            Op::Open { name, region, budget, max_children, fail_fast } => {
                let parent = self.region_or_own(region.as_ref(), by)?;
                let policy = if *fail_fast { Policy::FailFast } else { Policy::CollectAll };
                let region = parent.open(policy, self.budget(budget), *max_children)?;
                self.book().bind_region(name, region);
            }
            Op::End { region } => self.region(region)?.end(),
            Op::Close { region, kind, message, force_after } => {
                let message = message.as_deref().map(Into::into);
                let first = self.region(region)?.close(*kind, message, *force_after);
                return ready(Reply::ok().with("first", first));
            }
            Op::Gate { region, open } => self.region(region)?.set_admission(*open),
            Op::Defer { region, task, name } => {
                let body = self.finalizer(task, name)?;
                // SAFETY: as in `scope_of`.
                unsafe { self.region(region)?.defer(body) }?;
            }
            Op::Finalizer { region, task, name } => {
                let body = self.finalizer(task, name)?;
                // SAFETY: as in `scope_of`.
                unsafe { self.region(region)?.spawn_finalizer(body) }?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    /// Makes a finalizer, which gets its name when it is started.
    fn finalizer(
        self: &Arc<Self>,
        task: &Name,
        name: &Name,
    ) -> Result<impl FnOnce(Cx) -> Script + Send + 'static + use<>, Status> {
        let definition = self.scenario.tasks.get(task).ok_or(Status::InvalidArgument)?;
        let runner = BodyRunner::new(definition);
        let (world, own) = (self.clone(), Own { name: name.clone(), index: 0 });
        Ok(move |cx: Cx| {
            world.book().bind_task(&own.name, TaskProbe::of(&cx));
            Script::new(world, cx, own, runner)
        })
    }

    fn task_op(self: &Arc<Self>, op: &Op, by: By<'_, '_>) -> Answer {
        match op {
            Op::Spawn { task, name, region, index, pinned, budget } => {
                let region = self.region_or_own(region.as_ref(), by)?;
                let definition = self.scenario.tasks.get(task).ok_or(Status::InvalidArgument)?;
                let runner = BodyRunner::new(definition);
                let (world, own) = (self.clone(), Own { name: name.clone(), index: *index });
                let born = Arc::new(Mutex::new(None));
                let body = {
                    let born = born.clone();
                    move |cx: Cx| {
                        *born.lock().unwrap_or_else(|e| e.into_inner()) = Some(TaskProbe::of(&cx));
                        Script::new(world, cx, own, runner)
                    }
                };
                let scope = scope_of(&region);
                let mut builder = scope.task(&**name);
                if let Some(priority) = budget.priority {
                    builder = builder.priority(priority);
                }
                let limits = self.budget(budget);
                if let Some(deadline) = limits.deadline {
                    builder = builder.deadline(deadline);
                }
                if let Some(polls) = budget.polls {
                    builder = builder.polls(polls);
                }
                if let Some(cost) = budget.cost {
                    builder = builder.cost(cost);
                }
                if *pinned {
                    builder = builder.pinned_to(self.core.here().unwrap_or(0));
                }
                let handle = builder.try_spawn(body)?;
                let born = born.lock().unwrap_or_else(|e| e.into_inner()).take();
                self.adopt(name, born, handle);
            }
            Op::SpawnFailed { name, region, message, status } => {
                let region = self.region_or_own(region.as_ref(), by)?;
                let error = ScriptError { status: *status, message: message.clone() };
                // SAFETY: as in `scope_of`.
                let handle = unsafe { region.spawn_failed(error.clone()) }?;
                let probe = TaskProbe::of_task(&handle);
                let id = probe.id();
                self.adopt(name, Some(probe), handle);
                if let Some(entry) = self.book().task.get_mut(&id) {
                    entry.error = Some(error);
                }
            }
            Op::Cancel { task, kind, message } => {
                let message = message.as_deref().map(Into::into);
                let first = self.task(task)?.cancel(*kind, message)?;
                return ready(Reply::ok().with("first", first));
            }
            Op::Wake { task } => self.task(task)?.wake()?,
            Op::Spend { cost } => {
                let caller = by.ok_or(Status::InvalidArgument)?;
                caller.cx.try_consume(*cost).map_err(|exhausted| exhausted.status())?;
            }
            Op::TryMove(Move::Task(task, to)) => self.task(task)?.state().check(*to)?,
            Op::TryMove(Move::Region(region, to)) => self.region(region)?.word().check(*to)?,
            Op::TryMove(Move::Obligation(obligation, to)) => {
                let (region, id) = found(&self.book().obligations, scope(by), obligation)?;
                self.region_by_id(region)?.obligation(id)?.check(*to)?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn adopt(
        &self,
        name: &Name,
        probe: Option<TaskProbe>,
        handle: asx_runtime::Task<(), ScriptError>,
    ) {
        let Some(probe) = probe else { return };
        let mut book = self.book();
        let id = probe.id();
        book.bind_task(name, probe);
        if let Some(entry) = book.task.get_mut(&id) {
            entry.handle = Some(handle);
        }
    }

    fn obligation_op(&self, op: &Op, by: By<'_, '_>) -> Answer {
        match op {
            Op::Oblige { obligation, region } => {
                let region = self.region_or_own(region.as_ref(), by)?;
                let id = region.oblige()?;
                let mut book = self.book();
                let full = book.obligations.bind(scope(by), obligation, (region.id(), id));
                book.names.note(Named::Obligation, id, full);
            }
            Op::Commit { obligation } => self.resolve(obligation, by, Resolution::Commit)?,
            Op::Abort { obligation } => self.resolve(obligation, by, Resolution::Abort)?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn resolve(&self, name: &Name, by: By<'_, '_>, how: Resolution) -> Result<(), Status> {
        let (region, id) = found(&self.book().obligations, scope(by), name)?;
        self.region_by_id(region)?.resolve(id, how)
    }

    pub(super) fn obligation(
        &self,
        name: &Name,
        task: Option<&str>,
    ) -> Result<(u64, Result<ObligationState, Status>), Status> {
        let (region, id) = found(&self.book().obligations, task, name)?;
        Ok((id, self.region_by_id(region)?.obligation(id)))
    }

    fn timer_op(&self, op: &Op, by: By<'_, '_>) -> Answer {
        match op {
            Op::Arm { timer, when, region, wakes } => {
                let region = self.region_or_own(region.as_ref(), by)?;
                let wakes = self.waker(wakes.as_ref())?;
                let handle = region.arm(when.from(self.now()), wakes)?;
                self.bind_timer(scope(by), timer, handle);
            }
            Op::Disarm { timer, id, generation } => {
                let own = found(&self.book().timers, scope(by), timer)?;
                let handle = TimerHandle {
                    id: id.unwrap_or(own.id),
                    generation: generation.unwrap_or(own.generation),
                };
                let cancelled = self.core.probe_disarm(handle);
                return ready(Reply::ok().with("cancelled", cancelled));
            }
            Op::Update { timer, name, when, region, wakes } => {
                let old = found(&self.book().timers, scope(by), timer)?;
                let region = self.region_or_own(region.as_ref(), by)?;
                let wakes = self.waker(wakes.as_ref())?;
                let handle = region.rearm(old, when.from(self.now()), wakes)?;
                self.bind_timer(scope(by), name, handle);
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn waker(&self, task: Option<&Name>) -> Result<Option<Waker>, Status> {
        task.map(|task| Ok(self.task(task)?.waker())).transpose()
    }

    fn bind_timer(&self, task: Option<&str>, name: &Name, handle: TimerHandle) {
        let mut book = self.book();
        let full = book.timers.bind(task, name, handle);
        book.names.note(Named::Timer, handle.generation, full);
    }

    pub(super) fn task(&self, name: &Name) -> Result<TaskProbe, Status> {
        let book = self.book();
        let id = found(&book.tasks, None, name)?;
        book.task.get(&id).map(|entry| entry.probe.clone()).ok_or(Status::StaleHandle)
    }

    pub(super) fn region(&self, name: &Name) -> Result<RegionProbe, Status> {
        let id = found(&self.book().regions, None, name)?;
        self.region_by_id(id)
    }

    fn region_by_id(&self, id: u64) -> Result<RegionProbe, Status> {
        self.book().region.get(&id).cloned().ok_or(Status::StaleHandle)
    }

    /// A named region; else the caller's own; else the root.
    fn region_or_own(&self, name: Option<&Name>, by: By<'_, '_>) -> Result<RegionProbe, Status> {
        match (name, by) {
            (Some(name), _) => self.region(name),
            (None, Some(caller)) => Ok(TaskProbe::of(caller.cx).region()),
            (None, None) => Ok(self.root.clone()),
        }
    }

    fn budget(&self, keys: &BudgetKeys) -> Budget {
        Budget {
            deadline: keys.deadline.map(|when| when.from(self.now())),
            poll_quota: keys.polls.unwrap_or(u64::MAX),
            cost_quota: keys.cost,
            priority: Priority(keys.priority.unwrap_or(0)),
        }
    }
}

/// A region of a scenario as the scope of its tasks.
fn scope_of(region: &RegionProbe) -> Scope<ScriptError> {
    // SAFETY: all tasks of a scenario are scripts, finalizers too: they fail with a `ScriptError`.
    unsafe { region.scope() }
}
