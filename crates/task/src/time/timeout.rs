//! Bounding how long a part of a task may take.

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
use crate::cancel::node::{Branch, Inside, Kind};
use crate::proceed;
use crate::{Cancelled, Cx};

pin_project! {
    /// The future of [`Cx::timeout`] and [`Cx::deadline`]; gives what its body does:
    /// `F::Output`.
    ///
    /// One inside another can only tighten it: the outer one's cancel reaches everything inside,
    /// whatever time the inner one has left.
    ///
    /// Outside of tasks nothing inside can hear of it: there the body is dropped when time is up.
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

impl<F, T, E> Future for Timeout<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
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
                return Poll::Ready(match (result, seen) {
                    (Ok(_), Some(cancelled)) => Err(cancelled.into()),
                    (result, _) => result,
                });
            }
            let Some(branch) = this.body.branch() else { return Poll::Pending };
            if branch.is_cancelled() {
                if told {
                    if branch.is_unheeded() {
                        this.lateness.look(this.timer, context.waker());
                    }
                    return match branch.unheard(this.timer.cx()) {
                        Some(cancelled) => Poll::Ready(Err(cancelled.into())),
                        None => Poll::Pending,
                    };
                }
                // One part of the body has looked at the clock: the others are to know.
                continue;
            }
            let cancelled = match ready!(this.timer.poll(context.waker())) {
                Ok(()) => this.timer.cx().task().region.reason(*this.kind).into(),
                Err(cancelled) => cancelled,
            };
            branch.cancel(cancelled);
        }
    }
}

impl<F> fmt::Debug for Timeout<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timeout({})", self.timer.deadline())
    }
}
