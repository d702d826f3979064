//! A watched value as a stream.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc as Snapshot;
use std::task::{Context, Poll, ready};

use asx_task::{Cancelled, Cx};
use futures_core::stream::{FusedStream, Stream};

use crate::channel::line::LineWait;
use crate::channel::watch::Watcher;

impl<T> Watcher<T> {
    /// The values as a stream that borrows nothing: each one that was not seen, but only the latest
    /// if there were several. It ends when the last value was seen and no setter is left; a cancel
    /// is its last item.
    ///
    /// It begins with the next change; after a [`mark_changed`](Watcher::mark_changed), with the
    /// value that is there.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use futures_util::StreamExt;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, mut rx) = channel::watch(1);
    /// rx.mark_changed();
    /// let mut values = rx.into_stream(&cx);
    /// assert_eq!(*values.next().await.unwrap().unwrap(), 1);
    /// tx.send(2).unwrap();
    /// tx.send(3).unwrap();
    /// assert_eq!(*values.next().await.unwrap().unwrap(), 3);
    /// drop(tx);
    /// assert!(values.next().await.is_none());
    /// # });
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> Snapshots<T> {
        let wait = LineWait::new(Location::caller());
        Snapshots { watcher: self, cx: cx.clone(), wait, ended: false }
    }
}

/// The stream of [`Watcher::into_stream`].
#[must_use = "streams do nothing unless polled"]
pub struct Snapshots<T> {
    watcher: Watcher<T>,
    cx: Cx,
    wait: LineWait,
    ended: bool,
}

impl<T> Stream for Snapshots<T> {
    type Item = Result<Snapshot<T>, Cancelled>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Snapshots { watcher, cx, wait, ended } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let next = ready!(watcher.poll_change(cx, wait, context, Snapshot::clone)).transpose();
        *ended = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

impl<T> FusedStream for Snapshots<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T> Drop for Snapshots<T> {
    fn drop(&mut self) {
        self.watcher.leave(&mut self.wait);
    }
}

impl<T> fmt::Debug for Snapshots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::watch;
    use crate::prim::lock;
    use asx_task::testing::{Polls, cancelled_cx, live_cx};

    #[test]
    fn values_that_were_not_seen_come_once_and_the_end_after_the_last() {
        let (tx, rx) = watch(0);
        let mut stream = rx.into_stream(&live_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(next.is_pending());
        tx.send(1).unwrap();
        tx.send(2).unwrap();
        assert_eq!(next.wakes(), 1);
        assert_eq!(next.ready().map(|value| *value.unwrap()), Some(2));
        assert!(next.is_pending());
        tx.send(3).unwrap();
        drop(tx);
        assert_eq!(next.ready().map(|value| *value.unwrap()), Some(3));
        assert!(next.ready().is_none() && next.ready().is_none());
        drop(next);
        assert!(stream.is_terminated());
    }

    #[test]
    fn a_cancel_is_the_last_item_and_a_dropped_stream_leaves_the_line() {
        let (tx, rx) = watch(0);
        let mut stream = rx.clone().into_stream(&live_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(next.is_pending());
        drop(next);
        drop(stream);
        assert!(lock(&tx.state).changed.wake_all().is_empty());
        tx.send(1).unwrap();
        let mut stream = rx.into_stream(&cancelled_cx());
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)));
        assert!(next.ready().is_some_and(|item| item.is_err()));
        assert!(next.ready().is_none());
    }
}
