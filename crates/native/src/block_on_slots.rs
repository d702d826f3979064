//! Slots for threads in `block_on`: worker 0, and the slots of guests.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use asx_kernel::lanes::TieBreak;

use crate::guest::{BlockOnSlot, GUESTS};
use crate::prim::atomic::AtomicBool;
use crate::prim::atomic::Ordering::{Acquire, Release};
use crate::shared::Shared;
use crate::worker::Worker;

/// The role of a thread that calls `block_on`.
pub(crate) enum Role {
    Worker(Box<Worker>),
    /// The number of a guest.
    Guest(u16),
}

pub(crate) struct BlockOnSlots {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Whether `state.worker` is present, for reading without the lock.
    has_worker: AtomicBool,
    /// Notified when a slot becomes vacant.
    freed: Condvar,
}

struct State {
    /// Worker 0, while it is vacant.
    worker: Option<Box<Worker>>,
    /// The number of slots created so far.
    created: usize,
    /// The slots created so far that are vacant.
    vacant: Vec<u16>,
    /// Guests that are parked or about to park.
    idle: Vec<u16>,
}

impl BlockOnSlots {
    pub(crate) fn new(shared: Arc<Shared>, worker: Option<Box<Worker>>) -> BlockOnSlots {
        let has_worker = AtomicBool::new(worker.is_some());
        let state = State { worker, created: 0, vacant: Vec::new(), idle: Vec::new() };
        BlockOnSlots { shared, state: Mutex::new(state), has_worker, freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reserves worker 0 for the calling thread if that is vacant, otherwise a guest's slot. Waits
    /// while all slots are taken.
    pub(crate) fn take(&self) -> Role {
        let mut state = self.lock();
        loop {
            if let Some(worker) = self.take_vacant_worker(&mut state) {
                return Role::Worker(worker);
            }
            if let Some(slot) = state.vacant.pop().or_else(|| self.create_slot(&mut state)) {
                return Role::Guest(slot);
            }
            state = self.freed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Takes worker 0 if it is vacant.
    pub(crate) fn take_worker(&self) -> Option<Box<Worker>> {
        if !self.has_worker.load(Acquire) {
            return None;
        }
        self.take_vacant_worker(&mut self.lock())
    }

    fn take_vacant_worker(&self, state: &mut State) -> Option<Box<Worker>> {
        self.has_worker.store(false, Release);
        state.worker.take()
    }

    fn create_slot(&self, state: &mut State) -> Option<u16> {
        let slot = self.shared.guest_slots.get(state.created)?;
        let slot = slot.get_or_init(Box::<BlockOnSlot>::default);
        if self.shared.rules.tie_break == TieBreak::TaskKey {
            slot.lanes.order_by_task();
        }
        state.created += 1;
        debug_assert!(state.created <= GUESTS);
        u16::try_from(self.shared.remotes.len() + state.created - 1).ok()
    }

    /// Parks a guest by `park`, unless worker 0 is vacant.
    pub(crate) fn wait<R>(&self, guest: u16, park: impl FnOnce() -> R) {
        {
            let mut state = self.lock();
            if state.worker.is_some() {
                return;
            }
            state.idle.push(guest);
        }
        park();
        self.lock().idle.retain(|other| *other != guest);
    }

    /// Releases worker 0 and the slot of a thread that leaves `block_on`.
    pub(crate) fn release(&self, worker: Option<Box<Worker>>, slot: Option<u16>) {
        let mut state = self.lock();
        if let Some(worker) = worker {
            state.worker = Some(worker);
            self.has_worker.store(true, Release);
        }
        state.vacant.extend(slot);
        // A guest that was woken for worker 0 may leave without having taken it. Each thread that
        // leaves therefore wakes another guest.
        let woken = if state.worker.is_some() { state.idle.pop() } else { None };
        drop(state);
        if let Some(slot) = woken.and_then(|guest| self.shared.guest_slot(guest)) {
            slot.parker.unpark();
        }
        self.freed.notify_one();
    }
}
