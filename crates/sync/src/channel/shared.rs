//! The channel both sides share: the law behind one short lock.
//!
//! Every method has the same three steps: ask the law under the lock, release the lock, do what
//! the law answered. Waking, cloning or dropping a waker and dropping a message are the users'
//! code, and are always done after the lock is released. One exception: cloning the waker of a task
//! of ours only counts, and may be done inside.
//!
//! What happens to a channel that is known to a runtime is recorded before the lock is released, so
//! that the record has it in the order in which it happened. The lock of a region, for a permit
//! that is an obligation, and that of the record are taken inside this one, never around it.

use std::task::{Poll, Waker};

use asx_kernel::channel::{
    Channel, Closed, Evicted, Recv, Reserve, Sent, TryRecvError, TryReserveError, TrySendError,
    WaiterId, ZeroCapacity,
};
use asx_kernel::journal::EventKind;
use asx_kernel::session::Resolution;
use asx_task::footprint::Object;
use asx_task::operation::{SpinLock, guard, is_task_waker};

use super::Disconnected;
use super::tag::Tag;
use crate::prim::Arc;

pub(crate) struct Shared<T> {
    law: SpinLock<Channel<T, Waker>>,
    object: Object,
    /// Who the channel is, if a runtime knows it.
    pub(super) tag: Option<Box<Tag>>,
}

/// A slot was reserved.
type Granted = Result<(), Disconnected>;

/// The same, with the number of its permit.
pub(super) type Numbered<N> = Result<N, Disconnected>;

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        let law = SpinLock::new(Channel::new(capacity)?);
        Ok(Arc::new(Shared { law, object: Object::new(), tag: None }))
    }

    /// A channel that a runtime knows.
    #[cfg(not(loom))]
    pub(super) fn tagged(law: Channel<T, Waker>, tag: Tag) -> Shared<T> {
        Shared { law: SpinLock::new(law), object: Object::new(), tag: Some(Box::new(tag)) }
    }

    /// Asks the law. What comes out is dealt with by the caller, after the lock.
    #[inline]
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        self.object.write();
        self.law.with(ask)
    }

    /// Asks for a slot, in line at `place` if it has one already. `number` is asked for the number
    /// of its permit, under the lock.
    ///
    /// A waker is cloned only to be kept: the first look goes without.
    #[inline]
    pub(super) fn poll_reserve<N>(
        &self,
        place: &mut Option<WaiterId>,
        waker: &Waker,
        number: impl Fn(&Self) -> N,
    ) -> Poll<Numbered<N>> {
        if !self.is_usable() {
            self.leave(place);
            return Poll::Ready(Err(Disconnected(())));
        }
        let plain = is_task_waker(waker);
        let new = place.is_none();
        let (granted, spare) = self.with(|channel| match reserve_now(channel, place) {
            Poll::Pending if plain => {
                let (granted, spare) = line_up(channel, place, waker.clone());
                (self.numbered(granted, new, &number), spare)
            }
            granted => (self.numbered(granted, false, &number), None),
        });
        guard::drop_waker(spare);
        match granted {
            Poll::Pending if !plain => {
                let token = waker.clone();
                let (granted, spare) = self.with(|channel| {
                    let (granted, spare) = line_up(channel, place, token);
                    (self.numbered(granted, new, &number), spare)
                });
                guard::drop_waker(spare);
                granted
            }
            granted => granted,
        }
    }

    /// Numbers the permit of a slot that was granted, or records the wait for one, if it is `new`.
    #[inline]
    fn numbered<N>(
        &self,
        granted: Poll<Granted>,
        new: bool,
        number: impl Fn(&Self) -> N,
    ) -> Poll<Numbered<N>> {
        if new && granted.is_pending() {
            self.note(EventKind::SendWaiting {});
        }
        granted.map(|granted| granted.map(|()| number(self)))
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
        if self.tag.is_some() || place.is_some() {
            return self.poll_send_by_permit(place, value, waker);
        }
        let Some(message) = value.take() else { return Poll::Ready(Ok(())) };
        let plain = is_task_waker(waker);
        let sent = self.with(|channel| {
            let sent = channel.try_send(message);
            if plain && matches!(sent, Err(TrySendError::Full(_))) {
                join(channel, place, waker);
            }
            sent
        });
        match sent {
            Ok(receiver) => {
                wake(receiver);
                Poll::Ready(Ok(()))
            }
            Err(TrySendError::Disconnected(message)) => Poll::Ready(Err(Disconnected(message))),
            Err(TrySendError::Full(message)) => {
                *value = Some(message);
                if plain { Poll::Pending } else { self.poll_send_by_permit(place, value, waker) }
            }
        }
    }

    /// [`poll_send`](Shared::poll_send) in two steps: both are on the record, and a wait comes in
    /// between.
    #[cold]
    fn poll_send_by_permit(
        &self,
        place: &mut Option<WaiterId>,
        value: &mut Option<T>,
        waker: &Waker,
    ) -> Poll<Result<(), Disconnected<T>>> {
        let granted = std::task::ready!(self.poll_reserve(place, waker, Shared::number));
        let Some(value) = value.take() else { return Poll::Ready(Ok(())) };
        let Ok(permit) = granted else { return Poll::Ready(Err(Disconnected(value))) };
        Poll::Ready(self.fill(permit, value))
    }

    /// Reserves a slot if one is free and nobody waits: the number of its permit.
    #[inline]
    pub(super) fn try_reserve<N>(
        &self,
        number: impl FnOnce(&Self) -> N,
    ) -> Result<N, TryReserveError> {
        if !self.is_usable() {
            return Err(TryReserveError::Disconnected);
        }
        self.with(|channel| channel.try_reserve().map(|()| number(self)))
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
        let left = self.with(|channel| {
            let left = channel.leave(waiter);
            // A closed channel has no line any more to leave.
            if left.was_there {
                self.note(EventKind::SendLeft {});
            }
            self.account(channel);
            left
        });
        wake(left.wake);
        guard::drop_waker(left.token);
    }

    /// Fills the slot of a permit, or hands the value back if the receiver is gone.
    #[inline]
    pub(super) fn fill(&self, permit: u64, value: T) -> Result<(), Disconnected<T>> {
        let sent = match &self.tag {
            None => self.with(|channel| channel.send(value)),
            Some(tag) => self.fill_known(tag, permit, value),
        };
        match sent {
            Sent::Queued { wake: receiver } => {
                wake(receiver);
                Ok(())
            }
            Sent::Refused { value } | Sent::NoPermit { value } => Err(Disconnected(value)),
        }
    }

    #[cold]
    fn fill_known(&self, tag: &Tag, permit: u64, value: T) -> Sent<T, Waker> {
        if !tag.is_usable() {
            // The duty was to send, not to be heard.
            self.free(permit, Resolution::Commit);
            return Sent::Refused { value };
        }
        let (sent, _holder) = self.with(|channel| tag.fill(channel, permit, value));
        sent
    }

    /// Gives the slot of a permit back.
    pub(super) fn free(&self, permit: u64, resolution: Resolution) {
        let (next, _holder) = self.with(|channel| match &self.tag {
            None => (channel.abort(), None),
            Some(tag) => tag.free(channel, permit, resolution),
        });
        wake(next);
    }

    /// Gives back a slot whose permit got no number.
    #[cold]
    pub(super) fn give_up_slot(&self) {
        let next = self.with(|channel| {
            let next = channel.abort();
            self.account(channel);
            next
        });
        wake(next);
    }

    /// Takes from the channel with `take`, or registers the receiver until there is something.
    /// `again` is whether it may be registered already.
    #[inline]
    pub(super) fn poll_recv<R>(
        &self,
        again: bool,
        waker: &Waker,
        mut take: impl FnMut(&Self, &mut Channel<T, Waker>) -> Taken<R>,
    ) -> Poll<Result<R, Disconnected>> {
        if !self.is_usable() {
            self.cancel_recv();
            return Poll::Ready(Err(Disconnected(())));
        }
        if is_task_waker(waker) {
            let mut spare = None;
            let taken = self.with(|channel| {
                let taken = take(self, channel);
                if let Err(TryRecvError::Empty) = taken {
                    spare = wait(channel, waker);
                }
                taken
            });
            guard::drop_waker(spare);
            return received(taken);
        }
        match self.with(|channel| take(self, channel)) {
            Err(TryRecvError::Empty) if again && self.will_wake(waker) => Poll::Pending,
            Err(TryRecvError::Empty) => self.wait_for_message(waker.clone(), take),
            taken => received(taken),
        }
    }

    /// Takes the oldest message, under the lock.
    #[inline]
    pub(super) fn take(&self, channel: &mut Channel<T, Waker>) -> Taken<T> {
        let taken = channel.try_recv()?;
        self.note(EventKind::Received {});
        Ok(taken)
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
        mut take: impl FnMut(&Self, &mut Channel<T, Waker>) -> Taken<R>,
    ) -> Poll<Result<R, Disconnected>> {
        let (taken, spare) = self.with(|channel| match take(self, channel) {
            Err(TryRecvError::Empty) => {
                let (answer, spare) = channel.recv_with(token);
                debug_assert!(matches!(answer, Recv::Waiting), "it is empty under this very lock");
                (Err(TryRecvError::Empty), spare)
            }
            taken => (taken, Some(token)),
        });
        guard::drop_waker(spare);
        received(taken)
    }

    /// Forgets that the receiver waits.
    pub(super) fn cancel_recv(&self) {
        guard::drop_waker(self.with(|channel| channel.cancel_recv()));
    }

    /// The receiver is gone: what it did not take comes back, every waiting sender is woken.
    pub(crate) fn close_receiver(&self) -> std::collections::VecDeque<T> {
        let closed = self.with(|channel| self.shut(channel));
        guard::wake_all(closed.wakes);
        guard::drop_waker(closed.receiver);
        closed.messages
    }

    /// Closes the side of the receiver.
    fn shut(&self, channel: &mut Channel<T, Waker>) -> Closed<T, Waker> {
        let first = !channel.is_receiver_closed();
        let closed = channel.close_receiver();
        if first {
            self.note(EventKind::ReceiverGone { dropped: closed.messages.len() as u64 });
        }
        self.account(channel);
        closed
    }

    /// Closes both sides, as a region does that ends: neither side asked for it, so everybody
    /// who waits is woken. Permits that are out are aborted, messages nobody took are dropped.
    pub(crate) fn close(&self) {
        let (freed, closed) = self.with(|channel| {
            let freed = self.tag.as_ref().map(|tag| tag.free_all(channel));
            let closed = self.shut(channel);
            while channel.senders() > 0 {
                let woken = channel.drop_sender();
                debug_assert!(woken.is_none(), "whoever waited has left");
            }
            self.account(channel);
            (freed, closed)
        });
        // The region does this on any thread; its runtime counts what panics.
        freed.into_iter().flatten().for_each(|(next, _holder)| wake(next));
        guard::wake_all(closed.wakes);
        for message in closed.messages {
            guard::contain(|| drop(message));
        }
        wake(closed.receiver);
    }

    /// Sends if there is room and nobody waits.
    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let receiver = match &self.tag {
            None => self.with(|channel| channel.try_send(value))?,
            Some(tag) => self.try_send_known(tag, value)?,
        };
        wake(receiver);
        Ok(())
    }

    #[cold]
    fn try_send_known(&self, tag: &Tag, value: T) -> Result<Option<Waker>, TrySendError<T>> {
        if !tag.is_usable() {
            return Err(TrySendError::Disconnected(value));
        }
        self.with(|channel| {
            let sent = channel.try_send(value);
            sent.inspect(|_| self.note(EventKind::Sent { permit: None }))
        })
    }

    /// Sends at once, in the place of the oldest message if need be.
    pub(super) fn evict(&self, value: T) -> Result<Option<T>, TrySendError<T>> {
        if !self.is_usable() {
            return Err(TrySendError::Disconnected(value));
        }
        let Evicted { old, wake: receiver } = self.with(|channel| {
            channel.send_evict_oldest(value).inspect(|evicted| {
                if evicted.old.is_some() {
                    self.note(EventKind::Evicted {});
                }
                self.note(EventKind::Sent { permit: None });
            })
        })?;
        wake(receiver);
        Ok(old)
    }

    /// Takes a message if there is one.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        let (value, sender) = match &self.tag {
            None => self.with(Channel::try_recv)?,
            Some(tag) => self.try_recv_known(tag)?,
        };
        wake(sender);
        Ok(value)
    }

    #[cold]
    fn try_recv_known(&self, tag: &Tag) -> Taken<T> {
        if !tag.is_usable() {
            return Err(TryRecvError::Disconnected);
        }
        self.with(|channel| self.take(channel))
    }

    /// A sender more; `false` once the last one is gone.
    pub(crate) fn add_sender(&self) -> bool {
        self.with(|channel| channel.add_sender())
    }

    /// A sender fewer; the last one wakes the receiver.
    pub(crate) fn drop_sender(&self) {
        let receiver = self.with(|channel| {
            let receiver = channel.drop_sender();
            self.account(channel);
            receiver
        });
        wake(receiver);
    }
}

/// A value and the sender to wake for the room it left.
pub(super) type Taken<R> = Result<(R, Option<Waker>), TryRecvError>;

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

/// Wakes, if there is anybody.
#[inline]
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        guard::wake(waker);
    }
}

/// Reserves if that needs no waker: for a newcomer when there is room and no line, for who waited
/// once it was granted a slot, and for nobody once the receiver is gone.
#[inline]
fn reserve_now<T>(channel: &mut Channel<T, Waker>, place: &mut Option<WaiterId>) -> Poll<Granted> {
    if place.is_none() {
        return match channel.try_reserve() {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TryReserveError::Disconnected) => Poll::Ready(Err(Disconnected(()))),
            Err(TryReserveError::Full) => Poll::Pending,
        };
    }
    if !place.is_some_and(|place| channel.has_grant(place)) && !channel.is_receiver_closed() {
        return Poll::Pending;
    }
    // A slot was granted to it, so the law gives the token back; were it to keep it, the caller
    // would replace it at once. This waker does nothing when cloned or dropped.
    match channel.reserve_with(place, Waker::noop().clone()).0 {
        Ok(Reserve::Granted) => Poll::Ready(Ok(())),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Disconnected(()))),
    }
}

/// Registers the receiver, by the waker of a task of ours: a waker that is not kept.
fn wait<T>(channel: &mut Channel<T, Waker>, waker: &Waker) -> Option<Waker> {
    let known = channel.receiver_waiting().is_some_and(|old| old.will_wake(waker));
    if known { None } else { channel.recv_with(waker.clone()).1 }
}

/// Takes a place in line, by the waker of a task of ours: there was no slot under this very lock.
#[cold]
fn join<T>(channel: &mut Channel<T, Waker>, place: &mut Option<WaiterId>, waker: &Waker) {
    let (granted, spare) = line_up(channel, place, waker.clone());
    debug_assert!(granted.is_pending() && spare.is_none(), "a newcomer that found no slot");
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
        Ok(Reserve::Granted) => Poll::Ready(Ok(())),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Disconnected(()))),
    };
    (granted, spare)
}
