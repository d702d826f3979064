//! Looking at a channel without changing it.

use super::{Channel, ChannelState, Receiving, WaiterId};
use crate::named::ensure;

impl<T, W> Channel<T, W> {
    getters! {
        /// How many slots there are.
        capacity(&self) -> usize = self.capacity;
        /// How many messages are queued.
        len(&self) -> usize = self.queue.len();
        /// Whether no message is queued.
        is_empty(&self) -> bool = self.queue.is_empty();
        /// How many slots are reserved, those that nobody has come for among them.
        reserved(&self) -> usize = self.reserved;
        /// How many slots were granted to senders that have not come for them.
        granted(&self) -> usize = self.granted.len();
        /// How many senders are in line.
        waiters(&self) -> usize = self.waiters.line.len();
        /// How many sender handles there are.
        senders(&self) -> usize = self.senders;
        /// How many slots are free, whoever waits for them.
        free(&self) -> usize = self.capacity - self.used();
        /// Whether the receiver is gone.
        is_receiver_closed(&self) -> bool = self.receiving == Receiving::Nothing;
        /// Whether the receiver takes no more senders, or is gone.
        is_refusing(&self) -> bool = self.receiving != Receiving::All;
        /// The messages, oldest first.
        messages(&self) -> impl Iterator<Item = &T> = self.queue.iter();
        /// The receiver's token, while it sleeps.
        receiver_waiting(&self) -> Option<&W> = self.receiver.as_ref();
    }

    /// Which sides are still there.
    pub fn state(&self) -> ChannelState {
        match (self.senders_gone(), self.is_receiver_closed()) {
            (false, false) => ChannelState::Open,
            (true, false) => ChannelState::SenderClosed,
            (false, true) => ChannelState::ReceiverClosed,
            (true, true) => ChannelState::FullyClosed,
        }
    }

    /// The senders in line that sleep, in order.
    pub fn waiting(&self) -> impl Iterator<Item = (WaiterId, &W)> {
        self.waiters.line.iter().filter_map(|waiter| Some((waiter.id, waiter.token.as_ref()?)))
    }

    /// Tests what must hold between any two calls; names the first broken rule.
    pub fn check(&self) -> Result<(), &'static str> {
        let asleep = self.receiver.is_some();
        let line_empty = self.waiters.line.is_empty();
        let granted_in_order = self.granted.iter().is_sorted_by(|a, b| a < b);
        let before_line = self.granted.back() < self.waiters.line.front().map(|head| &head.id);
        let grants_sound = granted_in_order && (line_empty || before_line);
        let nothing_left =
            self.queue.is_empty() && line_empty && !asleep && self.granted.is_empty();
        let open = !self.is_receiver_closed();
        let nobody_waits = line_empty && self.granted.is_empty();
        ensure(self.used() <= self.capacity, "more slots used than there are")?;
        ensure(self.waiters.is_sound(), "the waiters are out of order")?;
        ensure(line_empty || !self.has_room(), "somebody waits beside room")?;
        ensure(grants_sound, "the grants are out of order")?;
        ensure(self.granted.len() <= self.reserved, "more grants than reserved slots")?;
        ensure(!asleep || self.queue.is_empty(), "the receiver sleeps beside a message")?;
        ensure(open || nothing_left, "something is left behind a closed receiver")?;
        ensure(!asleep || !self.is_over(), "the receiver sleeps and no sender is left")?;
        ensure(!self.is_refusing() || nobody_waits, "a refused sender waits")
    }
}
