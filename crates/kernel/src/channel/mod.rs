//! The bounded two-phase channel: many senders, one receiver.
//!
//! ```text
//! reserve -> Granted -> send -> queue -> recv
//!    |          \-> abort: the slot goes to the head of the line, or is free again
//!    \-> Waiting, in line -> a slot came free: it is the head's, who is woken -> reserve again
//!                       \-> leave: cancelled or dropped           -> Granted
//! ```
//!
//! A sender first reserves a slot, which can wait and be cancelled with nothing at stake; filling
//! the slot then cannot fail half-way. A slot is used from the grant until its message is
//! received, and never more than `capacity` are used. Slots are granted in the order of asking: one
//! that comes free while somebody waits is reserved for the head of the line at once, who is out of
//! line, is woken, and has only to come for it. If it leaves instead, the slot goes to the next.
//! Only an evicting send takes a slot that nobody has come for; whose it was is the head again. Who
//! wants several slots at once has as many places in a row, so that it is served in order too.
//!
//! The receiver may refuse further senders and go on receiving: what was sent and what permits that
//! are out will send still arrives, and then the channel is over.
//!
//! The structure is generic over the waiter's token `W` (a waker, a task id) and calls nobody:
//! whom to wake, and every token or message to be dropped, is handed out, so that a host does both
//! after it has released its lock. Cancellation is the caller's to check, before it asks.
//!
//! Two conditions hold between any two calls, and no wakeup can be lost while they do: there is no
//! room or nobody waits; if the receiver sleeps, there is no message and a sender is left.
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

/// A bounded channel of `T`, whose waiters are known by a `W`.
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
    /// Slots granted and not resolved, whether or not their sender has come for them.
    reserved: usize,
    /// Whose slots those are that nobody has come for, in the order of service: sorted, as ids only
    /// grow.
    granted: VecDeque<WaiterId>,
    waiters: Waiters<W>,
    /// The receiver's token while it sleeps.
    receiver: Option<W>,
    receiving: Receiving,
    /// Sender handles; permits and waiters count as senders too, see `senders_gone`.
    senders: usize,
}

/// What the receiver still takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiving {
    /// Whatever is sent.
    All,
    /// What was sent, and what permits that are out will send.
    Rest,
    /// Nothing: it is gone.
    Nothing,
}

/// What asking for a slot came to.
type Asked = Result<Reserve, Disconnected>;

/// What asking for several slots came to.
type AskedMany = Result<Reserve, ReserveManyRefused>;

/// Asking for slots.
impl<T, W> Channel<T, W> {
    /// An open channel with one sender.
    pub fn new(capacity: usize) -> Result<Self, ZeroCapacity> {
        if capacity == 0 {
            return Err(ZeroCapacity);
        }
        Ok(Channel::with_senders(capacity, 1, 0))
    }

    /// An open channel of one slot, which is reserved for the only sender: a permit. It is what
    /// [`try_reserve`](Channel::try_reserve) and [`drop_sender`](Channel::drop_sender) make of a
    /// new one.
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

    /// Asks for a slot, or for the one it was granted. `place` is the caller's place in line,
    /// `None` at first; asking again with it replaces the token and keeps the place. It is cleared
    /// once the caller no longer waits.
    ///
    /// The second answer is the token that is not kept (this one, or the one it replaced), to be
    /// dropped by the caller.
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

    /// Whether a slot was granted to this waiter, which has only to ask for it.
    pub fn has_grant(&self, waiter: WaiterId) -> bool {
        self.granted.binary_search(&waiter).is_ok()
    }

    /// Gives up a place in line, or a slot that was granted, because the waiter was cancelled or
    /// dropped.
    pub fn leave(&mut self, waiter: WaiterId) -> Left<W> {
        if self.take_grant(Some(waiter)) {
            return Left { was_there: true, token: None, wake: self.abort() };
        }
        let removed = self.waiters.remove(waiter);
        // A line that gets shorter makes no room.
        let wake = if self.is_over() { self.receiver.take() } else { None };
        Left { was_there: removed.is_some(), token: removed.flatten(), wake }
    }

    /// Reserves a slot if one is free and nobody waits.
    pub fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        self.admit().map(|()| self.reserved += 1)
    }

    /// [`reserve_with`](Channel::reserve_with) for `count` slots: all or none. They are gathered
    /// one by one, at the head of the line, and the caller is woken when it has them all. Who asks
    /// for more than there are in the channel is refused at once.
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

    /// Whether all slots were granted to a waiter that wants several, which has only to ask.
    pub fn has_grants(&self, places: Places) -> bool {
        self.has_grant(places.last())
    }

    /// [`leave`](Channel::leave) of a waiter that wants several.
    pub fn leave_many(&mut self, places: Places) -> LeftMany<W> {
        let mut left = LeftMany { was_there: false, token: None, wakes: Vec::new() };
        // Those still in line go first, so that no slot is granted to a place that goes, too.
        for id in places.ids().rev() {
            let one = self.leave(id);
            left.was_there |= one.was_there;
            left.token = left.token.or(one.token);
            left.wakes.extend(one.wake);
        }
        left
    }

    /// Reserves several slots, if so many are free and nobody waits.
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

    /// A further sender: a clone, or a weak one upgraded. `false`, and nothing changed, once the
    /// last one is gone.
    pub fn add_sender(&mut self) -> bool {
        let live = !self.senders_gone();
        self.senders += usize::from(live);
        live
    }

    /// One sender fewer. After the last one: the receiver, if it waits.
    pub fn drop_sender(&mut self) -> Option<W> {
        self.senders = self.senders.saturating_sub(1);
        self.freed()
    }
}

/// Filling slots.
impl<T, W> Channel<T, W> {
    /// Fills one reserved slot, whose sender has come for it.
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

    /// Frees one reserved slot: the waiting sender to wake that gets it, or the receiver if this
    /// was the last of the senders. Without a reserved slot nothing changes.
    pub fn abort(&mut self) -> Option<W> {
        if self.permits() == 0 {
            return None;
        }
        self.reserved -= 1;
        self.freed()
    }

    /// Sends if a slot is free and nobody waits: the receiver to wake.
    #[inline]
    pub fn try_send(&mut self, value: T) -> Result<Option<W>, TrySendError<T>> {
        match self.admit() {
            Ok(()) => Ok(self.commit(value)),
            Err(error) => Err(error.with(value)),
        }
    }

    /// [`try_send`](Channel::try_send), if that only puts the message into the queue: nobody is to
    /// be woken, and memory is at hand. Else nothing has changed.
    #[inline]
    pub fn try_send_quietly(&mut self, value: T) -> Result<(), T> {
        let room = self.queue.capacity();
        // Room for those as well whose slots are reserved; a message more never grows the queue.
        let at_hand = self.used() < room && self.queue.len() < room;
        if self.receiver.is_some() || !at_hand || !self.is_free() {
            return Err(value);
        }
        self.queue.push_back(value);
        Ok(())
    }

    /// Sends at once: into room, of which slots are a part that were granted and that nobody has
    /// come for; else in the place of the oldest message. Fails when full of permits only: those
    /// are never evicted.
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
    /// Takes the oldest message, or registers the receiver until there is one.
    ///
    /// The second answer is the token that is not kept (this one, or the one it replaced), to be
    /// dropped by the caller.
    pub fn recv_with(&mut self, token: W) -> (Recv<T, W>, Option<W>) {
        match self.try_recv() {
            Ok((value, wake)) => (Recv::Message { value, wake }, Some(token)),
            Err(TryRecvError::Disconnected) => (Recv::Disconnected, Some(token)),
            Err(TryRecvError::Empty) => (Recv::Waiting, self.receiver.replace(token)),
        }
    }

    /// Takes the oldest message, if any, with the waiting sender to wake that gets its slot.
    #[inline]
    pub fn try_recv(&mut self) -> Result<(T, Option<W>), TryRecvError> {
        match self.queue.pop_front() {
            Some(value) => Ok((value, self.grant())),
            None if self.is_over() => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }

    /// [`try_recv`](Channel::try_recv), if nobody waits for the slot and there is a message.
    #[inline]
    pub fn try_recv_quietly(&mut self) -> Option<T> {
        if self.waiters.line.is_empty() { self.queue.pop_front() } else { None }
    }

    /// Forgets that the receiver waits, because it was cancelled or dropped: its token, to be
    /// dropped. No message is consumed.
    pub fn cancel_recv(&mut self) -> Option<W> {
        self.receiver.take()
    }

    /// No sender gets a slot any more: those in line are to be woken, and learn of it. What was
    /// sent, and what permits that are out will send, can still be received.
    pub fn refuse_senders(&mut self) -> SendersRefused<W> {
        if self.receiving == Receiving::All {
            self.receiving = Receiving::Rest;
        }
        self.revoke_all();
        let receiver = if self.is_over() { self.receiver.take() } else { None };
        SendersRefused { wakes: self.waiters.take_all(), receiver }
    }

    /// The receiver is gone, for good. Everything that waited for it is handed out, once.
    pub fn close_receiver(&mut self) -> Closed<T, W> {
        self.receiving = Receiving::Nothing;
        self.revoke_all();
        Closed {
            messages: core::mem::take(&mut self.queue),
            wakes: self.waiters.take_all(),
            receiver: self.receiver.take(),
        }
    }

    /// Whether a message more than there are slots in use has room.
    #[inline]
    pub fn is_prepared(&self) -> bool {
        let used = self.queue.len() + self.reserved;
        used < self.queue.capacity() || used >= self.capacity
    }

    /// The same, and a sender more in line.
    #[inline]
    pub fn has_room_in_line(&self) -> bool {
        let waiting = self.waiters.line.len() + self.granted.len();
        let room = self.waiters.line.capacity().min(self.granted.capacity());
        self.is_prepared() && waiting < room
    }

    /// Makes room for a message more than there are slots in use, and for a sender more in line.
    /// Nothing has changed when it fails.
    pub fn try_reserve_room(&mut self) -> Result<(), alloc::collections::TryReserveError> {
        let most = self.capacity.saturating_sub(self.queue.len());
        self.queue.try_reserve(most.min(self.reserved + 1))?;
        self.granted.try_reserve(self.waiters.line.len() + 1)?;
        self.waiters.line.try_reserve(self.granted.len() + 1)
    }

    /// Takes all messages at once, with the waiting senders to wake that get their slots.
    pub fn drain(&mut self) -> (VecDeque<T>, Vec<W>) {
        let messages = core::mem::take(&mut self.queue);
        let mut wakes = Vec::new();
        while self.has_room() && !self.waiters.line.is_empty() {
            wakes.extend(self.grant());
        }
        (messages, wakes)
    }
}

/// For tokens that are plain data, so that none is ever dropped in here.
impl<T, W: Copy> Channel<T, W> {
    /// [`reserve_with`](Channel::reserve_with), without the spare token.
    pub fn reserve(&mut self, place: &mut Option<WaiterId>, token: W) -> Asked {
        self.reserve_with(place, token).0
    }

    /// [`recv_with`](Channel::recv_with), without the spare token.
    pub fn recv(&mut self, token: W) -> Recv<T, W> {
        self.recv_with(token).0
    }
}

impl<T, W> Channel<T, W> {
    /// Slots whose senders have come for them.
    fn permits(&self) -> usize {
        self.reserved - self.granted.len()
    }

    fn used(&self) -> usize {
        self.queue.len() + self.reserved
    }

    fn has_room(&self) -> bool {
        self.used() < self.capacity
    }

    /// Takes places in a row, of which the first have the slots that are free.
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

    /// Slots nobody has come for are free again.
    fn revoke_all(&mut self) {
        self.reserved -= self.granted.len();
        self.granted.clear();
    }

    /// Queues a message: the receiver to wake.
    fn commit(&mut self, value: T) -> Option<W> {
        self.queue.push_back(value);
        self.receiver.take()
    }

    /// A live permit and a waiting reserve keep the sender they came from counted, whether or not
    /// the host still holds its handle. Nothing gets from here back to a sender.
    #[inline]
    fn senders_gone(&self) -> bool {
        self.senders == 0 && self.reserved == 0 && self.waiters.line.is_empty()
    }

    /// Whether nobody is given a slot any more. Without any sender nobody can rightly ask for one.
    fn refuses_senders(&self) -> bool {
        self.receiving != Receiving::All || self.senders_gone()
    }

    /// Whether no message will be queued any more; there may be some.
    #[inline]
    pub fn is_over(&self) -> bool {
        let no_permit = self.reserved == 0;
        let refused = self.receiving == Receiving::Rest && no_permit;
        refused || self.receiving == Receiving::Nothing || self.senders_gone()
    }

    /// Whether a slot can be had at once.
    #[inline]
    fn admit(&self) -> Result<(), TryReserveError> {
        if self.is_free() { Ok(()) } else { self.refusal() }
    }

    /// Whether a slot is obviously free.
    #[inline]
    fn is_free(&self) -> bool {
        let free = self.senders > 0 && self.waiters.line.is_empty() && self.has_room();
        free && self.receiving == Receiving::All
    }

    /// The same, where it is not obvious.
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

    /// Takes a slot out of those granted, if it is one.
    fn take_grant(&mut self, waiter: Option<WaiterId>) -> bool {
        let at = waiter.and_then(|waiter| self.granted.binary_search(&waiter).ok());
        at.and_then(|at| take_at(&mut self.granted, at)).is_some()
    }

    /// Reserves free room for the head of the line, if there are both: whom to wake. Nobody, if it
    /// was woken for a slot before that was taken from it, and has not looked since.
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

    /// Takes back the slot that was granted last, if nobody has come for it: whose it was is in
    /// line again, before all others that wait.
    #[cold]
    fn revoke(&mut self) -> bool {
        let last = self.granted.pop_back();
        if let Some(id) = last {
            self.reserved -= 1;
            self.waiters.line.push_front(Waiter { id, token: None });
        }
        last.is_some()
    }

    /// A slot or a sender was given up: whom to wake. Never two, as the senders are not gone while
    /// one of them waits.
    #[inline]
    fn freed(&mut self) -> Option<W> {
        if self.is_over() { self.receiver.take() } else { self.grant() }
    }
}
