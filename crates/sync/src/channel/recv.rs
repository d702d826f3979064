//! Waiting for a message.
//!
//! Each poll asks first whether to stop; a message is taken only by the poll that returns it.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use asx_kernel::channel::{Channel, TryRecvError};
use asx_task::backtrace::{Side, Thing};
use asx_task::footprint;
use asx_task::operation::{Registration, Wait, guard};
use asx_task::waits::Note;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::RecvError;
use super::shared::{Shared, Taken};

/// The future of [`Receiver::recv`](super::Receiver::recv); gives `Result<T, RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    shared: &'a Shared<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    /// Whether a waker of ours may be registered.
    waits: bool,
    note: Note,
    registration: Registration,
}

impl<'a, T> Recv<'a, T> {
    pub(super) fn new(shared: &'a Shared<T>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        let note = Note::NOTHING;
        Recv { shared, cx, at, waits: false, note, registration: Registration::NONE }
    }

    #[track_caller]
    pub(crate) fn over(shared: &'a Shared<T>, cx: &'a Cx) -> Self {
        Recv::new(shared, cx, Location::caller())
    }

    #[inline]
    fn poll_with<R>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnMut(&Shared<T>, &mut Channel<T, Waker>) -> Taken<R>,
    ) -> Poll<Result<R, RecvError>> {
        let Recv { shared, cx, at, waits, note, registration } = self;
        poll_receive(shared, cx, at, (waits, note), registration, context, take)
    }

    #[inline]
    fn forget(&mut self) {
        self.note = Note::NOTHING;
        if std::mem::take(&mut self.waits) {
            self.shared.cancel_recv();
        }
    }
}

/// A poll of a wait for a message: `waits` is whether a waker of it may be registered, and has a
/// note then.
#[inline]
pub(super) fn poll_receive<T, R>(
    shared: &Shared<T>,
    cx: &Cx,
    at: &'static Location<'static>,
    (waits, note): (&mut bool, &mut Note),
    registration: &mut Registration,
    context: &mut Context<'_>,
    take: impl FnMut(&Shared<T>, &mut Channel<T, Waker>) -> Taken<R>,
) -> Poll<Result<R, RecvError>> {
    let _after = footprint::after_operation();
    if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
        *note = Note::NOTHING;
        if std::mem::take(waits) {
            shared.cancel_recv();
        }
        return Poll::Ready(Err(RecvError::Cancelled(cancelled)));
    }
    let taken = shared.poll_recv(*waits, context.waker(), take);
    *waits = taken.is_pending();
    match &taken {
        Poll::Pending => {
            cx.waits(Wait::Recv, at, context.waker(), registration);
            shared.usage.awaits(Thing::Channel, Side::Sends);
            note.go_on(|| Note::waits_for_message(shared.messages(), at));
        }
        Poll::Ready(taken) => {
            *note = Note::NOTHING;
            if taken.is_ok() {
                shared.usage.used_at(Side::Receives, at);
            }
        }
    }
    taken.map_err(|_| RecvError::Disconnected)
}

impl<T> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_with(context, Shared::take)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.forget();
    }
}

impl<T> CancelSafe for Recv<'_, T> {}

/// The future of [`Receiver::next`](super::Receiver::next); gives `Result<Option<T>, Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, T>(Recv<'a, T>);

impl<'a, T> Next<'a, T> {
    pub(super) fn new(recv: Recv<'a, T>) -> Self {
        Next(recv)
    }
}

impl<T> Future for Next<'_, T> {
    type Output = Result<Option<T>, Cancelled>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|received| match received {
            Ok(value) => Ok(Some(value)),
            Err(RecvError::Disconnected) => Ok(None),
            Err(RecvError::Cancelled(cancelled)) => Err(cancelled),
        })
    }
}

impl<T> CancelSafe for Next<'_, T> {}

/// The future of [`Receiver::recv_many`](super::Receiver::recv_many);
/// gives `Result<usize, RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct RecvMany<'a, T> {
    recv: Recv<'a, T>,
    into: &'a mut Vec<T>,
    max: usize,
}

impl<'a, T> RecvMany<'a, T> {
    pub(super) fn new(recv: Recv<'a, T>, into: &'a mut Vec<T>, max: usize) -> Self {
        RecvMany { recv, into, max }
    }
}

impl<T> Future for RecvMany<'_, T> {
    type Output = Result<usize, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let RecvMany { recv, into, max } = &mut *self;
        if *max == 0 {
            let proceeds = recv.cx.poll_proceed(context, &mut recv.registration);
            return proceeds.map(|proceeds| proceeds.map(|()| 0).map_err(RecvError::from));
        }
        let mut senders = Vec::new();
        let taken = recv.poll_with(context, |shared, channel| {
            take_many(shared, channel, into, *max, &mut senders)
        });
        guard::wake_all(senders);
        taken
    }
}

impl<T> CancelSafe for RecvMany<'_, T> {}

/// Moves up to `max` messages, at least one. A slot that somebody waits for may be taken for it
/// with each: those are to be woken.
pub(super) fn take_many<T>(
    shared: &Shared<T>,
    channel: &mut Channel<T, Waker>,
    into: &mut Vec<T>,
    max: usize,
    senders: &mut Vec<Waker>,
) -> Taken<usize> {
    let count = channel.len().min(max);
    into.reserve(count);
    for _ in 0..count {
        let (value, sender) = shared.take(channel)?;
        into.push(value);
        senders.extend(sender);
    }
    if count > 0 { Ok((count, None)) } else { channel.try_recv().and(Err(TryRecvError::Empty)) }
}
