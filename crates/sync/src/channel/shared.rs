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
    Channel, Closed, Evicted, Places, Recv, Reserve, ReserveManyRefused, Sent, TryRecvError,
    TryReserveError, TryReserveManyError, TrySendError, WaiterId, ZeroCapacity,
};
use asx_kernel::journal::EventKind;
use asx_kernel::session::Resolution;
use asx_task::backtrace::Usage;
use asx_task::footprint::Object;
use asx_task::operation::{SpinLock, guard, is_task_waker};
use asx_task::waits::{self, Key};

use super::Disconnected;
use super::items::Items;
use super::line::{self, Line, Place};
use super::tag::Tag;
use crate::prim::Arc;

/// How many senders there are: a part of the channel, for a lab. What is in the channel is told by
/// its own name.
const SENDERS: u64 = 1;

pub(crate) struct Shared<T> {
    law: SpinLock<Inner<T>>,
    object: Object,
    /// Who the channel is, if a runtime knows it.
    pub(super) tag: Option<Box<Tag>>,
    /// What several receivers have in common, if there can be several.
    pub(super) items: Option<Box<Items>>,
    pub(super) usage: Usage,
}

struct Inner<T> {
    channel: Channel<T, Waker>,
    /// Who waits for the close; there is a line from the first wait on.
    closed: Option<Box<Line>>,
}

impl<T> Inner<T> {
    fn new(channel: Channel<T, Waker>) -> SpinLock<Inner<T>> {
        SpinLock::new(Inner { channel, closed: None })
    }

    /// Takes out who waits for the close, to be woken.
    fn take_closed(&mut self) -> Option<Box<Line>> {
        self.closed.take()
    }
}

/// A slot was reserved.
type Granted = Result<(), Disconnected>;

/// The same, with the number of its permit.
pub(super) type Numbered<N> = Result<N, Disconnected>;

/// Several slots were reserved.
type GrantedMany = Result<(), ReserveManyRefused>;

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        Shared::of(capacity, None)
    }

    /// A channel that several receivers have in common, if there are `items`.
    pub(super) fn of(
        capacity: usize,
        items: Option<Box<Items>>,
    ) -> Result<Arc<Shared<T>>, ZeroCapacity> {
        let law = Inner::new(Channel::new(capacity)?);
        Ok(Arc::new(Shared { law, object: Object::new(), tag: None, items, usage: Usage::new() }))
    }

    /// A channel whose one slot is reserved already, for its only sender.
    pub(super) fn with_permit() -> Arc<Shared<T>> {
        let law = Inner::new(Channel::with_permit());
        let usage = Usage::new();
        Arc::new(Shared { law, object: Object::new(), tag: None, items: None, usage })
    }

    /// A channel that a runtime knows.
    #[cfg(not(loom))]
    pub(super) fn tagged(law: Channel<T, Waker>, tag: Tag) -> Shared<T> {
        let tag = Some(Box::new(tag));
        let usage = Usage::new();
        Shared { law: Inner::new(law), object: Object::new(), tag, items: None, usage }
    }

    /// Asks the law. What comes out is dealt with by the caller, after the lock.
    #[inline]
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        self.with_inner(|inner| ask(&mut inner.channel))
    }

    #[inline]
    fn with_inner<R>(&self, ask: impl FnOnce(&mut Inner<T>) -> R) -> R {
        self.object.part(SENDERS).write();
        self.with_inner_but_senders(ask)
    }

    /// The same for what does not depend on how many senders there are.
    #[inline]
    fn with_but_senders<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> R) -> R {
        self.with_inner_but_senders(|inner| ask(&mut inner.channel))
    }

    #[inline]
    fn with_inner_but_senders<R>(&self, ask: impl FnOnce(&mut Inner<T>) -> R) -> R {
        self.object.write();
        self.law.with(ask)
    }

    /// The same for what takes messages: it depends on how many senders there are only if there is
    /// nothing to take.
    #[inline]
    fn with_messages<R>(
        &self,
        take: impl FnOnce(&mut Channel<T, Waker>) -> Result<R, TryRecvError>,
    ) -> Result<R, TryRecvError> {
        let taken = self.with_but_senders(take);
        if taken.is_err() {
            self.object.part(SENDERS).read();
        }
        taken
    }

    /// The same for who changes how many senders there are. `ask` says whether it has changed
    /// anything else.
    #[inline]
    fn with_senders<R>(&self, ask: impl FnOnce(&mut Channel<T, Waker>) -> (R, bool)) -> R {
        self.object.part(SENDERS).write();
        let (answer, changes_more) = self.law.with(|inner| ask(&mut inner.channel));
        if changes_more || self.tag.is_some() || self.items.is_some() {
            self.object.write();
        }
        answer
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
        let (granted, spare) = self.with_but_senders(|channel| match reserve_now(channel, place) {
            Poll::Pending if plain => {
                let (granted, spare) = line_up(channel, place, waker.clone());
                (self.numbered(granted, new, &number), spare)
            }
            granted => {
                self.note_refusal(channel, new, &granted);
                (self.numbered(granted, false, &number), None)
            }
        });
        guard::drop_waker(spare);
        match granted {
            Poll::Pending if !plain => {
                let token = waker.clone();
                let (granted, spare) = self.with_but_senders(|channel| {
                    let (granted, spare) = line_up(channel, place, token);
                    self.note_refusal(channel, new, &granted);
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

    /// Records that a sender has left the line because its channel refuses senders. Of one whose
    /// receiver is gone that is known.
    #[inline]
    fn note_refusal<E>(
        &self,
        channel: &Channel<T, Waker>,
        new: bool,
        granted: &Poll<Result<(), E>>,
    ) {
        if !new && matches!(granted, Poll::Ready(Err(_))) && !channel.is_receiver_closed() {
            self.note(EventKind::SendLeft {});
        }
    }

    /// [`poll_reserve`](Shared::poll_reserve) for several slots at once. The numbers of their
    /// permits, if those have any, are put into `numbers`.
    pub(super) fn poll_reserve_many(
        &self,
        places: &mut Option<Places>,
        count: usize,
        waker: &Waker,
        numbers: &mut Vec<u64>,
    ) -> Poll<GrantedMany> {
        if !self.is_usable() {
            self.leave_many(places);
            return Poll::Ready(Err(ReserveManyRefused::Disconnected));
        }
        let new = places.is_none();
        let mut numbered = |channel: &Channel<T, Waker>, granted: Poll<GrantedMany>| {
            self.note_refusal(channel, new, &granted);
            if let (Poll::Ready(Ok(())), true) = (&granted, self.tag.is_some()) {
                numbers.extend((0..count).map(|_| self.number()));
            }
            granted
        };
        let granted = self.with(|channel| {
            let granted = reserve_many_now(channel, places, count);
            numbered(channel, granted)
        });
        if granted.is_ready() {
            return granted;
        }
        let token = waker.clone();
        let (granted, spare) = self.with(|channel| {
            let (asked, spare) = channel.reserve_many_with(places, count, token);
            let granted = numbered(channel, asked_for_many(asked));
            if new && granted.is_pending() {
                self.note(EventKind::SendWaiting {});
            }
            (granted, spare)
        });
        guard::drop_waker(spare);
        granted
    }

    /// Reserves several slots if so many are free and nobody waits: the numbers of their permits,
    /// if those have any.
    pub(super) fn try_reserve_many(&self, count: usize) -> Result<Vec<u64>, TryReserveManyError> {
        if !self.is_usable() {
            return Err(TryReserveManyError::Disconnected);
        }
        self.with(|channel| {
            channel.try_reserve_many(count)?;
            let numbers = if self.tag.is_some() { count } else { 0 };
            Ok((0..numbers).map(|_| self.number()).collect())
        })
    }

    /// Gives up places in line, if there are any.
    pub(super) fn leave_many(&self, places: &mut Option<Places>) {
        let Some(places) = places.take() else { return };
        let left = self.with(|channel| {
            let left = channel.leave_many(places);
            if left.was_there || !channel.is_receiver_closed() {
                self.note(EventKind::SendLeft {});
            }
            self.account(channel);
            left
        });
        left.wakes.iter().for_each(|next| self.grants(Some(next)));
        guard::wake_all(left.wakes);
        guard::drop_waker(left.token);
        self.look_for_end();
    }

    /// Waits until senders are refused, in the line of those who want to know.
    pub(super) fn poll_closed(&self, place: &mut Place, waker: &Waker) -> Poll<()> {
        if !self.is_usable() {
            self.leave_closed(place);
            return Poll::Ready(());
        }
        let known = self.with_inner(|inner| {
            let line = inner.closed.as_deref();
            let open = !inner.channel.is_refusing();
            open.then(|| line.is_some_and(|line| line.will_wake(*place, waker)))
        });
        match known {
            None => return Poll::Ready(()),
            Some(true) => return Poll::Pending,
            Some(false) => {}
        }
        let token = waker.clone();
        let (found, spare) = self.with_inner(|inner| match inner.channel.is_refusing() {
            true => (Poll::Ready(()), Some(token)),
            false => (Poll::Pending, inner.closed.get_or_insert_default().wait(place, token)),
        });
        guard::drop_waker(spare);
        found
    }

    /// Waits no longer for the close.
    pub(super) fn leave_closed(&self, place: &mut Place) {
        if place.is_some() {
            let waker =
                self.with_inner(|inner| inner.closed.as_mut().and_then(|line| line.leave(place)));
            guard::drop_waker(waker);
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
        if self.tag.is_some() || place.is_some() {
            return self.poll_send_by_permit(place, value, waker);
        }
        // Shortcut: `channel::shared::Shared::poll_send`: a send that finds a slot fills it under
        // the same lock.
        // Law: `channel::Channel::reserve_with`, then `send`.
        // Equal: `tasks_and_others_are_served_and_woken_alike`,
        // `room_does_not_let_a_newcomer_pass_the_line`.
        // Worth: 23 % of `spsc`.

        let Some(message) = value.take() else { return Poll::Ready(Ok(())) };
        let plain = is_task_waker(waker);
        let sent = self.with_but_senders(|channel| {
            let sent = channel.try_send(message);
            if plain && matches!(sent, Err(TrySendError::Full(_))) {
                join(channel, place, waker);
            }
            sent
        });
        match sent {
            Ok(receiver) => {
                self.committed(receiver);
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
        self.with_but_senders(|channel| channel.try_reserve().map(|()| number(self)))
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
            // One whose receiver is gone has no line any more to leave.
            if left.was_there || !channel.is_receiver_closed() {
                self.note(EventKind::SendLeft {});
            }
            self.account(channel);
            left
        });
        self.grants(left.wake.as_ref());
        wake(left.wake);
        guard::drop_waker(left.token);
        self.look_for_end();
    }

    /// Fills the slot of a permit, or hands the value back if the receiver is gone.
    #[inline]
    pub(super) fn fill(&self, permit: u64, value: T) -> Result<(), Disconnected<T>> {
        let sent = match &self.tag {
            None => self.with_but_senders(|channel| channel.send(value)),
            Some(tag) => self.fill_known(tag, permit, value),
        };
        match sent {
            Sent::Queued { wake: receiver } => {
                self.committed(receiver);
                self.look_for_end();
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
        let (next, holder) = self.with(|channel| match &self.tag {
            None => (channel.abort(), None),
            Some(tag) => tag.free(channel, permit, resolution),
        });
        self.grants(next.as_ref());
        wake(next);
        self.look_for_end();
        if let (Resolution::Leak, Some(holder)) = (resolution, holder) {
            holder.report_leak();
        }
    }

    /// Gives back a slot whose permit got no number.
    #[cold]
    pub(super) fn give_up_slot(&self) {
        let next = self.with(|channel| {
            let next = channel.abort();
            self.account(channel);
            next
        });
        self.grants(next.as_ref());
        wake(next);
        self.look_for_end();
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
        // Shortcut: `channel::shared::Shared::poll_recv`: a task's own waker is cloned under the
        // lock; this clone only increments a counter and runs no user code.
        // Law: effects happen after the lock is released.
        // Equal: `the_clone_of_a_task_s_waker_counts_and_does_nothing_else`,
        // `tasks_and_others_are_served_and_woken_alike`.
        // Worth: 5.9 % of `ping_pong`.

        if is_task_waker(waker) {
            let mut spare = None;
            let taken = self.with_messages(|channel| {
                let taken = take(self, channel);
                if let Err(TryRecvError::Empty) = taken {
                    spare = wait(channel, waker);
                }
                taken
            });
            guard::drop_waker(spare);
            return received(taken);
        }
        match self.with_messages(|channel| take(self, channel)) {
            Err(TryRecvError::Empty) if again && self.will_wake(waker) => Poll::Pending,
            Err(TryRecvError::Empty) => self.wait_for_message(waker.clone(), take),
            taken => received(taken),
        }
    }

    /// Takes the oldest message, under the lock.
    #[inline]
    pub(super) fn take(&self, channel: &mut Channel<T, Waker>) -> Taken<T> {
        let taken = channel.try_recv()?;
        self.grants(taken.1.as_ref());
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
        let (closed, watching) = self
            .with_inner_but_senders(|inner| (self.shut(&mut inner.channel), inner.take_closed()));
        guard::wake_all(closed.wakes);
        guard::drop_waker(closed.receiver);
        wake_line(watching);
        self.look_for_end();
        closed.messages
    }

    /// Senders get no slot any more; what was sent, and what permits will send, can be received.
    pub(super) fn refuse(&self) {
        let (refused, watching) =
            self.with_inner(|inner| (inner.channel.refuse_senders(), inner.take_closed()));
        guard::wake_all(refused.wakes);
        wake(refused.receiver);
        wake_line(watching);
        self.look_for_end();
    }

    /// A message was queued: wakes who waits for it.
    #[inline]
    pub(super) fn committed(&self, receiver: Option<Waker>) {
        if let Some(receiver) = &receiver {
            waits::came(self.messages(), receiver);
        }
        wake(receiver);
        if let Some(items) = &self.items {
            items.add_one();
        }
    }

    /// What its messages are waited for under, for those who look for what keeps tasks waiting.
    #[inline(always)]
    pub(super) fn messages(&self) -> Key {
        match &self.items {
            Some(items) => items.key(),
            None => Key::messages_of(self),
        }
    }

    /// The head of the line of senders was given a slot, and is to be woken.
    #[inline(always)]
    fn grants(&self, sender: Option<&Waker>) {
        if let Some(sender) = sender {
            waits::granted(self, sender);
        }
    }

    /// Tells several receivers when no message will come any more. For one the law does.
    #[inline]
    fn look_for_end(&self) {
        if let Some(items) = &self.items
            && self.with(|channel| channel.is_over())
        {
            items.end();
        }
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
        let (freed, closed, watching) = self.with_inner(|inner| {
            let channel = &mut inner.channel;
            let freed = self.tag.as_ref().map(|tag| tag.free_all(channel));
            let closed = self.shut(channel);
            while channel.senders() > 0 {
                let woken = channel.drop_sender();
                debug_assert!(woken.is_none(), "whoever waited has left");
            }
            self.account(channel);
            (freed, closed, inner.take_closed())
        });
        // The region does this on any thread; its runtime counts what panics.
        freed.into_iter().flatten().for_each(|(next, _holder)| wake(next));
        guard::wake_all(closed.wakes);
        for message in closed.messages {
            guard::contain(|| drop(message));
        }
        wake(closed.receiver);
        wake_line(watching);
    }

    /// Sends if there is room and nobody waits.
    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let receiver = match &self.tag {
            None => self.with_but_senders(|channel| channel.try_send(value))?,
            Some(tag) => self.try_send_known(tag, value)?,
        };
        self.committed(receiver);
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
        match &old {
            // There are as many as before.
            Some(_) => wake(receiver),
            None => self.committed(receiver),
        }
        Ok(old)
    }

    /// Takes a message if there is one.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        let (value, sender) = match &self.tag {
            None => self
                .with_messages(Channel::try_recv)
                .inspect(|taken| self.grants(taken.1.as_ref()))?,
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
        self.with_senders(|channel| (channel.add_sender(), false))
    }

    /// A sender fewer; the last one wakes the receiver.
    pub(crate) fn drop_sender(&self) {
        let receiver = self.with_senders(|channel| {
            let receiver = channel.drop_sender();
            self.account(channel);
            let wakes = receiver.is_some();
            (receiver, wakes)
        });
        wake(receiver);
        self.look_for_end();
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
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        guard::wake(waker);
    }
}

/// Wakes all who waited for the close.
fn wake_line(line: Option<Box<Line>>) {
    if let Some(mut line) = line {
        line::wake_all(line.wake_all());
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
    if !place.is_some_and(|place| channel.has_grant(place)) && !channel.is_refusing() {
        return Poll::Pending;
    }
    // A slot was granted to it, so the law gives the token back; were it to keep it, the caller
    // would replace it at once. This waker does nothing when cloned or dropped.
    asked_for(channel.reserve_with(place, Waker::noop().clone()).0)
}

/// The same for several slots.
fn reserve_many_now<T>(
    channel: &mut Channel<T, Waker>,
    places: &mut Option<Places>,
    count: usize,
) -> Poll<GrantedMany> {
    let Some(held) = *places else {
        return match channel.try_reserve_many(count) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TryReserveManyError::Disconnected) => {
                Poll::Ready(Err(ReserveManyRefused::Disconnected))
            }
            Err(TryReserveManyError::TooMany) => Poll::Ready(Err(ReserveManyRefused::TooMany)),
            Err(TryReserveManyError::Full) => Poll::Pending,
        };
    };
    if !channel.has_grants(held) && !channel.is_refusing() {
        return Poll::Pending;
    }
    asked_for_many(channel.reserve_many_with(places, count, Waker::noop().clone()).0)
}

/// What the law said to who asked for a slot.
#[inline]
fn asked_for(asked: Result<Reserve, asx_kernel::channel::Disconnected>) -> Poll<Granted> {
    match asked {
        Ok(Reserve::Granted) => Poll::Ready(Ok(())),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Disconnected(()))),
    }
}

/// What the law said to who asked for several.
fn asked_for_many(asked: Result<Reserve, ReserveManyRefused>) -> Poll<GrantedMany> {
    match asked {
        Ok(Reserve::Granted) => Poll::Ready(Ok(())),
        Ok(Reserve::Waiting(_)) => Poll::Pending,
        Err(refused) => Poll::Ready(Err(refused)),
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
    (asked_for(asked), spare)
}
