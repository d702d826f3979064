//! Bounding how long a part of a task may take.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_kernel::cancel;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use super::{Armed, Owner};
use crate::node::{Branch, Inside, Kind};
use crate::{Cancelled, Cx};

/// The future of [`Cx::timeout`] and [`Cx::deadline`].
#[must_use = "futures do nothing unless awaited"]
pub struct Timeout<'a, F> {
    cx: &'a Cx,
    kind: cancel::Kind,
    deadline: Time,
    timer: Option<TimerHandle>,
    body: Inside<F>,
}

impl<'a, F> Timeout<'a, F> {
    pub(crate) fn new(cx: &'a Cx, kind: cancel::Kind, deadline: Time, body: F) -> Self {
        let body = Inside::new(Kind::Branch(Branch::with_deadline(deadline)), body);
        Timeout { cx, kind, deadline, timer: None, body }
    }
}

impl<F, T, E> Future for Timeout<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `body` stays where it is: it is only ever pinned again, here.
        let this = unsafe { self.get_unchecked_mut() };
        loop {
            // SAFETY: as above.
            let body = unsafe { Pin::new_unchecked(&mut this.body) };
            if let Poll::Ready(result) = body.poll(cx) {
                let seen = this.body.branch().and_then(Branch::seen);
                return Poll::Ready(match (result, seen) {
                    (Ok(_), Some(cancelled)) => Err(cancelled.into()),
                    (result, _) => result,
                });
            }
            let Some(branch) = this.body.branch() else { return Poll::Pending };
            if branch.is_cancelled() {
                return Poll::Pending;
            }
            let core = this.cx.core();
            let over = match this.timer {
                Some(timer) => !core.timers.is_armed(timer),
                None => this.deadline <= core.host.now(),
            };
            if !over {
                if this.timer.is_none() {
                    let owner = Owner::Task(this.cx.task().id);
                    let armed = Armed { owner, wakes: Some(cx.waker().clone()) };
                    this.timer = core.arm(this.deadline, armed).ok();
                }
                return Poll::Pending;
            }
            this.timer = None;
            branch.cancel(this.cx.task().region.reason(this.kind).into());
        }
    }
}

impl<F> Drop for Timeout<'_, F> {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            drop(self.cx.core().disarm(timer));
        }
    }
}
