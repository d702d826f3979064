//! Streams and sinks that own their side of a channel.

use std::fmt;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::channel::WaiterId;
use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use asx_task::waits::Note;
use asx_task::{Cancelled, Cx};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;

use crate::channel::permit::OwnedPermit;
use crate::channel::recv::poll_receive;
use crate::channel::reserve::waits_for_room;
use crate::channel::shared::Shared;
use crate::channel::{Disconnected, Receiver, RecvError, SendError, Sender};

impl<T> Receiver<T> {
    /// The messages as a stream that borrows nothing. It ends when no message and no sender is
    /// left; a cancel is its last item.
    ///
    /// ```
    /// use asx::channel::{self, stream::OwnedMessages};
    /// use asx::prelude::*;
    /// use futures_util::{StreamExt, stream::select_all};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, rx) = channel::bounded(8);
    /// let (other, other_rx) = channel::bounded(8);
    /// tx.try_send(1).unwrap();
    /// other.try_send(2).unwrap();
    /// drop((tx, other));
    /// let both: Vec<OwnedMessages<u32>> = vec![rx.into_stream(&cx), other_rx.into_stream(&cx)];
    /// let sum = select_all(both).fold(0, async |sum, number| sum + number.unwrap_or(0)).await;
    /// assert_eq!(sum, 3);
    /// # });
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> OwnedMessages<T> {
        OwnedMessages {
            receiver: self,
            cx: cx.clone(),
            at: Location::caller(),
            waits: false,
            note: Note::NOTHING,
            ended: false,
            registration: Registration::NONE,
        }
    }
}

/// The stream of [`Receiver::into_stream`].
#[must_use = "streams do nothing unless polled"]
pub struct OwnedMessages<T> {
    receiver: Receiver<T>,
    cx: Cx,
    at: &'static Location<'static>,
    /// Whether a waker of ours may be registered.
    waits: bool,
    note: Note,
    ended: bool,
    registration: Registration,
}

impl<T> OwnedMessages<T> {
    /// Closes the channel to senders, as [`Receiver::close`] does: the stream ends after what was
    /// sent.
    pub fn close(&mut self) {
        self.receiver.close();
    }

    /// The receiver, with all messages that were not taken.
    pub fn into_inner(self) -> Receiver<T> {
        if self.waits {
            self.receiver.shared.cancel_recv();
        }
        self.receiver
    }
}

impl<T> Stream for OwnedMessages<T> {
    type Item = Result<T, Cancelled>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let OwnedMessages { receiver, cx, at, waits, note, ended, registration } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let shared = receiver.used();
        let waits = (waits, note);
        let received =
            ready!(poll_receive(shared, cx, at, waits, registration, context, Shared::take));
        *registration = Registration::NONE;
        *ended = received.is_err();
        Poll::Ready(match received {
            Ok(value) => Some(Ok(value)),
            Err(RecvError::Disconnected) => None,
            Err(RecvError::Cancelled(cancelled)) => Some(Err(cancelled)),
        })
    }
}

impl<T> FusedStream for OwnedMessages<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T> fmt::Debug for OwnedMessages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedMessages").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<T> Sender<T> {
    /// The sender as a sink that borrows nothing. Being ready is a reserved slot; starting to send
    /// fills it, so there is nothing to flush. Closing it drops the sender.
    #[track_caller]
    pub fn into_sink(self, cx: &Cx) -> OwnedSlots<T> {
        OwnedSlots {
            sender: Some(self),
            cx: cx.clone(),
            at: Location::caller(),
            place: None,
            note: Note::NOTHING,
            slot: None,
            registration: Registration::NONE,
        }
    }
}

/// The sink of [`Sender::into_sink`]. Dropping or closing it gives back the slot it may hold.
#[must_use = "sinks do nothing unless polled"]
pub struct OwnedSlots<T> {
    /// `None` once closed.
    sender: Option<Sender<T>>,
    cx: Cx,
    at: &'static Location<'static>,
    /// In the line of senders.
    place: Option<WaiterId>,
    note: Note,
    /// Between being ready and a send.
    slot: Option<OwnedPermit<T>>,
    registration: Registration,
}

impl<T> OwnedSlots<T> {
    /// The sender; `None` if the sink was closed. A slot that was held is free again.
    pub fn into_inner(mut self) -> Option<Sender<T>> {
        self.give_up();
        self.sender.take()
    }

    /// Leaves the line and gives the slot back.
    fn give_up(&mut self) {
        if let Some(sender) = &self.sender {
            self.note = Note::NOTHING;
            sender.shared.leave(&mut self.place);
        }
        self.registration = Registration::NONE;
        self.slot = None;
    }
}

impl<T> Sink<T> for OwnedSlots<T> {
    type Error = SendError<()>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        let _after = footprint::after_operation();
        let OwnedSlots { sender, cx, at, place, note, slot, registration } = &mut *self;
        if slot.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some(shared) = sender.as_ref().map(Sender::used) else {
            return Poll::Ready(Err(SendError::Disconnected(())));
        };
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            *note = Note::NOTHING;
            shared.leave(place);
            *registration = Registration::NONE;
            return Poll::Ready(Err(SendError::Cancelled((), cancelled)));
        }
        let reserved = match shared.poll_reserve(place, context.waker(), Shared::number) {
            Poll::Ready(reserved) => reserved,
            Poll::Pending => {
                cx.waits(Wait::Reserve, at, context.waker(), registration);
                waits_for_room(shared, note, at);
                return Poll::Pending;
            }
        };
        *note = Note::NOTHING;
        *slot = reserved.as_ref().ok().map(|id| OwnedPermit::new(shared.clone(), *id));
        *registration = Registration::NONE;
        Poll::Ready(reserved.map(drop).map_err(SendError::from))
    }

    /// # Panics
    /// If the sink was not ready, which is against the rules of sinks.
    fn start_send(mut self: Pin<&mut Self>, value: T) -> Result<(), Self::Error> {
        match mem::take(&mut self.slot) {
            Some(permit) => {
                permit.try_send(value).map_err(|Disconnected(_)| SendError::Disconnected(()))
            }
            None => panic!("a sink was sent to before it was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.give_up();
        self.sender = None;
        Poll::Ready(Ok(()))
    }
}

/// The value is never pinned.
impl<T> Unpin for OwnedSlots<T> {}

impl<T> Drop for OwnedSlots<T> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<T> fmt::Debug for OwnedSlots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSlots").field("ready", &self.slot.is_some()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::bounded;
    use asx_task::testing::{Polls, cancelled_cx, live_cx, reason};

    fn next<S: Stream + Unpin>(stream: &mut S) -> Polls<impl Future<Output = Option<S::Item>>> {
        Polls::new(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
    }

    fn ready<T>(
        sink: &mut OwnedSlots<T>,
    ) -> Polls<impl Future<Output = Result<(), SendError<()>>>> {
        Polls::new(poll_fn(|context| Pin::new(&mut *sink).poll_ready(context)))
    }

    #[test]
    fn an_owned_stream_gives_the_messages_and_ends_with_the_senders() {
        let (tx, rx) = bounded(2);
        let mut stream = rx.into_stream(&live_cx());
        let mut waiting = next(&mut stream);
        assert!(waiting.is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((waiting.wakes(), waiting.ready()), (1, Some(Ok(1))));
        drop(tx);
        assert_eq!((waiting.ready(), waiting.ready()), (None, None));
        drop(waiting);
        assert!(stream.is_terminated());
    }

    #[test]
    fn a_cancel_is_the_last_item_and_the_rest_is_in_the_receiver() {
        let (cx, cancel) = Cx::loose();
        let (tx, rx) = bounded(1);
        let mut stream = rx.into_stream(&cx);
        assert!(next(&mut stream).is_pending());
        tx.try_send(1).unwrap();
        cancel(reason());
        assert!(next(&mut stream).ready().is_some_and(|item| item.is_err()));
        assert_eq!(next(&mut stream).ready(), None);
        let mut rx = stream.into_inner();
        assert_eq!(rx.try_recv(), Ok(1));
    }

    #[test]
    fn a_stream_that_is_unmade_leaves_no_waker_behind() {
        let (tx, rx) = bounded(1);
        let mut stream = rx.into_stream(&live_cx());
        let mut waiting = next(&mut stream);
        assert!(waiting.is_pending());
        let count = waiting.wakes();
        drop(waiting);
        let mut rx = stream.into_inner();
        tx.try_send(1).unwrap();
        assert!(tx.shared.with(|channel| channel.receiver_waiting().is_none()));
        assert_eq!((count, rx.try_recv()), (0, Ok(1)));
    }

    #[test]
    fn a_closed_stream_ends_after_what_was_sent() {
        let (tx, rx) = bounded(2);
        tx.try_send(1).unwrap();
        let mut stream = rx.into_stream(&live_cx());
        stream.close();
        assert!(tx.is_closed());
        assert_eq!(next(&mut stream).ready(), Some(Ok(1)));
        assert_eq!(next(&mut stream).ready(), None);
    }

    #[test]
    fn an_owned_sink_waits_in_line_and_gives_an_unused_slot_back() {
        let (tx, mut rx) = bounded(1);
        let other = tx.clone();
        let mut sink = tx.into_sink(&live_cx());
        assert_eq!(ready(&mut sink).ready(), Ok(()));
        assert_eq!(ready(&mut sink).ready(), Ok(()), "it is ready still");
        assert!(other.try_reserve().is_err(), "the sink holds the slot");
        assert_eq!(Pin::new(&mut sink).start_send(1), Ok(()));
        let mut waits = ready(&mut sink);
        assert!(waits.is_pending());
        assert_eq!((rx.try_recv(), waits.wakes()), (Ok(1), 1));
        drop(waits);
        let cx = live_cx();
        let mut behind = Polls::new(other.reserve(&cx));
        assert!(behind.is_pending());
        drop(sink);
        assert_eq!((behind.wakes(), behind.ready().is_ok()), (1, true));
    }

    #[test]
    fn a_closed_sink_is_no_sender_and_a_cancelled_one_takes_nothing() {
        let (cx, (tx, mut rx)) = (live_cx(), bounded::<u8>(1));
        let mut cancelled = tx.clone().into_sink(&cancelled_cx());
        assert!(matches!(ready(&mut cancelled).ready(), Err(SendError::Cancelled((), _))));
        let back = cancelled.into_inner().unwrap();
        assert!(back.same_channel(&tx) && back.capacity() == 1);
        drop(back);
        let mut sink = tx.into_sink(&cx);
        assert_eq!(ready(&mut sink).ready(), Ok(()));
        let closed = Polls::new(poll_fn(|context| Pin::new(&mut sink).poll_close(context))).ready();
        assert_eq!((closed, ready(&mut sink).ready()), (Ok(()), Err(SendError::Disconnected(()))));
        assert_eq!(Polls::new(rx.recv(&cx)).ready(), Err(RecvError::Disconnected));
        assert!(sink.into_inner().is_none());
    }
}
