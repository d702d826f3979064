//! The line of senders that wait for a slot.
//!
//! Ids only grow and newcomers join at the tail, so the line is sorted by id.

use alloc::collections::VecDeque;

/// A place in the line of waiting senders; a later place has a larger id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(super) u64);

#[derive(Clone, Debug)]
pub(super) struct Waiter<W> {
    pub(super) id: WaiterId,
    /// `None`: it was woken for a slot that was taken from it, and has not looked since.
    pub(super) token: Option<W>,
}

#[derive(Clone, Debug)]
pub(super) struct Waiters<W> {
    pub(super) line: VecDeque<Waiter<W>>,
    pub(super) next: u64,
}

impl<W> Waiters<W> {
    /// Where the waiter stands; the head is at 0.
    pub(super) fn position(&self, id: WaiterId) -> Option<usize> {
        self.line.binary_search_by_key(&id, |waiter| waiter.id).ok()
    }

    /// Joins at the tail.
    pub(super) fn join(&mut self, token: W) -> WaiterId {
        let id = WaiterId(self.next);
        self.next += 1;
        self.line.push_back(Waiter { id, token: Some(token) });
        id
    }

    /// Removes one waiter, if it is here: its token.
    pub(super) fn remove(&mut self, id: WaiterId) -> Option<Option<W>> {
        let position = self.position(id)?;
        self.line.remove(position).map(|waiter| waiter.token)
    }

    /// Ids grow along the line and stay below the next one.
    pub(super) fn is_sound(&self) -> bool {
        let ids = self.line.iter().map(|waiter| waiter.id.0);
        ids.clone().is_sorted_by(|a, b| a < b) && ids.max().is_none_or(|last| last < self.next)
    }
}
