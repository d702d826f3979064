//! A scripted task as a future.
//!
//! Each poll lets the `BodyRunner` go on. An op that may wait becomes a future of the runtime's own
//! (a sleep, a reserve, ..) that is kept until it is ready. What the body leaves behind (held
//! permits, cleanup entries) is a stack that is worked off when it ends, as the law says.

use super::World;
use super::api::Current;
use super::waits::Pending;
use crate::api::{Caller, HostApi as _, Scripted};
use crate::body::{BodyEnd, BodyRunner, TaskOps};
use crate::host::{Failure, Reply};
use crate::interpreter;
use crate::scenario::ScriptStep;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::world::TaskError;
use asx_runtime::Cx;
use asx_runtime::probe::{self, TaskProbe};
use core::future::Future;
use core::mem::take;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

/// An entry of a task's cleanup stack.
pub(super) enum Entry {
    Permit(u64),
    Cleanup(BodyRunner),
}

pub(super) struct Script {
    world: Arc<World>,
    cx: Cx,
    own: Scripted,
    wait: Option<Pending>,
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
    Failed(TaskError),
    Panicked(String),
}

impl Script {
    pub(super) fn new(world: Arc<World>, cx: Cx, own: Scripted) -> Script {
        Script {
            world,
            cx,
            own,
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
        if let Some(entry) = self.world.things().tasks.get_mut(&probe.id()) {
            entry.polls += 1;
            entry.polls_since_request += u64::from(unseen);
        }
    }

    /// A part of the task, its body or an entry of its stack, has ended like this.
    fn part_ended(&mut self, end: BodyEnd) {
        let probe = TaskProbe::of(&self.cx);
        self.wait = None;
        let in_cleanup = self.cleaning || probe.state().acknowledged();
        let mut things = self.world.things();
        let entry = things.tasks.get_mut(&probe.id());
        match end {
            BodyEnd::Failed { message, .. } if in_cleanup => {
                if let Some(entry) = entry {
                    entry.cleanup_error = Some(message);
                }
                drop(things);
                probe::cleanup_error(&self.cx);
            }
            BodyEnd::Failed { status, message } => {
                let error = TaskError { status, message: message.into() };
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
                    self.world.let_go(id, unwinding);
                }
                Entry::Cleanup(runner) => {
                    self.own.runner = runner;
                    return true;
                }
            }
        }
        false
    }
}

impl Future for Script {
    type Output = Result<(), TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.count_poll();
        let end = {
            let Script { world, cx, own, wait, shields, stack, cleaning, .. } = this;
            let Scripted { name, index, runner } = own;
            runner.poll(&mut Ops {
                world: Arc::clone(world),
                cx,
                name,
                index: *index,
                wait,
                shields,
                stack,
                hidden: u32::from(*cleaning),
                waker: context.waker(),
            })
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
                self.world.lose(id);
            }
        }
        probe::resolved(&self.cx);
        self.wait = None;
        let probe = TaskProbe::of(&self.cx);
        // Of all others the handle tells.
        let line = probe.is_finalizer().then(|| {
            let things = self.world.things();
            things.tasks.get(&probe.id()).map(|entry| entry.line.clone())
        });
        if let Some(Some(line)) = line {
            line.wake_all();
        }
    }
}

/// A poll under way: what the body sees of its host.
struct Ops<'a> {
    world: Arc<World>,
    cx: &'a Cx,
    name: &'a str,
    index: i64,
    wait: &'a mut Option<Pending>,
    shields: &'a mut u32,
    stack: &'a mut Vec<Entry>,
    /// Nothing is seen because the stack is worked off.
    hidden: u32,
    waker: &'a Waker,
}

impl TaskOps for Ops<'_> {
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply> {
        let current = Current {
            cx: self.cx,
            wait: self.wait,
            stack: self.stack,
            shielded: *self.shields + self.hidden > 0,
            waker: self.waker,
        };
        let caller = Caller { name: self.name, index: self.index, current };
        interpreter::perform(&mut self.world, &step.op, caller)
    }

    fn wake_self(&mut self) {
        self.waker.wake_by_ref();
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

    fn report(&mut self, failure: Failure) {
        self.world.book().report(self.name, failure);
    }
}
