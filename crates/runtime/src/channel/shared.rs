//! The channel both sides share: the law behind one short lock.
//!
//! Every method has the same three steps: ask the law under the lock, release the lock, do what
//! the law answered. Waking, cloning or dropping a waker and dropping a message are the users'
//! code, and are always done after the lock is released.

use std::task::{Poll, Waker};

use asx_kernel::channel::{
    Channel, Evicted, Recv, Reserve, Sent, TryRecvError, TryReserveError, TrySendError, WaiterId,
    ZeroCapacity,
};
use asx_kernel::journal::EventKind;
use asx_kernel::session::Resolution;

use super::Disconnected;
use super::tag::Tag;
use crate::prim::{Arc, Mutex, lock};

pub(crate) struct Shared<T> {
    channel: Mutex<Channel<T, Waker>>,
    /// Who the channel is, if a runtime knows it.
    pub(super) tag: Option<Box<Tag>>,
}

/// A slot was reserved: who is to be woken, once the slot has its permit.
pub(super) type Granted = Result<Option<Waker>, Disconnected>;

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        let channel = Mutex::new(Channel::new(capacity)?);
        Ok(Arc::new(Shared { channel, tag: None }))
    }

    /// A channel that a runtime knows.
    #[cfg(not(loom))]
    pub(super) fn tagged(law: Channel<T, Waker>, tag: Tag) -> Shared<T> {
        Shared { channel: Mutex::new(law), tag: Some(Box::new(tag)) }
    }

    /// Asks the law. What comes out is dealt with by the caller, after the lock.
    #[inline]
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        ask(&mut lock(&self.channel))
    }

    /// Asks for a slot, in line at `place` if it has one already.
    ///
    /// A waker is cloned only to be kept: the first look goes without.
    #[inline]
    pub(super) fn poll_reserve(
        &self,
        place: &mut Option<WaiterId>,
        waker: &Waker,
    ) -> Poll<Granted> {
        if !self.is_usable() {
            self.leave(place);
            return Poll::Ready(Err(Disconnected(())));
        }
        match self.with(|channel| reserve_now(channel, place)) {
            Poll::Ready(granted) => Poll::Ready(granted),
            Poll::Pending => self.wait_in_line(place, waker.clone()),
        }
    }

    #[cold]
    fn wait_in_line(&self, place: &mut Option<WaiterId>, token: Waker) -> Poll<Granted> {
        let new = place.is_none();
        let (asked, _spare) = self.with(|channel| channel.reserve_with(place, token));
        match asked {
            Ok(Reserve::Granted { wake }) => Poll::Ready(Ok(wake)),
            Ok(Reserve::Waiting(_)) => {
                if new {
                    self.note(EventKind::SendWaiting {});
                }
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(Disconnected(()))),
        }
    }

    /// Reserves a slot if one is free and nobody waits.
    #[inline]
    pub(super) fn try_reserve(&self) -> Result<(), TryReserveError> {
        if !self.is_usable() {
            return Err(TryReserveError::Disconnected);
        }
        self.with(Channel::try_reserve)
    }

    /// Gives up a place in line, if there is one.
    #[inline]
    pub(super) fn leave(&self, place: &mut Option<WaiterId>) {
        if let Some(waiter) = place.take() {
            self.leave_line(waiter);
        }
    }

    #[cold]
    fn leave_line(&self, waiter: WaiterId) {
        let (was, left) = self.with(|channel| {
            let line = channel.waiters();
            let left = channel.leave(waiter);
            (channel.waiters() < line, left)
        });
        // A closed channel has no line any more to leave.
        if was {
            self.note(EventKind::SendLeft {});
        }
        self.account();
        wake(left.wake);
    }

    /// Fills the slot of a permit, or hands the value back if the receiver is gone.
    #[inline]
    pub(super) fn fill(&self, permit: u64, value: T) -> Result<(), Disconnected<T>> {
        let Some(claim) = self.claim(permit) else { return Err(Disconnected(value)) };
        let sent = if self.is_usable() {
            match self.with(|channel| channel.send(value)) {
                Sent::Queued { wake: receiver } => {
                    claim.note(|permit| EventKind::Sent { permit: Some(permit) });
                    wake(receiver);
                    Ok(())
                }
                Sent::Refused { value } | Sent::NoPermit { value } => {
                    claim.note(|permit| EventKind::SendRefused { permit });
                    Err(Disconnected(value))
                }
            }
        } else {
            let next = self.with(Channel::abort);
            claim.note(|permit| EventKind::SendAborted { permit });
            wake(next);
            Err(Disconnected(value))
        };
        claim.resolve(Resolution::Commit);
        self.account();
        sent
    }

    /// Gives the slot of a permit back.
    pub(super) fn free(&self, permit: u64, resolution: Resolution) {
        let Some(claim) = self.claim(permit) else { return };
        let next = self.with(Channel::abort);
        claim.note(|permit| EventKind::SendAborted { permit });
        wake(next);
        claim.resolve(resolution);
        self.account();
    }

    /// Takes from the channel with `take`, or registers the receiver until there is something.
    /// `again` is whether it may be registered already.
    #[inline]
    pub(super) fn poll_recv<R>(
        &self,
        again: bool,
        waker: &Waker,
        mut take: impl FnMut(&mut Channel<T, Waker>) -> Taken<R>,
    ) -> Poll<Result<R, Disconnected>> {
        if !self.is_usable() {
            return Poll::Ready(Err(Disconnected(())));
        }
        match self.with(&mut take) {
            Err(TryRecvError::Empty) if again && self.will_wake(waker) => Poll::Pending,
            Err(TryRecvError::Empty) => self.wait_for_message(waker.clone(), take),
            taken => self.received(taken),
        }
    }

    /// Whether the receiver sleeps, by this waker: then nothing has come since it was registered.
    #[cold]
    fn will_wake(&self, waker: &Waker) -> bool {
        self.with(|channel| channel.receiver_waiting().is_some_and(|known| known.will_wake(waker)))
    }

    /// Registers the receiver, unless there is something after all.
    #[cold]
    fn wait_for_message<R>(
        &self,
        token: Waker,
        mut take: impl FnMut(&mut Channel<T, Waker>) -> Taken<R>,
    ) -> Poll<Result<R, Disconnected>> {
        let (taken, _spare) = self.with(|channel| match take(channel) {
            Err(TryRecvError::Empty) => {
                let (answer, spare) = channel.recv_with(token);
                debug_assert!(matches!(answer, Recv::Waiting), "it is empty under this very lock");
                (Err(TryRecvError::Empty), spare)
            }
            taken => (taken, Some(token)),
        });
        self.received(taken)
    }

    /// Forgets that the receiver waits.
    pub(super) fn cancel_recv(&self) {
        drop(self.with(Channel::cancel_recv));
    }

    /// The receiver is gone: what it did not take comes back, every waiting sender is woken.
    pub(crate) fn close_receiver(&self) -> std::collections::VecDeque<T> {
        let (first, closed) =
            self.with(|channel| (!channel.is_receiver_closed(), channel.close_receiver()));
        if first {
            self.note(EventKind::ReceiverGone { dropped: closed.messages.len() as u64 });
        }
        self.account();
        closed.wakes.into_iter().for_each(Waker::wake);
        closed.messages
    }

    /// Sends if there is room and nobody waits.
    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if !self.is_usable() {
            return Err(TrySendError::Disconnected(value));
        }
        let receiver = self.with(|channel| channel.try_send(value))?;
        self.note(EventKind::Sent { permit: None });
        wake(receiver);
        Ok(())
    }

    /// Sends at once, in the place of the oldest message if need be.
    pub(super) fn evict(&self, value: T) -> Result<Option<T>, TrySendError<T>> {
        if !self.is_usable() {
            return Err(TrySendError::Disconnected(value));
        }
        let Evicted { old, wake: receiver } =
            self.with(|channel| channel.send_evict_oldest(value))?;
        if old.is_some() {
            self.note(EventKind::Evicted {});
        }
        self.note(EventKind::Sent { permit: None });
        wake(receiver);
        Ok(old)
    }

    /// Takes a message if there is one.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        if !self.is_usable() {
            return Err(TryRecvError::Disconnected);
        }
        let (value, sender) = self.with(Channel::try_recv)?;
        self.note(EventKind::Received {});
        wake(sender);
        Ok(value)
    }

    /// Wakes the sender that has room now, and passes on what was taken.
    #[inline]
    fn received<R>(&self, taken: Taken<R>) -> Poll<Result<R, Disconnected>> {
        match taken {
            Ok((value, sender)) => {
                self.note(EventKind::Received {});
                wake(sender);
                Poll::Ready(Ok(value))
            }
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(Disconnected(()))),
            Err(TryRecvError::Empty) => Poll::Pending,
        }
    }

    /// A sender more; `false` once the last one is gone.
    pub(crate) fn add_sender(&self) -> bool {
        self.with(Channel::add_sender)
    }

    /// A sender fewer; the last one wakes the receiver.
    pub(crate) fn drop_sender(&self) {
        let receiver = self.with(Channel::drop_sender);
        self.account();
        wake(receiver);
    }
}

/// A value and the sender to wake for the room it left.
pub(super) type Taken<R> = Result<(R, Option<Waker>), TryRecvError>;

/// Wakes, if there is anybody.
#[inline]
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Reserves if that needs no waker: for a newcomer when there is room and no line, for the head
/// of the line once it was woken, and for nobody once the receiver is gone.
#[inline]
fn reserve_now<T>(channel: &mut Channel<T, Waker>, place: &mut Option<WaiterId>) -> Poll<Granted> {
    if place.is_none() {
        return match channel.try_reserve() {
            Ok(()) => Poll::Ready(Ok(None)),
            Err(TryReserveError::Disconnected) => Poll::Ready(Err(Disconnected(()))),
            Err(TryReserveError::Full) => Poll::Pending,
        };
    }
    if channel.woken() != *place && !channel.is_receiver_closed() {
        return Poll::Pending;
    }
    // A woken head has room, so the law gives the token back; were it to keep it, the caller
    // would replace it at once. This waker does nothing when cloned or dropped.
    match channel.reserve_with(place, Waker::noop().clone()).0 {
        Ok(Reserve::Granted { wake }) => Poll::Ready(Ok(wake)),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Disconnected(()))),
    }
}
