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
use asx_kernel::status::Status;

use crate::error::CancelError;
use crate::footprint::{self, Object, Part};
use crate::proceed;
use crate::raw::outcome::{Cancelled, Outcome, TaskError};
use crate::raw::poll_context;
use crate::raw::{JoinInner, TaskRef};
use crate::runtime::cancel_view::{CancelView, Check};
use crate::wait::Wait;
use crate::{CancelSafe, Why};

/// A task's handle. Awaiting it gives the outcome; dropping it changes nothing, since the scope
/// owns the task: it neither goes on for longer than the scope nor ends with its handle.
///
/// ```
/// #![deny(unused_must_use)]
/// use asx::prelude::*;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     cx.scope(async |s| {
///         s.spawn(async |cx: Cx| cx.sleep(1.millis()).await); // the scope waits for it
///         let answer = s.spawn(async |_cx: Cx| Ok(42));
///         assert_eq!(answer.await.ok(), Some(42));
///         Ok(())
///     })
///     .await
/// }
/// ```
///
/// Awaiting is a cancel-checked operation of the task that awaits: when that one is asked to stop,
/// the await ends with its cancel, and the awaited task goes on.
///
/// The outcome is given out once. A handle that is awaited again after that answers
/// [`Cancelled`](TaskError::Cancelled) (`ResourceUnavailable`, "the outcome of the task was taken
/// before: a handle gives it once"); [`outcome`](Task::outcome) answers `None`.
pub struct Task<T, E> {
    joint: JoinInner<T, E>,
}

impl<T, E> Task<T, E> {
    pub(crate) fn new(joint: JoinInner<T, E>) -> Self {
        Task { joint }
    }

    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        footprint::read_numbers();
        self.id_unseen()
    }

    /// [`id`](Task::id) for the runtime's own use, which no order of spawns changes.
    fn id_unseen(&self) -> TaskId {
        TaskId(Key { generation: self.joint.task().id(), index: 0 })
    }

    /// Requests cancellation of the task. Returns true for the first request; later reasons can
    /// only be stronger.
    ///
    /// The reason is a [`Kind`], or a message (then the kind is `User`).
    ///
    /// If [`Limits::cancel_queue`](crate::Limits::cancel_queue) is set and reached, the request is
    /// refused: nothing changes, the result is false, and the refusal is counted in
    /// [`Health::refused_cancels`](crate::Health::refused_cancels). Programs that set this limit
    /// use [`try_cancel`](Task::try_cancel).
    pub fn cancel(&self, why: impl Into<Why>) -> bool {
        let why = why.into();
        let _after = footprint::operation();
        let core = &self.joint.task().region().core;
        self.request_cancel(why).unwrap_or_else(|_| {
            core.cancel_refused();
            false
        })
    }

    /// Requests cancellation of the task, as [`cancel`](Task::cancel) does.
    ///
    /// # Errors
    /// [`CancelError::LimitReached`] if the request needs a place in the cancel queue and
    /// [`Limits::cancel_queue`](crate::Limits::cancel_queue) is reached. Nothing has changed then.
    /// A request to a task that has ended, is being polled or is in that queue needs none.
    /// [`Scope::cancel`](crate::Scope::cancel) is never refused.
    ///
    /// ```
    /// use asx::{CancelError, Cancelled, Cx, Limits, Runtime, Scope};
    ///
    /// let limits = Limits { cancel_queue: 1, ..Limits::default() };
    /// let runtime = Runtime::builder().current_thread().limits(limits).build()?;
    /// runtime.block_on(async |cx: Cx| {
    ///     cx.scope(async |s: Scope<Cancelled>| {
    ///         let [first, second] = [1, 2].map(|_| s.spawn(async |_cx: Cx| Ok(())));
    ///         assert_eq!(first.try_cancel("enough"), Ok(true));
    ///         assert_eq!(second.try_cancel("enough"), Err(CancelError::LimitReached));
    ///         Ok(())
    ///     })
    ///     .await
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_cancel(&self, why: impl Into<Why>) -> Result<bool, CancelError> {
        let why = why.into();
        let _after = footprint::operation();
        self.request_cancel(why).map_err(CancelError::new)
    }

    /// [`cancel`](Task::cancel) within the limit of the cancel queue.
    fn request_cancel(&self, why: Why) -> Result<bool, Status> {
        let task = self.joint.task();
        let _reserved = task.core().room_to_cancel(task)?;
        Ok(self.cancel_unlimited(why))
    }

    /// [`cancel`](Task::cancel) for the runtime itself, which no limit refuses: see decision 081.
    pub(crate) fn cancel_unlimited(&self, why: Why) -> bool {
        let task = self.joint.task();
        let region = &task.region();
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
        task.region().cancel_task(task, &Arc::new(reason), cleanup)
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        let task = self.joint.task();
        let _after = footprint::operation();
        Object::of_task(task.id(), Part::End).read();
        task.word.load().is_completed()
    }

    /// The outcome of a task that has ended, once.
    pub fn outcome(&mut self) -> Option<Outcome<T, E>> {
        let _after = footprint::operation();
        self.joint.try_take()
    }

    /// Waits for the value of the task, for callers that have no use for how it failed: its error
    /// as it is, a cancel as the error it [converts](From) into, and a panic goes on here.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use std::num::ParseIntError;
    ///
    /// #[derive(Debug)]
    /// enum AppError {
    ///     Cancelled,
    ///     NoNumber(ParseIntError),
    /// }
    ///
    /// impl From<Cancelled> for AppError {
    ///     fn from(_: Cancelled) -> Self {
    ///         AppError::Cancelled
    ///     }
    /// }
    ///
    /// impl From<ParseIntError> for AppError {
    ///     fn from(error: ParseIntError) -> Self {
    ///         AppError::NoNumber(error)
    ///     }
    /// }
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), AppError> {
    ///     cx.scope(async |s| {
    ///         let left = s.spawn(async |_cx: Cx| Ok("20".parse::<u32>()?));
    ///         let right = s.spawn(async |_cx: Cx| Ok("22".parse::<u32>()?));
    ///         assert_eq!(left.value().await? + right.value().await?, 42);
    ///         Ok::<_, AppError>(())
    ///     })
    ///     .await
    /// }
    /// ```
    ///
    /// # Panics
    /// If the task has panicked.
    pub fn value(self) -> TaskValue<T, E>
    where
        E: From<Cancelled>,
    {
        TaskValue { task: self }
    }

    pub(crate) fn to_ref(&self) -> TaskRef {
        self.joint.task().clone()
    }

    /// [`Cx::poll_proceed`] of the task that awaits: what was said to it.
    #[inline]
    pub(crate) fn poll_proceed(&mut self, context: &Context<'_>) -> Poll<Option<Cancelled>> {
        footprint::point();
        if !proceed::takes_operation(context, &mut self.joint.registration) {
            return Poll::Pending;
        }
        let cancelled = self.awaiter_cancelled();
        let forced = |task: &TaskRef| proceed::is_forced_here(task, context.waker());
        if cancelled.is_some() && poll_context::with_current(forced) == Some(true) {
            return Poll::Pending;
        }
        Poll::Ready(cancelled)
    }

    /// What was said to the task that awaits, unless it is that this one failed: then the outcome
    /// tells more.
    fn awaiter_cancelled(&self) -> Option<Cancelled> {
        let cancelled =
            poll_context::with_current(|task| CancelView::of(task).check(Check::IN_TIME))??;
        let reason = cancelled.reason();
        let own = reason.kind == Kind::FailFast && reason.origin_task == Some(self.id_unseen());
        (!own).then_some(cancelled)
    }
}

impl<T, E> Future for Task<T, E> {
    type Output = Outcome<T, E>;

    // Called by an `await`, it has the place of that.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        match ready!(self.poll_proceed(cx)) {
            Some(cancelled) => Poll::Ready(Err(TaskError::Cancelled(cancelled))),
            None => self.poll_charged_end(cx.waker()),
        }
    }
}

/// The future of [`Task::value`]; gives `Result<T, E>`.
#[must_use = "futures do nothing unless awaited"]
pub struct TaskValue<T, E> {
    task: Task<T, E>,
}

impl<T, E: From<Cancelled>> Future for TaskValue<T, E> {
    type Output = Result<T, E>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.task).poll(cx));
        Poll::Ready(outcome.map_err(|error| match error {
            TaskError::Err(error) => error,
            TaskError::Cancelled(cancelled) => cancelled.into(),
            TaskError::Panicked(panic) => panic.resume(),
        }))
    }
}

impl<T, E: From<Cancelled>> CancelSafe for TaskValue<T, E> {}

impl<T, E> fmt::Debug for TaskValue<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskValue({})", self.task.id())
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
        poll_context::with_current(|task| {
            task.set_wait(on, at);
            self.joint.registration.wait(task, waker);
        });
    }

    /// [`poll_end`](Task::poll_end) of who was charged for it: given back if that waits.
    #[track_caller]
    pub(crate) fn poll_charged_end(&mut self, waker: &Waker) -> Poll<Outcome<T, E>> {
        let polled = self.poll_end(waker);
        if polled.is_pending() {
            poll_context::return_operation();
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
                let task = self.joint.task();
                let reason = match self.joint.is_given() {
                    true => {
                        let misuse = task.region().reason(Kind::ResourceUnavailable);
                        Arc::new(misuse.with_message(GIVEN))
                    }
                    // The scope has taken a failure as its own result.
                    false => task.region().reason_of(task),
                };
                return Poll::Ready(Err(TaskError::Cancelled(Cancelled::from(reason))));
            }
            if self.joint.register(waker) {
                self.await_in_current(Wait::Join, Location::caller(), waker);
                return Poll::Pending;
            }
        }
    }
}

/// To who asks for an outcome twice.
const GIVEN: &str = "the outcome of the task was taken before: a handle gives it once";

impl<T, E> CancelSafe for Task<T, E> {}

impl<T, E> Unpin for Task<T, E> {}

impl<T, E> fmt::Debug for Task<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({})", self.id())
    }
}
