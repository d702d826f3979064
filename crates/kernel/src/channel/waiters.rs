//! The line of senders that wait for a slot.
//!
//! Ids only grow and newcomers join at the tail, so the line is sorted by id. Only the head is
//! ever woken: that takes its token but not its place, so it is woken once until it looks again,
//! and nobody overtakes it meanwhile.
//!
//! Or else the head is granted its slot, and woken with that. Then it waits no longer, but stays in
//! front of those who do until it has come for the slot: `[granted .. | waiting ..]`.

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
    /// How many in front have their slot.
    pub(super) granted: usize,
    pub(super) next: u64,
}

impl<W> Waiters<W> {
    /// Where the waiter stands; the head is at 0.
    pub(super) fn position(&self, id: WaiterId) -> Option<usize> {
        self.line.binary_search_by_key(&id, |waiter| waiter.id).ok()
    }

    /// Whether all that are left have their slots.
    #[inline]
    pub(super) fn nobody_waits(&self) -> bool {
        self.line.len() == self.granted
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

    /// Grants the first that waits its slot, and takes its token.
    pub(super) fn grant_head(&mut self) -> Option<W> {
        let token = self.line.get_mut(self.granted)?.token.take();
        self.granted += 1;
        token
    }

    /// Removes one waiter: its token, unless it was woken, and whether it had its slot. `None`: it
    /// is not here.
    pub(super) fn remove(&mut self, id: WaiterId) -> Option<(Option<W>, bool)> {
        let position = self.position(id)?;
        let granted = position < self.granted;
        self.granted -= usize::from(granted);
        self.line.remove(position).map(|waiter| (waiter.token, granted))
    }

    /// Ids grow along the line and stay below the next one; only the head is woken, or else all
    /// that have their slots.
    pub(super) fn is_sound(&self) -> bool {
        let ids = self.line.iter().map(|waiter| waiter.id.0);
        let mut tokens = self.line.iter().map(|waiter| &waiter.token);
        ids.clone().is_sorted_by(|a, b| a < b)
            && ids.max().is_none_or(|last| last < self.next)
            && self.granted <= self.line.len()
            && tokens.by_ref().take(self.granted).all(Option::is_none)
            && tokens.skip(usize::from(self.granted == 0)).all(Option::is_some)
    }
}
