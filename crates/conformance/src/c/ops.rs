//! Ops on regions and tasks, and a task's own waits.

use super::{Caller, Own, Shared, call};
use crate::body::BodyRunner;
use crate::host::Reply;
use crate::scenario::{BudgetKeys, Move, Name, Op, When};
use crate::value::Value;
use asx_capi::{
    ASX_NONE, ASX_POLICY_COLLECT_ALL, ASX_POLICY_FAIL_FAST, ASX_PRIORITY_DEFAULT, AsxBudget,
    AsxPermit, AsxRegion, AsxRegionOptions, AsxTask, AsxTaskOptions, AsxTimer, AsxWhen,
};
use asx_kernel::outcome::Severity;
use asx_kernel::status::Status;
use asx_kernel::time::nanos;
use core::mem::size_of;
use core::ptr::null;
use core::task::Poll;
use std::ffi::CString;
use std::rc::Rc;

/// What an op comes to: an error is a reply too.
pub(super) type Answer = Result<Poll<Reply>, Status>;

pub(super) fn ready(reply: Reply) -> Answer {
    Ok(Poll::Ready(reply))
}

pub(super) fn when(when: When) -> AsxWhen {
    match when {
        When::After(span) => AsxWhen { ns: nanos(span), mode: 0, reserved: 0 },
        When::At(time) => AsxWhen { ns: time.as_nanos(), mode: 1, reserved: 0 },
    }
}

/// A text for the library, and the pointer to it.
struct Text(Option<CString>);

impl Text {
    fn new(text: Option<&str>) -> Text {
        Text(text.and_then(|text| CString::new(text).ok()))
    }

    fn pointer(&self) -> *const core::ffi::c_char {
        self.0.as_ref().map_or(null(), |text| text.as_ptr())
    }
}

/// No handle.
macro_rules! blank {
    ($type:ident) => {
        $type { bits: 0, generation: 0 }
    };
}
pub(super) use blank;

fn outcome(number: i32) -> Reply {
    let severity = Severity::ALL.get(number as usize).map_or("none", |severity| severity.name());
    Reply::ok().with("outcome", severity)
}

/// A call that may have to wait.
fn waited(result: Result<(), Status>, done: impl FnOnce() -> Reply) -> Answer {
    match result {
        Ok(()) => ready(done()),
        Err(Status::WouldBlock) => Ok(Poll::Pending),
        Err(status) => Err(status),
    }
}

impl Shared {
    pub(super) fn operate(self: &Rc<Self>, op: &Op, mut caller: Option<Caller<'_>>) -> Poll<Reply> {
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

    fn region_op(self: &Rc<Self>, op: &Op, caller: Option<&Caller<'_>>) -> Answer {
        let rt = self.rt;
        match op {
            Op::Open { name, region, budget, max_children, fail_fast } => {
                let parent = self.region_or_own(region.as_ref(), caller)?;
                let options = AsxRegionOptions {
                    struct_size: size_of::<AsxRegionOptions>() as u32,
                    policy: if *fail_fast { ASX_POLICY_FAIL_FAST } else { ASX_POLICY_COLLECT_ALL },
                    max_children: max_children.map_or(ASX_NONE, |most| most as u64),
                    budget: self.budget(budget),
                    priority: u32::from(budget.priority.unwrap_or(0)),
                    reserved: 0,
                };
                let mut region = blank!(AsxRegion);
                call!(region::asx_region_open(rt, parent, &options, &mut region))?;
                self.bind_region(name, region);
            }
            Op::End { region } => call!(region::asx_region_end(rt, self.region(region)?))?,
            Op::Close { region, kind, message, force_after } => {
                let (region, mut first) = (self.region(region)?, 0);
                let text = Text::new(message.as_deref());
                let (kind, force) = (*kind as i32, force_after.map_or(ASX_NONE, nanos));
                let why = text.pointer();
                call!(region::asx_region_close(rt, region, kind, why, force, &mut first))?;
                return ready(Reply::ok().with("first", first != 0));
            }
            Op::Gate { region, open } => {
                call!(region::asx_region_gate(rt, self.region(region)?, i32::from(*open)))?;
            }
            Op::Defer { region, task, name } => {
                let (runner, own) = self.script(task, name, 0)?;
                let region = self.region(region)?;
                let body = self.body(runner, own);
                self.given(body, call!(region::asx_region_defer(rt, region, body)))?;
            }
            Op::Finalizer { region, task, name } => {
                let (runner, own) = self.script(task, name, 0)?;
                let region = self.region(region)?;
                let body = self.body(runner, own);
                let mut task = blank!(AsxTask);
                let spawned =
                    call!(region::asx_region_spawn_finalizer(rt, region, body, &mut task));
                self.given(body, spawned)?;
                self.bind_task(name, task);
            }
            Op::Storage { region, bytes } => {
                call!(region::asx_region_use_storage(rt, self.region(region)?, *bytes))?;
            }
            Op::Release { region } => call!(region::asx_region_release(rt, self.region(region)?))?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn task_op(self: &Rc<Self>, op: &Op, caller: Option<&Caller<'_>>) -> Answer {
        let rt = self.rt;
        match op {
            Op::Spawn { task, name, region, index, budget, .. } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let (runner, own) = self.script(task, name, *index)?;
                let options = AsxTaskOptions {
                    struct_size: size_of::<AsxTaskOptions>() as u32,
                    priority: budget.priority.map_or(ASX_PRIORITY_DEFAULT, u32::from),
                    budget: self.budget(budget),
                    watchdog_ns: ASX_NONE,
                    flags: 0,
                    reserved: 0,
                    watchdog_grace_ns: ASX_NONE,
                };
                let body = self.body(runner, own);
                let mut task = blank!(AsxTask);
                let spawned = call!(task::asx_task_spawn(rt, region, body, &options, &mut task));
                self.given(body, spawned)?;
                self.bind_task(name, task);
            }
            Op::SpawnFailed { name, region, message, status } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let status = status.map_or(-1, |status| status.number());
                let (text, mut task) = (Text::new(Some(message)), blank!(AsxTask));
                let why = text.pointer();
                call!(task::asx_task_spawn_failed(rt, region, status, why, &mut task))?;
                self.bind_task(name, task);
            }
            Op::Cancel { task, kind, message } => {
                let (task, mut first) = (self.task(task)?, 0);
                let text = Text::new(message.as_deref());
                let (kind, why) = (*kind as i32, text.pointer());
                call!(task::asx_task_cancel(rt, task, kind, why, &mut first))?;
                return ready(Reply::ok().with("first", first != 0));
            }
            Op::Wake { task } => call!(task::asx_task_wake(rt, self.task(task)?))?,
            Op::TryMove(Move::Task(task, to)) => {
                call!(task::asx_task_check(rt, self.task(task)?, *to as i32))?;
            }
            Op::TryMove(Move::Region(region, to)) => {
                call!(region::asx_region_check(rt, self.region(region)?, *to as i32))?;
            }
            Op::TryMove(Move::Obligation(obligation, to)) => {
                let id = self.obligation(obligation, caller)?;
                call!(obligation::asx_obligation_check(rt, id, *to as i32))?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    /// Ops only a task can do: looking at its cancel, waiting, spending.
    fn wait_op(&self, op: &Op, caller: &mut Caller<'_>) -> Answer {
        let (rt, task) = (self.rt, caller.task);
        match op {
            Op::Checkpoint => {
                let reply = Reply::from(call!(task::asx_task_checkpoint(rt, task)));
                ready(self.seen(task, reply))
            }
            Op::IsCancelled => {
                let mut value = 0;
                call!(task::asx_task_is_cancelled(rt, task, &mut value))?;
                ready(self.seen(task, Reply::ok().with("value", value != 0)))
            }
            Op::Spend { cost } => ready(call!(task::asx_task_spend(rt, task, *cost)).into()),
            Op::Sleep { when } => self.sleep(*when, caller),
            Op::Join { task: target } => {
                let (target, mut end) = (self.task(target)?, -1);
                let joined = call!(task::asx_task_join(rt, task, target, &mut end));
                waited(joined, || outcome(end))
            }
            Op::ClosedWait { region } => {
                let (region, mut end) = (self.region(region)?, -1);
                let closed = call!(region::asx_region_wait(rt, region, task, &mut end));
                waited(closed, || outcome(end))
            }
            Op::Stopping => waited(call!(task::asx_task_stopping(rt, task)), Reply::ok),
            Op::Reserve { channel, permit, tracked } => {
                let (channel, mut raw) = (self.channel(channel)?, blank!(AsxPermit));
                let tracks = i32::from(*tracked);
                let reserved =
                    call!(channel::asx_channel_reserve(rt, channel, task, tracks, &mut raw));
                waited(reserved, || {
                    self.bind_permit(Some(&caller.own.name), permit, raw, *tracked);
                    Reply::ok()
                })
            }
            Op::Recv { channel } => {
                let (channel, mut value) = (self.channel(channel)?, 0_i64);
                let (to, size) = ((&raw mut value).cast(), size_of::<i64>());
                let received = call!(channel::asx_channel_recv(rt, channel, task, to, size));
                waited(received, || Reply::ok().with("value", value))
            }
            _ => Err(Status::Internal),
        }
    }

    fn sleep(&self, until: When, caller: &mut Caller<'_>) -> Answer {
        let timer = match caller.own.sleep {
            Some(timer) => timer,
            None => {
                let mut timer = AsxTimer { id: 0, generation: 0 };
                call!(task::asx_task_sleep(self.rt, caller.task, when(until), &mut timer))?;
                timer
            }
        };
        caller.own.sleep = Some(timer);
        let slept = call!(task::asx_task_sleep_over(self.rt, caller.task, timer));
        if slept != Err(Status::WouldBlock) {
            caller.own.sleep = None;
        }
        waited(slept, Reply::ok)
    }

    /// Adds what the task can tell about its cancel.
    fn seen(&self, task: AsxTask, reply: Reply) -> Reply {
        let Ok(look) = self.task_look(task) else { return reply };
        reply
            .with("kind", look.kind())
            .with("polls_left", look.polls_left())
            .with("message", Value::maybe(look.reason_message))
    }

    pub(super) fn task(&self, name: &Name) -> Result<AsxTask, Status> {
        self.book.with(|notes| notes.tasks.find(None, name)).ok_or(Status::StaleHandle)
    }

    pub(super) fn region(&self, name: &Name) -> Result<AsxRegion, Status> {
        self.book.with(|notes| notes.regions.find(None, name)).ok_or(Status::StaleHandle)
    }

    /// A named region; else the caller's own; else the root.
    pub(super) fn region_or_own(
        &self,
        name: Option<&Name>,
        caller: Option<&Caller<'_>>,
    ) -> Result<AsxRegion, Status> {
        match (name, caller) {
            (Some(name), _) => self.region(name),
            (None, Some(caller)) => Ok(self.task_info(caller.task)?.region),
            (None, None) => self.root(),
        }
    }

    fn script(
        &self,
        definition: &Name,
        name: &Name,
        index: i64,
    ) -> Result<(BodyRunner, Own), Status> {
        let definition = self.scenario.tasks.get(definition).ok_or(Status::InvalidArgument)?;
        Ok((BodyRunner::new(definition), Own { name: name.clone(), index, sleep: None }))
    }

    fn budget(&self, keys: &BudgetKeys) -> AsxBudget {
        let deadline = keys.deadline.map(|when| when.from(self.now()).as_nanos());
        AsxBudget {
            deadline: deadline.unwrap_or(ASX_NONE),
            polls: keys.polls.unwrap_or(ASX_NONE),
            cost: keys.cost.unwrap_or(ASX_NONE),
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
