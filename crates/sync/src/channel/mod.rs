//! Channels between tasks.
//!
//! | made by | from | to | a full channel |
//! |---|---|---|---|
//! | [`bounded`] | many | one | makes senders wait, in order |
//! | [`unbounded`](unbounded()) | many | one | does not exist |
//! | [`mpmc`](mpmc()) | many | one of many | makes senders wait, in order |
//! | [`oneshot`](oneshot()) | one | one | holds the one reply |
//! | [`broadcast`](broadcast()) | many | each of many | drops the oldest; who missed it is told |
//! | [`watch`](watch()) | many | each of many | keeps the latest value only |
//!
//! A send has two phases. Reserving a slot can wait, fail or be cancelled, and nothing has happened
//! then. Filling the slot cannot wait, fail half-way or be cancelled. So a message is either still
//! the sender's or in the queue, whatever is dropped when:
//!
//! ```text
//! reserve(cx).await -> Permit -> send(value) -> queue -> recv(cx).await
//!        |                \-> abort or drop: the slot is free again
//!        \-> cancelled or dropped: the next in line moves up
//! ```
//!
//! Whatever waits takes a [`Cx`](asx_task::Cx) and looks for a cancel before anything else.
//! [`session`] has senders whose permits must not be dropped.

pub mod broadcast;
mod closed;
mod error;
mod items;
mod line;
mod looks;
#[cfg(all(test, loom))]
mod loom;
pub mod mpmc;
pub mod oneshot;
mod permit;
mod receiver;
mod recv;
mod reserve;
#[cfg(not(loom))]
mod scoped;
mod sender;
pub mod session;
mod shared;
#[cfg(feature = "stream")]
pub mod stream;
mod tag;
#[cfg(all(test, not(loom)))]
mod tests;
pub mod unbounded;
pub mod watch;

#[doc(inline)]
pub use broadcast::broadcast;
pub use closed::UntilClosed;
pub use error::{
    ChannelError, Disconnected, RecvError, ReserveManyError, SendError, TryRecvError,
    TryReserveError, TryReserveManyError, TrySendError, ZeroCapacity,
};
#[doc(inline)]
pub use mpmc::mpmc;
#[doc(inline)]
pub use oneshot::oneshot;
pub use permit::{OwnedPermit, Permit, Permits};
pub use receiver::Receiver;
pub use recv::{Next, Recv, RecvMany};
pub use reserve::{NextPermit, Reserve, ReserveMany, ReserveOwned, Sending};
#[cfg(not(loom))]
pub use scoped::ChannelExt;
pub use sender::{Sender, WeakSender};
#[doc(inline)]
pub use unbounded::unbounded;
#[doc(inline)]
pub use watch::watch;

pub(crate) use shared::Shared;
#[cfg(not(loom))]
pub(crate) use tag::tagged;

/// A channel with room for `capacity` messages, permits included.
///
/// ```
/// let (tx, mut rx) = asx::channel::bounded(2);
/// let permit = tx.try_reserve()?;
/// tx.try_send("first")?;
/// assert!(tx.try_send("no room").is_err(), "the permit counts");
/// permit.send("second");
/// assert_eq!((rx.try_recv()?, rx.try_recv()?), ("first", "second"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the capacity is 0. See [`try_bounded`].
#[track_caller]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    match try_bounded(capacity) {
        Ok(channel) => channel,
        Err(error) => panic!("{error}"),
    }
}

/// [`bounded`], for capacities that are not known to be above 0.
#[cfg_attr(feature = "lab", track_caller)]
pub fn try_bounded<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), ZeroCapacity> {
    let shared = Shared::new(capacity)?;
    Ok((Sender::new(shared.clone()), Receiver::new(shared)))
}
