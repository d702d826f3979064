//! The bounded two-phase channel: many senders, one receiver.
//!
//! ```text
//! reserve -> Granted -> send -> queue -> recv
//!    |          \-> abort: the slot is granted to the head of the line, or becomes free
//!    \-> Waiting, in line -> a slot becomes free: it is granted to the head, which is woken
//!                       |                                  -> reserve again -> Granted
//!                       \-> leave: cancelled or dropped
//! ```
//!
//! A sender first reserves a slot. This can wait and be cancelled without side effects; filling the
//! slot afterwards cannot fail half-way. A slot is used from the grant until its message is
//! received, and at most `capacity` slots are used. Slots are granted in FIFO order: a slot that
//! becomes free while senders wait is granted to the head of the line at once. The head leaves the
//! line, is woken, and has only to collect the grant. If it leaves instead, the slot goes to the
//! next in line. Only an evicting send takes a granted slot that was not collected; its waiter
//! becomes the head again. A sender that requests several slots has as many consecutive places, so
//! it is served in order too.
//!
//! The receiver may refuse further senders and continue to receive: messages that were sent, and
//! those of outstanding permits, still arrive, and then the channel is closed.
//!
//! The structure is generic over the waiter's token `W` (a waker, a task id) and makes no
//! callbacks. Tokens to wake, and tokens and messages to drop, are returned, so that the host wakes
//! and drops after it has released its lock. The caller checks for cancellation before it calls.
//!
//! Two conditions hold between any two calls, and together they exclude lost wakeups: if a sender
//! waits, no slot is free; if the receiver waits, no message is queued and a sender is left.
//! [`Channel::check`] tests them.

mod answer;
mod look;
#[cfg(test)]
mod tests;
mod waiters;

use crate::sorted::take_at;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use answer::{
    ChannelState, Closed, Disconnected, Evicted, Left, LeftMany, Recv, Reserve, ReserveManyRefused,
    SendersRefused, Sent, TryRecvError, TryReserveError, TryReserveManyError, TrySendError,
    ZeroCapacity,
};
pub use waiters::{Places, WaiterId, Wakes};
use waiters::{Waiter, Waiters};

/// A bounded channel of `T`, with waiters identified by a `W`.
///
/// ```
/// use asx_kernel::channel::{Channel, Recv, Reserve, Sent};
/// let mut channel: Channel<&str, u32> = Channel::new(1)?;
/// assert_eq!(channel.recv(7), Recv::Waiting);
/// assert_eq!(channel.reserve(&mut None, 1)?, Reserve::Granted);
/// assert_eq!(channel.send("hello"), Sent::Queued { wake: Some(7) });
/// assert_eq!(channel.recv(7), Recv::Message { value: "hello", wake: None });
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Channel<T, W> {
    capacity: usize,
    /// Committed messages, oldest first.
    queue: VecDeque<T>,
    /// Granted slots that are not resolved, whether or not their sender has collected them.
    reserved: usize,
    /// The waiters with granted slots that they have not collected, in the order of service.
    /// Sorted, because ids only grow.
    granted: VecDeque<WaiterId>,
    waiters: Waiters<W>,
    /// The receiver's token while it waits.
    receiver: Option<W>,
    receiving: Receiving,
    /// Sender handles. Permits and waiters count as senders too; see `senders_gone`.
    senders: usize,
}

/// The messages that the receiver still accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiving {
    /// All messages.
    All,
    /// Messages that were sent, and those of outstanding permits.
    Rest,
    /// None: the receiver is closed.
    Nothing,
}

/// The result of requesting a slot.
type Asked = Result<Reserve, Disconnected>;

/// The result of requesting several slots.
type AskedMany = Result<Reserve, ReserveManyRefused>;

/// Reserving slots.
impl<T, W> Channel<T, W> {
    /// Creates an open channel with one sender.
    pub fn new(capacity: usize) -> Result<Self, ZeroCapacity> {
        if capacity == 0 {
            return Err(ZeroCapacity);
        }
        Ok(Channel::with_senders(capacity, 1, 0))
    }

    /// Creates a channel of one slot, which is reserved for the only sender as a permit. Equivalent
    /// to [`try_reserve`](Channel::try_reserve) and [`drop_sender`](Channel::drop_sender) on a new
    /// channel.
    #[inline]
    pub fn with_permit() -> Self {
        Channel::with_senders(1, 0, 1)
    }

    #[inline]
    fn with_senders(capacity: usize, senders: usize, reserved: usize) -> Self {
        Channel {
            capacity,
            queue: VecDeque::new(),
            reserved,
            granted: VecDeque::new(),
            waiters: Waiters { line: VecDeque::new(), next: 0 },
            receiver: None,
            receiving: Receiving::All,
            senders,
        }
    }

    /// Reserves a slot, or collects the slot that was granted. `place` is the caller's place in
    /// line, `None` at first. Calling again with it replaces the token and keeps the place. It is
    /// cleared when the caller no longer waits.
    ///
    /// Also returns the token that is not kept (this one, or the one it replaced), to be dropped by
    /// the caller.
    pub fn reserve_with(&mut self, place: &mut Option<WaiterId>, token: W) -> (Asked, Option<W>) {
        if self.refuses_senders() {
            *place = None;
            return (Err(Disconnected), Some(token));
        }
        let had_grant = self.take_grant(*place);
        // With room there is no line.
        if had_grant || self.has_room() {
            self.reserved += usize::from(!had_grant);
            *place = None;
            return (Ok(Reserve::Granted), Some(token));
        }
        let position = place.and_then(|id| self.waiters.position(id));
        let (id, spare) = match (*place, position) {
            (Some(id), Some(at)) => (id, self.waiters.line[at].token.replace(token)),
            _ => (self.waiters.join(token), None),
        };
        *place = Some(id);
        (Ok(Reserve::Waiting(id)), spare)
    }

    /// Whether a slot was granted to this waiter, which has only to collect it.
    pub fn has_grant(&self, waiter: WaiterId) -> bool {
        self.granted.binary_search(&waiter).is_ok()
    }

    /// Gives up a place in line or a granted slot, because the waiter was cancelled or dropped.
    pub fn leave(&mut self, waiter: WaiterId) -> Left<W> {
        if self.take_grant(Some(waiter)) {
            return Left { was_there: true, token: None, wake: self.abort() };
        }
        let removed = self.waiters.remove(waiter);
        // Leaving the line does not free a slot.
        let wake = if self.is_over() { self.receiver.take() } else { None };
        Left { was_there: removed.is_some(), token: removed.flatten(), wake }
    }

    /// Reserves a slot if one is free and no sender waits.
    pub fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        self.admit().map(|()| self.reserved += 1)
    }

    /// Like [`reserve_with`](Channel::reserve_with) for `count` slots: all or none. They are
    /// collected one by one at the head of the line, and the caller is woken when it has all of
    /// them. A request for more slots than the channel has is refused immediately.
    pub fn reserve_many_with(
        &mut self,
        places: &mut Option<Places>,
        count: usize,
        token: W,
    ) -> (AskedMany, Option<W>) {
        if self.refuses_senders() {
            *places = None;
            return (Err(ReserveManyRefused::Disconnected), Some(token));
        }
        let Some(held) = *places else { return self.join_many(places, count, token) };
        if !self.has_grants(held) {
            let spare = self.waiters.replace(held.last(), token);
            return (Ok(Reserve::Waiting(held.last())), spare);
        }
        for id in held.ids() {
            let taken = self.take_grant(Some(id));
            debug_assert!(taken, "the last place is served last");
        }
        *places = None;
        (Ok(Reserve::Granted), Some(token))
    }

    /// Whether all slots were granted to a waiter that requests several.
    pub fn has_grants(&self, places: Places) -> bool {
        self.has_grant(places.last())
    }

    /// Like [`leave`](Channel::leave), for a waiter that requests several slots.
    pub fn leave_many(&mut self, places: Places) -> LeftMany<W> {
        let mut left = LeftMany { was_there: false, token: None, wakes: Vec::new() };
        // Places in line leave first, so that no slot is granted to a place that leaves too.
        for id in places.ids().rev() {
            let one = self.leave(id);
            left.was_there |= one.was_there;
            left.token = left.token.or(one.token);
            left.wakes.extend(one.wake);
        }
        left
    }

    /// Reserves several slots if enough are free and no sender waits.
    pub fn try_reserve_many(&mut self, count: usize) -> Result<(), TryReserveManyError> {
        let free = self.free();
        match self.admit() {
            Err(TryReserveError::Disconnected) => Err(TryReserveManyError::Disconnected),
            _ if count > self.capacity => Err(TryReserveManyError::TooMany),
            Err(TryReserveError::Full) if count == 0 => Ok(()),
            Ok(()) if count <= free => {
                self.reserved += count;
                Ok(())
            }
            Ok(()) | Err(TryReserveError::Full) => Err(TryReserveManyError::Full),
        }
    }

    /// Adds a sender: a clone, or an upgraded weak sender. Returns false, without any change, if
    /// the last sender is gone.
    pub fn add_sender(&mut self) -> bool {
        let live = !self.senders_gone();
        self.senders += usize::from(live);
        live
    }

    /// Removes a sender. If it was the last one, returns the waiting receiver.
    pub fn drop_sender(&mut self) -> Option<W> {
        self.senders = self.senders.saturating_sub(1);
        self.freed()
    }
}

/// Filling slots.
impl<T, W> Channel<T, W> {
    /// Fills one collected slot.
    pub fn send(&mut self, value: T) -> Sent<T, W> {
        if self.permits() == 0 {
            return Sent::NoPermit { value };
        }
        self.reserved -= 1;
        if self.receiving == Receiving::Nothing {
            return Sent::Refused { value };
        }
        Sent::Queued { wake: self.commit(value) }
    }

    /// Releases one collected slot. Returns the waiting sender that gets it, or the receiver if
    /// this was the last of the senders. Without a collected slot nothing changes.
    pub fn abort(&mut self) -> Option<W> {
        if self.permits() == 0 {
            return None;
        }
        self.reserved -= 1;
        self.freed()
    }

    /// Sends if a slot is free and no sender waits. Returns the receiver to wake.
    #[inline]
    pub fn try_send(&mut self, value: T) -> Result<Option<W>, TrySendError<T>> {
        match self.admit() {
            Ok(()) => Ok(self.commit(value)),
            Err(error) => Err(error.with(value)),
        }
    }

    /// Like [`try_send`](Channel::try_send), but only if that needs no wake and no allocation.
    /// Otherwise nothing changes.
    #[inline(always)]
    pub fn try_send_quietly(&mut self, value: T) -> Result<(), T> {
        let room = self.queue.capacity();
        // Reserved slots need room too; one more message never grows the queue.
        let at_hand = self.used() < room && self.queue.len() < room;
        if self.receiver.is_some() || !at_hand || !self.is_free() {
            return Err(value);
        }
        self.queue.push_back(value);
        Ok(())
    }

    /// Sends immediately: into a free slot, or a granted one that was not collected, or in place of
    /// the oldest message. Fails only if permits use all slots, since these are never evicted.
    pub fn send_evict_oldest(&mut self, value: T) -> Result<Evicted<T, W>, TrySendError<T>> {
        if self.refuses_senders() {
            return Err(TrySendError::Disconnected(value));
        }
        let old = if self.has_room() || self.revoke() { None } else { self.queue.pop_front() };
        if !self.has_room() {
            return Err(TrySendError::Full(value));
        }
        Ok(Evicted { old, wake: self.commit(value) })
    }
}

/// Receiving.
impl<T, W> Channel<T, W> {
    /// Receives the oldest message, or registers the receiver until there is one.
    ///
    /// Also returns the token that is not kept (this one, or the one it replaced), to be dropped by
    /// the caller.
    pub fn recv_with(&mut self, token: W) -> (Recv<T, W>, Option<W>) {
        match self.try_recv() {
            Ok((value, wake)) => (Recv::Message { value, wake }, Some(token)),
            Err(TryRecvError::Disconnected) => (Recv::Disconnected, Some(token)),
            Err(TryRecvError::Empty) => (Recv::Waiting, self.receiver.replace(token)),
        }
    }

    /// Receives the oldest message, if any, and returns the waiting sender that gets its slot.
    #[inline]
    pub fn try_recv(&mut self) -> Result<(T, Option<W>), TryRecvError> {
        match self.queue.pop_front() {
            Some(value) => Ok((value, self.grant())),
            None if self.is_over() => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Like [`try_recv`](Channel::try_recv), but only if no sender waits for the slot.
    #[inline(always)]
    pub fn try_recv_quietly(&mut self) -> Option<T> {
        if self.waiters.line.is_empty() { self.queue.pop_front() } else { None }
    }

    /// Unregisters the receiver, because it was cancelled or dropped. Returns its token, to be
    /// dropped. No message is consumed.
    pub fn cancel_recv(&mut self) -> Option<W> {
        self.receiver.take()
    }

    /// Refuses further senders. Returns those in line, to be woken. Messages that were sent, and
    /// those of outstanding permits, can still be received.
    pub fn refuse_senders(&mut self) -> SendersRefused<W> {
        if self.receiving == Receiving::All {
            self.receiving = Receiving::Rest;
        }
        self.revoke_all();
        let receiver = if self.is_over() { self.receiver.take() } else { None };
        SendersRefused { wakes: self.waiters.take_all(), receiver }
    }

    /// Closes the receiver permanently. Returns all waiters and messages, once.
    pub fn close_receiver(&mut self) -> Closed<T, W> {
        self.receiving = Receiving::Nothing;
        self.revoke_all();
        Closed {
            messages: core::mem::take(&mut self.queue),
            wakes: self.waiters.take_all(),
            receiver: self.receiver.take(),
        }
    }

    /// Whether the queue has room for one message more than there are used slots.
    #[inline]
    pub fn is_prepared(&self) -> bool {
        let used = self.queue.len() + self.reserved;
        used < self.queue.capacity() || used >= self.capacity
    }

    /// Whether the line has room for one sender more.
    #[inline]
    pub fn has_room_in_line(&self) -> bool {
        let waiting = self.waiters.line.len() + self.granted.len();
        let room = self.waiters.line.capacity().min(self.granted.capacity());
        self.is_prepared() && waiting < room
    }

    /// Allocates room for one message more than there are used slots, and for one sender more in
    /// line. Changes nothing on failure.
    pub fn try_reserve_room(&mut self) -> Result<(), alloc::collections::TryReserveError> {
        let most = self.capacity.saturating_sub(self.queue.len());
        self.queue.try_reserve(most.min(self.reserved + 1))?;
        self.granted.try_reserve(self.waiters.line.len() + 1)?;
        self.waiters.line.try_reserve(self.granted.len() + 1)
    }

    /// Receives all messages at once. Also returns the waiting senders that get their slots.
    pub fn drain(&mut self) -> (VecDeque<T>, Vec<W>) {
        let messages = core::mem::take(&mut self.queue);
        let mut wakes = Vec::new();
        while self.has_room() && !self.waiters.line.is_empty() {
            wakes.extend(self.grant());
        }
        (messages, wakes)
    }
}

/// For tokens that are plain data, which need not be dropped by the caller.
impl<T, W: Copy> Channel<T, W> {
    /// Like [`reserve_with`](Channel::reserve_with), without the returned token.
    pub fn reserve(&mut self, place: &mut Option<WaiterId>, token: W) -> Asked {
        self.reserve_with(place, token).0
    }

    /// Like [`recv_with`](Channel::recv_with), without the returned token.
    pub fn recv(&mut self, token: W) -> Recv<T, W> {
        self.recv_with(token).0
    }
}

impl<T, W> Channel<T, W> {
    /// The number of collected slots.
    fn permits(&self) -> usize {
        self.reserved - self.granted.len()
    }

    fn used(&self) -> usize {
        self.queue.len() + self.reserved
    }

    fn has_room(&self) -> bool {
        self.used() < self.capacity
    }

    /// Takes consecutive places. The first ones are granted the free slots.
    fn join_many(
        &mut self,
        places: &mut Option<Places>,
        count: usize,
        token: W,
    ) -> (AskedMany, Option<W>) {
        if count > self.capacity {
            return (Err(ReserveManyRefused::TooMany), Some(token));
        }
        // With room there is no line.
        let free = self.free();
        if count <= free {
            self.reserved += count;
            return (Ok(Reserve::Granted), Some(token));
        }
        let held = self.waiters.join_many(count, free, token);
        self.granted.extend(held.ids().take(free));
        self.reserved += free;
        *places = Some(held);
        (Ok(Reserve::Waiting(held.last())), None)
    }

    /// Frees all granted slots that were not collected.
    fn revoke_all(&mut self) {
        self.reserved -= self.granted.len();
        self.granted.clear();
    }

    /// Queues a message. Returns the receiver to wake.
    fn commit(&mut self, value: T) -> Option<W> {
        self.queue.push_back(value);
        self.receiver.take()
    }

    /// Whether no sender is left. A live permit and a waiting reserve count as a sender, whether or
    /// not the host still has the handle. Once this is true it remains true.
    #[inline]
    fn senders_gone(&self) -> bool {
        self.senders == 0 && self.reserved == 0 && self.waiters.line.is_empty()
    }

    /// Whether no more slots are granted. Without a sender a request would be an error of the host.
    fn refuses_senders(&self) -> bool {
        self.receiving != Receiving::All || self.senders_gone()
    }

    /// Whether no message will be queued any more. Some may be queued now.
    #[inline]
    pub fn is_over(&self) -> bool {
        let no_permit = self.reserved == 0;
        let refused = self.receiving == Receiving::Rest && no_permit;
        refused || self.receiving == Receiving::Nothing || self.senders_gone()
    }

    /// Checks that a slot can be reserved immediately.
    #[inline]
    fn admit(&self) -> Result<(), TryReserveError> {
        if self.is_free() { Ok(()) } else { self.refusal() }
    }

    /// Whether a slot is free, by the fast check.
    #[inline]
    fn is_free(&self) -> bool {
        let free = self.senders > 0 && self.waiters.line.is_empty() && self.has_room();
        free && self.receiving == Receiving::All
    }

    /// The complete check, for the slow path.
    #[cold]
    fn refusal(&self) -> Result<(), TryReserveError> {
        if self.refuses_senders() {
            Err(TryReserveError::Disconnected)
        } else if !self.waiters.line.is_empty() || !self.has_room() {
            Err(TryReserveError::Full)
        } else {
            Ok(())
        }
    }

    /// Removes the grant of a waiter, if it has one.
    fn take_grant(&mut self, waiter: Option<WaiterId>) -> bool {
        let at = waiter.and_then(|waiter| self.granted.binary_search(&waiter).ok());
        at.and_then(|at| take_at(&mut self.granted, at)).is_some()
    }

    /// Grants a free slot to the head of the line, if there are both. Returns the token to wake, or
    /// `None` if the head was woken before for a slot that was revoked, and has not retried since.
    #[inline]
    fn grant(&mut self) -> Option<W> {
        if self.waiters.line.is_empty() || !self.has_room() {
            return None;
        }
        let head = self.waiters.line.pop_front()?;
        self.reserved += 1;
        self.granted.push_back(head.id);
        head.token
    }

    /// Revokes the last grant that was not collected. Its waiter becomes the head of the line
    /// again.
    #[cold]
    fn revoke(&mut self) -> bool {
        let last = self.granted.pop_back();
        if let Some(id) = last {
            self.reserved -= 1;
            self.waiters.line.push_front(Waiter { id, token: None });
        }
        last.is_some()
    }

    /// Handles the release of a slot or sender. Returns the token to wake: at most one, since the
    /// senders are not gone while one of them waits.
    #[inline]
    fn freed(&mut self) -> Option<W> {
        if self.is_over() { self.receiver.take() } else { self.grant() }
    }
}
