//! Ensures that events are seen while the workers that are awake are inside long polls.
//!
//! A worker that left the reactor for a task may be inside that task's poll for any time, and
//! socket events would wait. One of the workers parked outside the reactor therefore *ticks*: it
//! wakes regularly, and enters the reactor if no worker is there. Without activity all workers are
//! parked, one of them in the reactor, and the ticks stop.
//!
//! # Why some worker always sees an event
//! 1. A worker that stops ticking clears `ticking`, fences, then reads `occupied`. If the reactor
//!    is not occupied, it does not stop.
//! 2. A worker that leaves the reactor clears `occupied` before it finds work. If it is the last
//!    searcher, [`found_work`](crate::idle::Idle::found_work) fences. It then reads `ticking` and
//!    wakes a parked worker if none ticks.
//! 3. Both fences are `SeqCst`, so one is first, and one of the two workers sees the other.

use crate::prim::atomic::Ordering::{Relaxed, SeqCst};
use crate::prim::atomic::{AtomicBool, AtomicUsize, fence};

#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// A worker is parked in the reactor.
    occupied: AtomicBool,
    /// A worker parked outside the reactor wakes regularly.
    ticking: AtomicBool,
    /// The number of times a worker has left the reactor.
    left: AtomicUsize,
}

impl Presence {
    /// Records that the caller, which holds the lock of the reactor, is parked in it until the
    /// result is dropped.
    pub(crate) fn enter(&self) -> Inside<'_> {
        self.occupied.store(true, Relaxed);
        Inside(self)
    }

    /// Makes the caller, which is parked, the ticking worker until the result is dropped. Returns
    /// `None` if another one ticks.
    pub(crate) fn tick(&self) -> Option<Ticking<'_>> {
        // Relaxed: a worker that stops ticking checks the reactor by itself.
        if self.ticking.load(Relaxed) || self.ticking.swap(true, Relaxed) {
            return None;
        }
        Some(Ticking { presence: self, left: self.left.load(Relaxed), has_stopped: false })
    }

    /// Returns true if events are seen although all workers that are awake may be inside long
    /// polls. Called by the last searcher after it has found work and fenced.
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
    /// The number of departures from the reactor at the last tick.
    left: usize,
    /// It has stopped, so that another worker may tick.
    has_stopped: bool,
}

/// The next action of a ticking worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Continue to tick: there was activity.
    Continue,
    /// Sleep until woken: another worker is in the reactor, and stayed there.
    Stop,
    /// Try to enter the reactor: no worker is there.
    Enter,
}

impl Ticking<'_> {
    /// Ends a tick.
    pub(crate) fn next(&mut self) -> Tick {
        let Presence { occupied, ticking, left } = self.presence;
        let before = std::mem::replace(&mut self.left, left.load(Relaxed));
        if !occupied.load(Relaxed) {
            return Tick::Enter;
        }
        if before != self.left {
            return Tick::Continue;
        }
        self.has_stopped = true;
        ticking.store(false, Relaxed);
        fence(SeqCst);
        if occupied.load(Relaxed) { Tick::Stop } else { Tick::Enter }
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
    fn one_worker_ticks_until_another_stays_in_the_reactor() {
        let presence = Presence::default();
        assert!(!presence.is_watched());
        let mut ticking = presence.tick().unwrap();
        assert!(presence.is_watched() && presence.tick().is_none());
        assert_eq!(ticking.next(), Tick::Enter);
        let inside = presence.enter();
        drop(inside);
        assert_eq!(ticking.next(), Tick::Enter);
        let inside = presence.enter();
        assert_eq!(ticking.next(), Tick::Stop);
        let other = presence.tick().unwrap();
        drop(ticking);
        assert!(presence.tick().is_none(), "the other worker ticks");
        drop(other);
        let mut ticking = presence.tick().unwrap();
        drop(inside);
        let _inside = presence.enter();
        assert_eq!([ticking.next(), ticking.next()], [Tick::Continue, Tick::Stop]);
        drop(ticking);
        assert!(presence.is_watched());
    }
}
