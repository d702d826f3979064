//! Errors of sockets and streams: errors of the operating system, and cancellations.

use std::fmt;
use std::io::ErrorKind;

use asx_runtime::Cancelled;

/// The result of an operation on a socket or stream.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of an operation on a socket or stream.
///
/// `?` converts a [`std::io::Error`] or a [`Cancelled`] to this type, and this type to
/// `std::io::Error`. A cancellation survives the conversion to `std::io::Error` and back:
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
    /// An error of the operating system or of the peer.
    Io(std::io::Error),
    /// The task, or a scope or timeout around the operation, was cancelled.
    Cancelled(Cancelled),
}

impl Error {
    /// Returns true if the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled(_))
    }

    /// Returns the kind of the error, [`ErrorKind::Other`] for a cancellation.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io(error) => error.kind(),
            Error::Cancelled(_) => ErrorKind::Other,
        }
    }
}

impl From<std::io::Error> for Error {
    /// Restores a cancellation that was converted to a `std::io::Error`.
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Cancelled>() {
            Ok(cancelled) => Error::Cancelled(cancelled),
            Err(error) => Error::Io(error),
        }
    }
}

/// Restores an error of this type, a `std::io::Error` or a cancellation from the box. Any other
/// error becomes an [`Error::Io`] of the kind [`ErrorKind::Other`].
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

/// As the conversion from a boxed error.
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
    /// Converts a cancellation to an error of the kind [`ErrorKind::Other`] that contains the
    /// [`Cancelled`]. The kind is not `Interrupted`, because many loops retry after it.
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

/// The error of [`write_all`](crate::io::Write::write_all), with the number of bytes that were
/// written before it.
///
/// `?` in a function that returns [`Result`] drops the number.
#[derive(Debug)]
pub struct WriteAllError {
    /// The number of bytes that were written.
    pub written: usize,
    /// The error of the next write, or the cancellation.
    pub error: Error,
}

impl fmt::Display for WriteAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes were written, then: {}", self.written, self.error)
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
