//! The line of senders that wait for a slot.
//!
//! Ids only grow and newcomers join at the tail, so the line is sorted by id.

use crate::sorted::take_at;
use alloc::collections::VecDeque;

/// A place in the line of waiting senders; a later place has a larger id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(super) u64);

#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The tokens of those who waited, in order, but for who was woken before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakes<W>(VecDeque<Waiter<W>>);

impl<W> Iterator for Wakes<W> {
    type Item = W;

    fn next(&mut self) -> Option<W> {
        loop {
            if let Some(token) = self.0.pop_front()?.token {
                return Some(token);
            }
        }
    }
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
        take_at(&mut self.line, position).map(|waiter| waiter.token)
    }

    /// Everybody leaves.
    pub(super) fn take_all(&mut self) -> Wakes<W> {
        Wakes(core::mem::take(&mut self.line))
    }

    /// Ids grow along the line and stay below the next one.
    pub(super) fn is_sound(&self) -> bool {
        let ids = self.line.iter().map(|waiter| waiter.id.0);
        ids.clone().is_sorted_by(|a, b| a < b) && ids.max().is_none_or(|last| last < self.next)
    }
}
