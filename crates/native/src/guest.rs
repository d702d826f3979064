//! Guests: threads in `block_on` that are not workers.
//!
//! With two or more workers, each worker is a thread of the runtime, and all threads in `block_on`
//! are guests. With one worker, the first thread in `block_on` becomes that worker:
//!
//! ```text
//!              no worker 0                      program completed
//!   block_on ---------------> worker 0 -------------------------> worker 0 is vacant
//!      |                         ^                                    |
//!      | there is one            | becomes worker 0                   | wakes an idle guest
//!      v                         |                                    v
//!    guest: polls its own -------+-------------------- checks between any two of its polls
//! ```
//!
//! A guest polls only tasks that are pinned to it: the body of its program, and tasks that
//! `spawn_local` started there. Other tasks that it makes runnable go to the global lanes. Without
//! a task to poll it parks, until an entry is sent to its [`BlockOnSlot`], worker 0 becomes vacant,
//! or a timer is late.
//!
//! A guest that finds worker 0 vacant becomes that worker until its program has completed, since
//! unpinned tasks need a thread and timers have to be checked. It then alternates between tasks
//! pinned to its slot and those of the worker.
//!
//! # Why no guest waits forever
//! 1. *Entries sent to a slot.* The sender pushes, fences, then reads whether the guest is a
//!    worker. A guest that becomes a worker sets that flag, fences, then checks its slot. A worker
//!    that parks has therefore seen the push, or is notified as a worker; and the parker of a guest
//!    keeps the token.
//! 2. *The vacant worker.* It is released under the lock that also guards the list of idle guests.
//!    A guest that parks has therefore seen that it is vacant, or is on the list, from which one
//!    guest is woken. A guest that leaves instead wakes the next. A guest that is not idle checks
//!    before its next poll.

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

/// The largest number of guests at a time.
pub(crate) const GUESTS: usize = 256;

thread_local! {
    /// The runtime of which this thread is a guest, and its number. The pointer is only compared.
    static CURRENT: Cell<(*const Shared, u16)> = const { Cell::new((ptr::null(), 0)) };
}

/// The part of a guest that other threads see.
#[derive(Default)]
pub(crate) struct BlockOnSlot {
    /// Entries that only this guest polls.
    pub(crate) lanes: SharedLanes,
    pub(crate) parker: Parker,
    /// The guest is also worker 0, and parks as that.
    is_worker: AtomicBool,
    /// The number of live tasks pinned to this slot.
    pub(crate) pins: AtomicUsize,
    pub(crate) counters: Counters,
}

impl BlockOnSlot {
    /// Notifies the guest of an entry that was sent to it.
    pub(crate) fn notify(&self, idle: &Idle) {
        fence(SeqCst);
        match self.is_worker.load(Relaxed) {
            true => idle.notify_worker(0),
            false => self.parker.unpark(),
        }
    }
}

/// A guest on its thread.
pub(crate) struct Guest<'a> {
    pub(crate) pin: u16,
    slot: &'a BlockOnSlot,
    shared: &'a Arc<Shared>,
    core: &'a Core,
    slots: &'a BlockOnSlots,
    fairness: RefCell<Fairness>,
    /// Worker 0, once this thread has become it.
    worker: OnceCell<Box<Worker>>,
    _current: CurrentGuard,
}

/// Makes the thread a guest until it is dropped.
struct CurrentGuard;

impl CurrentGuard {
    fn enter(shared: &Arc<Shared>, pin: u16) -> CurrentGuard {
        CURRENT.set((Arc::as_ptr(shared), pin));
        CurrentGuard
    }
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set((ptr::null(), 0));
    }
}

impl<'a> Guest<'a> {
    /// Makes the calling thread the guest of a slot that was reserved for it. Returns `None` if
    /// there is no such slot.
    pub(crate) fn enter(
        pin: u16,
        shared: &'a Arc<Shared>,
        core: &'a Core,
        slots: &'a BlockOnSlots,
    ) -> Option<Guest<'a>> {
        let cancel_streak_limit = shared.rules.cancel_streak_limit;
        let fairness = RefCell::new(Fairness::new(FairnessConfig {
            cancel_streak_limit,
            ..FairnessConfig::default()
        }));
        let slot = shared.guest_slot(pin)?;
        let worker = OnceCell::new();
        let _current = CurrentGuard::enter(shared, pin);
        Some(Guest { pin, slot, shared, core, slots, fairness, worker, _current })
    }

    /// Returns true if this thread is a guest of any runtime.
    pub(crate) fn is_any() -> bool {
        !CURRENT.get().0.is_null()
    }

    /// Returns true if this thread is the guest with this number.
    pub(crate) fn is_here(shared: &Shared, pin: u16) -> bool {
        CURRENT.get() == (ptr::from_ref(shared), pin)
    }

    /// Returns the number of the guest that this thread is in this runtime.
    pub(crate) fn here(shared: &Shared) -> Option<u16> {
        let (runtime, pin) = CURRENT.get();
        ptr::eq(runtime, shared).then_some(pin)
    }

    /// Runs tasks pinned to this thread, and those of worker 0 once it has become that, until
    /// `done` returns true.
    pub(crate) fn run(&self, done: impl Fn() -> bool) {
        while !done() {
            if let Some(worker) = self.worker() {
                worker.enter(|| self.step());
                // One turn, and further ones while the slot has no entries.
                let turn = Cell::new(true);
                worker.run(|| done() || (!turn.replace(false) && self.slot.lanes.total() > 0));
            } else if !self.step() {
                self.fairness.borrow_mut().parked();
                self.slot.counters.parks.add(1);
                let next = self.core.next_timer();
                let now = self.shared.now();
                let late = next.map(|next| next + LATE - now);
                self.slots.wait(self.pin, || self.slot.parker.park(late));
                self.fire_late_timers();
            }
        }
    }

    /// Fires late timers. Timers are fired by workers; an idle guest does it only if they are all
    /// inside long polls.
    fn fire_late_timers(&self) {
        let now = self.shared.now();
        if self.core.next_timer().is_some_and(|next| next + LATE <= now) {
            self.core.fire_timers(now);
        }
    }

    /// Returns the number of live tasks pinned to this thread.
    pub(crate) fn pins(&self) -> usize {
        self.slot.pins.load(Relaxed) + self.worker.get().map_or(0, |worker| worker.pins())
    }

    /// Returns the worker that this thread is, after becoming worker 0 if that is vacant.
    fn worker(&self) -> Option<&Worker> {
        if self.worker.get().is_none() {
            let worker = self.slots.take_worker()?;
            self.shared.idle.join();
            self.slot.is_worker.store(true, Relaxed);
            fence(SeqCst);
            return Some(self.worker.get_or_init(|| worker));
        }
        self.worker.get().map(|worker| &**worker)
    }

    /// Polls one task pinned here, or drops a dead entry. Returns false if there is no entry.
    fn step(&self) -> bool {
        let mut view = View { lanes: &self.slot.lanes, fairness: *self.fairness.borrow() };
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
        // SAFETY: the lanes of this slot hold only entries that are pinned to it. Only the thread
        // that entered it polls them, until no task that is pinned to it is alive.
        let begun = unsafe { entry.begin(RunContext::from_lane(lane).recorded(dispatch)) };
        let Some(begun) = begun else { return discard() };
        self.slot.counters.dispatched(chosen, streak, view.fairness.base_limit());
        self.fairness.borrow_mut().dispatched(chosen);
        self.slot.counters.polls.add(1);
        begun.run();
        if recording {
            self.core.rest();
        }
        true
    }

    /// Leaves the slot; returns worker 0 if this thread was it. All tasks pinned here have ended.
    pub(crate) fn leave(self) -> Option<Box<Worker>> {
        // Dead entries of completed tasks are left: this drops them.
        while self.step() {}
        self.slot.is_worker.store(false, Relaxed);
        self.worker.into_inner()
    }
}

/// The queues of a guest: the lanes of its slot only.
struct View<'a> {
    lanes: &'a SharedLanes,
    /// A copy: nothing may be borrowed while the governor runs.
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
