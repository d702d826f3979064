//! Why a broadcast receiver has no message.

use std::fmt;

use asx_kernel::status::{Coded, Status};

use crate::Cancelled;

/// Why there is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// The receiver was too slow and missed this many messages. The next call gives the oldest
    /// that is left.
    Lagged(u64),
    /// No message is left and no sender.
    Disconnected,
    /// The task was asked to stop; no message was taken.
    Cancelled(Cancelled),
}

/// Why there is no message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No message now.
    Empty,
    /// The receiver was too slow and missed this many messages. The next call gives the oldest
    /// that is left.
    Lagged(u64),
    /// No message now or ever.
    Disconnected,
}

impl RecvError {
    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            RecvError::Cancelled(cancelled) => Some(cancelled),
            RecvError::Lagged(_) | RecvError::Disconnected => None,
        }
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Lagged(missed) => TryRecvError::Lagged(*missed).fmt(f),
            RecvError::Disconnected => TryRecvError::Disconnected.fmt(f),
            RecvError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str(Status::Empty.text()),
            TryRecvError::Lagged(missed) => write!(f, "too slow: {missed} messages missed"),
            TryRecvError::Disconnected => f.write_str(Status::Disconnected.text()),
        }
    }
}

impl std::error::Error for RecvError {}
impl std::error::Error for TryRecvError {}

/// Messages missed are a limit that was exceeded.
impl Coded for TryRecvError {
    fn status(&self) -> Status {
        match self {
            TryRecvError::Empty => Status::Empty,
            TryRecvError::Lagged(_) => Status::ResourceExhausted,
            TryRecvError::Disconnected => Status::Disconnected,
        }
    }
}

/// Messages missed are a limit that was exceeded.
impl Coded for RecvError {
    fn status(&self) -> Status {
        match self {
            RecvError::Lagged(_) => Status::ResourceExhausted,
            RecvError::Disconnected => Status::Disconnected,
            RecvError::Cancelled(_) => Status::Cancelled,
        }
    }
}
