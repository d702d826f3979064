//! What both sides of a channel can see of it, each with the same look.

use asx_kernel::channel::ChannelState;
use asx_task::footprint;

use super::shared::Shared;

impl<T> Shared<T> {
    /// How many messages are queued.
    pub(super) fn len(&self) -> usize {
        let _after = footprint::operation();
        self.with(|channel| channel.len())
    }

    /// How many slots are free.
    pub(super) fn free_slots(&self) -> usize {
        let _after = footprint::operation();
        self.with(|channel| channel.free())
    }

    /// How many messages and permits there can be at once.
    pub(super) fn capacity(&self) -> usize {
        let _after = footprint::operation();
        self.with(|channel| channel.capacity())
    }

    /// How many senders there are; permits and weak senders are not counted.
    pub(super) fn senders(&self) -> usize {
        let _after = footprint::operation();
        self.with(|channel| channel.senders())
    }

    /// As senders see it: whether nothing can be reserved any more.
    pub(super) fn is_refusing(&self) -> bool {
        let _after = footprint::operation();
        self.with(|channel| channel.is_refusing())
    }

    /// As receivers see it: whether it takes no more senders, or none is left.
    pub(super) fn is_ending(&self) -> bool {
        let _after = footprint::operation();
        self.with(|channel| channel.is_refusing() || channel.state() != ChannelState::Open)
    }
}
