//! A stream that is not to come faster than so often.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use asx_task::time::Ticks;
use asx_task::{Cancelled, Cx};
use futures_core::Stream;

/// The items of `stream`, at most one in each `period`: the first at once, each other one a period
/// after the one before it was taken, or later. Until then the stream is not polled, so nothing is
/// taken out of it and nothing is lost.
///
/// The items are results whose errors can be made of a cancel, as those of all streams here are. A
/// cancel that is seen between two items is the last item. Other streams are mapped to `Ok` first.
///
/// ```
/// use asx::channel::{self, stream::throttle};
/// use asx::prelude::*;
/// use futures_util::StreamExt;
///
/// # fn main() -> std::io::Result<()> {
/// # asx::Runtime::new()?.block_on(async |cx: Cx| {
/// let (tx, rx) = channel::bounded(4);
/// (0..3).for_each(|n| tx.try_send(n).unwrap());
/// drop(tx);
/// let start = cx.now();
/// let slowly = throttle(&cx, 2.millis(), rx.into_stream(&cx));
/// let items: Vec<_> = slowly.map(Result::unwrap).collect().await;
/// assert_eq!(items, [0, 1, 2]);
/// assert!(cx.now() - start >= 4.millis());
/// # });
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn throttle<T, E, S>(cx: &Cx, period: Duration, stream: S) -> Throttle<S>
where
    S: Stream<Item = Result<T, E>>,
    E: From<Cancelled>,
{
    let gate = cx.interval(period).into_stream(cx);
    Throttle { stream, gate, open: true, ended: false }
}

/// The stream of [`throttle`].
#[must_use = "streams do nothing unless polled"]
pub struct Throttle<S> {
    stream: S,
    /// Begins anew with each item.
    gate: Ticks,
    /// Whether a period has passed since the last item.
    open: bool,
    ended: bool,
}

impl<S> Throttle<S> {
    /// The stream, with all that was not taken.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<T, E, S> Stream for Throttle<S>
where
    S: Stream<Item = Result<T, E>> + Unpin,
    E: From<Cancelled>,
{
    type Item = Result<T, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Throttle { stream, gate, open, ended } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        if !*open && let Some(tick) = ready!(Pin::new(&mut *gate).poll_next(context)) {
            match tick {
                Ok(_) => *open = true,
                Err(cancelled) => {
                    *ended = true;
                    return Poll::Ready(Some(Err(cancelled.into())));
                }
            }
        }
        let item = ready!(Pin::new(stream).poll_next(context));
        gate.reset();
        *open = false;
        *ended = item.is_none();
        Poll::Ready(item)
    }
}

impl<S> fmt::Debug for Throttle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("open", &self.open).finish_non_exhaustive()
    }
}
