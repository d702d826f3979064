//! Running a scripted task: ops one after another until one must wait.
//!
//! A [`BodyRunner`] is a plain state machine: each [`poll`](BodyRunner::poll) goes on where the
//! last one stopped, asking the host's [`TaskOps`] op by op. It can be polled from anywhere a task
//! is polled: by the model's loop, or inside a future (`poll_fn(|cx| runner.poll(&mut ops(cx)))`).

use crate::host::{Failure, Reply};
use crate::scenario::{Body, Definition, Op, ScriptStep};
use crate::value::Value;
use asx_kernel::session::LEAK_MESSAGE;
use asx_kernel::status::Status;
use core::task::Poll;
use std::sync::Arc;

/// How many ops one poll may run: a guard against scripts that never wait.
const MAX_OPS: usize = 1_000_000;

/// What a host does on behalf of the task that is being polled.
pub trait TaskOps {
    /// Tries an op; asked again at the next poll if it must wait.
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply>;
    /// Makes the task runnable again: it is about to answer pending without waiting for anything.
    fn wake_self(&mut self);
    /// Looks at the task's cancel, so that what follows is cleanup.
    fn observe(&mut self);
    /// Begins or ends a shield.
    fn shield(&mut self, on: bool);
    /// Pushes an entry on the task's cleanup stack.
    fn push_cleanup(&mut self, entry: BodyRunner) -> Status;
    /// Something came out other than the file says.
    fn report(&mut self, failure: Failure);
}

/// How a poll ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// It waits.
    Pending,
    /// It is done.
    Done,
    /// It is done, with an error.
    Failed {
        /// The status the error came from, if it came from one.
        status: Option<Status>,
        /// Its message.
        message: String,
    },
    /// It gave up because of a cancel.
    Cancelled,
    /// It panics with this message.
    Panicked(String),
}

/// A scripted task under way.
#[derive(Clone, Debug)]
pub struct BodyRunner {
    frames: Vec<Frame>,
    /// What is left to run after a cancel; taken when it begins.
    on_cancel: Option<Body>,
    /// Whether an unhandled cancel came: however it goes on, the end is a cancel.
    cancelled: bool,
    /// Polls the current op still wants to be pending.
    waits: Option<u64>,
}

#[derive(Clone, Debug)]
struct Frame {
    steps: Body,
    at: usize,
    times: u64,
    shield: bool,
}

impl BodyRunner {
    /// A task at its beginning.
    pub fn new(definition: &Definition) -> BodyRunner {
        let on_cancel = Some(Arc::clone(&definition.on_cancel));
        BodyRunner { on_cancel, ..BodyRunner::entry(Arc::clone(&definition.body)) }
    }

    /// A cleanup entry at its beginning.
    fn entry(steps: Body) -> BodyRunner {
        let frame = Frame { steps, at: 0, times: 1, shield: false };
        BodyRunner { frames: vec![frame], on_cancel: None, cancelled: false, waits: None }
    }

    /// Runs ops until one must wait or the body ends.
    pub fn poll(&mut self, host: &mut dyn TaskOps) -> BodyEnd {
        for _ in 0..MAX_OPS {
            let Some(frame) = self.frames.last_mut() else { return self.done() };
            let Some(step) = frame.steps.get(frame.at).cloned() else {
                frame.at = 0;
                frame.times = frame.times.saturating_sub(1);
                if frame.times == 0 || frame.steps.is_empty() {
                    self.pop(host);
                }
                continue;
            };
            if let Some(end) = self.run(&step, host) {
                if end != BodyEnd::Pending {
                    self.unwind(host);
                }
                return end;
            }
        }
        let got = "a poll that does not end";
        host.report(Failure::new(0, "body", format!("at most {MAX_OPS} ops in a poll"), got));
        self.unwind(host);
        BodyEnd::Panicked("the poll does not end".to_owned())
    }

    /// Runs one op; `None`: go on with what is next.
    fn run(&mut self, step: &ScriptStep, host: &mut dyn TaskOps) -> Option<BodyEnd> {
        match &step.op {
            Op::Work { polls } => return self.wait(*polls, true, host),
            Op::Yield => return self.wait(1, true, host),
            Op::Park => return self.wait(1, false, host),
            Op::Done => return Some(self.done()),
            Op::Fail { message } => {
                return Some(BodyEnd::Failed { status: None, message: message.clone() });
            }
            Op::Panic { message } => return Some(BodyEnd::Panicked(message.clone())),
            Op::Repeat { times, body } => {
                self.advance();
                if *times > 0 {
                    self.push(body, *times, false);
                }
                return None;
            }
            Op::Shield { body } => {
                self.advance();
                host.shield(true);
                self.push(body, 1, true);
                return None;
            }
            Op::Cleanup { body } => {
                self.advance();
                let status = host.push_cleanup(BodyRunner::entry(Arc::clone(body)));
                return self.settle(step, Reply::status(status), host);
            }
            _ => {}
        }
        match host.poll_op(step) {
            Poll::Pending => Some(BodyEnd::Pending),
            Poll::Ready(reply) => {
                self.advance();
                self.settle(step, reply, host)
            }
        }
    }

    /// Stays pending for some polls.
    fn wait(&mut self, polls: u64, wake: bool, host: &mut dyn TaskOps) -> Option<BodyEnd> {
        let left = self.waits.unwrap_or(polls);
        if left == 0 {
            self.waits = None;
            self.advance();
            return None;
        }
        self.waits = Some(left - 1);
        if wake {
            host.wake_self();
        }
        Some(BodyEnd::Pending)
    }

    /// Compares a reply and decides how the body goes on, as `?` would.
    fn settle(
        &mut self,
        step: &ScriptStep,
        reply: Reply,
        host: &mut dyn TaskOps,
    ) -> Option<BodyEnd> {
        let handled = step.expect.is_some() || reply.status == Status::Ok;
        let ends = matches!(
            reply.status,
            Status::Disconnected | Status::ResourceExhausted | Status::TimerDurationExceeded
        );
        let cancels = matches!(reply.status, Status::Cancelled | Status::BudgetExhausted);
        if handled || !(ends || cancels) {
            compare(step, &reply).into_iter().for_each(|failure| host.report(failure));
        }
        if reply.result("panics") == Some(&Value::Bool(true)) {
            return Some(BodyEnd::Panicked(LEAK_MESSAGE.to_owned()));
        }
        if handled {
            return None;
        }
        if cancels {
            self.unwind(host);
            host.observe();
            self.cancelled = true;
            let Some(steps) = self.on_cancel.take() else { return Some(BodyEnd::Cancelled) };
            self.push(&steps, 1, false);
            return None;
        }
        let message = reply.status.name().to_owned();
        Some(BodyEnd::Failed { status: Some(reply.status), message })
    }

    fn done(&self) -> BodyEnd {
        if self.cancelled { BodyEnd::Cancelled } else { BodyEnd::Done }
    }

    fn advance(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at += 1;
        }
    }

    fn push(&mut self, steps: &Body, times: u64, shield: bool) {
        self.frames.push(Frame { steps: Arc::clone(steps), at: 0, times, shield });
    }

    fn pop(&mut self, host: &mut dyn TaskOps) {
        if self.frames.pop().is_some_and(|frame| frame.shield) {
            host.shield(false);
        }
    }

    fn unwind(&mut self, host: &mut dyn TaskOps) {
        while !self.frames.is_empty() {
            self.pop(host);
        }
    }
}

/// What differs between what the file says and what came.
pub fn compare(step: &ScriptStep, reply: &Reply) -> Vec<Failure> {
    let what = format!("op \"{}\"", step.name);
    let expected = step.expect.unwrap_or(Status::Ok);
    if reply.status != expected {
        let note = reply.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let got = format!("{}{note}", reply.status.name());
        return vec![Failure::new(step.line, what, expected.name(), got).of(step)];
    }
    let differs = |want: &crate::scenario::Want| {
        let got = reply.result(want.key).cloned().unwrap_or_else(Value::none);
        let what = format!("{what}: {}", want.key);
        let failure =
            || Failure::new(want.line, what, want.value.to_string(), got.to_string()).of(step);
        (got != want.value).then(failure)
    };
    step.wants.iter().filter_map(differs).collect()
}
