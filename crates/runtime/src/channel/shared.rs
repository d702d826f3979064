//! The channel both sides share: the law behind one short lock.
//!
//! Every method has the same three steps: ask the law under the lock, release the lock, do what
//! the law answered. Waking, cloning or dropping a waker and dropping a message are the users'
//! code, and are always done after the lock is released. One exception: cloning the waker of a task
//! of ours only counts, and may be done inside.

use std::task::{Poll, Waker};

use asx_kernel::channel::{
    Channel, Evicted, Recv, Reserve, Sent, TryRecvError, TryReserveError, TrySendError, WaiterId,
    ZeroCapacity,
};
use asx_kernel::journal::EventKind;
use asx_kernel::session::Resolution;

use super::Disconnected;
use super::tag::Tag;
use crate::cell::is_task_waker;
use crate::footprint::Object;
use crate::prim::Arc;
use crate::short::ShortLock;

pub(crate) struct Shared<T> {
    channel: ShortLock<Channel<T, Waker>>,
    object: Object,
    /// Who the channel is, if a runtime knows it.
    pub(super) tag: Option<Box<Tag>>,
}

/// A slot was reserved: who is to be woken, once the slot has its permit.
pub(super) type Granted = Result<Option<Waker>, Disconnected>;

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        let channel = ShortLock::new(Channel::new(capacity)?);
        Ok(Arc::new(Shared { channel, object: Object::new(), tag: None }))
    }

    /// A channel that a runtime knows.
    #[cfg(not(loom))]
    pub(super) fn tagged(law: Channel<T, Waker>, tag: Tag) -> Shared<T> {
        Shared { channel: ShortLock::new(law), object: Object::new(), tag: Some(Box::new(tag)) }
    }

    /// Asks the law. What comes out is dealt with by the caller, after the lock.
    #[inline]
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        self.object.write();
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
        if !self.is_usable() {
            self.leave(place);
            return Poll::Ready(Err(Disconnected(())));
        }
        let (plain, new) = (is_task_waker(waker), place.is_none());
        let (granted, _spare) = self.with(|channel| match reserve_now(channel, place) {
            Poll::Pending if plain => line_up(channel, place, waker.clone()),
            granted => (granted, None),
        });
        let granted = match granted {
            Poll::Pending if !plain => self.wait_in_line(place, waker.clone()),
            granted => granted,
        };
        if new && granted.is_pending() {
            self.note(EventKind::SendWaiting {});
        }
        granted
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
        if self.tag.is_some() {
            return self.poll_send_by_permit(place, value, waker);
        }
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

    /// [`poll_send`](Shared::poll_send) in two steps, so that both are on the record.
    #[cold]
    fn poll_send_by_permit(
        &self,
        place: &mut Option<WaiterId>,
        value: &mut Option<T>,
        waker: &Waker,
    ) -> Poll<Result<(), Disconnected<T>>> {
        let granted = std::task::ready!(self.poll_reserve(place, waker));
        let Some(value) = value.take() else { return Poll::Ready(Ok(())) };
        let Ok(next) = granted else { return Poll::Ready(Err(Disconnected(value))) };
        let permit = self.granted();
        wake(next);
        Poll::Ready(self.fill(permit, value))
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
            self.cancel_recv();
            return Poll::Ready(Err(Disconnected(())));
        }
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
            return self.received(taken);
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
