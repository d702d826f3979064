//! The sending side of a bounded channel.

use std::fmt;
use std::panic::Location;

use asx_kernel::channel::{TryReserveError, TryReserveManyError, TrySendError};
use asx_task::Cx;
use asx_task::backtrace::{Endpoint, Side};
use asx_task::footprint;

use super::closed::UntilClosed;
use super::permit::{OwnedPermit, Permit, Permits};
use super::reserve::{NextPermit, Reserve, ReserveMany, ReserveOwned, Sending};
use super::shared::Shared;
use crate::prim::Arc;

/// A sending side; a clone is a further one. The channel is disconnected for the receiver when
/// the last is gone, its permits and waiting reservations included.
pub struct Sender<T> {
    pub(super) shared: Arc<Shared<T>>,
    end: Endpoint,
}

impl<T> Sender<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new(shared: Arc<Shared<T>>) -> Sender<T> {
        let end = Endpoint::new(&shared.usage, Side::Sends);
        Sender { shared, end }
    }

    /// The channel, to be used.
    #[inline]
    pub(super) fn used(&self) -> &Arc<Shared<T>> {
        self.end.used();
        &self.shared
    }
}

/// Asking for slots.
impl<T> Sender<T> {
    /// Waits for a slot: the first phase of a send, with nothing at stake yet. The permit it gives
    /// is the second phase, which cannot fail half-way.
    ///
    /// Slots are given in the order of asking. Fails when the receiver is gone or the task is
    /// cancelled. Dropping the future gives up the place in line.
    ///
    /// ```
    /// # use asx::{Cx, channel::{Sender, SendError}};
    /// async fn feed(cx: &Cx, tx: &Sender<String>) -> Result<(), SendError<()>> {
    ///     let permit = tx.reserve(cx).await?;
    ///     permit.send("made only now that there is room".to_owned());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn reserve<'a>(&'a self, cx: &'a Cx) -> Reserve<'a, T> {
        Reserve::new(self.used(), cx, Location::caller())
    }

    /// [`reserve`](Sender::reserve) for loops that end when the receiver does: `None` then, so that
    /// the only error is a cancel. The twin of [`Receiver::next`](super::Receiver::next).
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, channel::Sender};
    /// async fn count(cx: &Cx, tx: Sender<u64>) -> Result<u64, Cancelled> {
    ///     let mut sent = 0;
    ///     while let Some(permit) = tx.next_permit(cx).await? {
    ///         permit.send(sent);
    ///         sent += 1;
    ///     }
    ///     Ok(sent) // as many as somebody could take
    /// }
    /// ```
    #[track_caller]
    pub fn next_permit<'a>(&'a self, cx: &'a Cx) -> NextPermit<'a, T> {
        NextPermit::new(self.reserve(cx))
    }

    /// [`reserve`](Sender::reserve), with a permit that borrows nothing and counts as a sender.
    #[track_caller]
    pub fn reserve_owned<'a>(&'a self, cx: &'a Cx) -> ReserveOwned<'a, T> {
        ReserveOwned::new(self.used(), cx, Location::caller())
    }

    /// Waits for `count` slots at once: all or none. They come out one by one, each with a
    /// [`Permit`] of its own; what is not taken out is given back.
    ///
    /// Nobody overtakes: free slots are kept for it while it is first in line. Otherwise it is as
    /// [`reserve`](Sender::reserve). Dropping the future passes on what it had gathered. Who asks
    /// for more than [`max_capacity`](Sender::max_capacity) is refused by the first poll
    /// ([`TooMany`](super::ReserveManyError::TooMany)), as so many never come free.
    ///
    /// ```
    /// # use asx::{Cx, channel::{ReserveManyError, Sender}};
    /// async fn both(cx: &Cx, tx: &Sender<&str>) -> Result<(), ReserveManyError> {
    ///     for (permit, half) in tx.reserve_many(cx, 2).await?.zip(["one", "other"]) {
    ///         permit.send(half);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn reserve_many<'a>(&'a self, cx: &'a Cx, count: usize) -> ReserveMany<'a, T> {
        ReserveMany::new(self.used(), cx, count, Location::caller())
    }

    /// Reserves and sends in one. If it fails, the value is in the error.
    ///
    /// The future holds the value while it waits: dropping it drops the value. Where that matters
    /// [`reserve`](Sender::reserve) first.
    #[track_caller]
    pub fn send<'a>(&'a self, cx: &'a Cx, value: T) -> Sending<'a, T> {
        Sending::new(self.used(), cx, value, Location::caller())
    }

    /// Reserves a slot if one is free and nobody waits for one.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TryReserveError> {
        let _after = footprint::operation();
        let id = self.used().try_reserve(Shared::number)?;
        Ok(Permit::new(&self.shared, id, Location::caller()))
    }

    /// Reserves several slots if so many are free and nobody waits for one.
    ///
    /// ```
    /// use asx::channel::TryReserveManyError;
    /// let (tx, _rx) = asx::channel::bounded::<u8>(2);
    /// assert_eq!(tx.try_reserve_many(3).unwrap_err(), TryReserveManyError::TooMany);
    /// let both = tx.try_reserve_many(2).unwrap();
    /// assert_eq!(tx.try_reserve_many(1).unwrap_err(), TryReserveManyError::Full);
    /// # drop(both);
    /// ```
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_reserve_many(&self, count: usize) -> Result<Permits<'_, T>, TryReserveManyError> {
        let _after = footprint::operation();
        let ids = self.used().try_reserve_many(count)?;
        Ok(Permits::new(&self.shared, count, ids, Location::caller()))
    }

    /// [`try_reserve`](Sender::try_reserve), with a permit that borrows nothing.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_reserve_owned(&self) -> Result<OwnedPermit<T>, TryReserveError> {
        let _after = footprint::operation();
        let id = self.used().try_reserve(Shared::number)?;
        Ok(OwnedPermit::new(self.shared.clone(), id))
    }
}

/// Sending at once.
impl<T> Sender<T> {
    /// Sends if a slot is free and nobody waits for one.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let _after = footprint::operation();
        let sent = self.used().try_send(value);
        if sent.is_ok() {
            self.shared.usage.used(Side::Sends);
        }
        sent
    }

    /// Sends at once, in the place of the oldest message if the channel is full: that message, if
    /// one had to go. With room it is a send like any other, also while senders wait: it does not
    /// queue behind them. Permits are never evicted: it fails when they fill the channel.
    ///
    /// ```
    /// let (tx, mut rx) = asx::channel::bounded(1);
    /// assert_eq!(tx.send_evict_oldest("old"), Ok(None));
    /// assert_eq!(tx.send_evict_oldest("new"), Ok(Some("old")));
    /// assert_eq!(rx.try_recv(), Ok("new"));
    /// ```
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send_evict_oldest(&self, value: T) -> Result<Option<T>, TrySendError<T>> {
        let _after = footprint::operation();
        let sent = self.used().evict(value);
        if sent.is_ok() {
            self.shared.usage.used(Side::Sends);
        }
        sent
    }
}

/// Looking, and other handles.
impl<T> Sender<T> {
    /// How many messages are queued.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots are free now. While senders wait, these are for the first in line.
    ///
    /// ```
    /// let (tx, _rx) = asx::channel::bounded(4);
    /// let permit = tx.try_reserve()?;
    /// tx.try_send(1)?;
    /// assert_eq!((tx.capacity(), tx.max_capacity()), (2, 4));
    /// # permit.send(2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.shared.free_slots()
    }

    /// How many messages and permits there can be at once.
    pub fn max_capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Waits until the receiver is gone, or was [closed](super::Receiver::close): nothing can be
    /// reserved from then on.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, channel::Sender, select};
    /// /// Goes on for as long as anybody wants to know.
    /// async fn measure(cx: &Cx, tx: &Sender<u64>) -> Result<(), Cancelled> {
    ///     let mut beat = cx.interval(std::time::Duration::from_secs(1));
    ///     loop {
    ///         select! {
    ///             closed = tx.closed(cx) => return closed,
    ///             tick = beat.tick(cx) => drop(tx.try_send(tick?.as_nanos())),
    ///         }
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> UntilClosed<'a, T> {
        UntilClosed::new(&self.shared, cx, Location::caller())
    }

    /// Whether the receiver is gone, or takes no more senders.
    pub fn is_closed(&self) -> bool {
        self.shared.is_refusing()
    }

    /// How many senders there are; permits and weak senders are not counted.
    pub fn senders(&self) -> usize {
        self.shared.senders()
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Sender<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// A handle that can become a sender as long as there is one, and does not count as one.
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { shared: self.shared.clone() }
    }
}

impl<T> Sender<T> {
    /// A sender that was not counted; see [`forget`](Sender::forget).
    pub(crate) fn uncounted(shared: &Arc<Shared<T>>) -> Sender<T> {
        Sender { shared: shared.clone(), end: Endpoint::NOTHING }
    }

    /// Ends a sender that was not counted.
    pub(crate) fn forget(self) {
        let sender = std::mem::ManuallyDrop::new(self);
        // SAFETY: the sender is not used again, nor dropped: this ends its reference.
        drop(unsafe { std::ptr::read(&sender.shared) });
    }
}

impl<T> Clone for Sender<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        // Refused only after the channel was closed from outside, when counts no longer matter.
        self.shared.add_sender();
        Sender::new(self.shared.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        self.shared.drop_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// A handle that does not keep the channel connected; see [`Sender::downgrade`].
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    /// A sender, unless the last one is gone: none comes back after that.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let _after = footprint::operation();
        if !self.shared.add_sender() {
            return None;
        }
        Some(Sender::new(self.shared.clone()))
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}
