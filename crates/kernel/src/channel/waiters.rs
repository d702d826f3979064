//! The line of senders that wait for a slot.
//!
//! Ids only grow and senders join at the tail, so the line is sorted by id.

use crate::sorted::take_at;
use alloc::collections::VecDeque;

/// A place in the line of waiting senders; a later place has a larger id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(super) u64);

/// The consecutive places of one sender that requests several slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Places {
    first: u64,
    last: u64,
}

impl Places {
    /// The last place, which is served last.
    pub(super) fn last(self) -> WaiterId {
        WaiterId(self.last)
    }

    pub(super) fn ids(self) -> impl DoubleEndedIterator<Item = WaiterId> {
        (self.first..=self.last).map(WaiterId)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiter<W> {
    pub(super) id: WaiterId,
    /// `None` if the waiter was woken for a slot that was revoked and has not retried since, or if
    /// this is not the last place of its sender.
    pub(super) token: Option<W>,
}

#[derive(Clone, Debug)]
pub(super) struct Waiters<W> {
    pub(super) line: VecDeque<Waiter<W>>,
    pub(super) next: u64,
}

/// The tokens of the waiters that were not woken before, in order.
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
    /// Returns the position of a waiter; the head is at 0.
    pub(super) fn position(&self, id: WaiterId) -> Option<usize> {
        self.line.binary_search_by_key(&id, |waiter| waiter.id).ok()
    }

    /// Adds a waiter at the tail.
    pub(super) fn join(&mut self, token: W) -> WaiterId {
        let id = WaiterId(self.next);
        self.next += 1;
        self.line.push_back(Waiter { id, token: Some(token) });
        id
    }

    /// Takes `count` consecutive places. The first `served` of them, fewer than all, are not added
    /// to the line.
    pub(super) fn join_many(&mut self, count: usize, served: usize, token: W) -> Places {
        let places = Places { first: self.next, last: self.next + count as u64 - 1 };
        self.next += count as u64;
        let before = places.ids().take(count - 1).skip(served);
        self.line.extend(before.map(|id| Waiter { id, token: None }));
        self.line.push_back(Waiter { id: places.last(), token: Some(token) });
        places
    }

    /// Replaces the token of a waiter. Returns the token that is not kept.
    pub(super) fn replace(&mut self, id: WaiterId, token: W) -> Option<W> {
        match self.position(id) {
            Some(at) => self.line[at].token.replace(token),
            None => Some(token),
        }
    }

    /// Removes a waiter from the line. Returns its token.
    pub(super) fn remove(&mut self, id: WaiterId) -> Option<Option<W>> {
        let position = self.position(id)?;
        take_at(&mut self.line, position).map(|waiter| waiter.token)
    }

    /// Removes all waiters.
    pub(super) fn take_all(&mut self) -> Wakes<W> {
        Wakes(core::mem::take(&mut self.line))
    }

    /// Whether the ids grow along the line and are below the next one.
    pub(super) fn is_sound(&self) -> bool {
        let ids = self.line.iter().map(|waiter| waiter.id.0);
        ids.clone().is_sorted_by(|a, b| a < b) && ids.max().is_none_or(|last| last < self.next)
    }
}
