//! The context of a task.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use asx_kernel::budget::{Budget, Exhausted};
use asx_kernel::ids::TaskId;
use asx_kernel::time::Time;

use crate::core::Core;
use crate::error::AdmissionError;
use crate::footprint::{self, Object, Part};
use crate::holders::Holder;
use crate::raw::TaskRef;
use crate::raw::audit::Owner;
use crate::raw::contain_panic;
use crate::raw::foreign_wakers::Registration;
use crate::raw::limits::Limits;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context;
use crate::region::Region;
use crate::region::resources::Obligation;
use crate::runtime::cancel_view::{CancelView, Check};
use crate::runtime::node;
use crate::wait::Wait;
#[cfg(feature = "lab")]
use crate::wait_notes;

/// A task's context: time, spawning and the cancel state come through it.
///
/// A cheap clone, valid for ever. Asked by another task ([`checkpoint`](Cx::checkpoint),
/// [`is_cancelled`](Cx::is_cancelled), [`budget`](Cx::budget)) it tells about the task it belongs
/// to. To *wait* in a task, use the context of that task: an operation that is awaited in one task
/// with the context of another would miss the cancels and timeouts around it, so it ends at once
/// with a [`Cancelled`] that says so (`ResourceUnavailable`, "the context of another task").
/// Outside of tasks, on a thread of your own, on another executor or in a blocking job, any context
/// will do.
#[derive(Clone)]
pub struct Cx {
    task: TaskRef,
}

impl Cx {
    pub(crate) fn of(task: TaskRef) -> Cx {
        Cx { task: task.given_to(Owner::Context) }
    }

    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.task.core()
    }

    /// Returns the context of the task that this thread is polling, for adapters to traits without
    /// a context parameter.
    pub fn current() -> Option<Cx> {
        poll_context::with_current(|task| Cx::of(task.clone()))
    }

    /// The id of the task.
    pub fn id(&self) -> TaskId {
        footprint::read_numbers();
        self.id_unseen()
    }

    /// [`id`](Cx::id) for the runtime's own use, which no order of spawns changes.
    pub(crate) fn id_unseen(&self) -> TaskId {
        TaskId(asx_kernel::arena::Key { generation: self.task.id(), index: 0 })
    }

    /// Returns an error if the task, or the part of it that calls this, was cancelled. The cancel
    /// counts as observed then: the task ends cancelled.
    ///
    /// Inside a [shield](Cx::shield) it is never an error.
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        footprint::point();
        footprint::observes();
        self.check_now()
    }

    /// [`checkpoint`](Cx::checkpoint) as a part of another operation.
    pub(crate) fn check_now(&self) -> Result<(), Cancelled> {
        self.cancel_view().check(Check::IN_TIME).map_or(Ok(()), Err)
    }

    /// Whether the task, or the part of it that calls this, was cancelled. The cancel counts as
    /// observed then, as with [`checkpoint`](Cx::checkpoint).
    pub fn is_cancelled(&self) -> bool {
        footprint::point();
        footprint::observes();
        self.cancel_view().check(Check::IN_TIME).is_some()
    }

    /// The cancels that reach the caller.
    #[inline]
    pub(crate) fn cancel_view(&self) -> CancelView<'_> {
        CancelView::of(&self.task)
    }

    /// [`waits`](Cx::waits), of an operation that was charged nothing.
    #[inline]
    pub(crate) fn note_wait(
        &self,
        on: Wait,
        at: &'static Location<'static>,
        waker: &Waker,
        registration: &mut Registration,
    ) {
        self.task.set_wait(on, at);
        registration.wait(&self.task, waker);
        #[cfg(feature = "lab")]
        if wait_notes::is_on() {
            let frames = node::frames(&self.task);
            wait_notes::note_wait(self.task.id(), registration.address(), on, at, frames);
        }
    }

    /// Whether an operation may proceed on the fast path: this thread polls the task, no cancel
    /// reaches the caller, the task has no limits, and an operation is left, which this takes.
    ///
    /// Not inlined: inside this crate it is shorter than the calls that it makes.
    pub(crate) fn goes_ahead(&self) -> bool {
        self.cancel_view().is_quiet() && poll_context::take_operation()
    }

    /// The region that work started here belongs to: the innermost scope around the caller.
    pub(crate) fn region(&self) -> Arc<Region> {
        self.with_region(Arc::clone)
    }

    /// The same, for a look at it.
    pub(crate) fn with_region<R>(&self, look: impl FnOnce(&Arc<Region>) -> R) -> R {
        let mut look = Some(look);
        let inner = node::find(&self.task, |node| match &node.kind {
            node::Kind::Scope(region) => look.take().map(|look| look(region)),
            _ => None,
        });
        match (inner.ok().flatten(), look) {
            (Some(answer), _) => answer,
            (None, Some(look)) => look(self.task.region()),
            (None, None) => unreachable!("who has looked has an answer"),
        }
    }

    /// What work started here is bounded by: the deadlines around the caller.
    pub(crate) fn inherited(&self) -> Budget {
        let mut budget = Budget::INFINITE;
        let _ = node::find(&self.task, |node| {
            let deadline = node.deadline();
            budget = budget.meet(Budget { deadline, ..Budget::INFINITE });
            None::<()>
        });
        budget
    }

    /// Returns the remaining budget of the task.
    pub fn budget(&self) -> Budget {
        // Tasks with a clone of this context share the budget.
        let _after = footprint::operation();
        Object::of_task(self.task.id(), Part::Own).read();
        let free = Budget { priority: self.task.priority(), ..Budget::INFINITE };
        self.task.limits().map_or(free, Limits::left).meet(self.inherited())
    }

    /// Takes from the remaining cost of the task's budget. If it is too small, nothing is taken and
    /// the task is cancelled.
    pub fn consume(&self, cost: u64) -> Result<(), Cancelled> {
        match self.try_consume(cost) {
            Ok(()) => Ok(()),
            Err(_) => self.checkpoint(),
        }
    }

    /// Like [`consume`](Cx::consume), without observing the cancel that it starts.
    pub fn try_consume(&self, cost: u64) -> Result<(), Exhausted> {
        let Some(limits) = self.task.limits() else { return Ok(()) };
        let _after = footprint::operation();
        Object::of_task(self.task.id(), Part::Own).write();
        let consumed = limits.consume_cost(cost);
        if let Err(exhausted) = consumed {
            self.task.region().exhausted(&self.task, exhausted);
        }
        consumed
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.core().host.now()
    }

    /// A random number. Draw all randomness from here: under a seed, and in the lab, a run is then
    /// the same each time.
    pub fn random(&self) -> u64 {
        self.core().host.entropy()
    }

    /// A random number below `count`; 0 if that is 0. The lab tries each of them.
    pub fn random_below(&self, count: u64) -> u64 {
        if count < 2 { 0 } else { self.core().host.choose(count) }
    }

    /// Whether something is to go wrong here: never, but in the lab, which tries both where a check
    /// asks for faults. Code that talks to the world says so where that can fail:
    ///
    /// ```
    /// # use asx::Cx;
    /// # use std::io;
    /// fn append(cx: &Cx, log: &mut Vec<u8>, line: &[u8]) -> io::Result<()> {
    ///     if cx.fault("disk full") {
    ///         return Err(io::ErrorKind::StorageFull.into());
    ///     }
    ///     log.extend(line);
    ///     Ok(())
    /// }
    /// ```
    pub fn fault(&self, name: &'static str) -> bool {
        self.core().host.fault(name)
    }

    /// Returns the network of the host, if it has one.
    #[cfg(not(target_family = "wasm"))]
    pub fn net(&self) -> Option<&dyn crate::net::Net> {
        self.core().host.net()
    }

    /// Reserves an obligation of the innermost scope around the caller.
    ///
    /// # Errors
    ///
    /// Returns an [`AdmissionError`] if the scope admits no obligation.
    #[track_caller]
    pub fn obligation(&self) -> Result<Obligation, AdmissionError> {
        Obligation::of(self.region(), Location::caller()).map_err(AdmissionError::new)
    }

    /// Yields: all tasks that are runnable now are polled first.
    pub fn yield_now(&self) -> YieldNow {
        YieldNow { yielded: false }
    }
}

impl Holder {
    /// The task of this context.
    #[inline]
    pub fn of(cx: &Cx) -> Holder {
        Holder::of_task(cx.task())
    }
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cx({})", self.id())
    }
}

/// The future of [`Cx::yield_now`]; gives `()`.
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        yields(cx.waker());
        Poll::Pending
    }
}

/// Wakes the current task, so that it is polled after the others.
fn yields(waker: &Waker) {
    footprint::yields();
    contain_panic::wake_by_ref(waker);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::runtime::node::{Branch, Kind as Node};
    use crate::testing;

    #[test]
    fn what_goes_ahead_is_polled_here_and_neither_cancelled_nor_out_of_operations() {
        let ((cx, cancel), (other, _)) = (Cx::loose(), Cx::loose());
        // As it is while it is polled.
        assert!(cx.task().word.begin_unsigned(true, false).is_some());
        let within = |operations, check: &dyn Fn()| {
            poll_context::as_if_polled(cx.task(), operations, check);
        };
        assert!(!cx.goes_ahead(), "nobody polls it");
        within(9, &|| assert!(!other.goes_ahead(), "another task is polled"));
        for (kind, goes) in
            [(Node::Shield(Default::default()), false), (Node::Branch(Branch::default()), true)]
        {
            let node = node::Node::new(kind);
            within(9, &|| assert_eq!(node::enter(&node, || cx.goes_ahead()), goes));
        }
        within(2, &|| {
            assert_eq!([(); 3].map(|()| cx.goes_ahead()), [true, true, false]);
            assert!(!poll_context::take_operation(), "each has taken one");
        });
        within(1, &|| {
            assert!(!other.goes_ahead());
            assert!(poll_context::take_operation(), "what does not go ahead takes none");
        });
        within(9, &|| assert!(cx.goes_ahead() && cx.checkpoint().is_ok()));
        cancel(testing::reason());
        within(9, &|| assert!(!cx.goes_ahead() && cx.checkpoint().is_err()));
    }
}
