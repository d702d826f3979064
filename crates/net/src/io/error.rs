//! What can go wrong: the system says so, or the task is asked to stop.

use std::fmt;
use std::io::ErrorKind;

use asx_runtime::Cancelled;

/// The result of an operation on a socket or stream.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a socket or stream has failed.
///
/// `?` makes one of a [`std::io::Error`] and of a [`Cancelled`], and makes a `std::io::Error` of it
/// where that is asked for. A cancel survives the way through `std::io::Error`:
///
/// ```
/// use asx::io;
/// # use asx::Cancelled;
/// # fn there_and_back(cancelled: Cancelled) {
/// let error = std::io::Error::from(io::Error::Cancelled(cancelled));
/// assert!(error.get_ref().is_some_and(|inner| inner.is::<Cancelled>()));
/// assert!(io::Error::from(error).is_cancelled());
/// # }
/// ```
#[derive(Debug)]
pub enum Error {
    /// The system, or the peer, has it so.
    Io(std::io::Error),
    /// The task, or the part of it around, was asked to stop.
    Cancelled(Cancelled),
}

impl Error {
    /// Whether the task, or the part of it around, was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled(_))
    }

    /// The kind that the system gave; [`ErrorKind::Other`] for a cancel.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io(error) => error.kind(),
            Error::Cancelled(_) => ErrorKind::Other,
        }
    }
}

impl From<std::io::Error> for Error {
    /// A cancel that went through a `std::io::Error` is one again.
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Cancelled>() {
            Ok(cancelled) => Error::Cancelled(cancelled),
            Err(error) => Error::Io(error),
        }
    }
}

/// A `std::io::Error`, a cancel, or one of these in the box is that again; anything else is an
/// error of the kind [`ErrorKind::Other`].
impl From<Box<dyn std::error::Error + Send + Sync>> for Error {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        let error = match error.downcast::<Error>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let error = match error.downcast::<Cancelled>() {
            Ok(cancelled) => return Error::Cancelled(*cancelled),
            Err(error) => error,
        };
        match error.downcast::<std::io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => Error::Io(std::io::Error::other(error)),
        }
    }
}

/// As from a box of the error.
#[cfg(feature = "anyhow")]
impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Error>() {
            Ok(error) => return error,
            Err(error) => error,
        };
        let error = match error.downcast::<Cancelled>() {
            Ok(cancelled) => return Error::Cancelled(cancelled),
            Err(error) => error,
        };
        match error.downcast::<std::io::Error>() {
            Ok(error) => error.into(),
            Err(error) => Error::Io(std::io::Error::other(error)),
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error::Io(kind.into())
    }
}

impl From<Cancelled> for Error {
    fn from(cancelled: Cancelled) -> Self {
        Error::Cancelled(cancelled)
    }
}

impl From<Error> for std::io::Error {
    /// A cancel becomes [`ErrorKind::Other`] around the [`Cancelled`]. Not `Interrupted`, at which
    /// many loops try again.
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            Error::Cancelled(cancelled) => std::io::Error::other(cancelled),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            Error::Cancelled(cancelled) => Some(cancelled),
        }
    }
}

/// A [`write_all`](crate::io::Write::write_all) that has not written all: how much it has.
///
/// `?` in a function that answers [`Result`] forgets the count.
#[derive(Debug)]
pub struct WriteAllError {
    /// How many bytes went out.
    pub written: usize,
    /// Why not more.
    pub error: Error,
}

impl fmt::Display for WriteAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes went out, then: {}", self.written, self.error)
    }
}

impl std::error::Error for WriteAllError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<WriteAllError> for Error {
    fn from(error: WriteAllError) -> Self {
        error.error
    }
}

impl From<WriteAllError> for std::io::Error {
    fn from(error: WriteAllError) -> Self {
        error.error.into()
    }
}
