//! The outcome of a task.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::outcome::Severity;

use crate::error::TimerError;

/// The error of an operation that observed a cancel. It converts into your error type with `?`.
///
/// If the cancel is due to a wait for a time that was refused, the
/// [`source`](std::error::Error::source) is the [`TimerError`] that [`Cx::try_sleep`] returns for
/// it.
///
/// [`Cx::try_sleep`]: crate::Cx::try_sleep
///
/// ```
/// use asx::Cancelled;
/// #[derive(Debug)]
/// enum AppError { Cancelled(Cancelled), Other }
/// impl From<Cancelled> for AppError {
///     fn from(cancelled: Cancelled) -> Self { AppError::Cancelled(cancelled) }
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Cancelled {
    reason: Arc<Reason>,
}

impl Cancelled {
    /// The reason with its chain of causes.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The kind of the reason.
    pub fn kind(&self) -> Kind {
        self.reason.kind
    }
}

impl From<Reason> for Cancelled {
    fn from(reason: Reason) -> Self {
        Cancelled { reason: Arc::new(reason) }
    }
}

impl From<Arc<Reason>> for Cancelled {
    fn from(reason: Arc<Reason>) -> Self {
        Cancelled { reason }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancelled({})", self.reason)
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancelled: {}", self.reason)
    }
}

impl std::error::Error for Cancelled {
    /// The [`TimerError`] of the refused wait, if the cancel is due to one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.refused.map(|status| TimerError::of_refused_wait(status) as _)
    }
}

/// A panic that was caught at a task's boundary.
///
/// It is `Sync`, although its payload need not be: only the message is accessible through a shared
/// reference.
///
/// The payload is a user value. If its destructor panics when the `Panic` is dropped, that panic is
/// contained and counted.
pub struct Panic {
    /// In a box, because each result of a task has room for a panic.
    caught: Box<Caught>,
}

struct Caught {
    message: Cow<'static, str>,
    /// `None` once it is taken. The mutex is never locked; it makes the payload `Sync`.
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Panic {
    /// Creates a panic from the payload that [`catch_unwind`](std::panic::catch_unwind) returned.
    pub fn new(payload: Box<dyn Any + Send>) -> Panic {
        let message = match payload.downcast_ref::<&'static str>() {
            Some(text) => Cow::Borrowed(*text),
            None => Cow::Owned(message_of(&*payload).to_owned()),
        };
        let payload = Mutex::new(Some(payload));
        Panic { caught: Box::new(Caught { message, payload }) }
    }

    fn take(&mut self) -> Option<Box<dyn Any + Send>> {
        let payload = self.caught.payload.get_mut();
        payload.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The message, if the payload is text; a fixed text otherwise.
    pub fn message(&self) -> &str {
        &self.caught.message
    }

    /// Returns the payload, as it was passed to `panic!`.
    pub fn into_payload(mut self) -> Box<dyn Any + Send> {
        self.take().unwrap_or_else(|| Box::new(NO_MESSAGE))
    }

    /// Resumes the panic on this thread.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.into_payload())
    }
}

#[cfg(not(any(loom, target_family = "wasm")))]
impl Drop for Panic {
    fn drop(&mut self) {
        if let Some(payload) = self.take() {
            crate::raw::contain_panic::drop_payload(payload);
        }
    }
}

const NO_MESSAGE: &str = "a panic without a message";

/// The message of a panic, if its payload is text; a fixed text otherwise.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or(NO_MESSAGE)
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panic({:?})", self.message())
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.message())
    }
}

/// The reason why a task has no value.
#[derive(Debug)]
pub enum TaskError<E> {
    /// The body returned an error.
    Err(E),
    /// The task was cancelled: it observed the cancel, was ended by force, or was not admitted.
    Cancelled(Cancelled),
    /// It panicked.
    Panicked(Panic),
}

/// The outcome of a task: its value, or the reason why there is none.
///
/// An alias of `Result`. `?` works in functions whose error converts from any error
/// (`anyhow::Error`, `Box<dyn Error + Send + Sync>`) or from a [`TaskError`]. In functions with the
/// error type of the task, use [`Task::value`](crate::Task::value).
pub type Outcome<T, E> = Result<T, TaskError<E>>;

impl<E> TaskError<E> {
    /// The severity of the outcome.
    pub fn severity(&self) -> Severity {
        match self {
            TaskError::Err(_) => Severity::Err,
            TaskError::Cancelled(_) => Severity::Cancelled,
            TaskError::Panicked(_) => Severity::Panicked,
        }
    }
}

impl<E> From<Cancelled> for TaskError<E> {
    fn from(cancelled: Cancelled) -> Self {
        TaskError::Cancelled(cancelled)
    }
}

impl<E: fmt::Display> fmt::Display for TaskError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Err(error) => error.fmt(f),
            TaskError::Cancelled(cancelled) => cancelled.fmt(f),
            TaskError::Panicked(panic) => panic.fmt(f),
        }
    }
}

/// Also if `E` does not implement `Error`, as `anyhow::Error` and `Box<dyn Error>`.
impl<E: fmt::Debug + fmt::Display> std::error::Error for TaskError<E> {}
