//! Handles of tasks.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::TaskId;

use crate::cancel::view::{CancelView, Check};
use crate::footprint::{self, Object, Part};
use crate::proceed;
use crate::task::cell::{JoinInner, TaskRef};
use crate::task::context;
use crate::task::outcome::{Cancelled, Outcome, TaskError};
use crate::wait::Wait;
use crate::{CancelSafe, Why};

/// A task's handle. Awaiting it gives the outcome; dropping it changes nothing, since the scope
/// owns the task.
///
/// Awaiting is a cancel-checked operation of the task that awaits: when that one is asked to stop,
/// the await ends with its cancel, and the awaited task goes on.
#[must_use = "the scope waits for the task in any case; await the handle for its outcome"]
pub struct Task<T, E> {
    joint: JoinInner<T, E>,
}

impl<T, E> Task<T, E> {
    pub(crate) fn new(joint: JoinInner<T, E>) -> Self {
        Task { joint }
    }

    /// The id.
    pub fn id(&self) -> TaskId {
        TaskId(Key { generation: self.joint.task().id(), index: 0 })
    }

    /// Asks the task to stop: true the first time. Later reasons can only be stronger.
    ///
    /// The reason is a [`Kind`], or a word for people (then the kind is `User`).
    pub fn cancel(&self, why: impl Into<Why>) -> bool {
        let why = why.into();
        let task = self.joint.task();
        let region = &task.region;
        if why.polls.is_none() && why.time.is_none() {
            return self.cancel_with(why.reason(region));
        }
        let mut cleanup = region.allowed(why.kind.cleanup());
        let any = why.time.map(|_| u32::MAX);
        if let Some(polls) = why.polls.or(any) {
            cleanup.polls = if polls == u32::MAX { u64::MAX } else { polls.into() };
        }
        if let Some(time) = why.time {
            region.state_time(task, time, why.polls.is_none());
        }
        region.cancel_task_with(task, &Arc::new(why.reason(region)), cleanup)
    }

    pub(crate) fn cancel_with(&self, reason: Reason) -> bool {
        let task = self.joint.task();
        let cleanup = reason.kind.cleanup();
        task.region.cancel_task(task, &Arc::new(reason), cleanup)
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        let task = self.joint.task();
        footprint::lab_step();
        Object::of_task(task.id(), Part::End).read();
        task.word.load().is_completed()
    }

    /// The outcome of a task that has ended, once.
    pub fn outcome(&mut self) -> Option<Outcome<T, E>> {
        self.joint.try_take()
    }

    pub(crate) fn to_ref(&self) -> TaskRef {
        self.joint.task().clone()
    }

    /// [`Cx::poll_proceed`] of the task that awaits: what was said to it.
    #[inline]
    pub(crate) fn poll_proceed(&mut self, context: &Context<'_>) -> Poll<Option<Cancelled>> {
        if !proceed::takes_operation(context, &mut self.joint.registration) {
            return Poll::Pending;
        }
        let cancelled = self.awaiter_cancelled();
        let forced = |task: &TaskRef| proceed::is_forced_here(task, context.waker());
        if cancelled.is_some() && context::with_current(forced) == Some(true) {
            return Poll::Pending;
        }
        Poll::Ready(cancelled)
    }

    /// What was said to the task that awaits, unless it is that this one failed: then the outcome
    /// tells more.
    fn awaiter_cancelled(&self) -> Option<Cancelled> {
        let cancelled = context::with_current(|task| CancelView::of(task).check(Check::IN_TIME))??;
        let reason = cancelled.reason();
        let own = reason.kind == Kind::FailFast && reason.origin_task == Some(self.id());
        (!own).then_some(cancelled)
    }
}

impl<T, E> Future for Task<T, E> {
    type Output = Outcome<T, E>;

    // Called by an `await`, it has the place of that.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.poll_proceed(cx)) {
            Some(cancelled) => Poll::Ready(Err(TaskError::Cancelled(cancelled))),
            None => self.poll_charged_end(cx.waker()),
        }
    }
}

impl<T, E> Task<T, E> {
    /// Has `waker` woken at the end of the task: false if it has ended already.
    pub(crate) fn watch_end(&mut self, waker: &Waker) -> bool {
        self.joint.register(waker)
    }

    /// Notes that the task that is polled here waits for this one.
    pub(crate) fn await_in_current(
        &mut self,
        on: Wait,
        at: &'static Location<'static>,
        waker: &Waker,
    ) {
        context::with_current(|task| {
            task.set_wait(on, at);
            self.joint.registration.wait(task, waker);
        });
    }

    /// [`poll_end`](Task::poll_end) of who was charged for it: given back if that waits.
    #[track_caller]
    pub(crate) fn poll_charged_end(&mut self, waker: &Waker) -> Poll<Outcome<T, E>> {
        let polled = self.poll_end(waker);
        if polled.is_pending() {
            context::return_operation();
        }
        polled
    }

    /// Waits for the end, whatever was said to who waits.
    #[track_caller]
    pub(crate) fn poll_end(&mut self, waker: &Waker) -> Poll<Outcome<T, E>> {
        loop {
            if let Some(outcome) = self.joint.try_take() {
                self.joint.registration.end();
                return Poll::Ready(outcome);
            }
            if self.joint.is_done() {
                // The scope has taken a failure as its own result.
                let task = self.joint.task();
                let reason = task.region.reason_of(task);
                return Poll::Ready(Err(TaskError::Cancelled(Cancelled::from(reason))));
            }
            if self.joint.register(waker) {
                self.await_in_current(Wait::Join, Location::caller(), waker);
                return Poll::Pending;
            }
        }
    }
}

impl<T, E> CancelSafe for Task<T, E> {}

impl<T, E> Unpin for Task<T, E> {}

impl<T, E> fmt::Debug for Task<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({})", self.id())
    }
}
