//! One reply, from one task to another, that cannot be forgotten: dropping the [`Reply`] unsent
//! is itself an answer, so whoever waits never waits for nothing.
//!
//! It is a channel with one slot, whose only sender is the permit for it.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_kernel::channel::TryRecvError;
use asx_kernel::status::{Coded, Status};
use asx_task::footprint;
use asx_task::{CancelSafe, Cancelled, Cx, TaskError};

use super::permit::OwnedPermit;
use super::shared::Shared;
use super::{Disconnected, Receiver, Recv, RecvError, UntilClosed};

/// A place for one reply.
///
/// ```
/// # use asx::channel::{oneshot, oneshot::Reply};
/// struct Add(u32, u32, Reply<u32>);
///
/// let (reply, mut answer) = oneshot();
/// let Add(a, b, reply) = Add(1, 2, reply);
/// reply.send(a + b)?;
/// assert_eq!(answer.try_recv()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn oneshot<T>() -> (Reply<T>, Answer<T>) {
    let shared = Shared::with_permit();
    let permit = OwnedPermit::new(shared.clone(), 0);
    (Reply { permit }, Answer { receiver: Receiver::new(shared) })
}

/// The duty to reply.
#[must_use = "dropped, it answers `Forgotten`"]
pub struct Reply<T> {
    permit: OwnedPermit<T>,
}

impl<T> Reply<T> {
    /// Replies. It never waits; if nobody listens any more, the value comes back.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(self, value: T) -> Result<(), Disconnected<T>> {
        let _after = footprint::operation();
        self.permit.try_send(value)
    }

    /// Waits until nobody listens any more: what was to be found out need not be.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, channel::oneshot::Reply, select};
    /// async fn answer(cx: &Cx, reply: Reply<u64>) -> Result<(), Cancelled> {
    ///     select! {
    ///         closed = reply.closed(cx) => return closed,
    ///         looked_up = cx.sleep(std::time::Duration::from_secs(1)) => looked_up?,
    ///     }
    ///     drop(reply.send(7)); // who asked may have gone meanwhile
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> UntilClosed<'a, T> {
        UntilClosed::new(self.permit.shared(), cx, Location::caller())
    }

    /// Whether nobody listens any more.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        self.permit.is_closed()
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

/// Where the reply arrives. Dropping it tells the other side that nobody listens.
pub struct Answer<T> {
    receiver: Receiver<T>,
}

impl<T> Answer<T> {
    /// Waits for the reply. Dropping the future loses nothing: it can be asked for again.
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Awaiting<'a, T> {
        Awaiting(Recv::new(self.receiver.used(), cx, Location::caller()))
    }

    /// The reply, if it is there.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let _after = footprint::operation();
        self.receiver.try_recv()
    }

    /// Whether the [`Reply`] is gone, sent or not, or this listens no longer.
    pub fn is_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Listens no longer: the reply, if it came before.
    pub fn close(&mut self) -> Option<T> {
        let _after = footprint::operation();
        self.receiver.close_and_take().pop_front()
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

/// The future of [`Answer::recv`]; gives `Result<T, ReplyError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Awaiting<'a, T>(Recv<'a, T>);

impl<T> Future for Awaiting<'_, T> {
    type Output = Result<T, ReplyError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|error| match error {
            RecvError::Disconnected => ReplyError::Forgotten,
            RecvError::Cancelled(cancelled) => ReplyError::Cancelled(cancelled),
        })
    }
}

impl<T> CancelSafe for Awaiting<'_, T> {}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// The [`Reply`] was dropped unsent, or what it sent was taken before.
    Forgotten,
    /// The task was asked to stop; the reply may still come.
    Cancelled(Cancelled),
}

impl<E: From<Disconnected>> From<ReplyError> for TaskError<E> {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Forgotten => TaskError::Err(Disconnected(()).into()),
            ReplyError::Cancelled(cancelled) => TaskError::Cancelled(cancelled),
        }
    }
}

impl Coded for ReplyError {
    fn status(&self) -> Status {
        match self {
            ReplyError::Forgotten => Status::Disconnected,
            ReplyError::Cancelled(_) => Status::Cancelled,
        }
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::Forgotten => f.write_str("dropped without a reply"),
            ReplyError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for ReplyError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use asx_task::testing::{Polls, cancelled_cx, live_cx};

    #[test]
    fn a_reply_wakes_whoever_waits_for_it() {
        let (cx, (reply, mut answer)) = (live_cx(), oneshot());
        let mut waiting = Polls::new(answer.recv(&cx));
        assert!(waiting.is_pending());
        reply.send(1).unwrap();
        assert_eq!((waiting.wakes(), waiting.ready()), (1, Ok(1)));
        drop(waiting);
        assert_eq!(answer.try_recv(), Err(TryRecvError::Disconnected));
    }

    #[test]
    fn a_forgotten_reply_is_an_answer_at_once() {
        let (cx, (reply, mut answer)) = (live_cx(), oneshot::<u8>());
        let mut waiting = Polls::new(answer.recv(&cx));
        assert!(waiting.is_pending());
        drop(reply);
        assert_eq!((waiting.wakes(), waiting.ready()), (1, Err(ReplyError::Forgotten)));
        assert_eq!(ReplyError::Forgotten.to_string(), "dropped without a reply");
    }

    #[test]
    fn a_reply_nobody_listens_for_comes_back() {
        let (reply, answer) = oneshot();
        assert!(!reply.is_closed());
        drop(answer);
        assert!(reply.is_closed());
        assert_eq!(reply.send(1), Err(Disconnected(1)));
    }

    #[test]
    fn a_cancelled_wait_leaves_the_reply_for_later() {
        let (reply, mut answer) = oneshot();
        reply.send(1).unwrap();
        let cx = cancelled_cx();
        let cancelled = Polls::new(answer.recv(&cx)).ready().unwrap_err();
        assert_eq!(cancelled.status(), Status::Cancelled);
        assert_eq!(answer.close(), Some(1));
    }
}
