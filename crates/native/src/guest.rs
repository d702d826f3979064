//! Guests: threads in `block_on` that are no workers.
//!
//! With two workers or more each worker is a thread of the runtime's own, and all threads in
//! `block_on` are guests. With one worker, the first of them is it:
//!
//! ```text
//!              no worker 0                         it is over
//!   block_on ---------------> worker 0 -------------------------> the place is free
//!      |                         ^                                    |
//!      | there is one            | takes the place                    | wakes an idle guest
//!      v                         |                                    v
//!    guest: polls its own -------+----------------------------------- looks between any two polls
//! ```
//!
//! A guest polls what is pinned to it (its program's body, what was started there to stay there)
//! and nothing else. What it makes runnable besides goes to the global lanes. With nothing to poll
//! it parks, until something is sent to its [`BlockOnSlot`], the place of worker 0 gets free, or a
//! timer is late.
//!
//! It then takes the place, and keeps it until its program is over: what is not pinned needs a
//! thread, and timers somebody who looks at them. As worker 0 it polls in turn what is pinned to
//! its seat and what a worker polls.
//!
//! # Why nothing waits for ever
//! 1. *What is sent to a seat.* Who sends pushes, fences, then reads whether the guest is a worker;
//!    who becomes one says so, fences, then looks at the seat. So a worker that parks has seen the
//!    push, or is notified as one; and a guest's parker keeps the token.
//! 2. *The free place.* It is given back under the lock under which guests are listed as idle. So a
//!    guest that parks has seen that it is free, or is on the list, of which one is woken then; and
//!    one that leaves instead wakes the next. Who is not idle looks before its next poll.

use std::cell::{Cell, OnceCell, RefCell};
use std::ptr;
use std::sync::Arc;

use asx_kernel::lanes::{
    Fairness, FairnessConfig, Lane, Pending, Queues, Stolen, Taken, Verdict, dispatch,
};
use asx_runtime::{Core, Dispatch, Host, RunContext, Runnable};

use crate::block_on_slots::BlockOnSlots;
use crate::idle::Idle;
use crate::lanes::SharedLanes;
use crate::metrics::Counters;
use crate::parker::Parker;
use crate::prim::atomic::Ordering::{Relaxed, SeqCst};
use crate::prim::atomic::{AtomicBool, AtomicUsize, fence};
use crate::shared::Shared;
use crate::worker::{LATE, Worker};

/// How many guests there can be at a time.
pub(crate) const GUESTS: usize = 256;

thread_local! {
    /// The runtime this thread is a guest of, and its number there. Only compared, never followed.
    static HERE: Cell<(*const Shared, u16)> = const { Cell::new((ptr::null(), 0)) };
}

/// What others see of a guest.
#[derive(Default)]
pub(crate) struct BlockOnSlot {
    /// What only this guest polls.
    pub(crate) lanes: SharedLanes,
    pub(crate) parker: Parker,
    /// The guest is worker 0 too, and parks as that.
    works: AtomicBool,
    /// How many tasks live that must run here.
    pub(crate) pins: AtomicUsize,
    pub(crate) counters: Counters,
}

impl BlockOnSlot {
    /// Something was sent here.
    pub(crate) fn call(&self, idle: &Idle) {
        fence(SeqCst);
        match self.works.load(Relaxed) {
            true => idle.notify_worker(0),
            false => self.parker.unpark(),
        }
    }
}

/// One guest, on its thread.
pub(crate) struct Guest<'a> {
    pub(crate) pin: u16,
    seat: &'a BlockOnSlot,
    shared: &'a Arc<Shared>,
    core: &'a Core,
    places: &'a BlockOnSlots,
    fairness: RefCell<Fairness>,
    /// Worker 0, once this thread is that.
    worker: OnceCell<Box<Worker>>,
    _here: Here,
}

/// The thread is a guest for as long as this lives.
struct Here;

impl Here {
    fn enter(shared: &Arc<Shared>, pin: u16) -> Here {
        HERE.set((Arc::as_ptr(shared), pin));
        Here
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set((ptr::null(), 0));
    }
}

impl<'a> Guest<'a> {
    /// Takes a seat that was given to this thread.
    pub(crate) fn sit(
        pin: u16,
        shared: &'a Arc<Shared>,
        core: &'a Core,
        places: &'a BlockOnSlots,
    ) -> Option<Guest<'a>> {
        let cancel_streak_limit = shared.rules.cancel_streak_limit;
        let fairness = RefCell::new(Fairness::new(FairnessConfig {
            cancel_streak_limit,
            ..FairnessConfig::default()
        }));
        let seat = shared.seat(pin)?;
        let worker = OnceCell::new();
        let _here = Here::enter(shared, pin);
        Some(Guest { pin, seat, shared, core, places, fairness, worker, _here })
    }

    /// Whether this thread is a guest anywhere.
    pub(crate) fn is_any() -> bool {
        !HERE.get().0.is_null()
    }

    /// Whether this thread is that guest.
    pub(crate) fn is_here(shared: &Shared, pin: u16) -> bool {
        HERE.get() == (ptr::from_ref(shared), pin)
    }

    /// Which guest of this runtime the thread is.
    pub(crate) fn here(shared: &Shared) -> Option<u16> {
        let (runtime, pin) = HERE.get();
        ptr::eq(runtime, shared).then_some(pin)
    }

    /// Runs what is pinned to this thread, and what a worker runs once it is one, until `done`.
    pub(crate) fn run(&self, done: impl Fn() -> bool) {
        while !done() {
            if let Some(worker) = self.worker() {
                worker.act(|| self.step());
                // One turn, and further ones while there is nothing at the seat.
                let turn = Cell::new(true);
                worker.run(|| done() || (!turn.replace(false) && self.seat.lanes.total() > 0));
            } else if !self.step() {
                self.fairness.borrow_mut().parked();
                self.seat.counters.parks.add(1);
                let next = self.core.next_timer();
                let now = self.shared.now();
                let late = next.map(|next| next + LATE - now);
                self.places.wait(self.pin, || self.seat.parker.park(late));
                self.fire_late_timers();
            }
        }
    }

    /// Timers are the workers' to fire. When all of those are held up by polls that do not return,
    /// a guest that has nothing else to do steps in.
    fn fire_late_timers(&self) {
        let now = self.shared.now();
        if self.core.next_timer().is_some_and(|next| next + LATE <= now) {
            self.core.fire_timers(now);
        }
    }

    /// How many tasks live that must run on this thread.
    pub(crate) fn pins(&self) -> usize {
        self.seat.pins.load(Relaxed) + self.worker.get().map_or(0, |worker| worker.pins())
    }

    /// The worker this thread is, which it becomes if none is there.
    fn worker(&self) -> Option<&Worker> {
        if self.worker.get().is_none() {
            let worker = self.places.take_free()?;
            self.shared.idle.join();
            self.seat.works.store(true, Relaxed);
            fence(SeqCst);
            return Some(self.worker.get_or_init(|| worker));
        }
        self.worker.get().map(|worker| &**worker)
    }

    /// Polls one task that is pinned here, or drops a dead entry: false if there is none.
    fn step(&self) -> bool {
        let mut view = View { lanes: &self.seat.lanes, fairness: *self.fairness.borrow() };
        let suggest =
            |view: &View<'_>, pending| self.shared.suggestion(pending, view.lanes, self.core);
        let Some((chosen, entry)) = dispatch(&mut view, suggest) else { return false };
        let streak = view.fairness.streak();
        let Verdict { lane, fallback, limit } = chosen.verdict;
        // A dead entry is no dispatch.
        let discard = || {
            self.shared.dead_entries(lane, -1);
            true
        };
        if entry.is_outdated(chosen.place) {
            return discard();
        }
        let recording = self.core.recording();
        let dispatch =
            recording.then(|| Dispatch::new(self.pin, lane, streak, limit).fallback(fallback));
        // SAFETY: only what is pinned to this seat is in its lanes, and only the thread that sits
        // there polls it, until nothing that is pinned to it lives.
        let begun = unsafe { entry.begin(RunContext::from_lane(lane).recorded(dispatch)) };
        let Some(begun) = begun else { return discard() };
        self.seat.counters.dispatched(chosen, streak, view.fairness.base_limit());
        self.fairness.borrow_mut().dispatched(chosen);
        self.seat.counters.polls.add(1);
        begun.run();
        if recording {
            self.core.rest();
        }
        true
    }

    /// Gets up: the worker, if the thread was one. Whatever was pinned here has ended.
    pub(crate) fn leave(self) -> Option<Box<Worker>> {
        // What is left are entries of tasks that have ended: this drops them.
        while self.step() {}
        self.seat.works.store(false, Relaxed);
        self.worker.into_inner()
    }
}

/// What a guest takes from: its seat, and nothing else.
struct View<'a> {
    lanes: &'a SharedLanes,
    /// A copy: nothing is borrowed while the governor is asked.
    fairness: Fairness,
}

impl Queues for View<'_> {
    type Entry = Runnable;
    const STEALS: bool = false;

    fn fairness(&self) -> &Fairness {
        &self.fairness
    }

    fn pending(&self) -> Pending {
        self.lanes.pending()
    }

    fn has_local(&self, lane: Lane) -> bool {
        self.lanes.len(lane) > 0
    }

    fn take_global(&mut self, _: Lane, _: bool) -> Option<Taken<Runnable>> {
        None
    }

    fn take_local(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Runnable>> {
        self.lanes.take(lane, oldest)
    }

    fn steal(&mut self, _: &[Lane]) -> Option<Stolen<Runnable>> {
        None
    }
}
