//! A line of waiters, first come, first served.
//!
//! A waiter joins at the tail with what it wants and holds a [`Place`]. Whoever has something to
//! give calls the head: that takes it out of the line, leaves the gift at its place and yields the
//! waker, to be woken once the lock around the line is released ([`Wakes`]). The waiter finds the
//! gift when it looks again, or gets it handed back when it leaves, to pass it on. So a gift always
//! has exactly one owner, and a wakeup is never lost with a dropped future.
//!
//! Places are slots of a slab: joining allocates only when more wait than ever before.

use std::mem;
use std::task::Waker;

use asx_task::operation::guard;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Waiters that want a `W` each and are given a `G`.
#[derive(Debug)]
pub(super) struct Line<W, G> {
    slots: Vec<Slot<W, G>>,
    head: u32,
    tail: u32,
    free: u32,
    len: usize,
}

#[derive(Debug)]
enum Slot<W, G> {
    Free { next: u32 },
    Waiting { prev: u32, next: u32, waker: Waker, wants: W },
    Called(G),
}

/// One waiter's place. It is given back to the line by a [`Line::look`] that finds the gift or by
/// [`Line::leave`], and never otherwise.
#[derive(Debug)]
pub(crate) struct Place(u32);

/// What a waiter sees when it looks.
#[derive(Debug, PartialEq)]
pub(super) enum Look<G> {
    /// It was called, and its place is given back.
    Called(G),
    /// It waits on; the task that looked will be woken.
    Waiting,
    /// It waits on, but another task than before looks: look again with a clone of its waker.
    Stranger,
}

/// How a waiter left.
#[derive(Debug)]
pub(super) enum Left<G> {
    /// Uncalled; the waker is to be dropped outside the lock.
    Waiting(Waker),
    /// It had been called and didn't know yet.
    Called(G),
}

impl<W, G> Line<W, G> {
    pub(super) const fn new() -> Self {
        Line { slots: Vec::new(), head: NONE, tail: NONE, free: NONE, len: 0 }
    }

    /// How many wait uncalled.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The wakers of those who wait uncalled, in no order.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waker> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Waiting { waker, .. } => Some(waker),
            Slot::Free { .. } | Slot::Called(_) => None,
        })
    }

    /// What the head wants; `None` if nobody waits.
    pub(super) fn head(&self) -> Option<&W> {
        match self.slots.get(self.head as usize) {
            Some(Slot::Waiting { wants, .. }) => Some(wants),
            _ => None,
        }
    }

    /// Joins at the tail.
    pub(super) fn join(&mut self, waker: Waker, wants: W) -> Place {
        let slot = Slot::Waiting { prev: self.tail, next: NONE, waker, wants };
        let index = self.occupy(slot);
        self.point_next(self.tail, index);
        self.tail = index;
        self.len += 1;
        Place(index)
    }

    /// Takes the head out of the line, gives it something and yields the waker to wake.
    pub(super) fn call(&mut self, given: G) -> Option<Waker> {
        let slot = self.slots.get_mut(self.head as usize)?;
        let old = mem::replace(slot, Slot::Called(given));
        self.unlink(old)
    }

    /// Looks at one's place. `fresh` is taken when the waker kept there belongs to another task;
    /// what it replaces is put there instead, to be dropped outside the lock.
    pub(super) fn look(
        &mut self,
        place: &mut Option<Place>,
        current: &Waker,
        fresh: &mut Option<Waker>,
    ) -> Look<G> {
        let index = place.as_ref().map_or(NONE, |place| place.0);
        match self.slots.get_mut(index as usize) {
            Some(Slot::Waiting { waker, .. }) if waker.will_wake(current) => Look::Waiting,
            Some(Slot::Waiting { waker, .. }) => match fresh {
                Some(fresh) => {
                    mem::swap(waker, fresh);
                    Look::Waiting
                }
                None => Look::Stranger,
            },
            _ => match place.take().map(|place| self.leave(place)) {
                Some(Left::Called(given)) => Look::Called(given),
                _ => unreachable!("a place is in the line or called"),
            },
        }
    }

    /// Gives the place back, called or not.
    pub(super) fn leave(&mut self, Place(index): Place) -> Left<G> {
        let vacant = Slot::Free { next: self.free };
        let slot = mem::replace(&mut self.slots[index as usize], vacant);
        self.free = index;
        match slot {
            Slot::Called(given) => Left::Called(given),
            waiting => match self.unlink(waiting) {
                Some(waker) => Left::Waiting(waker),
                None => unreachable!("a place is in the line or called"),
            },
        }
    }

    /// Joins the neighbours of what was taken out of its slot.
    fn unlink(&mut self, slot: Slot<W, G>) -> Option<Waker> {
        let Slot::Waiting { prev, next, waker, .. } = slot else { return None };
        self.point_next(prev, next);
        match self.slots.get_mut(next as usize) {
            Some(Slot::Waiting { prev: back, .. }) => *back = prev,
            _ => self.tail = prev,
        }
        self.len -= 1;
        Some(waker)
    }

    /// Lets what comes after `from` be `to`; the head comes after nobody.
    fn point_next(&mut self, from: u32, to: u32) {
        match self.slots.get_mut(from as usize) {
            Some(Slot::Waiting { next, .. }) => *next = to,
            _ => self.head = to,
        }
    }

    fn occupy(&mut self, slot: Slot<W, G>) -> u32 {
        let index = self.free;
        match self.slots.get_mut(index as usize) {
            Some(vacant) => {
                if let Slot::Free { next } = mem::replace(vacant, slot) {
                    self.free = next;
                }
                index
            }
            None => {
                let index = self.slots.len();
                assert!(index < NONE as usize, "a line holds fewer than 2^32 waiters");
                self.slots.push(slot);
                index as u32
            }
        }
    }
}

/// Wakers taken under a lock. Dropping it wakes them in order, so let it outlive the lock's guard.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    first: Option<Waker>,
    rest: Vec<Waker>,
}

impl Wakes {
    pub(super) fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.rest.push(waker),
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        for waker in self.first.take().into_iter().chain(self.rest.drain(..)) {
            guard::wake(waker);
        }
    }
}
