//! Every message to everybody who listens.
//!
//! A subscriber sees all messages sent since it subscribed, in order. Publishers never wait: a
//! subscriber that falls more than the capacity behind misses the oldest messages, and learns
//! exactly how many. A message is kept until all have seen it; all but the last who see it get a
//! clone, made by one after the other, so that messages need only be `Send`. So the `clone` of a
//! message must not receive from the channel it is in: it would wait for itself.

mod closed;
mod error;
mod ring;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pub use closed::UntilUnheard;
pub use error::{ListenError, TryListenError};
use ring::{Common, Ring};

use asx_task::backtrace::{Endpoint, Side, Thing, Usage};
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cx, footprint};

use super::line::{self, LineWait};
use super::{Disconnected, RecvError};
use crate::prim::{Arc, Shared, lock};

/// A channel that keeps up to `capacity` messages for subscribers that are behind.
///
/// ```
/// let (tx, mut one) = asx::channel::broadcast(8);
/// let mut two = tx.subscribe();
/// assert_eq!(tx.send("both"), Ok(2));
/// assert_eq!((one.try_recv()?, two.try_recv()?), ("both", "both"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the capacity is 0.
#[track_caller]
pub fn broadcast<T: Clone>(capacity: usize) -> (Publisher<T>, Subscriber<T>) {
    assert!(capacity > 0, "{}", super::ZeroCapacity);
    let ring = Arc::new(Shared::new(Ring::new(capacity)));
    let usage = Usage::new();
    let publisher = Publisher { ring: ring.clone(), end: Endpoint::new(&usage, Side::Sends) };
    (publisher, Subscriber { ring, next: 0, end: Endpoint::new(&usage, Side::Receives) })
}

/// A sending side; a clone is a further one.
pub struct Publisher<T> {
    pub(super) ring: Arc<Shared<Ring<T>>>,
    end: Endpoint,
}

impl<T> Publisher<T> {
    /// Sends to all who listen: how many. It never waits; if nobody listens, the value comes back.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(&self, value: T) -> Result<usize, Disconnected<T>> {
        let _after = footprint::operation();
        let value = Common::new(value);
        let (subscribers, unsent, waiting) = {
            let mut ring = lock(&self.ring);
            match ring.subscribers {
                0 => (0, Some(value), Default::default()),
                subscribers => (subscribers, ring.push(value), ring.line.wake_all()),
            }
        };
        self.end.acts(Side::Sends);
        line::wake_all(waiting);
        match unsent.map(Common::into_inner) {
            Some(Some(value)) if subscribers == 0 => Err(Disconnected(value)),
            _ => Ok(subscribers),
        }
    }

    /// A further subscriber, for all that is sent from now on.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn subscribe(&self) -> Subscriber<T> {
        let _after = footprint::operation();
        Subscriber::join(&self.ring, self.end.another(Side::Receives))
    }

    /// Waits until nobody listens. There may be subscribers again later.
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> UntilUnheard<'a, T> {
        UntilUnheard::new(&self.ring, cx, Location::caller())
    }

    /// Whether nobody listens.
    pub fn is_closed(&self) -> bool {
        self.subscribers() == 0
    }

    /// How many publishers there are.
    pub fn publishers(&self) -> usize {
        let _after = footprint::operation();
        lock(&self.ring).publishers
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Publisher<T>) -> bool {
        Arc::ptr_eq(&self.ring, &other.ring)
    }

    /// How many listen.
    pub fn subscribers(&self) -> usize {
        let _after = footprint::operation();
        lock(&self.ring).subscribers
    }

    /// How many messages are kept, because somebody has yet to see them.
    pub fn len(&self) -> usize {
        let _after = footprint::operation();
        lock(&self.ring).len()
    }

    /// Whether everybody has seen everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Publisher<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        lock(&self.ring).publishers += 1;
        Publisher { ring: self.ring.clone(), end: self.end.another(Side::Sends) }
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        let waiting = {
            let mut ring = lock(&self.ring);
            ring.publishers -= 1;
            if ring.publishers == 0 { ring.line.wake_all() } else { Default::default() }
        };
        line::wake_all(waiting);
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

/// A receiving side, with its own place among the messages.
pub struct Subscriber<T> {
    pub(super) ring: Arc<Shared<Ring<T>>>,
    /// The number of the next message.
    pub(super) next: u64,
    end: Endpoint,
}

impl<T> Subscriber<T> {
    /// Waits for the next message. Dropping the future takes none.
    ///
    /// Messages that were missed are an error of their own, told once;
    /// [`skip_lagged`](Listen::skip_lagged) goes on behind them, for who does not mind. `?` then
    /// does what it does on other channels.
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Listen<'a, T> {
        Listen { subscriber: self, cx, wait: LineWait::new(Location::caller()) }
    }

    /// A further subscriber, for all that is sent from now on: what this one has yet to see is not
    /// for it.
    ///
    /// ```
    /// let (tx, mut one) = asx::channel::broadcast(8);
    /// assert_eq!(tx.send("before"), Ok(1));
    /// let mut two = one.resubscribe();
    /// assert_eq!(tx.send("after"), Ok(2));
    /// assert_eq!((one.try_recv()?, two.try_recv()?), ("before", "after"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn resubscribe(&self) -> Subscriber<T> {
        let _after = footprint::operation();
        Subscriber::join(&self.ring, self.end.another(Side::Receives))
    }

    /// Whether no publisher is left. Messages may still wait for this subscriber.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        lock(&self.ring).publishers == 0
    }

    fn join(ring: &Arc<Shared<Ring<T>>>, end: Endpoint) -> Subscriber<T> {
        let next = {
            let mut ring = lock(ring);
            ring.subscribers += 1;
            ring.end()
        };
        Subscriber { ring: ring.clone(), next, end }
    }

    /// How many messages wait for this subscriber; those it missed are not counted.
    pub fn len(&self) -> usize {
        let _after = footprint::operation();
        let ring = lock(&self.ring);
        usize::try_from(ring.end() - self.next).map_or(ring.len(), |behind| behind.min(ring.len()))
    }

    /// Whether no message waits for this subscriber.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Clone> Subscriber<T> {
    /// Takes the next message if there is one.
    pub fn try_recv(&mut self) -> Result<T, TryListenError> {
        let _after = footprint::operation();
        let taken = lock(&self.ring).take(&mut self.next);
        taken.map(Common::unwrap_or_clone)
    }

    /// A poll of a wait for the next message.
    pub(super) fn poll_recv(
        &mut self,
        cx: &Cx,
        wait: &mut LineWait,
        context: &mut Context<'_>,
    ) -> Poll<Result<T, ListenError>> {
        let _after = footprint::after_operation();
        let Subscriber { ring, next, end } = self;
        let polled = wait.poll(cx, Wait::Recv, ring, Ring::line, context, |ring| {
            Some(ring.take(next)).filter(|taken| !matches!(taken, Err(TryListenError::Empty)))
        });
        if polled.is_pending() {
            end.awaits(Thing::Broadcast, Side::Sends);
        }
        let taken = ready!(polled)?;
        Poll::Ready(match taken {
            Ok(value) => Ok(value.unwrap_or_clone()),
            Err(TryListenError::Lagged(missed)) => Err(ListenError::Lagged(missed)),
            Err(_) => Err(ListenError::Disconnected),
        })
    }
}

impl<T> Subscriber<T> {
    /// Waits no longer for a message.
    pub(super) fn leave(&self, wait: &mut LineWait) {
        wait.leave(&self.ring, Ring::line);
    }
}

impl<T> Drop for Subscriber<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        let (_unseen, waiting) = {
            let mut ring = lock(&self.ring);
            let unseen = ring.remove_subscriber(self.next);
            let last = ring.subscribers == 0;
            (unseen, if last { ring.closed.wake_all() } else { Default::default() })
        };
        line::wake_all(waiting);
    }
}

impl<T> fmt::Debug for Subscriber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("next", &self.next).finish_non_exhaustive()
    }
}

/// The future of [`Subscriber::recv`]; gives `Result<T, ListenError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Listen<'a, T> {
    subscriber: &'a mut Subscriber<T>,
    cx: &'a Cx,
    wait: LineWait,
}

impl<T: Clone> Future for Listen<'_, T> {
    type Output = Result<T, ListenError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Listen { subscriber, cx, wait } = &mut *self;
        subscriber.poll_recv(cx, wait, context)
    }
}

impl<T> Drop for Listen<'_, T> {
    fn drop(&mut self) {
        self.subscriber.leave(&mut self.wait);
    }
}

impl<T: Clone> CancelSafe for Listen<'_, T> {}

impl<'a, T> Listen<'a, T> {
    /// The next message that is left, whatever was missed before it: the only errors are those that
    /// every channel has.
    ///
    /// ```
    /// use asx::channel::{Disconnected, broadcast::Subscriber};
    /// use asx::prelude::*;
    ///
    /// /// The first price above the limit.
    /// async fn above(
    ///     cx: &Cx,
    ///     prices: &mut Subscriber<u32>,
    ///     limit: u32,
    /// ) -> Result<u32, TaskError<Disconnected>> {
    ///     loop {
    ///         let price = prices.recv(cx).skip_lagged().await?;
    ///         if price > limit {
    ///             return Ok(price);
    ///         }
    ///     }
    /// }
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) {
    ///     let (tx, mut rx) = channel::broadcast(2);
    ///     (1..=5).for_each(|price| assert_eq!(tx.send(price), Ok(1)));
    ///     assert_eq!(above(cx, &mut rx, 1).await.unwrap(), 4, "the first three were missed");
    /// }
    /// ```
    pub fn skip_lagged(self) -> SkipLagged<'a, T> {
        SkipLagged(self)
    }
}

/// The future of [`Listen::skip_lagged`]; gives `Result<T, RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct SkipLagged<'a, T>(Listen<'a, T>);

impl<T: Clone> Future for SkipLagged<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            return Poll::Ready(match ready!(Pin::new(&mut self.0).poll(context)) {
                Ok(value) => Ok(value),
                // Each of these is an operation: a subscriber that is always too slow lets others
                // run.
                Err(ListenError::Lagged(_)) => continue,
                Err(ListenError::Disconnected) => Err(RecvError::Disconnected),
                Err(ListenError::Cancelled(cancelled)) => Err(RecvError::Cancelled(cancelled)),
            });
        }
    }
}

impl<T: Clone> CancelSafe for SkipLagged<'_, T> {}
