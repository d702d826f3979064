//! Waiting until nobody listens.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use asx_task::{CancelSafe, Cancelled, Cx};

use super::ring::Ring;
use crate::channel::line::{Place, leave_line, poll_line};
use crate::prim::Mutex;

/// The future of [`Publisher::closed`](super::Publisher::closed).
#[must_use = "futures do nothing unless awaited"]
pub struct UntilUnheard<'a, T> {
    ring: &'a Mutex<Ring<T>>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl<'a, T> UntilUnheard<'a, T> {
    pub(super) fn new(
        ring: &'a Mutex<Ring<T>>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        UntilUnheard { ring, cx, at, place: None, registration: Registration::NONE }
    }
}

impl<T> Future for UntilUnheard<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let UntilUnheard { ring, cx, at, place, registration } = &mut *self;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            leave_line(ring, |ring| &mut ring.closed, place);
            return Poll::Ready(Err(cancelled));
        }
        let found = poll_line(
            ring,
            |ring| &mut ring.closed,
            place,
            context.waker(),
            |ring| (ring.subscribers == 0).then_some(Ok(())),
        );
        if found.is_pending() {
            cx.waits(Wait::Signal, at, context.waker(), registration);
        }
        found
    }
}

impl<T> Drop for UntilUnheard<'_, T> {
    fn drop(&mut self) {
        leave_line(self.ring, |ring| &mut ring.closed, &mut self.place);
    }
}

impl<T> CancelSafe for UntilUnheard<'_, T> {}
