//! Moving the clock and stepping the world.

use super::{Engine, InTask};
use crate::body::BodyEnd;
use crate::host::{Failure, Reply};
use crate::scenario::Op;
use crate::value::Value;
use asx_kernel::ids::TaskId;
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::{PollEnd, Step, TaskError};

impl Engine {
    pub(super) fn drive(&mut self, op: &Op) -> Reply {
        match op {
            Op::Advance { when } => {
                self.world.set_now(when.from(self.world.now()));
                Reply::ok()
            }
            Op::Fire => Reply::ok().with("fired", self.world.expire()),
            Op::Run { max_steps } => self.run(*max_steps).map_or_else(stuck, stepped),
            Op::StepOn { count, worker } => self.steps(*count, *worker),
            Op::RunFor { when, max_steps } => {
                let end = when.from(self.world.now());
                self.run_until(end, *max_steps).map_or_else(stuck, stepped)
            }
            Op::Suggest { mode } => {
                self.suggestion = *mode;
                self.world.suggest(*mode);
                Reply::ok()
            }
            Op::SoftStop => {
                self.world.soft_stop();
                Reply::ok()
            }
            Op::Shutdown { soft, force_after } => self.world.shutdown(*soft, *force_after).into(),
            Op::Quiescent => match self.world.quiescent() {
                Ok(()) => Reply::ok().with("all", Value::List(Vec::new())),
                Err(not) => {
                    let all = Value::texts(not.all().into_iter().map(Status::name));
                    Reply::status(not.first()).with("all", all)
                }
            },
            _ => Reply::status(Status::Internal),
        }
    }

    /// Steps until nothing is runnable now; answers how often. The guard's number, if reached.
    pub(super) fn run(&mut self, max_steps: u64) -> Result<u64, u64> {
        if self.browser.is_some() {
            return self.run_loop(max_steps);
        }
        let mut steps = 0;
        while let Ok(Some(_)) = self.step(None) {
            steps += 1;
            if steps > max_steps {
                return Err(max_steps);
            }
        }
        Ok(steps)
    }

    fn run_until(&mut self, end: Time, max_steps: u64) -> Result<u64, u64> {
        let mut steps = 0;
        loop {
            steps += self.run(max_steps - steps).map_err(|_| max_steps)?;
            let next = self.world.next_wake().filter(|next| self.world.now() < *next);
            match next.filter(|next| *next <= end) {
                Some(next) => self.world.set_now(next),
                None => break,
            }
        }
        self.world.set_now(end);
        Ok(steps)
    }

    fn steps(&mut self, count: u64, worker: Option<usize>) -> Reply {
        if self.browser.is_some() {
            let note = "a pump drives: use `turn` with burst_limit = 1";
            return Reply::status(Status::InvalidArgument).note(note);
        }
        let mut last = None;
        for _ in 0..count {
            match self.step(worker) {
                Ok(polled) => last = polled,
                Err(status) => return status.into(),
            }
        }
        let reply = Reply::ok().with("idle", last.is_none());
        match last {
            Some((task, lane)) => {
                reply.with("task", self.task_name(task)).with("lane", lane.name())
            }
            None => reply,
        }
    }

    pub(super) fn task_name(&self, task: TaskId) -> String {
        let name = self.ordinals.name(crate::pattern::Named::Task, task.ordinal());
        name.map_or_else(|| task.ordinal().to_string(), str::to_owned)
    }

    /// Dispatches and polls one task, if there is one.
    pub(super) fn step(&mut self, worker: Option<usize>) -> Result<Option<(TaskId, Lane)>, Status> {
        let now = self.world.now();
        let step = match worker {
            Some(worker) => self.world.next_on(worker, now, &mut self.choose)?,
            None => self.world.next(now, &mut self.choose)?,
        };
        match step {
            Step::Poll { task, lane, .. } => {
                self.poll(task);
                Ok(Some((task, lane)))
            }
            Step::Idle { .. } => Ok(None),
        }
    }

    /// Runs the task's script until it waits or ends, and tells the world.
    pub(super) fn poll(&mut self, task: TaskId) {
        self.polls += 1;
        self.bind_finalizers();
        let Some(mut script) = self.world.take_payload(task) else { return };
        let end = script.runner.poll(&mut InTask { engine: self, task, own: &mut script.own });
        let end = match end {
            BodyEnd::Pending => PollEnd::Pending,
            BodyEnd::Done => PollEnd::Ready,
            BodyEnd::Cancelled => PollEnd::Cancelled,
            BodyEnd::Panicked(message) => PollEnd::Panicked(message.into()),
            BodyEnd::Failed { status, message } => {
                PollEnd::Failed(TaskError { status, message: message.into() })
            }
        };
        if self.world.polled(task, script, end).is_err() {
            let name = self.task_name(task);
            let what = format!("end of a poll of `{name}`");
            self.failures.push(Failure::new(0, what, "accepted", "refused"));
        }
        self.world.take_released();
        self.world.take_dropped();
        if self.failures.len() < 50
            && let Err(broken) = self.check()
        {
            let what = format!("invariants after a poll of `{}`", self.task_name(task));
            self.failures.push(Failure::new(0, what, "no violation", broken));
        }
    }
}

fn stepped(steps: u64) -> Reply {
    Reply::ok().with("steps", steps)
}

fn stuck(max_steps: u64) -> Reply {
    Reply::status(Status::Internal).note(format!("still running after {max_steps} steps"))
}
