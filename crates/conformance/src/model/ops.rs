//! Ops on regions and tasks, and a task's own waits.

use super::{Caller, Engine, Own, Script};
use crate::body::BodyRunner;
use crate::host::Reply;
use crate::scenario::{BudgetKeys, Move, Name, Op, When};
use crate::value::Value;
use asx_kernel::budget::Budget;
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::lanes::Priority;
use asx_kernel::status::Status;
use asx_kernel::world::{Ask, Policy, RegionOptions, SleepUntil, TaskError, TaskOptions};
use core::task::Poll;

/// What an op comes to: an error is a reply too.
pub(super) type Answer = Result<Poll<Reply>, Status>;

pub(super) fn ready(reply: Reply) -> Answer {
    Ok(Poll::Ready(reply))
}

pub(super) fn until(when: When) -> SleepUntil {
    match when {
        When::After(span) => SleepUntil::After(span),
        When::At(time) => SleepUntil::At(time),
    }
}

fn ask(kind: asx_kernel::cancel::Kind, message: &Option<String>) -> Ask {
    Ask { kind, message: message.as_deref().map(Into::into) }
}

impl Engine {
    pub(super) fn operate(&mut self, op: &Op, mut caller: Option<Caller<'_>>) -> Poll<Reply> {
        let answer = match op {
            Op::Open { .. }
            | Op::End { .. }
            | Op::Close { .. }
            | Op::Gate { .. }
            | Op::Defer { .. }
            | Op::Finalizer { .. }
            | Op::Storage { .. }
            | Op::Release { .. } => self.region_op(op, caller.as_ref()),
            Op::Spawn { .. }
            | Op::SpawnFailed { .. }
            | Op::Cancel { .. }
            | Op::Wake { .. }
            | Op::TryMove(_) => self.task_op(op, caller.as_ref()),
            _ => match &mut caller {
                Some(caller) if is_wait(op) => self.wait_op(op, caller),
                _ => self.thing_op(op, caller.as_ref()),
            },
        };
        answer.unwrap_or_else(|status| Poll::Ready(Reply::status(status)))
    }

    fn region_op(&mut self, op: &Op, caller: Option<&Caller<'_>>) -> Answer {
        match op {
            Op::Open { name, region, budget, max_children, fail_fast } => {
                let parent = self.region_or_own(region.as_ref(), caller)?;
                let policy = if *fail_fast { Policy::FailFast } else { Policy::CollectAll };
                let budget = self.budget(budget);
                let options = RegionOptions { budget, max_children: *max_children, policy };
                let region = self.world.open_region(parent, options)?;
                self.bind_region(name, region);
            }
            Op::End { region } => self.world.end_region(self.region(region)?)?,
            Op::Close { region, kind, message, force_after } => {
                let region = self.region(region)?;
                let first = self.world.close_region(region, ask(*kind, message), *force_after)?;
                return ready(Reply::ok().with("first", first));
            }
            Op::Gate { region, open } => self.world.set_admission(self.region(region)?, *open)?,
            Op::Defer { region, task, name } => {
                let script = self.script(task, name, 0)?;
                let region = self.region(region)?;
                self.world.defer(region, script).map_err(|(status, _)| status)?;
            }
            Op::Finalizer { region, task, name } => {
                let script = self.script(task, name, 0)?;
                let region = self.region(region)?;
                let spawned = self.world.spawn_finalizer(region, script);
                let task = spawned.map_err(|(status, _)| status)?;
                self.bind_task(name, task);
            }
            Op::Storage { region, bytes } => {
                self.world.use_storage(self.region(region)?, *bytes)?;
            }
            Op::Release { region } => self.world.release_region(self.region(region)?)?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn task_op(&mut self, op: &Op, caller: Option<&Caller<'_>>) -> Answer {
        match op {
            Op::Spawn { task, name, region, index, pinned, budget } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let script = self.script(task, name, *index)?;
                let (priority, pinned) = (budget.priority, *pinned);
                let options = TaskOptions { budget: self.budget(budget), priority, pinned };
                let spawned = self.world.spawn(region, options, script);
                let task = spawned.map_err(|(status, _)| status)?;
                self.bind_task(name, task);
            }
            Op::SpawnFailed { name, region, message, status } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let error = TaskError { status: *status, message: message.as_str().into() };
                let task = self.world.spawn_failed(region, error)?;
                self.bind_task(name, task);
            }
            Op::Cancel { task, kind, message } => {
                let first = self.world.cancel_task(self.task(task)?, ask(*kind, message))?;
                return ready(Reply::ok().with("first", first));
            }
            Op::Wake { task } => self.world.wake(self.task(task)?)?,
            Op::TryMove(Move::Task(task, to)) => self.world.try_task(self.task(task)?, *to)?,
            Op::TryMove(Move::Region(region, to)) => {
                self.world.try_region(self.region(region)?, *to)?;
            }
            Op::TryMove(Move::Obligation(obligation, to)) => {
                let id = self.obligation(obligation, caller)?;
                self.world.obligation(id)?.check(*to)?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    /// Ops only a task can do: looking at its cancel, waiting, spending.
    fn wait_op(&mut self, op: &Op, caller: &mut Caller<'_>) -> Answer {
        let task = caller.task;
        match op {
            Op::Checkpoint => {
                let reply = Reply::from(self.world.checkpoint(task));
                ready(self.seen(task, reply))
            }
            Op::IsCancelled => {
                let value = self.world.is_cancelled(task)?;
                ready(self.seen(task, Reply::ok().with("value", value)))
            }
            Op::Spend { cost } => ready(self.world.spend(task, *cost).into()),
            Op::Sleep { when } => self.sleep(*when, caller),
            Op::Join { task: target } => {
                let target = self.task(target)?;
                let outcome = |severity: asx_kernel::outcome::Severity| {
                    Reply::ok().with("outcome", severity.name())
                };
                Ok(self.world.join(task, target)?.map(outcome))
            }
            Op::ClosedWait { region } => {
                let region = self.region(region)?;
                let closed = self.world.closed(task, region)?;
                Ok(closed.map(|severity| Reply::ok().with("outcome", severity.name())))
            }
            Op::Stopping => Ok(self.world.stopping(task)?.map(|()| Reply::ok())),
            Op::Reserve { channel, permit, tracked } => {
                let channel = self.channel(channel)?;
                let reserved = self.world.reserve(task, channel, *tracked)?;
                Ok(reserved.map(|id| {
                    self.bind_permit(Some(&caller.own.name), permit, id, *tracked);
                    Reply::ok()
                }))
            }
            Op::Recv { channel } => {
                let received = self.world.recv(task, self.channel(channel)?)?;
                Ok(received.map(|value| Reply::ok().with("value", value)))
            }
            _ => Err(Status::Internal),
        }
    }

    fn sleep(&mut self, when: When, caller: &mut Caller<'_>) -> Answer {
        let timer = match caller.own.sleep {
            Some(timer) => timer,
            None => self.world.sleep(caller.task, until(when))?,
        };
        caller.own.sleep = Some(timer);
        let slept = self.world.slept(caller.task, timer);
        if !matches!(slept, Ok(Poll::Pending)) {
            caller.own.sleep = None;
        }
        Ok(slept?.map(|()| Reply::ok()))
    }

    /// Adds what the task can tell about its cancel.
    fn seen(&self, task: TaskId, reply: Reply) -> Reply {
        let view = self.world.task(task).ok();
        let witness = view.as_ref().and_then(|view| view.witness.as_ref());
        let reason = witness.map(|witness| &witness.reason);
        reply
            .with("kind", Value::maybe(reason.map(|reason| reason.kind.name())))
            .with("message", Value::maybe(reason.and_then(|reason| reason.message.as_deref())))
            .with("polls_left", Value::maybe(view.and_then(|view| view.polls_left)))
    }

    pub(super) fn task(&self, name: &Name) -> Result<TaskId, Status> {
        self.tasks.find(None, name).ok_or(Status::StaleHandle)
    }

    pub(super) fn region(&self, name: &Name) -> Result<RegionId, Status> {
        self.regions.find(None, name).ok_or(Status::StaleHandle)
    }

    /// A named region; else the caller's own; else the root.
    pub(super) fn region_or_own(
        &self,
        name: Option<&Name>,
        caller: Option<&Caller<'_>>,
    ) -> Result<RegionId, Status> {
        match (name, caller) {
            (Some(name), _) => self.region(name),
            (None, Some(caller)) => Ok(self.world.task(caller.task)?.region),
            (None, None) => Ok(self.world.root()),
        }
    }

    fn script(&self, definition: &Name, name: &Name, index: i64) -> Result<Script, Status> {
        let definition = self.scenario.tasks.get(definition).ok_or(Status::InvalidArgument)?;
        let own = Own { name: name.clone(), index, sleep: None };
        Ok(Script { runner: BodyRunner::new(definition), own })
    }

    fn budget(&self, keys: &BudgetKeys) -> Budget {
        Budget {
            deadline: keys.deadline.map(|when| when.from(self.world.now())),
            poll_quota: keys.polls.unwrap_or(u64::MAX),
            cost_quota: keys.cost,
            priority: Priority(keys.priority.unwrap_or(0)),
        }
    }
}

fn is_wait(op: &Op) -> bool {
    matches!(
        op,
        Op::Checkpoint
            | Op::IsCancelled
            | Op::Spend { .. }
            | Op::Sleep { .. }
            | Op::Join { .. }
            | Op::ClosedWait { .. }
            | Op::Stopping
            | Op::Reserve { .. }
            | Op::Recv { .. }
    )
}
