//! The places for threads in `block_on`: that of worker 0, and the seats of guests.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use asx_kernel::lanes::TieBreak;

use crate::guest::{BlockOnSlot, GUESTS};
use crate::prim::atomic::AtomicBool;
use crate::prim::atomic::Ordering::{Acquire, Release};
use crate::shared::Shared;
use crate::worker::Worker;

/// Where a thread that comes is put.
pub(crate) enum Place {
    Worker(Box<Worker>),
    /// The number of a guest.
    Guest(u16),
}

pub(crate) struct BlockOnSlots {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Whether `state.first` is there, to look at without the lock.
    free: AtomicBool,
    /// A place has become free, for those who found none.
    freed: Condvar,
}

struct State {
    /// Worker 0, while no thread is that.
    first: Option<Box<Worker>>,
    /// Seats made so far.
    made: usize,
    /// Those of them that nobody sits on.
    empty: Vec<u16>,
    /// Guests that are parked, or about to be.
    idle: Vec<u16>,
}

impl BlockOnSlots {
    pub(crate) fn new(shared: Arc<Shared>, first: Option<Box<Worker>>) -> BlockOnSlots {
        let free = AtomicBool::new(first.is_some());
        let state = State { first, made: 0, empty: Vec::new(), idle: Vec::new() };
        BlockOnSlots { shared, state: Mutex::new(state), free, freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A place for the calling thread: worker 0 if none is there, else a seat. Waits for one when
    /// all are taken.
    pub(crate) fn take(&self) -> Place {
        let mut state = self.lock();
        loop {
            if let Some(worker) = self.take_first(&mut state) {
                return Place::Worker(worker);
            }
            if let Some(seat) = state.empty.pop().or_else(|| self.make(&mut state)) {
                return Place::Guest(seat);
            }
            state = self.freed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Worker 0, if no thread is that.
    pub(crate) fn take_free(&self) -> Option<Box<Worker>> {
        if !self.free.load(Acquire) {
            return None;
        }
        self.take_first(&mut self.lock())
    }

    fn take_first(&self, state: &mut State) -> Option<Box<Worker>> {
        self.free.store(false, Release);
        state.first.take()
    }

    fn make(&self, state: &mut State) -> Option<u16> {
        let seat = self.shared.seats.get(state.made)?;
        let seat = seat.get_or_init(Box::<BlockOnSlot>::default);
        if self.shared.rules.tie_break == TieBreak::TaskKey {
            seat.lanes.order_by_task();
        }
        state.made += 1;
        debug_assert!(state.made <= GUESTS);
        u16::try_from(self.shared.remotes.len() + state.made - 1).ok()
    }

    /// Has a guest wait by `park`, unless the place of worker 0 is free.
    pub(crate) fn wait<R>(&self, guest: u16, park: impl FnOnce() -> R) {
        {
            let mut state = self.lock();
            if state.first.is_some() {
                return;
            }
            state.idle.push(guest);
        }
        park();
        self.lock().idle.retain(|other| *other != guest);
    }

    /// A thread leaves its places.
    pub(crate) fn give(&self, worker: Option<Box<Worker>>, seat: Option<u16>) {
        let mut state = self.lock();
        if let Some(worker) = worker {
            state.first = Some(worker);
            self.free.store(true, Release);
        }
        state.empty.extend(seat);
        // One that was woken for the place may leave without having taken it: so whoever leaves.
        let woken = if state.first.is_some() { state.idle.pop() } else { None };
        drop(state);
        if let Some(seat) = woken.and_then(|guest| self.shared.seat(guest)) {
            seat.parker.unpark();
        }
        self.freed.notify_one();
    }
}
