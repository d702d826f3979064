//! The ticks of an interval as a stream.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::time::Time;
use futures_core::stream::{FusedStream, Stream};

use super::interval::Interval;
use super::timer::Timer;
use crate::footprint;
use crate::{Cancelled, Cx};

impl Interval {
    /// The ticks as a stream that borrows nothing: when each was due. It is bound to the context it
    /// is made with. A cancel is its last item; it ends in no other way.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use futures_util::StreamExt;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let start = cx.now();
    /// let beat = cx.interval_at(start, 1.millis()).into_stream(&cx);
    /// let due: Vec<_> = beat.take(3).map(|tick| tick.unwrap() - start).collect().await;
    /// assert_eq!(due, [0.millis(), 1.millis(), 2.millis()]);
    /// # });
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> Ticks {
        let timer = Timer::new(cx.clone(), self.next(), false);
        Ticks { interval: self, timer, at: Location::caller(), ended: false }
    }
}

/// The stream of [`Interval::into_stream`].
#[must_use = "streams do nothing unless polled"]
pub struct Ticks {
    interval: Interval,
    timer: Timer<Cx>,
    at: &'static Location<'static>,
    ended: bool,
}

impl Ticks {
    /// Begins anew: the next tick is one period from now.
    pub fn reset(&mut self) {
        self.interval.reset(self.timer.context());
        self.timer.reset(self.interval.next());
    }

    /// The interval, whose next tick is the one that was not taken.
    pub fn into_inner(self) -> Interval {
        self.interval
    }
}

impl Stream for Ticks {
    type Item = Result<Time, Cancelled>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let _after = footprint::after_operation();
        let Ticks { interval, timer, at, ended } = &mut *self;
        if *ended {
            return Poll::Ready(None);
        }
        let over = match ready!(timer.poll_proceed(context)) {
            Ok(()) => timer.poll(context.waker()),
            Err(cancelled) => Poll::Ready(Err(cancelled)),
        };
        Poll::Ready(Some(match over {
            Poll::Pending => {
                timer.waits(at, context.waker());
                return Poll::Pending;
            }
            Poll::Ready(Ok(())) => {
                let due = timer.deadline();
                interval.taken(due, timer.context().now());
                timer.renew(interval.next());
                Ok(due)
            }
            Poll::Ready(Err(cancelled)) => {
                *ended = true;
                timer.renew(interval.next());
                Err(cancelled)
            }
        }))
    }
}

impl FusedStream for Ticks {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticks")
            .field("interval", &self.interval)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
