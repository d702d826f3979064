//! The line of senders that wait for a slot.
//!
//! Ids only grow and newcomers join at the tail, so the line is sorted by id. Only the head is
//! ever woken: that takes its token but not its place, so it is woken once until it looks again,
//! and nobody overtakes it meanwhile.

use alloc::collections::VecDeque;

/// A place in the line of waiting senders; a later place has a larger id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(super) u64);

#[derive(Clone, Debug)]
pub(super) struct Waiter<W> {
    pub(super) id: WaiterId,
    /// `None` once woken.
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

    /// Takes the head's token, unless it was taken before.
    pub(super) fn wake_head(&mut self) -> Option<W> {
        self.line.front_mut()?.token.take()
    }

    /// Removes one waiter. The outer `None`: it is not here; the inner: it was woken already.
    pub(super) fn remove(&mut self, id: WaiterId) -> Option<Option<W>> {
        let position = self.position(id)?;
        self.line.remove(position).map(|waiter| waiter.token)
    }

    /// Ids grow along the line and stay below the next one; only the head is woken.
    pub(super) fn is_sound(&self) -> bool {
        let ids = self.line.iter().map(|waiter| waiter.id.0);
        ids.clone().is_sorted_by(|a, b| a < b)
            && ids.max().is_none_or(|last| last < self.next)
            && self.line.iter().skip(1).all(|waiter| waiter.token.is_some())
    }
}
