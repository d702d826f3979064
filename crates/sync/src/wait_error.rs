//! One error for all waits, and how it becomes an error of the user's.

use std::fmt;

use asx_kernel::status::{Coded, Status};
use asx_task::{Cancelled, TaskError};

use crate::channel::oneshot::ReplyError;
use crate::channel::{Disconnected, RecvError, SendError};
use crate::sync::AcquireError;

/// Why a wait came to nothing: what the errors of channels, replies and semaphores have in common.
///
/// Each of them says more, to whom that matters: a failed send has the value, for example. Where it
/// does not matter they all become this one, with [`From`], and this one becomes whatever can be
/// made of its two cases ([`into_error`](WaitError::into_error)).
/// [`wait_errors_into!`](crate::wait_errors_into) has `?` do both.
///
/// The error of a broadcast's subscriber has a third case, messages that were missed: it says
/// nothing of whether the caller can go on, so it is not turned into this one. The error of
/// [`recv(cx).skip_lagged()`](crate::channel::broadcast::Listen::skip_lagged) is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The task was asked to stop.
    Cancelled(Cancelled),
    /// Nobody is left on the other side, or what was waited for was closed.
    Disconnected,
}

impl WaitError {
    /// The error of a program that has one for each case.
    ///
    /// ```
    /// use asx::channel::{Disconnected, Receiver};
    /// use asx::{Cancelled, Cx, WaitError};
    ///
    /// /// For callers with any such error.
    /// async fn pair<T, E>(cx: &Cx, rx: &mut Receiver<T>) -> Result<(T, T), E>
    /// where
    ///     E: From<Cancelled> + From<Disconnected>,
    /// {
    ///     let both = async { Ok::<_, WaitError>((rx.recv(cx).await?, rx.recv(cx).await?)) };
    ///     both.await.map_err(WaitError::into_error)
    /// }
    /// ```
    pub fn into_error<E: From<Cancelled> + From<Disconnected>>(self) -> E {
        match self {
            WaitError::Cancelled(cancelled) => cancelled.into(),
            WaitError::Disconnected => Disconnected(()).into(),
        }
    }

    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            WaitError::Cancelled(cancelled) => Some(cancelled),
            WaitError::Disconnected => None,
        }
    }
}

/// Has `?` turn the errors of all waits into an error of your own, which is made of a
/// [`Cancelled`](asx_task::Cancelled) and of a [`Disconnected`](crate::channel::Disconnected).
///
/// ```
/// use asx::channel::{Disconnected, oneshot};
/// use asx::prelude::*;
/// use asx::sync::Semaphore;
///
/// #[derive(Debug, PartialEq)]
/// enum AppError {
///     Cancelled,
///     Alone,
/// }
///
/// impl From<Cancelled> for AppError {
///     fn from(_: Cancelled) -> Self {
///         AppError::Cancelled
///     }
/// }
///
/// impl From<Disconnected> for AppError {
///     fn from(_: Disconnected) -> Self {
///         AppError::Alone
///     }
/// }
///
/// asx::wait_errors_into!(AppError);
///
/// async fn ask(
///     cx: &Cx,
///     questions: &channel::Sender<(u32, oneshot::Reply<u32>)>,
///     turns: &Semaphore,
/// ) -> Result<u32, AppError> {
///     let _turn = turns.acquire(cx).await?;
///     let (reply, mut answer) = oneshot();
///     questions.send(cx, (7, reply)).await?;
///     Ok(answer.recv(cx).await?)
/// }
///
/// #[asx::main]
/// async fn main(cx: &Cx) {
///     let (questions, nobody) = channel::bounded(1);
///     drop(nobody);
///     assert_eq!(ask(cx, &questions, &Semaphore::new(1)).await, Err(AppError::Alone));
/// }
/// ```
///
/// It implements `From` for the errors of [`recv`](crate::channel::Receiver::recv),
/// [`send`](crate::channel::Sender::send) and `reserve`, of a reply, of a semaphore, and for
/// [`WaitError`]. The type may have no such implementation of its own.
#[macro_export]
macro_rules! wait_errors_into {
    ($error:ty) => {
        $crate::wait_errors_into!(@from $error, [], $crate::WaitError);
        $crate::wait_errors_into!(@from $error, [], $crate::channel::RecvError);
        $crate::wait_errors_into!(@from $error, [T], $crate::channel::SendError<T>);
        $crate::wait_errors_into!(@from $error, [], $crate::channel::oneshot::ReplyError);
        $crate::wait_errors_into!(@from $error, [], $crate::sync::AcquireError);
    };
    (@from $error:ty, [$($T:ident)?], $from:ty) => {
        impl$(<$T>)? ::std::convert::From<$from> for $error {
            fn from(error: $from) -> Self {
                $crate::WaitError::from(error).into_error()
            }
        }
    };
}

impl From<Cancelled> for WaitError {
    fn from(cancelled: Cancelled) -> Self {
        WaitError::Cancelled(cancelled)
    }
}

impl<T> From<Disconnected<T>> for WaitError {
    fn from(_: Disconnected<T>) -> Self {
        WaitError::Disconnected
    }
}

impl From<RecvError> for WaitError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => WaitError::Disconnected,
            RecvError::Cancelled(cancelled) => WaitError::Cancelled(cancelled),
        }
    }
}

impl<T> From<SendError<T>> for WaitError {
    fn from(error: SendError<T>) -> Self {
        error.into_cancelled().map_or(WaitError::Disconnected, WaitError::Cancelled)
    }
}

impl From<ReplyError> for WaitError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Forgotten => WaitError::Disconnected,
            ReplyError::Cancelled(cancelled) => WaitError::Cancelled(cancelled),
        }
    }
}

impl From<AcquireError> for WaitError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Closed => WaitError::Disconnected,
            AcquireError::Cancelled(cancelled) => WaitError::Cancelled(cancelled),
        }
    }
}

/// A missing peer is an error of the task, a cancel is a cancel.
impl<E: From<Disconnected>> From<WaitError> for TaskError<E> {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Disconnected => TaskError::Err(Disconnected(()).into()),
            WaitError::Cancelled(cancelled) => TaskError::Cancelled(cancelled),
        }
    }
}

impl Coded for WaitError {
    fn status(&self) -> Status {
        match self {
            WaitError::Disconnected => Status::Disconnected,
            WaitError::Cancelled(_) => Status::Cancelled,
        }
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitError::Disconnected => f.write_str(Status::Disconnected.text()),
            WaitError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for WaitError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use asx_task::testing::cancelled;

    #[derive(Debug, PartialEq)]
    enum Own {
        Cancelled(Cancelled),
        Alone,
    }

    impl From<Cancelled> for Own {
        fn from(cancelled: Cancelled) -> Self {
            Own::Cancelled(cancelled)
        }
    }

    impl From<Disconnected> for Own {
        fn from(_: Disconnected) -> Self {
            Own::Alone
        }
    }

    crate::wait_errors_into!(Own);

    #[test]
    fn every_error_of_a_wait_becomes_the_case_it_is() {
        let alone: [Own; 5] = [
            RecvError::Disconnected.into(),
            SendError::Disconnected("value").into(),
            ReplyError::Forgotten.into(),
            AcquireError::Closed.into(),
            WaitError::Disconnected.into(),
        ];
        assert!(alone.iter().all(|error| *error == Own::Alone), "{alone:?}");
        let stopped: [Own; 5] = [
            RecvError::Cancelled(cancelled()).into(),
            SendError::Cancelled("value", cancelled()).into(),
            ReplyError::Cancelled(cancelled()).into(),
            AcquireError::Cancelled(cancelled()).into(),
            WaitError::Cancelled(cancelled()).into(),
        ];
        assert!(stopped.iter().all(|error| *error == Own::Cancelled(cancelled())), "{stopped:?}");
    }

    #[test]
    fn it_keeps_the_code_and_the_text() {
        let gone = WaitError::from(RecvError::Disconnected);
        assert_eq!(
            (gone.status(), gone.to_string()),
            (Status::Disconnected, gone.status().text().into())
        );
        let stopped = WaitError::from(cancelled());
        assert_eq!(
            (stopped.status(), stopped.to_string()),
            (Status::Cancelled, cancelled().to_string())
        );
        assert_eq!(stopped.into_cancelled(), Some(cancelled()));
    }
}
