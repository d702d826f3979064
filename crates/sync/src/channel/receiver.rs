//! The receiving side of a channel.

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;

use asx_kernel::channel::TryRecvError;
use asx_task::Cx;
use asx_task::backtrace::{Endpoint, Side};
use asx_task::footprint;

use super::recv::{Next, Recv, RecvMany};
use super::shared::Shared;
use crate::prim::Arc;

/// The receiving side, the only one. Dropping it drops the messages it did not take and tells
/// every sender.
pub struct Receiver<T> {
    pub(super) shared: Arc<Shared<T>>,
    end: Endpoint,
}

impl<T> Receiver<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new(shared: Arc<Shared<T>>) -> Receiver<T> {
        let end = Endpoint::new(&shared.usage, Side::Receives);
        Receiver { shared, end }
    }

    /// The channel, to be used.
    #[inline]
    pub(super) fn used(&self) -> &Arc<Shared<T>> {
        self.end.used();
        &self.shared
    }
}

/// Taking messages.
impl<T> Receiver<T> {
    /// Waits for the next message. Fails when no message and no sender is left, or the task is
    /// cancelled. Dropping the future takes no message.
    ///
    /// ```
    /// # use asx::{Cx, channel::Receiver};
    /// async fn print_all(cx: &Cx, mut rx: Receiver<String>) {
    ///     while let Ok(line) = rx.recv(cx).await {
    ///         println!("{line}");
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Recv<'a, T> {
        Recv::new(self.used(), cx, Location::caller())
    }

    /// [`recv`](Receiver::recv) for loops that end when the senders do: `None` then, so that the
    /// only error is a cancel.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, channel::Receiver};
    /// async fn total(cx: &Cx, mut rx: Receiver<u64>) -> Result<u64, Cancelled> {
    ///     let mut total = 0;
    ///     while let Some(amount) = rx.next(cx).await? {
    ///         total += amount;
    ///     }
    ///     Ok(total)
    /// }
    /// ```
    #[track_caller]
    #[allow(clippy::should_implement_trait, reason = "it waits, and with a context")]
    pub fn next<'a>(&'a mut self, cx: &'a Cx) -> Next<'a, T> {
        Next::new(self.recv(cx))
    }

    /// Waits for a message and appends it and all that are queued behind it to `into`, at most
    /// `max` in all: how many. Asked for none, it gives none at once. Each message frees its slot,
    /// as if it had been received alone; dropping the future takes none.
    ///
    /// ```
    /// # use asx::{Cx, channel::{Receiver, RecvError}};
    /// async fn in_batches(cx: &Cx, mut rx: Receiver<String>) -> Result<(), RecvError> {
    ///     let mut lines = Vec::new();
    ///     loop {
    ///         let count = rx.recv_many(cx, &mut lines, 100).await?;
    ///         println!("{count} at once: {:?}", lines.drain(..));
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn recv_many<'a>(
        &'a mut self,
        cx: &'a Cx,
        into: &'a mut Vec<T>,
        max: usize,
    ) -> RecvMany<'a, T> {
        RecvMany::new(self.recv(cx), into, max)
    }

    /// Takes a message if there is one.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let _after = footprint::operation();
        let taken = self.used().try_recv();
        if taken.is_ok() {
            self.shared.usage.used(Side::Receives);
        }
        taken
    }

    /// Closes the channel to senders: those that wait for a slot or ask for one find it closed.
    /// What was sent before can still be received, and so can what is sent by permits that are out;
    /// then it is disconnected.
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, mut rx) = channel::bounded(4);
    /// tx.try_send("sent")?;
    /// let permit = tx.try_reserve()?;
    /// rx.close();
    /// assert!(tx.is_closed() && tx.try_send("too late").is_err());
    /// permit.send("promised");
    /// assert_eq!(rx.next(&cx).await?, Some("sent"));
    /// assert_eq!(rx.next(&cx).await?, Some("promised"));
    /// assert_eq!(rx.next(&cx).await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&mut self) {
        let _after = footprint::operation();
        self.shared.refuse();
    }

    /// Closes the channel for good, at once, and hands out the messages that were not taken, oldest
    /// first. What permits that are out send comes back to them.
    pub fn close_and_take(&mut self) -> VecDeque<T> {
        let _after = footprint::operation();
        self.shared.close_receiver()
    }
}

/// Looking.
impl<T> Receiver<T> {
    /// How many messages are queued.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots are free now.
    pub fn capacity(&self) -> usize {
        self.shared.free_slots()
    }

    /// How many messages and permits there can be at once.
    pub fn max_capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Whether it takes no more senders, or none is left. Messages may still be queued, and permits
    /// of a [closed](Receiver::close) channel may still send some.
    pub fn is_closed(&self) -> bool {
        self.shared.is_ending()
    }

    /// How many senders there are; permits and weak senders are not counted.
    pub fn senders(&self) -> usize {
        self.shared.senders()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        drop(self.shared.close_receiver());
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
