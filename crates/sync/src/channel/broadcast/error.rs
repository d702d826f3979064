//! Why a broadcast subscriber has no message.

use std::fmt;

use asx_kernel::status::{Coded, Status};

use asx_task::Cancelled;

/// Why there is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// The subscriber was too slow and missed this many messages. The next call gives the oldest
    /// that is left.
    Lagged(u64),
    /// No message is left and no publisher.
    Disconnected,
    /// The task was asked to stop; no message was taken.
    Cancelled(Cancelled),
}

/// Why there is no message now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryListenError {
    /// No message now.
    Empty,
    /// The subscriber was too slow and missed this many messages. The next call gives the oldest
    /// that is left.
    Lagged(u64),
    /// No message now or ever.
    Disconnected,
}

impl ListenError {
    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            ListenError::Cancelled(cancelled) => Some(cancelled),
            ListenError::Lagged(_) | ListenError::Disconnected => None,
        }
    }
}

impl From<Cancelled> for ListenError {
    fn from(cancelled: Cancelled) -> Self {
        ListenError::Cancelled(cancelled)
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Lagged(missed) => TryListenError::Lagged(*missed).fmt(f),
            ListenError::Disconnected => TryListenError::Disconnected.fmt(f),
            ListenError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl fmt::Display for TryListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryListenError::Empty => f.write_str(Status::Empty.text()),
            TryListenError::Lagged(missed) => write!(f, "too slow: {missed} messages missed"),
            TryListenError::Disconnected => f.write_str(Status::Disconnected.text()),
        }
    }
}

impl std::error::Error for ListenError {}
impl std::error::Error for TryListenError {}

/// Messages missed are a limit that was exceeded.
impl Coded for TryListenError {
    fn status(&self) -> Status {
        match self {
            TryListenError::Empty => Status::Empty,
            TryListenError::Lagged(_) => Status::ResourceExhausted,
            TryListenError::Disconnected => Status::Disconnected,
        }
    }
}

/// Messages missed are a limit that was exceeded.
impl Coded for ListenError {
    fn status(&self) -> Status {
        match self {
            ListenError::Lagged(_) => Status::ResourceExhausted,
            ListenError::Disconnected => Status::Disconnected,
            ListenError::Cancelled(_) => Status::Cancelled,
        }
    }
}
