//! A channel without a bound: sending never waits. Memory is the only limit, so use it where
//! something else bounds what is sent.

use std::fmt;
use std::panic::Location;

use asx_task::Cx;

use super::shared::Shared;
use super::{Disconnected, Receiver, UntilClosed};
use crate::prim::Arc;
use asx_task::backtrace::{Endpoint, Side};
use asx_task::footprint;

/// A channel that takes any number of messages.
///
/// ```
/// let (tx, mut rx) = asx::channel::unbounded();
/// tx.send(1)?;
/// tx.send(2)?;
/// assert_eq!((rx.try_recv()?, rx.try_recv()?), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn unbounded<T>() -> (UnboundedSender<T>, Receiver<T>) {
    let shared = Shared::new(usize::MAX).expect("the capacity is not 0");
    (UnboundedSender::new(shared.clone()), Receiver::new(shared))
}

/// The sending side; a clone is a further one.
pub struct UnboundedSender<T> {
    pub(super) shared: Arc<Shared<T>>,
    end: Endpoint,
}

impl<T> UnboundedSender<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new(shared: Arc<Shared<T>>) -> UnboundedSender<T> {
        let end = Endpoint::new(&shared.usage, Side::Sends);
        UnboundedSender { shared, end }
    }
}

impl<T> UnboundedSender<T> {
    /// Sends. It never waits; if the receiver is gone, the value comes back.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(&self, value: T) -> Result<(), Disconnected<T>> {
        let _after = footprint::operation();
        self.end.used();
        match self.shared.with(|channel| channel.try_send(value)) {
            Ok(receiver) => {
                self.shared.usage.used(Side::Sends);
                self.shared.committed(receiver);
                Ok(())
            }
            Err(refused) => Err(Disconnected(refused.into_inner())),
        }
    }

    /// How many messages are queued.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the receiver is gone, or was [closed](super::Receiver::close).
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> UntilClosed<'a, T> {
        UntilClosed::new(&self.shared, cx, Location::caller())
    }

    /// Whether the receiver is gone, or takes no more senders.
    pub fn is_closed(&self) -> bool {
        self.shared.is_refusing()
    }

    /// How many senders there are.
    pub fn senders(&self) -> usize {
        self.shared.senders()
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &UnboundedSender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for UnboundedSender<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        self.shared.add_sender();
        UnboundedSender::new(self.shared.clone())
    }
}

impl<T> Drop for UnboundedSender<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        self.shared.drop_sender();
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::channel::{RecvError, TryRecvError};
    use asx_task::testing::{Polls, cancelled_cx, live_cx};

    #[test]
    fn sending_never_waits_and_keeps_the_order() {
        let (tx, mut rx) = unbounded();
        (0..10_000).for_each(|n| tx.send(n).unwrap());
        assert_eq!((tx.len(), tx.is_empty()), (10_000, false));
        assert!((0..10_000).all(|n| rx.try_recv() == Ok(n)));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn a_send_wakes_the_receiver_and_so_does_the_last_sender() {
        let (cx, (tx, mut rx)) = (live_cx(), unbounded());
        let other = tx.clone();
        assert!(tx.same_channel(&other));
        let mut recv = Polls::new(rx.recv(&cx));
        assert!(recv.is_pending());
        tx.send(1).unwrap();
        assert_eq!((recv.wakes(), recv.ready()), (1, Ok(1)));
        drop(recv);
        let mut recv = Polls::new(rx.recv(&cx));
        assert!(recv.is_pending());
        drop(tx);
        assert_eq!(recv.wakes(), 0);
        drop(other);
        assert_eq!((recv.wakes(), recv.ready()), (1, Err(RecvError::Disconnected)));
    }

    #[test]
    fn a_closed_channel_hands_the_value_back_and_a_cancel_takes_nothing() {
        let (tx, mut rx) = unbounded();
        tx.send(1).unwrap();
        let cx = cancelled_cx();
        assert!(matches!(Polls::new(rx.recv(&cx)).ready(), Err(RecvError::Cancelled(_))));
        assert_eq!((rx.close_and_take(), tx.is_closed()), (vec![1].into(), true));
        assert_eq!(tx.send(2), Err(Disconnected(2)));
    }
}
