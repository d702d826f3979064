//! Channels as the ecosystem's streams and sinks, and streams made of several.
//!
//! Those that borrow are made by [`Receiver::stream`] and [`Sender::sink`]; those that own what
//! they are made of, and can be put anywhere in their task, by [`Receiver::into_stream`],
//! [`Sender::into_sink`], [`Watcher::into_stream`](super::watch::Watcher::into_stream),
//! [`Subscriber::into_stream`](super::broadcast::Subscriber::into_stream) and
//! [`SharedReceiver::into_stream`](super::mpmc::SharedReceiver::into_stream); that of an interval
//! by [`Interval::into_stream`](asx_task::time::Interval::into_stream). All are bound to the
//! context they are made with: polled in another task, they end with an error. [`StreamMap`] merges
//! streams, [`throttle`] slows one down.

mod heard;
mod map;
mod owned;
mod shared;
mod snapshots;
mod throttle;

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_task::{Cancelled, Cx};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;

pub use heard::Heard;
pub use map::StreamMap;
pub use owned::{OwnedMessages, OwnedSlots};
pub use shared::SharedMessages;
pub use snapshots::Snapshots;
pub use throttle::{Throttle, throttle};

use super::permit::Permit;
use super::{Disconnected, Receiver, Recv, RecvError, Reserve, SendError, Sender};

impl<T> Receiver<T> {
    /// The messages as a stream. It ends when no message and no sender is left; a cancel is its
    /// last item.
    #[track_caller]
    pub fn stream<'a>(&'a mut self, cx: &'a Cx) -> Messages<'a, T> {
        Messages { recv: Some(self.recv(cx)) }
    }
}

impl<T> Sender<T> {
    /// The sender as a sink. Being ready is a reserved slot; starting to send fills it, so there is
    /// nothing to flush.
    #[track_caller]
    pub fn sink<'a>(&'a self, cx: &'a Cx) -> Slots<'a, T> {
        Slots { sender: self, cx, at: Location::caller(), slot: Slot::Unasked }
    }
}

/// The stream of [`Receiver::stream`].
#[must_use = "streams do nothing unless polled"]
pub struct Messages<'a, T> {
    /// `None` at the end.
    recv: Option<Recv<'a, T>>,
}

impl<T> Stream for Messages<'_, T> {
    type Item = Result<T, Cancelled>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(recv) = &mut self.recv else { return Poll::Ready(None) };
        let Poll::Ready(received) = Pin::new(recv).poll(context) else { return Poll::Pending };
        Poll::Ready(match received {
            Ok(value) => Some(Ok(value)),
            Err(error) => {
                self.recv = None;
                match error {
                    RecvError::Disconnected => None,
                    RecvError::Cancelled(cancelled) => Some(Err(cancelled)),
                }
            }
        })
    }
}

impl<T> FusedStream for Messages<'_, T> {
    fn is_terminated(&self) -> bool {
        self.recv.is_none()
    }
}

/// The sink of [`Sender::sink`]. Dropping or closing it gives back the slot it may hold.
#[must_use = "sinks do nothing unless polled"]
pub struct Slots<'a, T> {
    sender: &'a Sender<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    slot: Slot<'a, T>,
}

enum Slot<'a, T> {
    Unasked,
    Asked(Reserve<'a, T>),
    Held(Permit<'a, T>),
}

impl<T> Sink<T> for Slots<'_, T> {
    type Error = SendError<()>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        let this = &mut *self;
        if let Slot::Unasked = this.slot {
            this.slot = Slot::Asked(Reserve::new(&this.sender.shared, this.cx, this.at));
        }
        let Slot::Asked(reserve) = &mut this.slot else { return Poll::Ready(Ok(())) };
        let Poll::Ready(reserved) = Pin::new(reserve).poll(context) else { return Poll::Pending };
        this.slot = Slot::Unasked;
        Poll::Ready(reserved.map(|permit| this.slot = Slot::Held(permit)))
    }

    /// # Panics
    /// If the sink was not ready, which is against the rules of sinks.
    fn start_send(mut self: Pin<&mut Self>, value: T) -> Result<(), Self::Error> {
        match std::mem::replace(&mut self.slot, Slot::Unasked) {
            Slot::Held(permit) => {
                permit.try_send(value).map_err(|Disconnected(_)| SendError::Disconnected(()))
            }
            Slot::Unasked | Slot::Asked(_) => panic!("a sink was sent to before it was ready"),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.slot = Slot::Unasked;
        Poll::Ready(Ok(()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::bounded;
    use asx_task::testing::{Polls, cancelled_cx, live_cx};

    #[test]
    fn a_stream_gives_the_messages_and_ends_with_the_senders() {
        let (cx, (tx, mut rx)) = (live_cx(), bounded(2));
        let mut stream = rx.stream(&cx);
        let mut next = Polls::new(poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
        assert!(next.is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((next.wakes(), next.ready()), (1, Some(Ok(1))));
        drop(tx);
        assert_eq!((next.ready(), next.ready()), (None, None));
        drop(next);
        assert!(stream.is_terminated());
    }

    #[test]
    fn a_cancel_is_the_last_item_and_takes_no_message() {
        let (cx, (tx, mut rx)) = (cancelled_cx(), bounded(1));
        tx.try_send(1).unwrap();
        let mut stream = rx.stream(&cx);
        let mut next = Polls::new(poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
        assert!(next.ready().is_some_and(|item| item.is_err()));
        assert_eq!(next.ready(), None);
        drop(next);
        drop(stream);
        assert_eq!(rx.try_recv(), Ok(1));
    }

    #[test]
    fn a_sink_is_ready_with_a_slot_and_gives_an_unused_one_back() {
        let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
        let mut sink = tx.sink(&cx);
        assert_eq!(Polls::new(poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx))).ready(), Ok(()));
        assert!(tx.try_reserve().is_err(), "the sink holds the slot");
        assert_eq!(Pin::new(&mut sink).start_send(1), Ok(()));
        let mut ready = Polls::new(poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)));
        assert!(ready.is_pending());
        assert_eq!((rx.try_recv(), ready.wakes(), ready.ready()), (Ok(1), 1, Ok(())));
        drop(ready);
        assert_eq!(Polls::new(poll_fn(|cx| Pin::new(&mut sink).poll_close(cx))).ready(), Ok(()));
        assert!(tx.try_reserve().is_ok());
    }

    #[test]
    fn a_sink_tells_when_nobody_receives() {
        let (cx, (tx, rx)) = (live_cx(), bounded(1));
        let mut sink = tx.sink(&cx);
        assert_eq!(Polls::new(poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx))).ready(), Ok(()));
        drop(rx);
        assert_eq!(Pin::new(&mut sink).start_send(1), Err(SendError::Disconnected(())));
    }
}
