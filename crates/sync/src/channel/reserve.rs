//! Waiting for a slot.
//!
//! The first three futures are one wait with different ends: a permit that borrows, a permit that
//! does not, or the message itself put into the slot. The fourth waits for several slots. Each poll
//! asks first whether to stop.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::channel::{Places, WaiterId};
use asx_task::backtrace::{Side, Thing};
use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use asx_task::waits::Note;
use asx_task::{AdmissionError, CancelSafe, Cancelled, Cx};

use super::permit::{OwnedPermit, Permit, Permits};
use super::shared::Shared;
use super::{Disconnected, ReserveManyError, SendError, session};
use crate::prim::Arc;

/// A wait in the line of senders. Dropping it leaves the line, so that nobody waits behind it.
struct Place<'a, T> {
    shared: &'a Arc<Shared<T>>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Option<WaiterId>,
    /// While it is in the line.
    note: Note,
    registration: Registration,
}

impl<'a, T> Place<'a, T> {
    #[inline]
    fn new(shared: &'a Arc<Shared<T>>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        let note = Note::NOTHING;
        Place { shared, cx, at, place: None, note, registration: Registration::NONE }
    }

    /// Leaves the line, if in it.
    #[inline]
    fn leave(&mut self) {
        self.note = Note::NOTHING;
        self.shared.leave(&mut self.place);
    }

    /// Says what the task waits for, which is the last thing before it does.
    #[inline]
    fn waits(&mut self, context: &Context<'_>) {
        self.cx.waits(Wait::Reserve, self.at, context.waker(), &mut self.registration);
        waits_for_room(self.shared, &mut self.note, self.at);
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
        let _after = footprint::after_operation();
        if let Err(cancelled) = ready!(self.cx.poll_proceed(context, &mut self.registration)) {
            self.leave();
            return Poll::Ready(Err(SendError::Cancelled((), cancelled)));
        }
        match self.shared.poll_reserve(&mut self.place, context.waker(), number) {
            Poll::Ready(reserved) => {
                self.note = Note::NOTHING;
                Poll::Ready(match reserved {
                    Ok(number) => Ok(permit(self.shared, number)),
                    Err(Disconnected(())) => Err(SendError::Disconnected(())),
                })
            }
            Poll::Pending => {
                self.waits(context);
                Poll::Pending
            }
        }
    }
}

/// Notes a wait for a slot.
#[inline(always)]
pub(super) fn waits_for_room<T>(
    shared: &Shared<T>,
    note: &mut Note,
    at: &'static Location<'static>,
) {
    shared.usage.awaits(Thing::Channel, Side::Receives);
    note.go_on(|| Note::waits_for_room(shared, shared.messages(), at));
}

impl<T> Drop for Place<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

/// The future of [`Sender::reserve`](super::Sender::reserve);
/// gives `Result<Permit<T>, SendError<()>>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve<'a, T>(Place<'a, T>);

/// The future of [`Sender::reserve_owned`](super::Sender::reserve_owned);
/// gives `Result<OwnedPermit<T>, SendError<()>>`.
#[must_use = "futures do nothing unless awaited"]
pub struct ReserveOwned<'a, T>(Place<'a, T>);

/// The future of [`Sender::send`](super::Sender::send); gives `Result<(), SendError<T>>`.
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
        let at = self.0.at;
        self.0.poll(context, Shared::number, |shared, id| Permit::new(shared, id, at))
    }
}

impl<T> CancelSafe for Reserve<'_, T> {}

/// The future of [`Sender::next_permit`](super::Sender::next_permit): a permit, `None` when the
/// receiver is gone, or a cancel.
#[must_use = "futures do nothing unless awaited"]
pub struct NextPermit<'a, T>(Reserve<'a, T>);

impl<'a, T> NextPermit<'a, T> {
    pub(super) fn new(reserve: Reserve<'a, T>) -> Self {
        NextPermit(reserve)
    }
}

impl<'a, T> Future for NextPermit<'a, T> {
    type Output = Result<Option<Permit<'a, T>>, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|reserved| match reserved {
            Ok(permit) => Ok(Some(permit)),
            Err(SendError::Disconnected(())) => Ok(None),
            Err(SendError::Cancelled((), cancelled)) => Err(cancelled),
        })
    }
}

impl<T> CancelSafe for NextPermit<'_, T> {}

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

    /// Where it was called.
    pub(super) fn place(&self) -> &'static Location<'static> {
        self.0.at
    }

    /// Polls for a permit that is an obligation.
    pub(super) fn poll_tracked(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<OwnedPermit<T>, session::ReserveError>> {
        let at = self.0.at;
        let permit = |shared, id| OwnedPermit::tracked(shared, id, at);
        let number = |shared: &Shared<T>| shared.number_tracked(at);
        let reserved = self.0.poll(context, number, permit);
        reserved.map(|reserved| {
            reserved?.map_err(|status| session::ReserveError::Refused(AdmissionError::new(status)))
        })
    }
}

impl<T> Future for ReserveOwned<'_, T> {
    type Output = Result<OwnedPermit<T>, SendError<()>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let at = self.0.at;
        let permit = |shared: &Arc<Shared<T>>, id| OwnedPermit::new_at(shared.clone(), id, at);
        self.0.poll(context, Shared::number, permit)
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
        let _after = footprint::after_operation();
        let Sending { place: line, value } = &mut *self;
        if value.is_none() {
            return Poll::Ready(Ok(()));
        }
        if let Err(cancelled) = ready!(line.cx.poll_proceed(context, &mut line.registration)) {
            line.leave();
            return match value.take() {
                Some(value) => Poll::Ready(Err(SendError::Cancelled(value, cancelled))),
                None => Poll::Ready(Ok(())),
            };
        }
        let sent = line.shared.poll_send(&mut line.place, value, context.waker());
        match &sent {
            Poll::Pending => line.waits(context),
            Poll::Ready(sent) => {
                line.note = Note::NOTHING;
                if sent.is_ok() {
                    line.shared.usage.used_at(Side::Sends, line.at);
                }
            }
        }
        sent.map_err(SendError::from)
    }
}

/// The value is never pinned, only held.
impl<T> Unpin for Sending<'_, T> {}

/// The future of [`Sender::reserve_many`](super::Sender::reserve_many);
/// gives `Result<Permits<T>, ReserveManyError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct ReserveMany<'a, T> {
    shared: &'a Shared<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    count: usize,
    places: Option<Places>,
    /// While it is in the line.
    note: Note,
    registration: Registration,
}

impl<'a, T> ReserveMany<'a, T> {
    pub(super) fn new(
        shared: &'a Shared<T>,
        cx: &'a Cx,
        count: usize,
        at: &'static Location<'static>,
    ) -> Self {
        let note = Note::NOTHING;
        ReserveMany { shared, cx, at, count, places: None, note, registration: Registration::NONE }
    }
}

impl<'a, T> Future for ReserveMany<'a, T> {
    type Output = Result<Permits<'a, T>, ReserveManyError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let ReserveMany { shared, cx, at, count, places, note, registration } = &mut *self;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            *note = Note::NOTHING;
            shared.leave_many(places);
            return Poll::Ready(Err(ReserveManyError::Cancelled(cancelled)));
        }
        let mut numbers = Vec::new();
        match shared.poll_reserve_many(places, *count, context.waker(), &mut numbers) {
            Poll::Ready(reserved) => {
                *note = Note::NOTHING;
                let permits = reserved.map(|()| Permits::new(shared, *count, numbers, at));
                Poll::Ready(permits.map_err(ReserveManyError::from))
            }
            Poll::Pending => {
                cx.waits(Wait::Reserve, at, context.waker(), registration);
                waits_for_room(shared, note, at);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for ReserveMany<'_, T> {
    fn drop(&mut self) {
        self.note = Note::NOTHING;
        self.shared.leave_many(&mut self.places);
    }
}

impl<T> CancelSafe for ReserveMany<'_, T> {}
