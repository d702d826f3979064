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

use asx_task::operation::{Registration, Wait};
use asx_task::{CancelSafe, Cx, footprint};

use super::Disconnected;
use super::line::{self, Place, leave_line, poll_line};
use crate::prim::{Arc, Mutex, lock};

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
    let ring = Arc::new(Mutex::new(Ring::new(capacity)));
    (Publisher { ring: ring.clone() }, Subscriber { ring, next: 0 })
}

/// A sending side; a clone is a further one.
pub struct Publisher<T> {
    pub(super) ring: Arc<Mutex<Ring<T>>>,
}

impl<T> Publisher<T> {
    /// Sends to all who listen: how many. It never waits; if nobody listens, the value comes back.
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
        line::wake_all(waiting);
        match unsent.map(Common::into_inner) {
            Some(Some(value)) if subscribers == 0 => Err(Disconnected(value)),
            _ => Ok(subscribers),
        }
    }

    /// A further subscriber, for all that is sent from now on.
    pub fn subscribe(&self) -> Subscriber<T> {
        let _after = footprint::operation();
        Subscriber::join(&self.ring)
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
    fn clone(&self) -> Self {
        lock(&self.ring).publishers += 1;
        Publisher { ring: self.ring.clone() }
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
    pub(super) ring: Arc<Mutex<Ring<T>>>,
    /// The number of the next message.
    pub(super) next: u64,
}

impl<T> Subscriber<T> {
    /// Waits for the next message. Dropping the future takes none.
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Listen<'a, T> {
        let at = Location::caller();
        let registration = Registration::NONE;
        Listen { subscriber: self, cx, at, place: None, registration }
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
    pub fn resubscribe(&self) -> Subscriber<T> {
        let _after = footprint::operation();
        Subscriber::join(&self.ring)
    }

    /// Whether no publisher is left. Messages may still wait for this subscriber.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        lock(&self.ring).publishers == 0
    }

    fn join(ring: &Arc<Mutex<Ring<T>>>) -> Subscriber<T> {
        let next = {
            let mut ring = lock(ring);
            ring.subscribers += 1;
            ring.end()
        };
        Subscriber { ring: ring.clone(), next }
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
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl<T: Clone> Future for Listen<'_, T> {
    type Output = Result<T, ListenError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let Listen { subscriber, cx, at, place, registration } = &mut *self;
        let Subscriber { ring, next } = &mut **subscriber;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            leave_line(ring, |ring| &mut ring.line, place);
            return Poll::Ready(Err(ListenError::Cancelled(cancelled)));
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
        match taken {
            Poll::Ready(Ok(value)) => Poll::Ready(Ok(value.unwrap_or_clone())),
            Poll::Ready(Err(TryListenError::Lagged(missed))) => {
                Poll::Ready(Err(ListenError::Lagged(missed)))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(ListenError::Disconnected)),
            Poll::Pending => {
                cx.waits(Wait::Recv, at, context.waker(), registration);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Listen<'_, T> {
    fn drop(&mut self) {
        leave_line(&self.subscriber.ring, |ring| &mut ring.line, &mut self.place);
    }
}

impl<T: Clone> CancelSafe for Listen<'_, T> {}
