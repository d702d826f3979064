//! Results of channel operations: effects for the host to perform, and typed refusals.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::WaiterId;
use super::waiters::Wakes;
use crate::status::Status;

/// The sides of a channel that are open. Derived, and only ever moves towards `FullyClosed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelState {
    /// Both sides live.
    Open,
    /// No sender is left; queued messages can still be received.
    SenderClosed,
    /// The receiver is closed; nothing can be queued.
    ReceiverClosed,
    /// Neither side is left.
    FullyClosed,
}

/// The result of a reserve.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// One slot is reserved for the caller.
    Granted,
    /// The caller waits at this place in line and will be woken.
    Waiting(WaiterId),
}

/// The result of a receive.
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
    /// The queue is empty, permanently.
    Disconnected,
    /// The receiver is registered and will be woken.
    Waiting,
}

/// The result of a send.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<T, W> {
    /// The message is committed.
    Queued {
        /// The receiver, if it waits.
        wake: Option<W>,
    },
    /// The receiver is closed: the slot is freed and the value returned. There is no waiter to
    /// wake, since closing the receiver woke every waiting sender.
    Refused {
        /// The value that was not queued.
        value: T,
    },
    /// No slot was reserved, which is an error of the host; nothing changed.
    NoPermit {
        /// The value that was not queued.
        value: T,
    },
}

/// The result of an evicting send.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<T, W> {
    /// The evicted message, if there was no room.
    pub old: Option<T>,
    /// The receiver, if it waits.
    pub wake: Option<W>,
}

/// The result of leaving a line.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left<W> {
    /// Whether it was in line or had a granted slot; false if the channel was closed meanwhile.
    pub was_there: bool,
    /// The waiter's own token, to be dropped; `None` if it was woken before or never waited.
    pub token: Option<W>,
    /// The waiting sender that gets its slot, or the receiver if no sender is left.
    pub wake: Option<W>,
}

/// The result of leaving the line with a request for several slots.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftMany<W> {
    /// Whether it was in line or had granted slots; false if the channel was closed meanwhile.
    pub was_there: bool,
    /// The waiter's own token, to be dropped; `None` if it was woken before or never waited.
    pub token: Option<W>,
    /// The waiting senders that get its slots, or the receiver if no sender is left.
    pub wakes: Vec<W>,
}

/// The waiters to wake when the receiver refuses further senders.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendersRefused<W> {
    /// Every waiting sender not woken before, in order: each is to be woken.
    pub wakes: Wakes<W>,
    /// The receiver, to be woken, if it waits and nothing more will arrive.
    pub receiver: Option<W>,
}

/// The contents of a channel that the closing receiver returns.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed<T, W> {
    /// Unread messages, oldest first, to be dropped.
    pub messages: VecDeque<T>,
    /// Every waiting sender not woken before, in order: each is to be woken.
    pub wakes: Wakes<W>,
    /// The receiver's own token, to be dropped.
    pub receiver: Option<W>,
}

/// The error for a capacity of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCapacity;

/// The error when the other side is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;

/// The reason why no slot could be reserved immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReserveError {
    /// The receiver is closed.
    Disconnected,
    /// No slot is free, or others wait for one.
    Full,
}

/// The reason why several slots can never be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveManyRefused {
    /// The receiver is closed.
    Disconnected,
    /// The channel has fewer slots than requested.
    TooMany,
}

/// The reason why several slots could not be reserved immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReserveManyError {
    /// The receiver is closed.
    Disconnected,
    /// Too few slots are free, or others wait for one.
    Full,
    /// The channel has fewer slots than requested.
    TooMany,
}

refusals! {
    /// The reason why a value could not be sent immediately, with the value.
    pub enum TrySendError {
        /// The receiver is closed.
        Disconnected => Status::Disconnected,
        /// No slot is free, or others wait for one.
        Full => Status::Full,
    }
}

/// The reason why nothing could be received immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No message is queued.
    Empty,
    /// No message is queued, permanently.
    Disconnected,
}

impl TryReserveError {
    /// Converts the error to that of a send of `value`.
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
