//! The channel both sides share: the law behind one short lock.
//!
//! Every method has the same three steps: ask the law under the lock, release the lock, do what
//! the law answered. Waking, cloning or dropping a waker and dropping a message are the users'
//! code, and are always done after the lock is released. One exception: cloning the waker of a task
//! of ours only counts, and may be done inside.

use std::task::{Poll, Waker};

use asx_kernel::channel::{
    Channel, Recv, Reserve, Sent, TryRecvError, TryReserveError, WaiterId, ZeroCapacity,
};

use super::Disconnected;
use crate::cell::is_task_waker;
use crate::prim::Arc;
use crate::short::ShortLock;

pub(crate) struct Shared<T> {
    channel: ShortLock<Channel<T, Waker>>,
}

/// A slot was reserved: who is to be woken, once the slot has its permit.
pub(super) type Granted = Result<Option<Waker>, Disconnected>;

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        let channel = ShortLock::new(Channel::new(capacity)?);
        Ok(Arc::new(Shared { channel }))
    }

    /// Asks the law. What comes out is dealt with by the caller, after the lock.
    #[inline]
    pub(super) fn with<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        self.channel.with(ask)
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
        let plain = is_task_waker(waker);
        let (granted, _spare) = self.with(|channel| match reserve_now(channel, place) {
            Poll::Pending if plain => line_up(channel, place, waker.clone()),
            granted => (granted, None),
        });
        match granted {
            Poll::Ready(granted) => Poll::Ready(granted),
            Poll::Pending if plain => Poll::Pending,
            Poll::Pending => self.wait_in_line(place, waker.clone()),
        }
    }

    /// Sends `value` as [`poll_reserve`](Shared::poll_reserve) and [`fill`](Shared::fill) would, at
    /// once if there is a slot.
    #[inline]
    pub(super) fn poll_send(
        &self,
        place: &mut Option<WaiterId>,
        value: &mut Option<T>,
        waker: &Waker,
    ) -> Poll<Result<(), Disconnected<T>>> {
        let plain = is_task_waker(waker);
        let (sent, _spare) = self.with(|channel| match reserve_now(channel, place) {
            Poll::Ready(granted) => (fill_granted(channel, granted, value), None),
            Poll::Pending if plain => match line_up(channel, place, waker.clone()) {
                (Poll::Ready(granted), spare) => (fill_granted(channel, granted, value), spare),
                (Poll::Pending, spare) => (None, spare),
            },
            Poll::Pending => (None, None),
        });
        let sent = match sent {
            Some(sent) => sent,
            None if plain => return Poll::Pending,
            None => match self.wait_in_line(place, waker.clone()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(granted) => {
                    match self.with(|channel| fill_granted(channel, granted, value)) {
                        Some(sent) => sent,
                        None => return Poll::Ready(Ok(())),
                    }
                }
            },
        };
        Poll::Ready(sent.map(|wakes| wakes.into_iter().for_each(wake)))
    }

    #[cold]
    fn wait_in_line(&self, place: &mut Option<WaiterId>, token: Waker) -> Poll<Granted> {
        let (asked, _spare) = self.with(|channel| line_up(channel, place, token));
        asked
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
        let left = self.with(|channel| channel.leave(waiter));
        wake(left.wake);
    }

    /// Fills a reserved slot, or hands the value back if the receiver is gone.
    #[inline]
    pub(super) fn fill(&self, value: T) -> Result<(), Disconnected<T>> {
        match self.with(|channel| channel.send(value)) {
            Sent::Queued { wake: receiver } => {
                wake(receiver);
                Ok(())
            }
            Sent::Refused { value } | Sent::NoPermit { value } => Err(Disconnected(value)),
        }
    }

    /// Gives a reserved slot back.
    pub(super) fn free(&self) {
        wake(self.with(Channel::abort));
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
        if is_task_waker(waker) {
            let (taken, _spare) = self.with(|channel| match take(channel) {
                Err(TryRecvError::Empty) => {
                    let known = channel.receiver_waiting().is_some_and(|old| old.will_wake(waker));
                    let token = (!known).then(|| waker.clone());
                    let spare = token.and_then(|token| channel.recv_with(token).1);
                    (Err(TryRecvError::Empty), spare)
                }
                taken => (taken, None),
            });
            return received(taken);
        }
        match self.with(&mut take) {
            Err(TryRecvError::Empty) if again && self.will_wake(waker) => Poll::Pending,
            Err(TryRecvError::Empty) => self.wait_for_message(waker.clone(), take),
            taken => received(taken),
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
        received(taken)
    }

    /// Forgets that the receiver waits.
    pub(super) fn cancel_recv(&self) {
        drop(self.with(Channel::cancel_recv));
    }

    /// The receiver is gone: what it did not take comes back, every waiting sender is woken.
    pub(super) fn close_receiver(&self) -> std::collections::VecDeque<T> {
        let closed = self.with(Channel::close_receiver);
        closed.wakes.into_iter().for_each(Waker::wake);
        closed.messages
    }

    /// A sender more; `false` once the last one is gone.
    pub(super) fn add_sender(&self) -> bool {
        self.with(Channel::add_sender)
    }

    /// A sender fewer; the last one wakes the receiver.
    pub(super) fn drop_sender(&self) {
        wake(self.with(Channel::drop_sender));
    }

    /// Closes both sides, as a region does that ends: neither side asked for it, so everybody
    /// who waits is woken. Messages nobody took are dropped.
    #[allow(dead_code, reason = "for the regions that own channels")]
    pub(crate) fn close(&self) {
        let closed = self.with(|channel| {
            let closed = channel.close_receiver();
            while channel.senders() > 0 {
                let nobody = channel.drop_sender();
                debug_assert!(nobody.is_none(), "all that waited are in `closed`");
            }
            closed
        });
        closed.wakes.into_iter().chain(closed.receiver).for_each(Waker::wake);
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

/// Takes a place in line, or a slot if there is one after all. The waker that is not kept is to be
/// dropped after the lock.
fn line_up<T>(
    channel: &mut Channel<T, Waker>,
    place: &mut Option<WaiterId>,
    token: Waker,
) -> (Poll<Granted>, Option<Waker>) {
    let (asked, spare) = channel.reserve_with(place, token);
    let granted = match asked {
        Ok(Reserve::Granted { wake }) => Poll::Ready(Ok(wake)),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Disconnected(()))),
    };
    (granted, spare)
}

/// Whom to wake: the next in line, and the receiver.
type Wakes = [Option<Waker>; 2];

/// Fills a slot that was granted under the same lock; `None` without a value.
fn fill_granted<T>(
    channel: &mut Channel<T, Waker>,
    granted: Granted,
    value: &mut Option<T>,
) -> Option<Result<Wakes, Disconnected<T>>> {
    let value = value.take()?;
    Some(match granted {
        Err(_) => Err(Disconnected(value)),
        Ok(next) => match channel.send(value) {
            Sent::Queued { wake: receiver } => Ok([next, receiver]),
            Sent::Refused { value } | Sent::NoPermit { value } => Err(Disconnected(value)),
        },
    })
}

/// Wakes the sender that has room now, and passes on what was taken.
#[inline]
fn received<R>(taken: Taken<R>) -> Poll<Result<R, Disconnected>> {
    match taken {
        Ok((value, sender)) => {
            wake(sender);
            Poll::Ready(Ok(value))
        }
        Err(TryRecvError::Disconnected) => Poll::Ready(Err(Disconnected(()))),
        Err(TryRecvError::Empty) => Poll::Pending,
    }
}
