//! Waiting for a slot.
//!
//! All three futures are one wait with different ends: a permit that borrows, a permit that does
//! not, or the message itself put into the slot. Each poll asks first whether to stop.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::channel::WaiterId;
use asx_task::operation::{Registration, Wait};
use asx_task::{CancelSafe, Cx};

use super::permit::{OwnedPermit, Permit};
use super::shared::Shared;
use super::{Disconnected, SendError};
use crate::prim::Arc;

/// A wait in the line of senders. Dropping it leaves the line, so that nobody waits behind it.
struct Place<'a, T> {
    shared: &'a Arc<Shared<T>>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Option<WaiterId>,
    registration: Registration,
}

impl<'a, T> Place<'a, T> {
    #[inline]
    fn new(shared: &'a Arc<Shared<T>>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        Place { shared, cx, at, place: None, registration: Registration::NONE }
    }

    /// Reserves a slot whose permit gets a number, and makes `P` of it before anybody is woken, so
    /// that the slot has an owner even if a waker panics.
    #[inline]
    fn poll<N, P>(
        &mut self,
        context: &mut Context<'_>,
        number: impl Fn(&Shared<T>) -> N,
        permit: impl FnOnce(&'a Arc<Shared<T>>, N) -> P,
    ) -> Poll<Result<P, SendError<()>>> {
        if let Err(cancelled) = ready!(self.cx.poll_proceed(context, &mut self.registration)) {
            self.shared.leave(&mut self.place);
            return Poll::Ready(Err(SendError::Cancelled((), cancelled)));
        }
        match self.shared.poll_reserve(&mut self.place, context.waker(), number) {
            Poll::Ready(Ok(number)) => Poll::Ready(Ok(permit(self.shared, number))),
            Poll::Ready(Err(Disconnected(()))) => Poll::Ready(Err(SendError::Disconnected(()))),
            Poll::Pending => {
                self.cx.waits(Wait::Reserve, self.at, context.waker(), &mut self.registration);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Place<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.shared.leave(&mut self.place);
    }
}

/// The future of [`Sender::reserve`](super::Sender::reserve).
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve<'a, T>(Place<'a, T>);

/// The future of [`Sender::reserve_owned`](super::Sender::reserve_owned).
#[must_use = "futures do nothing unless awaited"]
pub struct ReserveOwned<'a, T>(Place<'a, T>);

/// The future of [`Sender::send`](super::Sender::send).
///
/// Not [`CancelSafe`]: it holds the value.
#[must_use = "futures do nothing unless awaited"]
pub struct Sending<'a, T> {
    place: Place<'a, T>,
    /// `None` once sent or handed back.
    value: Option<T>,
}

impl<'a, T> Reserve<'a, T> {
    pub(super) fn new(
        shared: &'a Arc<Shared<T>>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        Reserve(Place::new(shared, cx, at))
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, SendError<()>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context, Shared::number, |shared, id| Permit::new(shared, id))
    }
}

impl<T> CancelSafe for Reserve<'_, T> {}

impl<'a, T> ReserveOwned<'a, T> {
    pub(super) fn new(
        shared: &'a Arc<Shared<T>>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        ReserveOwned(Place::new(shared, cx, at))
    }
}

impl<'a, T> ReserveOwned<'a, T> {
    #[track_caller]
    pub(crate) fn over(shared: &'a Arc<Shared<T>>, cx: &'a Cx) -> Self {
        ReserveOwned::new(shared, cx, Location::caller())
    }

    /// Polls for a permit that is an obligation.
    pub(super) fn poll_tracked(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<OwnedPermit<T>, SendError<()>>> {
        let reserved = self.0.poll(context, Shared::number_tracked, OwnedPermit::tracked);
        // A scope that takes no more obligations is as good as gone.
        reserved.map(|reserved| reserved?.map_err(|_| SendError::Disconnected(())))
    }
}

impl<T> Future for ReserveOwned<'_, T> {
    type Output = Result<OwnedPermit<T>, SendError<()>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context, Shared::number, |shared, id| OwnedPermit::new(shared.clone(), id))
    }
}

impl<T> CancelSafe for ReserveOwned<'_, T> {}

impl<'a, T> Sending<'a, T> {
    pub(super) fn new(
        shared: &'a Arc<Shared<T>>,
        cx: &'a Cx,
        value: T,
        at: &'static Location<'static>,
    ) -> Self {
        Sending { place: Place::new(shared, cx, at), value: Some(value) }
    }
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Sending { place: Place { shared, cx, at, place, registration }, value } = &mut *self;
        if value.is_none() {
            return Poll::Ready(Ok(()));
        }
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            shared.leave(place);
            return match value.take() {
                Some(value) => Poll::Ready(Err(SendError::Cancelled(value, cancelled))),
                None => Poll::Ready(Ok(())),
            };
        }
        let sent = shared.poll_send(place, value, context.waker());
        if sent.is_pending() {
            cx.waits(Wait::Reserve, at, context.waker(), registration);
        }
        sent.map_err(SendError::from)
    }
}

/// The value is never pinned, only held.
impl<T> Unpin for Sending<'_, T> {}
