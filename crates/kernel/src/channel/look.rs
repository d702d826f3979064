//! Looking at a channel without changing it.

use super::{Channel, ChannelState, WaiterId};

impl<T, W> Channel<T, W> {
    /// How many slots there are.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many messages are queued.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many permits are out.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// How many senders are in line.
    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// How many sender handles there are.
    pub fn senders(&self) -> usize {
        self.senders
    }

    /// Whether the receiver is gone.
    pub fn is_receiver_closed(&self) -> bool {
        self.receiver_closed
    }

    /// Which sides are still there.
    pub fn state(&self) -> ChannelState {
        match (self.senders_gone(), self.receiver_closed) {
            (false, false) => ChannelState::Open,
            (true, false) => ChannelState::SenderClosed,
            (false, true) => ChannelState::ReceiverClosed,
            (true, true) => ChannelState::FullyClosed,
        }
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &T> {
        self.queue.iter()
    }

    /// The senders in line that sleep, in order.
    pub fn waiting(&self) -> impl Iterator<Item = (WaiterId, &W)> {
        self.waiters.iter().filter_map(|(id, token)| Some((id, token?)))
    }

    /// The head of the line, if it was woken and has not looked again.
    pub fn woken(&self) -> Option<WaiterId> {
        self.waiters.iter().next().filter(|(_, token)| token.is_none()).map(|(id, _)| id)
    }

    /// The receiver's token, while it sleeps.
    pub fn receiver_waiting(&self) -> Option<&W> {
        self.receiver.as_ref()
    }

    /// Tests what must hold between any two calls; names the first broken rule.
    pub fn check(&self) -> Result<(), &'static str> {
        let asleep = self.receiver.is_some();
        let rules = [
            (self.used() <= self.capacity, "more slots used than there are"),
            (self.waiters.is_sound(), "the waiters are out of order"),
            (
                self.waiters.is_empty() || self.woken().is_some() == self.has_room(),
                "the head waiter is awake exactly if there is room",
            ),
            (!asleep || self.queue.is_empty(), "the receiver sleeps beside a message"),
            (!asleep || !self.senders_gone(), "the receiver sleeps and no sender is left"),
            (
                !self.receiver_closed
                    || (self.queue.is_empty() && self.waiters.is_empty() && !asleep),
                "something is left behind a closed receiver",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(*rule))
    }
}
