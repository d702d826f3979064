//! What a channel answers: effects for the host to perform, and typed refusals.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::WaiterId;
use super::waiters::Wakes;
use crate::status::Status;

/// Which sides are still there; derived, and only ever moves towards `FullyClosed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelState {
    /// Both sides live.
    Open,
    /// No sender is left; queued messages can still be received.
    SenderClosed,
    /// The receiver is gone; nothing can be queued.
    ReceiverClosed,
    /// Neither side is left.
    FullyClosed,
}

/// How a reserve went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// One slot is reserved for the caller.
    Granted,
    /// The caller holds this place and will be woken.
    Waiting(WaiterId),
}

/// How a receive went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recv<T, W> {
    /// The oldest message.
    Message {
        /// The message.
        value: T,
        /// The waiting sender that gets its slot.
        wake: Option<W>,
    },
    /// The queue is empty and stays so.
    Disconnected,
    /// The receiver is registered and will be woken.
    Waiting,
}

/// How resolving a permit by a send went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<T, W> {
    /// The message is committed.
    Queued {
        /// The receiver, if it waits.
        wake: Option<W>,
    },
    /// The receiver is gone: the slot is freed, the value comes back. Nobody is left to wake,
    /// since closing the receiver woke every waiting sender.
    Refused {
        /// The value that was not queued.
        value: T,
    },
    /// No slot was reserved: a fault of the host; nothing changed.
    NoPermit {
        /// The value that was not queued.
        value: T,
    },
}

/// What an evicting send did.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<T, W> {
    /// The message that made room, if there was none.
    pub old: Option<T>,
    /// The receiver, if it waits.
    pub wake: Option<W>,
}

/// What remains of a waiter that left.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left<W> {
    /// It was in line, or had a slot granted. Not if the channel was closed meanwhile.
    pub was_there: bool,
    /// The waiter's own token, to be dropped; `None` if it was woken already or never waited.
    pub token: Option<W>,
    /// The waiting sender that gets its slot, or the receiver if no sender is left.
    pub wake: Option<W>,
}

/// What remains of a waiter that wanted several slots and left.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMany<W> {
    /// It was in line, or had slots granted. Not if the channel was closed meanwhile.
    pub was_there: bool,
    /// The waiter's own token, to be dropped; `None` if it was woken already or never waited.
    pub token: Option<W>,
    /// The waiting senders that get its slots, or the receiver if no sender is left.
    pub wakes: Vec<W>,
}

/// Who is told that no sender gets a slot any more.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendersRefused<W> {
    /// Every waiting sender not woken before, in order: each is to be woken.
    pub wakes: Wakes<W>,
    /// The receiver, to be woken, if it waits and nothing will come.
    pub receiver: Option<W>,
}

/// What a closing receiver leaves behind.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed<T, W> {
    /// Messages nobody will receive, oldest first, to be dropped.
    pub messages: VecDeque<T>,
    /// Every waiting sender not woken before, in order: each is to be woken.
    pub wakes: Wakes<W>,
    /// The receiver's own token, to be dropped.
    pub receiver: Option<W>,
}

/// A channel needs room for at least one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCapacity;

/// The other side is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;

/// Why no slot could be reserved at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReserveError {
    /// The receiver is gone.
    Disconnected,
    /// No slot is free, or others are waiting for one.
    Full,
}

/// Why several slots will never be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveManyRefused {
    /// The receiver is gone.
    Disconnected,
    /// The channel has fewer slots than were asked for.
    TooMany,
}

/// Why several slots could not be reserved at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReserveManyError {
    /// The receiver is gone.
    Disconnected,
    /// Too few slots are free, or others are waiting for one.
    Full,
    /// The channel has fewer slots than were asked for: so many are never free.
    TooMany,
}

refusals! {
    /// Why a value could not be sent at once; hands it back.
    pub enum TrySendError {
        /// The receiver is gone.
        Disconnected => Status::Disconnected,
        /// No slot is free, or others are waiting for one.
        Full => Status::Full,
    }
}

/// Why nothing could be received at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No message now.
    Empty,
    /// No message now or ever.
    Disconnected,
}

impl TryReserveError {
    /// The same about the value that was to be sent.
    pub(super) fn with<T>(self, value: T) -> TrySendError<T> {
        match self {
            TryReserveError::Disconnected => TrySendError::Disconnected(value),
            TryReserveError::Full => TrySendError::Full(value),
        }
    }
}

errors! {
    ZeroCapacity { _ => Status::InvalidArgument, "a channel's capacity must be at least 1"; }
    Disconnected { _ => Status::Disconnected; }
    TryReserveError {
        TryReserveError::Disconnected => Status::Disconnected;
        TryReserveError::Full => Status::Full;
    }
    ReserveManyRefused {
        ReserveManyRefused::Disconnected => Status::Disconnected;
        ReserveManyRefused::TooMany => Status::InvalidArgument, "more slots than the channel has";
    }
    TryReserveManyError {
        TryReserveManyError::Disconnected => Status::Disconnected;
        TryReserveManyError::Full => Status::Full;
        TryReserveManyError::TooMany => Status::InvalidArgument, "more slots than the channel has";
    }
    TryRecvError {
        TryRecvError::Empty => Status::Empty;
        TryRecvError::Disconnected => Status::Disconnected;
    }
}
