//! What can go wrong between a page and its runtime.

use std::fmt;

use asx_kernel::pump::{Denied, Trapped};
use asx_kernel::status::{Coded, Status};

/// Why a call of the page was not what it seemed, or a program did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebError {
    /// The call needs a capability that was not granted, or was taken away.
    Denied(Denied),
    /// A poll was killed and could not be unwound: the runtime is dead.
    Trapped(Trapped),
    /// A message came that the runtime never posted, or a timer rang that it never set.
    Forged {
        /// The token it came with.
        token: u32,
    },
    /// A host timer rang that was replaced before.
    StaleTimer {
        /// The token it came with.
        token: u32,
    },
    /// There is a runtime already.
    AlreadyStarted,
    /// The root region takes nothing in.
    Refused(Status),
}

impl Coded for WebError {
    fn status(&self) -> Status {
        match self {
            WebError::Denied(denied) => denied.status(),
            WebError::Trapped(trapped) => trapped.status(),
            WebError::Forged { .. } => Status::InvalidArgument,
            WebError::StaleTimer { .. } => Status::StaleHandle,
            WebError::AlreadyStarted => Status::InvalidTransition,
            WebError::Refused(status) => *status,
        }
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebError::Denied(denied) => denied.fmt(f),
            WebError::Trapped(trapped) => trapped.fmt(f),
            WebError::Forged { token } => {
                write!(f, "a message or timer with token {token} that the runtime never made")
            }
            WebError::StaleTimer { token } => {
                write!(f, "the host timer with token {token} rang after it was replaced")
            }
            WebError::AlreadyStarted => f.write_str("there is a runtime already: start it once"),
            WebError::Refused(status) => write!(f, "nothing can start: {}", status.name()),
        }
    }
}

impl std::error::Error for WebError {}
