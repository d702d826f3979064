//! What every operation does first: whether it may go on now.
//!
//! An operation that always finds something to do would never let another task run. So a poll may
//! complete so many of them ([`Settings::operations`](crate::Settings)), whatever they answer; the
//! one after those is `Pending` once and wakes its task, which is polled again after others.
//!
//! * [`Cx::poll_proceed`] is for what waits itself. It is charged at once, and what then waits gets
//!   its charge back ([`Cx::waits`]).
//! * [`charge`] is for operations that cost more than one unit of the budget: a system call, for
//!   example.
//! * [`begins`] and [`ends`] are for what is made of other operations or of futures of others, and
//!   is charged at its end; [`Charged`] does both.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;
use pin_project_lite::pin_project;

use crate::footprint;
use crate::force::is_dropping_by_force;
use crate::raw::contain_panic;
use crate::raw::foreign_wakers::Registration;
use crate::raw::is_child_waker;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context;
use crate::raw::{TaskRef, task_of};
use crate::runtime::cx::Cx;
use crate::wait::Wait;

/// Why an operation was refused that is awaited in another task.
const WRONG_OWNER: &str = "the context of another task";

/// For who writes an operation; see [`operation`](crate::operation).
impl Cx {
    /// The first step of every poll of every operation: whether it goes on, with the cancel if the
    /// task or the part of it that asks is to stop.
    ///
    /// It is charged one of the operations a poll may complete, whatever it then answers;
    /// [`waits`](Cx::waits) gives that back. If none is left, it is `Pending` once, as the
    /// registration notes, and the task is polled again after others: so a loop over operations
    /// that need not wait starves nobody, and no other part of the same task can starve the
    /// operation.
    ///
    /// A task that is to end by force is not let go on at all: its poll ends, and so does it.
    ///
    /// # Errors
    /// The operation is to end with this.
    #[inline]
    pub fn poll_proceed(
        &self,
        context: &Context<'_>,
        registration: &mut Registration,
    ) -> Poll<Result<(), Cancelled>> {
        // Shortcut: `Cx::goes_ahead`: one test covers a pending cancel and an exhausted operation
        // budget of the poll.
        // Law: cancel-checked operations observe cancels first (`world::waits`).
        // Equal: `what_goes_ahead_is_polled_here_and_neither_cancelled_nor_out_of_operations`.
        // Worth: 6.2 % of `spsc`.

        footprint::point();
        footprint::observes();
        if self.goes_ahead() {
            return Poll::Ready(Ok(()));
        }
        self.poll_proceed_slowly(context, registration)
    }

    /// An operation that [`poll_proceed`](Cx::poll_proceed) has let go on waits: notes for what,
    /// and where, and gives back what it was charged. A cancel wakes `waker`, also if it is not the
    /// task's own, for as long as the registration lives.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub fn waits(
        &self,
        on: Wait,
        at: &'static Location<'static>,
        waker: &Waker,
        registration: &mut Registration,
    ) {
        poll_context::return_operation();
        footprint::pends();
        self.note_wait(on, at, waker, registration);
    }

    #[cold]
    #[inline(never)]
    fn poll_proceed_slowly(
        &self,
        context: &Context<'_>,
        registration: &mut Registration,
    ) -> Poll<Result<(), Cancelled>> {
        if is_forced_here(self.task(), context.waker()) || !takes_operation(context, registration) {
            return Poll::Pending;
        }
        Poll::Ready(self.check_owner().and_then(|()| self.check_now()))
    }

    /// An error if another task is polled here than the one this context belongs to: its cancels
    /// and timeouts would not reach what waits with this context. A blocking job waits as any
    /// thread does, which has no task.
    pub(crate) fn check_owner(&self) -> Result<(), Cancelled> {
        let is_another =
            |polled: &TaskRef| polled.as_ptr() != self.task().as_ptr() && !polled.is_blocking();
        match poll_context::with_current(is_another) {
            Some(true) => Err(self.wrong_owner()),
            _ => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn wrong_owner(&self) -> Cancelled {
        let reason =
            self.task().region().reason(Kind::ResourceUnavailable).with_task(self.id_unseen());
        reason.with_message(WRONG_OWNER).into()
    }
}

/// Takes one of the operations that the poll of this thread may complete. If none is left the
/// caller is `Pending`, once, and is polled again after others.
#[inline]
pub(crate) fn takes_operation(context: &Context<'_>, registration: &mut Registration) -> bool {
    let takes = poll_context::take_operation() || registration.take_yield();
    if !takes {
        footprint::yields();
        registration.note_yield();
        contain_panic::wake_by_ref(context.waker());
    }
    takes
}

/// Whether an operation that is made of others may begin, at its first poll: those are charged on
/// their own, and this one when it [`ends`]. As with `takes_operation` it lets others run at most
/// once.
#[inline]
pub fn begins(context: &Context<'_>, begun: &mut bool) -> bool {
    if std::mem::replace(begun, true) {
        return true;
    }
    footprint::point();
    if poll_context::with_current(|task| is_forced_here(task, context.waker())) == Some(true) {
        return false;
    }
    let begins = poll_context::has_operation();
    if !begins {
        footprint::yields();
        contain_panic::wake_by_ref(context.waker());
    }
    begins
}

/// An operation that is made of others has ended: it is charged, if something is left.
#[inline]
pub fn ends() {
    poll_context::take_operation();
    footprint::point();
}

/// Charges the current poll for this number of operations, in addition to the one that
/// [`Cx::poll_proceed`] has charged. Does nothing outside of a poll.
///
/// For operations that take much longer than one on a channel, so that a task which completes only
/// such operations yields sooner.
#[inline]
pub fn charge(operations: u32) {
    poll_context::take_operations(operations);
}

pin_project! {
    /// An operation that is made of one future, maybe of somebody else: charged when that is done.
    pub(crate) struct Charged<F> {
        begun: bool,
        #[pin]
        future: F,
    }
}

impl<F> Charged<F> {
    pub(crate) fn new(future: F) -> Charged<F> {
        Charged { begun: false, future }
    }
}

impl<F: Future> Future for Charged<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !begins(context, this.begun) {
            return Poll::Pending;
        }
        let polled = this.future.poll(context);
        if polled.is_ready() {
            ends();
        }
        polled
    }
}

/// [`begins`] as a future.
pub fn begin() -> impl Future<Output = ()> {
    let mut begun = false;
    std::future::poll_fn(move |context| match begins(context, &mut begun) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
}

/// Whether the task is polled here, by `waker`, and its next poll ends it by force: then this one
/// is to end. An executor inside the poll, which would wait, is not kept from its end; and neither
/// is a job, which has no other poll.
#[inline]
pub(crate) fn is_forced_here(task: &TaskRef, waker: &Waker) -> bool {
    task.word.load().is_forced() && is_poll_to_end(task, waker)
}

#[cold]
fn is_poll_to_end(task: &TaskRef, waker: &Waker) -> bool {
    if task.is_blocking() || is_dropping_by_force() {
        return false;
    }
    let own = task_of(waker) == Some(task.as_ptr()) || is_child_waker(waker);
    own && poll_context::with_current(|current| current.as_ptr() == task.as_ptr()).unwrap_or(false)
}
