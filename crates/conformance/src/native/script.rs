//! A scripted task as a future.
//!
//! Each poll lets the `BodyRunner` go on. An op that may wait becomes a future of the runtime's own
//! (a sleep, a reserve, ..) that is kept until it is ready. What the body leaves behind (held
//! permits, cleanup entries) is a stack that is worked off when it ends, as the law says.

use super::{World, channels};
use crate::body::{BodyEnd, BodyRunner, TaskOps};
use crate::host::{Failure, Reply};
use crate::scenario::{Name, Op, ScriptStep};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_runtime::Cx;
use asx_runtime::probe::{self, TaskProbe};
use core::future::Future;
use core::mem::take;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

/// A body's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptError {
    pub(super) status: Option<Status>,
    pub(super) message: String,
}

/// What belongs to one task.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) name: Name,
    pub(super) index: i64,
}

/// The task on whose behalf an op is done.
pub(super) struct Caller<'a> {
    pub(super) cx: &'a Cx,
    pub(super) own: &'a Own,
    /// What it has to resolve before it ends.
    pub(super) stack: &'a mut Vec<Entry>,
}

/// An entry of a task's cleanup stack.
pub(super) enum Entry {
    Permit(u64),
    Cleanup(BodyRunner),
}

/// A wait under way.
pub(super) type Wait = Pin<Box<dyn Future<Output = Reply> + Send>>;

pub(super) struct Script {
    world: Arc<World>,
    cx: Cx,
    own: Own,
    runner: BodyRunner,
    wait: Option<Wait>,
    shields: u32,
    stack: Vec<Entry>,
    /// The body has ended, and the stack is worked off.
    cleaning: bool,
    ended: End,
}

/// What the task ends with, as far as is known.
#[derive(Default)]
enum End {
    #[default]
    Done,
    Failed(ScriptError),
    Panicked(String),
}

impl Script {
    pub(super) fn new(world: Arc<World>, cx: Cx, own: Own, runner: BodyRunner) -> Script {
        Script {
            world,
            cx,
            own,
            runner,
            wait: None,
            shields: 0,
            stack: Vec::new(),
            cleaning: false,
            ended: End::Done,
        }
    }

    fn count_poll(&self) {
        let probe = TaskProbe::of(&self.cx);
        let unseen = probe.state() == TaskState::CancelRequested;
        if let Some(entry) = self.world.book().task.get_mut(&probe.id()) {
            entry.polls += 1;
            entry.polls_since_request += u64::from(unseen);
        }
    }

    /// A part of the task, its body or an entry of its stack, has ended like this.
    fn part_ended(&mut self, end: BodyEnd) {
        let probe = TaskProbe::of(&self.cx);
        self.wait = None;
        let in_cleanup = self.cleaning || probe.state().acknowledged();
        let mut book = self.world.book();
        let entry = book.task.get_mut(&probe.id());
        match end {
            BodyEnd::Failed { message, .. } if in_cleanup => {
                if let Some(entry) = entry {
                    entry.cleanup_error = Some(message);
                }
                drop(book);
                probe::cleanup_error(&self.cx);
            }
            BodyEnd::Failed { status, message } => {
                let error = ScriptError { status, message };
                if let Some(entry) = entry {
                    entry.error = Some(error.clone());
                }
                if matches!(self.ended, End::Done) {
                    self.ended = End::Failed(error);
                }
            }
            BodyEnd::Panicked(message) => {
                if let Some(entry) = entry {
                    entry.panic.get_or_insert(message.clone());
                }
                if !matches!(self.ended, End::Panicked(_)) {
                    self.ended = End::Panicked(message);
                }
            }
            BodyEnd::Pending | BodyEnd::Done | BodyEnd::Cancelled => {}
        }
        if !self.cleaning {
            self.cleaning = true;
            probe::body_ended(&self.cx);
        }
    }

    /// Works the stack off from its top: true if an entry is to be polled first.
    fn unwind(&mut self) -> bool {
        while let Some(entry) = self.stack.pop() {
            match entry {
                Entry::Permit(id) => {
                    let unwinding = matches!(self.ended, End::Panicked(_));
                    channels::let_go(&self.world, id, unwinding);
                }
                Entry::Cleanup(runner) => {
                    self.runner = runner;
                    return true;
                }
            }
        }
        false
    }
}

impl Future for Script {
    type Output = Result<(), ScriptError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.count_poll();
        let end = {
            let Script { world, cx, own, runner, wait, shields, stack, cleaning, .. } = this;
            let hidden = if *cleaning { 1 } else { 0 };
            runner.poll(&mut Ops { world, cx, own, wait, shields, stack, hidden, context })
        };
        if end == BodyEnd::Pending {
            return Poll::Pending;
        }
        this.part_ended(end);
        if this.unwind() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match take(&mut this.ended) {
            End::Done => Poll::Ready(Ok(())),
            End::Failed(error) => Poll::Ready(Err(error)),
            // Not `panic!`: nobody is to read of it.
            End::Panicked(message) => std::panic::resume_unwind(Box::new(message)),
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Ended by force: the runtime drops what is left.
        for entry in take(&mut self.stack).into_iter().rev() {
            if let Entry::Permit(id) = entry {
                channels::lose(&self.world, id);
            }
        }
        probe::resolved(&self.cx);
        self.wait = None;
        let probe = TaskProbe::of(&self.cx);
        // Of all others the handle tells.
        let line = probe.is_finalizer().then(|| {
            let book = self.world.book();
            book.task.get(&probe.id()).map(|entry| entry.line.clone())
        });
        if let Some(Some(line)) = line {
            line.wake_all();
        }
    }
}

/// A poll under way: what the body sees of its host.
struct Ops<'a, 'b> {
    world: &'a Arc<World>,
    cx: &'a Cx,
    own: &'a Own,
    wait: &'a mut Option<Wait>,
    shields: &'a mut u32,
    stack: &'a mut Vec<Entry>,
    /// Nothing is seen because the stack is worked off.
    hidden: u32,
    context: &'a mut Context<'b>,
}

impl TaskOps for Ops<'_, '_> {
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply> {
        let shielded = *self.shields + self.hidden > 0;
        if self.wait.is_none() {
            match self.world.wait_for(&step.op, self.cx, self.own, shielded) {
                Some(wait) => *self.wait = Some(wait),
                None => {
                    let (cx, own, stack) = (self.cx, self.own, &mut *self.stack);
                    return self.world.operate(&step.op, Some(Caller { cx, own, stack }));
                }
            }
        }
        let Some(wait) = self.wait else { return Poll::Pending };
        let polled = wait.as_mut().poll(self.context);
        if polled.is_ready() {
            *self.wait = None;
            if let (Op::Reserve { permit, .. }, Poll::Ready(reply)) = (&step.op, &polled)
                && reply.status == Status::Ok
                && let Ok(id) =
                    super::found(&self.world.book().permits, Some(&self.own.name), permit)
            {
                self.stack.push(Entry::Permit(id));
            }
        }
        polled
    }

    fn wake_self(&mut self) {
        self.context.waker().wake_by_ref();
    }

    fn observe(&mut self) {
        if *self.shields + self.hidden == 0 {
            let _ = self.cx.checkpoint();
        }
    }

    fn shield(&mut self, on: bool) {
        *self.shields = if on { *self.shields + 1 } else { self.shields.saturating_sub(1) };
    }

    fn push_cleanup(&mut self, entry: BodyRunner) -> Status {
        self.stack.push(Entry::Cleanup(entry));
        Status::Ok
    }

    fn report(&mut self, mut failure: Failure) {
        failure.what = format!("task `{}`, {}", self.own.name, failure.what);
        self.world.book().failures.push(failure);
    }
}
