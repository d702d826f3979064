//! The messages of a channel with several receivers, as a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::operation::Wait;
use asx_task::{Cancelled, Cx};
use futures_core::stream::{FusedStream, Stream};

use crate::channel::RecvError;
use crate::channel::mpmc::{SharedReceiver, poll_receive};
use crate::channel::shared::Shared;
use crate::prim::Arc;
use crate::sync::claim::Claim;

impl<T> SharedReceiver<T> {
    /// The messages as a stream that borrows nothing: those that this receiver gets, in line with
    /// the others. It ends when no message and no sender is left; a cancel is its last item.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use futures_util::StreamExt;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, rx) = channel::mpmc(4);
    /// let other = rx.clone();
    /// let mut jobs = rx.into_stream(&cx);
    /// (0..3).for_each(|job| tx.try_send(job).unwrap());
    /// drop(tx);
    /// assert_eq!(jobs.next().await, Some(Ok(0)));
    /// assert_eq!(other.try_recv(), Ok(1));
    /// assert_eq!(jobs.next().await, Some(Ok(2)));
    /// assert_eq!(jobs.next().await, None);
    /// # });
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> SharedMessages<T> {
        let claim = Claim::new(cx.clone(), self.shared.clone(), 1, Wait::Recv);
        SharedMessages { claim, receiver: self, ended: false }
    }
}

/// The stream of [`SharedReceiver::into_stream`]. Between two items it stands in no line: a message
/// that comes then goes to whoever waits.
#[must_use = "streams do nothing unless polled"]
pub struct SharedMessages<T> {
    /// Before the receiver, so that a message that was due to it goes to another one.
    claim: Claim<Cx, Arc<Shared<T>>>,
    receiver: SharedReceiver<T>,
    ended: bool,
}

impl<T> SharedMessages<T> {
    /// Closes the channel to senders, as [`SharedReceiver::close`] does: the stream ends after what
    /// was sent.
    pub fn close(&self) {
        self.receiver.close();
    }

    /// The receiver. A message that was due to it goes to the next one in line.
    pub fn into_inner(self) -> SharedReceiver<T> {
        self.receiver
    }
}

impl<T> Stream for SharedMessages<T> {
    type Item = Result<T, Cancelled>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let SharedMessages { claim, receiver, ended } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let received = ready!(poll_receive(&receiver.shared, claim, context));
        claim.renew(receiver.shared.clone());
        *ended = received.is_err();
        Poll::Ready(match received {
            Ok(value) => Some(Ok(value)),
            Err(RecvError::Disconnected) => None,
            Err(RecvError::Cancelled(cancelled)) => Some(Err(cancelled)),
        })
    }
}

impl<T> FusedStream for SharedMessages<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T> fmt::Debug for SharedMessages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMessages").field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::mpmc;
    use asx_task::testing::{Polls, live_cx, reason};

    fn next<T>(stream: &mut SharedMessages<T>) -> Polls<impl Future<Output = Item<T>>> {
        Polls::new(poll_fn(|context| Pin::new(&mut *stream).poll_next(context)))
    }

    type Item<T> = Option<Result<T, Cancelled>>;

    #[test]
    fn streams_are_served_in_line_and_end_with_the_senders() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(4));
        let mut one = rx.clone().into_stream(&cx);
        let mut two = rx.into_stream(&cx);
        let mut first = next(&mut one);
        let mut second = next(&mut two);
        assert!(first.is_pending() && second.is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        assert_eq!(first.ready(), Some(Ok(1)));
        assert!(first.is_pending(), "behind the other now");
        tx.try_send(2).unwrap();
        assert_eq!((first.wakes(), second.wakes(), second.ready()), (0, 1, Some(Ok(2))));
        drop(tx);
        assert_eq!((first.ready(), second.ready(), second.ready()), (None, None, None));
        drop((first, second));
        assert!(one.is_terminated() && two.is_terminated());
    }

    #[test]
    fn a_stream_that_is_cancelled_or_dropped_leaves_its_message_to_the_next() {
        let (cx, cancel) = Cx::loose();
        let (live, (tx, rx)) = (live_cx(), mpmc(4));
        let mut cancelled = rx.clone().into_stream(&cx);
        let mut dropped = rx.clone().into_stream(&live);
        assert!(next(&mut cancelled).is_pending() && next(&mut dropped).is_pending());
        let mut stays = Polls::new(rx.recv(&live));
        assert!(stays.is_pending());
        tx.try_send(1).unwrap();
        cancel(reason());
        assert!(next(&mut cancelled).ready().is_some_and(|item| item.is_err()));
        assert_eq!((next(&mut cancelled).ready(), stays.wakes()), (None, 0));
        drop(dropped);
        assert_eq!((stays.wakes(), stays.ready()), (1, Ok(1)));
        assert_eq!(rx.receivers(), 2);
        let back = cancelled.into_inner();
        assert!(back.same_channel(&rx));
    }

    #[test]
    fn a_closed_stream_ends_after_what_was_sent() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(2));
        tx.try_send(1).unwrap();
        let mut stream = rx.into_stream(&cx);
        stream.close();
        assert!(tx.is_closed());
        assert_eq!(next(&mut stream).ready(), Some(Ok(1)));
        assert_eq!(next(&mut stream).ready(), None);
    }
}
