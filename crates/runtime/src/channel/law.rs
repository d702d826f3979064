//! The law of the channel, and slots that are granted.
//!
//! When a slot comes free while senders wait, the law wakes the head of the line, which takes the
//! slot when it asks again; until it runs, the line stands, however much room there is. A channel
//! that grants asks again *for* the head, at once: the law gives the slot, the head is out of line,
//! and has only to come for it. Nothing is decided here: all of it are questions the head would
//! have asked, only sooner. So the order of service is the law's, and nobody waits for a woken head
//! to run.
//!
//! Between any two calls a channel that grants has no room or no line.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use asx_kernel::channel::{
    Channel, Closed, Disconnected, Left, Reserve, TryRecvError, WaiterId, ZeroCapacity,
};

#[derive(Clone)]
pub(crate) struct Law<T, W> {
    channel: Channel<T, W>,
    /// Who has a slot and has not come for it, in the order of service: sorted, as ids only grow.
    /// `None`: heads are woken, and ask themselves.
    granted: Option<VecDeque<WaiterId>>,
}

impl<T, W> Law<T, W> {
    /// A channel whose free slots wake the head of the line.
    #[cfg(not(loom))]
    pub(super) fn waking(capacity: usize) -> Result<Self, ZeroCapacity> {
        Ok(Law { channel: Channel::new(capacity)?, granted: None })
    }

    /// A channel whose free slots are granted to the head of the line.
    pub(super) fn granting(capacity: usize) -> Result<Self, ZeroCapacity> {
        Ok(Law { channel: Channel::new(capacity)?, granted: Some(VecDeque::new()) })
    }

    /// Whether asking again would come to something: it was woken, or has its slot.
    pub(super) fn is_due(&self, waiter: WaiterId) -> bool {
        self.channel.woken() == Some(waiter) || self.position(waiter).is_some()
    }

    /// Where a slot is among those granted.
    fn position(&self, waiter: WaiterId) -> Option<usize> {
        self.granted.as_ref()?.binary_search(&waiter).ok()
    }

    /// Takes a slot out of those granted, if it is one.
    fn take_grant(&mut self, waiter: Option<WaiterId>) -> bool {
        let position = waiter.and_then(|waiter| self.position(waiter));
        let granted = self.granted.as_mut().zip(position);
        granted.and_then(|(granted, at)| granted.remove(at)).is_some()
    }

    /// Somebody was woken, as a slot came free: if it was the head of the line, grants it the slot.
    #[inline]
    fn grant(&mut self, woken: Option<W>) -> Option<W> {
        woken.and_then(|token| self.ask_again(token))
    }

    /// Asks for the woken head of the line, and hands its token out again.
    fn ask_again(&mut self, token: W) -> Option<W> {
        let (Some(granted), Some(head)) = (&mut self.granted, self.channel.woken()) else {
            // The head asks itself, or it was the receiver that was woken.
            return Some(token);
        };
        let (asked, token) = self.channel.reserve_with(&mut Some(head), token);
        // One slot came free, so that there is none for the next.
        debug_assert!(matches!(asked, Ok(Reserve::Granted { wake: None })), "it was woken");
        granted.push_back(head);
        token
    }
}

/// Questions whose answers differ, or free a slot. For all others the law is asked.
impl<T, W> Law<T, W> {
    /// Asks for a slot, or for the one it was granted.
    pub(super) fn reserve_with(
        &mut self,
        place: &mut Option<WaiterId>,
        token: W,
    ) -> (Result<Reserve<W>, Disconnected>, Option<W>) {
        if self.take_grant(*place) {
            *place = None;
            return (Ok(Reserve::Granted { wake: None }), Some(token));
        }
        self.channel.reserve_with(place, token)
    }

    /// Gives up a place in line, or the slot that was granted.
    pub(super) fn leave(&mut self, waiter: WaiterId) -> Left<W> {
        if self.take_grant(Some(waiter)) {
            return Left { token: None, wake: self.abort() };
        }
        self.channel.leave(waiter)
    }

    pub(super) fn abort(&mut self) -> Option<W> {
        let woken = self.channel.abort();
        self.grant(woken)
    }

    #[inline]
    pub(super) fn try_recv(&mut self) -> Result<(T, Option<W>), TryRecvError> {
        let (value, woken) = self.channel.try_recv()?;
        Ok((value, self.grant(woken)))
    }

    /// Closes the side of the receiver. Slots nobody has come for are free again.
    pub(super) fn close_receiver(&mut self) -> Closed<T, W> {
        let closed = self.channel.close_receiver();
        for _ in self.granted.iter_mut().flat_map(|granted| granted.drain(..)) {
            let woken = self.channel.abort();
            debug_assert!(woken.is_none(), "everybody was woken by the close");
        }
        closed
    }
}

impl<T, W> Deref for Law<T, W> {
    type Target = Channel<T, W>;

    #[inline]
    fn deref(&self) -> &Channel<T, W> {
        &self.channel
    }
}

impl<T, W> DerefMut for Law<T, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Channel<T, W> {
        &mut self.channel
    }
}
