//! Whether somebody would see an event, though the workers that are awake are held up.
//!
//! A worker that left the reactor for a task may be held up by it for as long as it likes, and what
//! sockets tell meanwhile would wait. So one of those that are parked beside it *ticks*: it gets up
//! from time to time, and goes into the reactor if nobody is there. When nothing happens all are
//! parked, one of them in the reactor, and nobody need get up: then it stops to tick.
//!
//! # Why somebody always sees an event
//! Who stops to tick says so, then fences, then looks whether somebody is in the reactor; if not,
//! it does not stop. Who left the reactor has said so before it finds work; if it is the last that
//! searches, [`found_work`](crate::idle::Idle::found_work) fences, and then it looks whether
//! somebody ticks; if not, it wakes a worker that is parked. The fences are `SeqCst`, so one is
//! first: one of the two sees the other.

use crate::prim::atomic::Ordering::{Relaxed, SeqCst};
use crate::prim::atomic::{AtomicBool, AtomicUsize, fence};

#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// A worker is parked in the reactor.
    occupied: AtomicBool,
    /// A worker that is parked beside it gets up from time to time.
    ticking: AtomicBool,
    /// How often a worker has left the reactor.
    left: AtomicUsize,
}

impl Presence {
    /// The caller, which holds the lock of the reactor, parks in it for as long as this lives.
    pub(crate) fn enter(&self) -> Inside<'_> {
        self.occupied.store(true, Relaxed);
        Inside(self)
    }

    /// The caller, which is parked, ticks for as long as this lives, unless another does.
    pub(crate) fn tick(&self) -> Option<Ticking<'_>> {
        // It is a hint that somebody does: who stops looks for itself.
        if self.ticking.load(Relaxed) || self.ticking.swap(true, Relaxed) {
            return None;
        }
        Some(Ticking { presence: self, left: self.left.load(Relaxed), has_stopped: false })
    }

    /// Whether an event is seen though all workers that are awake are held up. Asked by the last
    /// that searched, when it has found work and fenced.
    pub(crate) fn is_watched(&self) -> bool {
        self.ticking.load(Relaxed) || self.occupied.load(Relaxed)
    }
}

/// See [`Presence::enter`].
pub(crate) struct Inside<'a>(&'a Presence);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Relaxed);
        self.0.occupied.store(false, Relaxed);
    }
}

/// See [`Presence::tick`].
pub(crate) struct Ticking<'a> {
    presence: &'a Presence,
    /// How often a worker had left the reactor at the last tick.
    left: usize,
    /// Another may tick meanwhile.
    has_stopped: bool,
}

/// What a worker that ticked does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// It ticks on: something has happened.
    Again,
    /// It may sleep until it is woken: another is in the reactor, and stayed there.
    Stop,
    /// It tries the reactor: nobody is there.
    Look,
}

impl Ticking<'_> {
    /// A tick is over.
    pub(crate) fn next(&mut self) -> Tick {
        let Presence { occupied, ticking, left } = self.presence;
        let before = std::mem::replace(&mut self.left, left.load(Relaxed));
        if !occupied.load(Relaxed) {
            return Tick::Look;
        }
        if before != self.left {
            return Tick::Again;
        }
        self.has_stopped = true;
        ticking.store(false, Relaxed);
        fence(SeqCst);
        if occupied.load(Relaxed) { Tick::Stop } else { Tick::Look }
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        if !self.has_stopped {
            self.presence.ticking.store(false, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_ticks_until_another_stays_in_the_reactor() {
        let presence = Presence::default();
        assert!(!presence.is_watched());
        let mut ticking = presence.tick().unwrap();
        assert!(presence.is_watched() && presence.tick().is_none());
        assert_eq!(ticking.next(), Tick::Look);
        let inside = presence.enter();
        drop(inside);
        assert_eq!(ticking.next(), Tick::Look);
        let inside = presence.enter();
        assert_eq!(ticking.next(), Tick::Stop);
        let other = presence.tick().unwrap();
        drop(ticking);
        assert!(presence.tick().is_none(), "the other one ticks");
        drop(other);
        let mut ticking = presence.tick().unwrap();
        drop(inside);
        let _inside = presence.enter();
        assert_eq!([ticking.next(), ticking.next()], [Tick::Again, Tick::Stop]);
        drop(ticking);
        assert!(presence.is_watched());
    }
}
