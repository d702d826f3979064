//! What all threads of a runtime share: the global lanes, and what workers show each other.

use std::sync::Arc;
use std::time::Instant;

use asx_kernel::lanes::{Lane, Lanes, Pending};
use asx_kernel::time::{Time, nanos};
use asx_runtime::{Core, Host, Runnable, Settings};

use crate::idle::Idle;
use crate::prim::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::prim::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::prim::{Mutex, lock};
use crate::queue;
use crate::worker::Worker;

pub(crate) struct Shared {
    pub(crate) idle: Idle,
    pub(crate) global: SharedLanes,
    pub(crate) remotes: Box<[Remote]>,
    pub(crate) closed: AtomicBool,
    start: Instant,
}

/// What a worker shows the others.
pub(crate) struct Remote {
    /// Ready entries of the usual priority.
    pub(crate) queue: queue::Shared,
    /// Everything else, and what others sent to this worker.
    pub(crate) lanes: SharedLanes,
    /// How many tasks it has polled.
    pub(crate) polls: AtomicU64,
}

/// The kernel's lanes behind a short lock, with counts to look at without it.
#[derive(Default)]
pub(crate) struct SharedLanes {
    lanes: Mutex<Lanes<Runnable>>,
    total: AtomicUsize,
    /// Those that are not plainly ready.
    special: AtomicUsize,
    /// Those that any worker may run.
    stealable: AtomicUsize,
}

impl SharedLanes {
    pub(crate) fn push(&self, entry: Runnable) {
        self.push_all([entry]);
    }

    pub(crate) fn push_all(&self, entries: impl IntoIterator<Item = Runnable>) {
        let placed = entries.into_iter().map(|entry| (entry.place(), entry));
        let placed: smallvec::SmallVec<[_; 1]> = placed.collect();
        let mut lanes = lock(&self.lanes);
        for (place, entry) in placed {
            let pinned = entry.pin().is_some();
            lanes.push(place, entry, pinned);
        }
        self.count(&lanes);
    }

    fn count(&self, lanes: &Lanes<Runnable>) {
        let special = lanes.len(Lane::Cancel) + lanes.len(Lane::Timed);
        self.special.store(special, Release);
        let stealable = Lane::ALL.map(|lane| lanes.stealable(lane)).iter().sum();
        self.stealable.store(stealable, Release);
        self.total.store(lanes.total(), Release);
    }

    pub(crate) fn total(&self) -> usize {
        self.total.load(Acquire)
    }

    pub(crate) fn special(&self) -> usize {
        self.special.load(Relaxed)
    }

    pub(crate) fn stealable(&self) -> usize {
        self.stealable.load(Acquire)
    }

    pub(crate) fn pending(&self) -> Pending {
        if self.total() == 0 {
            return Pending::default();
        }
        let lanes = lock(&self.lanes);
        let [cancel, timed, ready] = Lane::ALL.map(|lane| lanes.len(lane) > 0);
        Pending { cancel, timed, ready }
    }

    pub(crate) fn pop(&self, lane: Lane) -> Option<Runnable> {
        if self.total() == 0 {
            return None;
        }
        let mut lanes = lock(&self.lanes);
        let entry = lanes.pop(lane);
        self.count(&lanes);
        entry.map(|(_, entry)| entry)
    }

    pub(crate) fn steal(&self) -> Option<Runnable> {
        if self.stealable() == 0 {
            return None;
        }
        let mut lanes = lock(&self.lanes);
        let entry = Lane::ALL.into_iter().find_map(|lane| lanes.steal_from(lane));
        self.count(&lanes);
        entry.map(|(_, entry)| entry)
    }
}

impl Shared {
    pub(crate) fn new(remotes: Box<[Remote]>) -> Arc<Shared> {
        let idle = Idle::new(remotes.len());
        // The first place is for the thread that calls `block_on`.
        idle.leave();
        Arc::new(Shared {
            idle,
            global: SharedLanes::default(),
            remotes,
            closed: AtomicBool::new(false),
            start: Instant::now(),
        })
    }

    pub(crate) fn core(self: &Arc<Self>, settings: Settings) -> Arc<Core> {
        Core::new(self.clone(), settings)
    }

    /// Puts an entry where only one worker takes it.
    pub(crate) fn send_to(&self, worker: u16, entry: Runnable) {
        match self.remotes.get(usize::from(worker)) {
            Some(remote) => {
                remote.lanes.push(entry);
                self.idle.notify_worker(worker.into());
            }
            None => unreachable!("tasks are pinned to workers that exist"),
        }
    }
}

impl Host for Shared {
    fn schedule(&self, entry: Runnable) {
        let rest = Worker::with(self, entry, |worker, entry| worker.push(entry));
        if let Some(entry) = rest {
            match entry.pin() {
                Some(pin) => self.send_to(pin, entry),
                None => {
                    self.global.push(entry);
                    self.idle.notify_remote();
                }
            }
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(nanos(self.start.elapsed()))
    }

    fn timer_moved(&self, _: Time) {
        // A worker looks at the timers before it sleeps.
        if Worker::with(self, (), |_, ()| ()).is_some() {
            self.idle.notify_timers();
        }
    }

    fn here(&self) -> Option<u16> {
        let mut here = None;
        Worker::with(self, &mut here, |worker, here| *here = Some(worker.index));
        here
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(job);
    }
}
