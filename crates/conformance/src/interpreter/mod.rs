//! The interpreter: each op of a scenario as calls of a host's primitive operations.
//!
//! ```text
//! script op -> apply -> drive (clock, steps) -> Driver
//!                    -> Call::perform        -> HostApi
//! body op   ------------> Call::perform      -> HostApi
//! ```

mod drive;
mod objects;
pub(crate) mod queries;

pub(crate) use drive::apply;
pub(crate) use queries::{certificate, chain, record};

use crate::api::{Caller, Came, HostApi, RegionOp, Scripted, Wait};
use crate::body::BodyRunner;
use crate::book::found;
use crate::host::Reply;
use crate::laws;
use crate::scenario::{BudgetKeys, Name, Op};
use crate::value::Value;
use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::lanes::Priority;
use asx_kernel::status::Status;
use asx_kernel::world::{Ask, RegionOptions, TaskError, TaskOptions};
use core::task::Poll;

/// What an op comes to: an error is a reply too.
type Answer = Result<Poll<Reply>, Status>;

fn ready(reply: Reply) -> Answer {
    Ok(Poll::Ready(reply))
}

fn ask(kind: Kind, message: &Option<String>) -> Ask {
    Ask { kind, message: message.as_deref().map(Into::into) }
}

/// Does an op on behalf of a task.
pub(crate) fn perform<H: HostApi>(host: &mut H, op: &Op, caller: Caller<'_, H>) -> Poll<Reply> {
    host.name_finalizers();
    Call { host, caller: Some(caller) }.perform(op)
}

/// An op under way, for the script or for a task.
struct Call<'h, 'c, H: HostApi> {
    host: &'h mut H,
    caller: Option<Caller<'c, H>>,
}

impl<H: HostApi> Call<'_, '_, H> {
    fn perform(&mut self, op: &Op) -> Poll<Reply> {
        let answer = match op {
            Op::Law(law) => ready(laws::answer(law, self.host.seed())),
            Op::Check(subject) => self.look(subject).map(Poll::Ready),
            Op::Browser(op) => ready(self.host.browser_op(op, self.caller.is_some())),
            Op::Advance { when } => {
                let to = when.from(self.host.now());
                self.host.advance(to).map(|()| Poll::Ready(Reply::ok()))
            }
            Op::Open { .. }
            | Op::End { .. }
            | Op::Close { .. }
            | Op::Gate { .. }
            | Op::Defer { .. }
            | Op::Finalizer { .. }
            | Op::Storage { .. }
            | Op::Release { .. }
            | Op::MoveRegion { .. } => self.region_op(op),
            Op::Spawn { .. }
            | Op::SpawnFailed { .. }
            | Op::Cancel { .. }
            | Op::Wake { .. }
            | Op::Spend { .. }
            | Op::MoveTask { .. }
            | Op::MoveObligation { .. } => self.task_op(op),
            Op::Checkpoint
            | Op::IsCancelled
            | Op::Sleep { .. }
            | Op::Join { .. }
            | Op::ClosedWait { .. }
            | Op::Stopping
            | Op::Reserve { .. }
            | Op::Recv { .. } => self.wait_op(op),
            _ => self.object_op(op),
        };
        answer.unwrap_or_else(|status| Poll::Ready(Reply::status(status)))
    }

    fn region_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::Open { name, region, limits, max_children, policy } => {
                let parent = self.region_or_own(region.as_ref())?;
                let options = RegionOptions {
                    budget: self.budget(limits),
                    max_children: *max_children,
                    policy: policy.0,
                };
                let region = self.host.open(parent, options)?;
                self.host.book().bind_region(name, region);
            }
            Op::End { region } => self.on_region(region, RegionOp::End)?,
            Op::Close { region, kind, message, force_after } => {
                let region = self.region(region)?;
                let first = self.host.close(region, ask(kind.0, message), *force_after)?;
                return ready(Reply::ok().with("first", first));
            }
            Op::Gate { region, open } => self.on_region(region, RegionOp::Gate(*open))?,
            Op::Defer { region, task, name } => {
                let body = self.script(task, name, 0)?;
                let region = self.region(region)?;
                self.host.defer(region, body)?;
            }
            Op::Finalizer { region, task, name } => {
                let body = self.script(task, name, 0)?;
                let region = self.region(region)?;
                if let Some(task) = self.host.spawn_finalizer(region, body)? {
                    self.host.book().bind_task(name, task);
                }
            }
            Op::Storage { region, bytes } => {
                self.on_region(region, RegionOp::UseStorage(*bytes))?;
            }
            Op::Release { region } => self.on_region(region, RegionOp::Release)?,
            Op::MoveRegion { region, to } => self.on_region(region, RegionOp::Move(to.0))?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn on_region(&mut self, name: &Name, op: RegionOp) -> Result<(), Status> {
        let region = self.region(name)?;
        self.host.region_op(region, op)
    }

    fn task_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::Spawn { task, name, region, index, pinned, limits } => {
                let region = self.region_or_own(region.as_ref())?;
                let body = self.script(task, name, *index)?;
                let options = TaskOptions {
                    budget: self.budget(limits),
                    priority: limits.priority,
                    pinned: *pinned,
                };
                let task = self.host.spawn(region, options, body)?;
                self.host.book().bind_task(name, task);
            }
            Op::SpawnFailed { name, region, message, status } => {
                let region = self.region_or_own(region.as_ref())?;
                let error = TaskError {
                    status: status.map(|status| status.0),
                    message: message.as_str().into(),
                };
                let task = self.host.spawn_failed(region, error)?;
                self.host.book().bind_task(name, task);
            }
            Op::Cancel { task, kind, message } => {
                let task = self.task(task)?;
                let first = self.host.cancel(task, ask(kind.0, message))?;
                return ready(Reply::ok().with("first", first));
            }
            Op::Wake { task } => {
                let task = self.task(task)?;
                self.host.wake(task)?;
            }
            Op::Spend { cost } => {
                let caller = self.caller.as_ref().ok_or(Status::InvalidArgument)?;
                self.host.spend(&caller.current, *cost)?;
            }
            Op::MoveTask { task, to } => {
                let task = self.task(task)?;
                self.host.try_task(task, to.0)?;
            }
            Op::MoveObligation { obligation, to } => {
                let obligation = self.obligation(obligation)?;
                self.host.try_obligation(obligation, to.0)?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    /// Ops only a task can do: looking at its cancel and waiting.
    fn wait_op(&mut self, op: &Op) -> Answer {
        let wait = match op {
            Op::Checkpoint => Wait::Checkpoint,
            Op::IsCancelled => Wait::IsCancelled,
            Op::Sleep { when } => Wait::Sleep(*when),
            Op::Join { task } => Wait::Join(self.task(task)?),
            Op::ClosedWait { region } => Wait::Closed(self.region(region)?),
            Op::Stopping => Wait::Stopping,
            Op::Reserve { channel, tracked, .. } => {
                Wait::Reserve { channel: self.channel(channel)?, tracked: *tracked }
            }
            Op::Recv { channel } => Wait::Recv(self.channel(channel)?),
            _ => return Err(Status::Internal),
        };
        let caller = self.caller.as_mut().ok_or(Status::Internal)?;
        let looks = matches!(wait, Wait::Checkpoint | Wait::IsCancelled);
        let reply = match self.host.wait(wait, &mut caller.current) {
            Ok(Poll::Pending) => return Ok(Poll::Pending),
            Ok(Poll::Ready(came)) => match came {
                Came::Nothing => Reply::ok(),
                Came::Cancelled(cancelled) => Reply::ok().with("value", cancelled),
                Came::Outcome(severity) => Reply::ok().with("outcome", severity.name()),
                Came::Value(value) => Reply::ok().with("value", value),
                Came::Permit(id) => {
                    if let Op::Reserve { permit, tracked, .. } = op {
                        self.host.book().bind_permit(Some(caller.name), permit, id, *tracked);
                    }
                    Reply::ok()
                }
            },
            Err(status) => Reply::status(status),
        };
        if !looks {
            return ready(reply);
        }
        let seen = self.host.cancel_seen(&caller.current);
        ready(
            reply
                .with("kind", Value::maybe(seen.kind.map(Kind::name)))
                .with("message", Value::maybe(seen.message))
                .with("polls_left", Value::maybe(seen.polls_left)),
        )
    }

    /// The scope in which names are looked up.
    fn scope(&self) -> Option<&str> {
        self.caller.as_ref().map(|caller| caller.name)
    }

    fn task(&self, name: &Name) -> Result<H::Task, Status> {
        found(&self.host.book().tasks, None, name)
    }

    fn region(&self, name: &Name) -> Result<H::Region, Status> {
        found(&self.host.book().regions, None, name)
    }

    /// A named region; else the caller's own; else the root.
    fn region_or_own(&self, name: Option<&Name>) -> Result<H::Region, Status> {
        match (name, &self.caller) {
            (Some(name), _) => self.region(name),
            (None, Some(caller)) => self.host.region_of(&caller.current),
            (None, None) => self.host.root(),
        }
    }

    fn channel(&self, name: &Name) -> Result<H::Channel, Status> {
        found(&self.host.book().channels, None, name)
    }

    fn obligation(&self, name: &Name) -> Result<H::Obligation, Status> {
        found(&self.host.book().obligations, self.scope(), name)
    }

    fn script(&self, definition: &Name, name: &Name, index: i64) -> Result<Scripted, Status> {
        let definition = self.host.scenario().tasks.get(definition);
        let runner = BodyRunner::new(definition.ok_or(Status::InvalidArgument)?);
        Ok(Scripted { name: name.clone(), index, runner })
    }

    fn budget(&self, keys: &BudgetKeys) -> Budget {
        Budget {
            deadline: keys.deadline.map(|when| when.from(self.host.now())),
            poll_quota: keys.polls.unwrap_or(u64::MAX),
            cost_quota: keys.cost,
            priority: Priority(keys.priority.unwrap_or(0)),
        }
    }
}
