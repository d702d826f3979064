//! Waiting until nobody receives any more.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use asx_task::{CancelSafe, Cancelled, Cx};

use super::line::Place;
use super::shared::Shared;

/// The future of [`Sender::closed`](super::Sender::closed) and its like: done when the channel
/// takes no more senders.
#[must_use = "futures do nothing unless awaited"]
pub struct UntilClosed<'a, T> {
    shared: &'a Shared<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl<'a, T> UntilClosed<'a, T> {
    pub(super) fn new(shared: &'a Shared<T>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        UntilClosed { shared, cx, at, place: None, registration: Registration::NONE }
    }
}

impl<T> Future for UntilClosed<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let UntilClosed { shared, cx, at, place, registration } = &mut *self;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            shared.leave_closed(place);
            return Poll::Ready(Err(cancelled));
        }
        let closed = shared.poll_closed(place, context.waker());
        if closed.is_pending() {
            cx.waits(Wait::Signal, at, context.waker(), registration);
        }
        closed.map(Ok)
    }
}

impl<T> Drop for UntilClosed<'_, T> {
    fn drop(&mut self) {
        self.shared.leave_closed(&mut self.place);
    }
}

impl<T> CancelSafe for UntilClosed<'_, T> {}
