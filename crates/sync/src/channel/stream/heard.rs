//! What a subscriber hears, as a stream.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::Cx;
use futures_core::stream::{FusedStream, Stream};

use crate::channel::broadcast::{ListenError, Subscriber};
use crate::channel::line::LineWait;

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
        let wait = LineWait::new(Location::caller());
        Heard { subscriber: self, cx: cx.clone(), wait, ended: false }
    }
}

/// The stream of [`Subscriber::into_stream`].
#[must_use = "streams do nothing unless polled"]
pub struct Heard<T> {
    subscriber: Subscriber<T>,
    cx: Cx,
    wait: LineWait,
    ended: bool,
}

impl<T: Clone> Stream for Heard<T> {
    type Item = Result<T, ListenError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Heard { subscriber, cx, wait, ended } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let received = ready!(subscriber.poll_recv(cx, wait, context));
        *ended = match &received {
            Ok(_) | Err(ListenError::Lagged(_)) => false,
            Err(ListenError::Disconnected | ListenError::Cancelled(_)) => true,
        };
        Poll::Ready(match received {
            Err(ListenError::Disconnected) => None,
            received => Some(received),
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
        self.subscriber.leave(&mut self.wait);
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
