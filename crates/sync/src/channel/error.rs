//! Why an operation on a channel came to nothing. What was to be sent is handed back.

use std::error::Error;
use std::fmt;

use asx_kernel::channel::ReserveManyRefused;
pub use asx_kernel::channel::{
    TryRecvError, TryReserveError, TryReserveManyError, TrySendError, ZeroCapacity,
};
use asx_kernel::status::{Coded, Status};

use asx_task::{AdmissionError, Cancelled, TaskError};

/// Nobody is left on the other side. Hands back what was to be sent, if anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Disconnected<T = ()>(pub T);

/// Why a send, or the reservation of its slot, did not happen. Hands the value back.
#[derive(Clone, PartialEq, Eq)]
pub enum SendError<T> {
    /// The receiver is gone.
    Disconnected(T),
    /// The task was asked to stop.
    Cancelled(T, Cancelled),
}

/// Why several slots were not reserved.
///
/// It has a case more than the errors of other waits, so it is not turned into a
/// [`WaitError`](crate::WaitError): what to do about it is the caller's to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveManyError {
    /// The receiver is gone.
    Disconnected,
    /// The task was asked to stop.
    Cancelled(Cancelled),
    /// The channel has fewer slots than were asked for.
    TooMany,
}

/// Why there is no message.
///
/// `?` turns it into a [`TaskError`] whose error can be made of a [`Disconnected`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// No message is left and no sender.
    Disconnected,
    /// The task was asked to stop; no message was taken.
    Cancelled(Cancelled),
}

impl<T> Disconnected<T> {
    /// What was to be sent.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> SendError<T> {
    /// What was to be sent.
    pub fn into_inner(self) -> T {
        match self {
            SendError::Disconnected(value) | SendError::Cancelled(value, _) => value,
        }
    }

    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            SendError::Disconnected(_) => None,
            SendError::Cancelled(_, cancelled) => Some(cancelled),
        }
    }

    /// The same about another value.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> SendError<U> {
        match self {
            SendError::Disconnected(value) => SendError::Disconnected(with(value)),
            SendError::Cancelled(value, why) => SendError::Cancelled(with(value), why),
        }
    }
}

impl ReserveManyError {
    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            ReserveManyError::Cancelled(cancelled) => Some(cancelled),
            ReserveManyError::Disconnected | ReserveManyError::TooMany => None,
        }
    }
}

impl RecvError {
    /// The cancel that was seen, if that is why.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            RecvError::Disconnected => None,
            RecvError::Cancelled(cancelled) => Some(cancelled),
        }
    }
}

impl<T> From<Disconnected<T>> for SendError<T> {
    fn from(Disconnected(value): Disconnected<T>) -> Self {
        SendError::Disconnected(value)
    }
}

impl From<ReserveManyRefused> for ReserveManyError {
    fn from(refused: ReserveManyRefused) -> Self {
        match refused {
            ReserveManyRefused::Disconnected => ReserveManyError::Disconnected,
            ReserveManyRefused::TooMany => ReserveManyError::TooMany,
        }
    }
}

impl From<Cancelled> for RecvError {
    fn from(cancelled: Cancelled) -> Self {
        RecvError::Cancelled(cancelled)
    }
}

/// A missing peer is an error of the task, a cancel is a cancel.
impl<T, E: From<Disconnected>> From<SendError<T>> for TaskError<E> {
    fn from(error: SendError<T>) -> Self {
        error
            .into_cancelled()
            .map_or_else(|| TaskError::Err(Disconnected(()).into()), TaskError::Cancelled)
    }
}

/// A missing peer is an error of the task, a cancel is a cancel.
impl<E: From<Disconnected>> From<RecvError> for TaskError<E> {
    fn from(error: RecvError) -> Self {
        error
            .into_cancelled()
            .map_or_else(|| TaskError::Err(Disconnected(()).into()), TaskError::Cancelled)
    }
}

impl<T> Coded for Disconnected<T> {
    fn status(&self) -> Status {
        Status::Disconnected
    }
}

impl<T> Coded for SendError<T> {
    fn status(&self) -> Status {
        match self {
            SendError::Disconnected(_) => Status::Disconnected,
            SendError::Cancelled(..) => Status::Cancelled,
        }
    }
}

impl Coded for ReserveManyError {
    fn status(&self) -> Status {
        match self {
            ReserveManyError::Disconnected => Status::Disconnected,
            ReserveManyError::Cancelled(_) => Status::Cancelled,
            ReserveManyError::TooMany => ReserveManyRefused::TooMany.status(),
        }
    }
}

impl Coded for RecvError {
    fn status(&self) -> Status {
        match self {
            RecvError::Disconnected => Status::Disconnected,
            RecvError::Cancelled(_) => Status::Cancelled,
        }
    }
}

// The values stay out of these forms, so that any value can be handed back in an error.

impl<T> fmt::Debug for Disconnected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disconnected(..)")
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Disconnected(_) => f.write_str("Disconnected(..)"),
            SendError::Cancelled(_, cancelled) => write!(f, "Cancelled(.., {cancelled:?})"),
        }
    }
}

impl<T> fmt::Display for Disconnected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Status::Disconnected.text())
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Disconnected(_) => f.write_str(Status::Disconnected.text()),
            SendError::Cancelled(_, cancelled) => cancelled.fmt(f),
        }
    }
}

impl fmt::Display for ReserveManyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReserveManyError::Disconnected => ReserveManyRefused::Disconnected.fmt(f),
            ReserveManyError::Cancelled(cancelled) => cancelled.fmt(f),
            ReserveManyError::TooMany => ReserveManyRefused::TooMany.fmt(f),
        }
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Disconnected => f.write_str(Status::Disconnected.text()),
            RecvError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl<T> Error for Disconnected<T> {}
impl<T> Error for SendError<T> {}
impl Error for ReserveManyError {}
impl Error for RecvError {}

/// A channel of a scope was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelError {
    /// The capacity is 0: nothing could ever be sent.
    ZeroCapacity,
    /// The scope did not take it in.
    Refused(AdmissionError),
}

impl ChannelError {
    pub(crate) fn new(status: Status) -> ChannelError {
        match status {
            Status::InvalidArgument => ChannelError::ZeroCapacity,
            status => ChannelError::Refused(AdmissionError::new(status)),
        }
    }
}

impl Coded for ChannelError {
    fn status(&self) -> Status {
        match self {
            ChannelError::ZeroCapacity => Status::InvalidArgument,
            ChannelError::Refused(refused) => refused.status(),
        }
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelError::ZeroCapacity => f.write_str("a channel needs a capacity of at least 1"),
            ChannelError::Refused(refused) => refused.fmt(f),
        }
    }
}

impl Error for ChannelError {}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_task::testing::cancelled;

    /// Neither `Debug` nor `Clone`.
    struct Opaque(u8);

    #[test]
    fn a_channel_that_is_refused_keeps_the_code() {
        for code in [Status::InvalidArgument, Status::RegionNotOpen, Status::ResourceExhausted] {
            assert_eq!(ChannelError::new(code).status(), code);
        }
        let limit = ChannelError::Refused(AdmissionError::LimitReached);
        assert_eq!(ChannelError::new(Status::ResourceExhausted), limit);
        assert_eq!(limit.to_string(), AdmissionError::LimitReached.to_string());
        assert_ne!(limit.to_string(), ChannelError::ZeroCapacity.to_string());
    }

    #[test]
    fn every_error_hands_its_value_back_and_names_its_code() {
        let gone = SendError::from(Disconnected(Opaque(1)));
        assert_eq!(gone.status(), Status::Disconnected);
        assert_eq!(
            format!("{gone:?}: {gone}"),
            format!("Disconnected(..): {}", gone.status().text())
        );
        assert_eq!(gone.map(|Opaque(n)| n + 1).into_inner(), 2);
        let stopped = SendError::Cancelled(Opaque(3), cancelled());
        assert_eq!(
            (stopped.status(), stopped.to_string()),
            (Status::Cancelled, cancelled().to_string())
        );
        assert_eq!(stopped.into_inner().0, 3);
        assert_eq!(Disconnected(4).into_inner(), 4);
        assert_eq!(RecvError::Disconnected.status(), Status::Disconnected);
        let many = ReserveManyError::TooMany;
        assert_eq!(many.status(), Status::InvalidArgument);
        assert_eq!(many.to_string(), TryReserveManyError::TooMany.to_string());
        let stopped = ReserveManyError::Cancelled(cancelled());
        assert_eq!(stopped.status(), Status::Cancelled);
        assert_eq!(stopped.into_cancelled(), Some(cancelled()));
        assert_eq!(RecvError::from(cancelled()).status(), Status::Cancelled);
    }

    #[test]
    fn a_missing_peer_ends_a_task_with_its_error_and_a_cancel_as_a_cancel() {
        fn ends(error: impl Into<TaskError<Disconnected>>) -> Option<Cancelled> {
            match error.into() {
                TaskError::Err(Disconnected(())) => None,
                TaskError::Cancelled(cancelled) => Some(cancelled),
                TaskError::Panicked(panic) => panic.resume(),
            }
        }
        assert_eq!(ends(SendError::Disconnected(1)), None);
        assert_eq!(ends(SendError::Cancelled(1, cancelled())), Some(cancelled()));
        assert_eq!(ends(RecvError::Disconnected), None);
        assert_eq!(ends(RecvError::Cancelled(cancelled())), Some(cancelled()));
    }

    #[test]
    fn errors_can_be_boxed_and_sent() {
        fn boxed(error: impl Into<Box<dyn Error + Send + Sync>>) -> String {
            error.into().to_string()
        }
        assert_eq!(boxed(SendError::Disconnected(())), boxed(RecvError::Disconnected));
    }
}
