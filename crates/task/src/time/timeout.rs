//! Time limits for a part of a task.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::cancel;
use asx_kernel::time::Time;
use pin_project_lite::pin_project;

use super::lateness::Lateness;
use super::timer::Timer;
use crate::proceed;
use crate::runtime::node::{Branch, Inside, Kind};
use crate::{Cancelled, Cx};

pin_project! {
    /// The future of [`Cx::timeout`] and [`Cx::deadline`]; gives `F::Output`.
    ///
    /// An inner timeout can only shorten an outer one: the outer cancel reaches everything inside,
    /// however much time the inner one has left.
    ///
    /// Outside of tasks the body cannot observe the cancel, so it is dropped at the deadline.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<'a, F> {
        kind: cancel::Kind,
        begun: bool,
        timer: Timer<&'a Cx>,
        lateness: Lateness<'a>,
        #[pin]
        body: Inside<F>,
    }
}

impl<'a, F> Timeout<'a, F> {
    #[track_caller]
    pub(crate) fn new(cx: &'a Cx, kind: cancel::Kind, deadline: Time, body: F) -> Self {
        let body = Inside::new(Kind::Branch(Branch::with_deadline(deadline, kind)), body);
        let timer = Timer::new(cx, deadline, false);
        let lateness = Lateness::new(Location::caller());
        Timeout { kind, begun: false, timer, lateness, body }
    }
}

impl<F, T, E> Timeout<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    fn poll_timed(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Timed<T>, E>> {
        let mut this = self.project();
        if !*this.begun {
            if !proceed::begins(context, this.begun) {
                return Poll::Pending;
            }
            if let Err(cancelled) = this.timer.cx().check_owner() {
                proceed::ends();
                return Poll::Ready(Err(cancelled.into()));
            }
        }
        loop {
            let told = this.body.branch().is_some_and(Branch::is_cancelled);
            if let Poll::Ready(result) = this.body.as_mut().poll(context) {
                proceed::ends();
                if this.body.branch().is_some_and(Branch::is_unheeded) {
                    this.lateness.end(this.timer);
                }
                let seen = this.body.branch().and_then(Branch::seen);
                return Poll::Ready(result.map(|value| match seen {
                    Some(cancelled) => Timed::Late { value, cancelled },
                    None => Timed::InTime(value),
                }));
            }
            let Some(branch) = this.body.branch() else { return Poll::Pending };
            if branch.is_cancelled() {
                if told {
                    if branch.is_unheeded() {
                        this.lateness.look(this.timer, context.waker());
                    }
                    return match branch.unheard(this.timer.cx().task()) {
                        Some(cancelled) => Poll::Ready(Err(cancelled.into())),
                        None => Poll::Pending,
                    };
                }
                // A check inside the body found the deadline passed. The other parts of the body
                // have to observe the cancel too.
                continue;
            }
            let cancelled = match ready!(this.timer.poll(context.waker())) {
                Ok(()) => this.timer.cx().task().region().reason(*this.kind).into(),
                Err(cancelled) => cancelled,
            };
            branch.cancel(cancelled);
        }
    }
}

impl<F, T, E> Future for Timeout<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.poll_timed(context)) {
            Ok(Timed::InTime(value)) => Ok(value),
            Ok(Timed::Late { cancelled, .. }) => Err(cancelled.into()),
            Err(error) => Err(error),
        })
    }
}

impl<F> fmt::Debug for Timeout<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timeout({})", self.timer.deadline())
    }
}

/// A value returned by the body of a [`Cx::timeout_or_late`] or [`Cx::deadline_or_late`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the value may be late"]
pub enum Timed<T> {
    /// The body returned the value without having observed the cancel.
    InTime(T),
    /// The body observed the cancel and then returned a value, which may be incomplete.
    Late {
        /// The value.
        value: T,
        /// The cancel that the body observed.
        cancelled: Cancelled,
    },
}

pin_project! {
    /// The future of [`Cx::timeout_or_late`] and [`Cx::deadline_or_late`]; gives
    /// `Result<Timed<T>, E>` for a body with `Result<T, E>`.
    #[must_use = "futures do nothing unless awaited"]
    pub struct TimeoutOrLate<'a, F> {
        #[pin]
        timeout: Timeout<'a, F>,
    }
}

impl<'a, F> TimeoutOrLate<'a, F> {
    pub(crate) fn new(timeout: Timeout<'a, F>) -> Self {
        TimeoutOrLate { timeout }
    }
}

impl<F, T, E> Future for TimeoutOrLate<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    type Output = Result<Timed<T>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().timeout.poll_timed(context)
    }
}

impl<F> fmt::Debug for TimeoutOrLate<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeoutOrLate({})", self.timeout.timer.deadline())
    }
}
