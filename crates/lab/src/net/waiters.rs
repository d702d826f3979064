//! Who waits at a socket.

use std::task::Waker;

use asx_runtime::net::{Direction, WaitSlot};

/// One who waits.
#[derive(Debug)]
struct Waiter {
    number: u32,
    direction: Direction,
    waker: Waker,
}

/// Those who wait at a socket.
#[derive(Debug)]
pub(super) struct Waiters {
    list: Vec<Waiter>,
    numbers: u32,
    /// In which directions nobody has found yet that the socket is not ready: a new one counts as
    /// ready, as those of the operating system do.
    untried: [bool; 2],
}

impl Waiters {
    pub(super) fn new() -> Waiters {
        Waiters { list: Vec::new(), numbers: 0, untried: [true; 2] }
    }

    /// Whether nobody has tried yet.
    pub(super) fn is_untried(&self, direction: Direction) -> bool {
        self.untried[direction as usize]
    }

    /// Somebody has tried, and it was not ready.
    pub(super) fn tried(&mut self, direction: Direction) {
        self.untried[direction as usize] = false;
    }

    /// Adds who waits, in place of the last waker in this slot, which comes out.
    pub(super) fn add(
        &mut self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: Waker,
    ) -> Option<Waker> {
        if let Some(known) = self.list.iter_mut().find(|it| it.number == slot.0 && slot.0 != 0) {
            return Some(std::mem::replace(&mut known.waker, waker));
        }
        self.numbers += 1;
        slot.0 = self.numbers;
        self.list.push(Waiter { number: slot.0, direction, waker });
        None
    }

    /// One waits no longer.
    pub(super) fn remove(&mut self, slot: &mut WaitSlot) -> Option<Waker> {
        let number = std::mem::take(&mut slot.0);
        let at = self.list.iter().position(|it| it.number == number)?;
        Some(self.list.remove(at).waker)
    }

    /// Takes out those who wait in a direction: they are to be woken.
    pub(super) fn take(&mut self, direction: Direction, woken: &mut Vec<Waker>) {
        let mut at = 0;
        while at < self.list.len() {
            match self.list[at].direction == direction {
                true => woken.push(self.list.remove(at).waker),
                false => at += 1,
            }
        }
    }

    /// Takes out all of them.
    pub(super) fn take_all(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.list.drain(..).map(|waiter| waiter.waker));
    }

    /// Those who wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Direction, &Waker)> {
        self.list.iter().map(|waiter| (waiter.direction, &waiter.waker))
    }
}
