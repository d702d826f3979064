//! What a subscriber hears, as a stream.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::Cx;
use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use futures_core::stream::{FusedStream, Stream};

use crate::channel::broadcast::{ListenError, Subscriber, TryListenError};
use crate::channel::line::{Place, leave_line, poll_line};

impl<T> Subscriber<T> {
    /// The messages as a stream that borrows nothing. Messages that were missed are an item
    /// ([`ListenError::Lagged`]), and it goes on with those that are left. It ends when no message
    /// and no publisher is left; a cancel is its last item.
    ///
    /// ```
    /// use asx::channel::broadcast::ListenError;
    /// use asx::prelude::*;
    /// use futures_util::StreamExt;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, rx) = channel::broadcast(2);
    /// (0..3).for_each(|n| drop(tx.send(n)));
    /// drop(tx);
    /// let heard: Vec<_> = rx.into_stream(&cx).collect().await;
    /// assert_eq!(heard, [Err(ListenError::Lagged(1)), Ok(1), Ok(2)]);
    /// # });
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> Heard<T> {
        Heard {
            subscriber: self,
            cx: cx.clone(),
            at: Location::caller(),
            place: None,
            ended: false,
            registration: Registration::NONE,
        }
    }
}

/// The stream of [`Subscriber::into_stream`].
#[must_use = "streams do nothing unless polled"]
pub struct Heard<T> {
    subscriber: Subscriber<T>,
    cx: Cx,
    at: &'static Location<'static>,
    place: Place,
    ended: bool,
    registration: Registration,
}

impl<T: Clone> Stream for Heard<T> {
    type Item = Result<T, ListenError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let _after = footprint::after_operation();
        let Heard { subscriber, cx, at, place, ended, registration } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let Subscriber { ring, next } = subscriber;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            leave_line(ring, |ring| &mut ring.line, place);
            *registration = Registration::NONE;
            *ended = true;
            return Poll::Ready(Some(Err(ListenError::Cancelled(cancelled))));
        }
        let taken = poll_line(
            ring,
            |ring| &mut ring.line,
            place,
            context.waker(),
            |ring| {
                Some(ring.take(next)).filter(|taken| !matches!(taken, Err(TryListenError::Empty)))
            },
        );
        let Poll::Ready(taken) = taken else {
            cx.waits(Wait::Recv, at, context.waker(), registration);
            return Poll::Pending;
        };
        leave_line(ring, |ring| &mut ring.line, place);
        *registration = Registration::NONE;
        Poll::Ready(match taken {
            Ok(value) => Some(Ok(value.unwrap_or_clone())),
            Err(TryListenError::Lagged(missed)) => Some(Err(ListenError::Lagged(missed))),
            Err(_) => {
                *ended = true;
                None
            }
        })
    }
}

impl<T: Clone> FusedStream for Heard<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T> Drop for Heard<T> {
    fn drop(&mut self) {
        leave_line(&self.subscriber.ring, |ring| &mut ring.line, &mut self.place);
    }
}

impl<T> fmt::Debug for Heard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heard").field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::broadcast;
    use crate::prim::lock;
    use asx_task::testing::{Polls, cancelled_cx, live_cx};

    #[test]
    fn messages_come_in_order_and_what_was_missed_is_told() {
        let (tx, rx) = broadcast(1);
        let mut stream = rx.into_stream(&live_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(next.is_pending());
        tx.send(1).unwrap();
        assert_eq!((next.wakes(), next.ready()), (1, Some(Ok(1))));
        tx.send(2).unwrap();
        tx.send(3).unwrap();
        drop(tx);
        assert_eq!(next.ready(), Some(Err(ListenError::Lagged(1))));
        assert_eq!((next.ready(), next.ready(), next.ready()), (Some(Ok(3)), None, None));
        drop(next);
        assert!(stream.is_terminated());
    }

    #[test]
    fn a_cancel_is_the_last_item_and_a_dropped_stream_leaves_the_line() {
        let (tx, rx) = broadcast::<u8>(1);
        let mut stream = rx.resubscribe().into_stream(&live_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(next.is_pending());
        drop(next);
        drop(stream);
        assert!(lock(&tx.ring).line.wake_all().is_empty());
        assert_eq!((tx.send(1), tx.subscribers()), (Ok(1), 1));
        let mut stream = rx.into_stream(&cancelled_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(matches!(next.ready(), Some(Err(ListenError::Cancelled(_)))));
        assert_eq!(next.ready(), None);
    }
}
