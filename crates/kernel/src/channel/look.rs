//! Queries of a channel, which do not change it.

use super::{Channel, ChannelState, Receiving, WaiterId};
use crate::named::ensure;

impl<T, W> Channel<T, W> {
    getters! {
        /// The number of slots.
        capacity(&self) -> usize = self.capacity;
        /// The number of queued messages.
        len(&self) -> usize = self.queue.len();
        /// Whether no message is queued.
        is_empty(&self) -> bool = self.queue.is_empty();
        /// The number of reserved slots, including granted ones that were not collected.
        reserved(&self) -> usize = self.reserved;
        /// The number of slots that were granted to waiters and not collected.
        granted(&self) -> usize = self.granted.len();
        /// The number of senders in line.
        waiters(&self) -> usize = self.waiters.line.len();
        /// The number of sender handles.
        senders(&self) -> usize = self.senders;
        /// The number of free slots, regardless of waiters.
        free(&self) -> usize = self.capacity - self.used();
        /// Whether the receiver is closed.
        is_receiver_closed(&self) -> bool = self.receiving == Receiving::Nothing;
        /// Whether the receiver refuses further senders, or is closed.
        is_refusing(&self) -> bool = self.receiving != Receiving::All;
        /// The messages, oldest first.
        messages(&self) -> impl Iterator<Item = &T> = self.queue.iter();
        /// The receiver's token, while it waits.
        receiver_waiting(&self) -> Option<&W> = self.receiver.as_ref();
    }

    /// Returns the sides that are open.
    pub fn state(&self) -> ChannelState {
        match (self.senders_gone(), self.is_receiver_closed()) {
            (false, false) => ChannelState::Open,
            (true, false) => ChannelState::SenderClosed,
            (false, true) => ChannelState::ReceiverClosed,
            (true, true) => ChannelState::FullyClosed,
        }
    }

    /// The waiting senders in line that were not woken, in order.
    pub fn waiting(&self) -> impl Iterator<Item = (WaiterId, &W)> {
        self.waiters.line.iter().filter_map(|waiter| Some((waiter.id, waiter.token.as_ref()?)))
    }

    /// Checks the invariants that hold between any two calls. Returns the first broken rule.
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
        ensure(self.used() <= self.capacity, "more slots are used than exist")?;
        ensure(self.waiters.is_sound(), "the waiters are out of order")?;
        ensure(line_empty || !self.has_room(), "a sender waits although a slot is free")?;
        ensure(grants_sound, "the grants are out of order")?;
        ensure(self.granted.len() <= self.reserved, "more grants than reserved slots")?;
        ensure(
            !asleep || self.queue.is_empty(),
            "the receiver waits although a message is queued",
        )?;
        ensure(open || nothing_left, "a closed receiver has left something behind")?;
        ensure(!asleep || !self.is_over(), "the receiver waits although no sender is left")?;
        ensure(!self.is_refusing() || nobody_waits, "a sender waits although senders are refused")
    }
}
