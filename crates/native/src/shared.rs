//! What all threads of a runtime share: the global lanes, and what workers show each other.

use std::sync::Arc;
use std::time::Instant;

use asx_kernel::lanes::{Lane, Lanes, Pending, Place, Priority};
use asx_kernel::time::{Time, nanos};
use asx_runtime::{Core, Host, Runnable, Settings};

use crate::blocking::Pool;
use crate::idle::Idle;
use crate::metrics::Counters;
use crate::prim::atomic::Ordering::{Acquire, Release};
use crate::prim::atomic::{AtomicBool, AtomicUsize};
use crate::prim::{Mutex, lock};
use crate::queue;
use crate::worker::Worker;

pub(crate) struct Shared {
    pub(crate) idle: Idle,
    pub(crate) global: SharedLanes,
    pub(crate) remotes: Box<[Remote]>,
    pub(crate) closed: AtomicBool,
    pub(crate) blocking: Arc<Pool>,
    start: Instant,
}

/// What a worker shows the others.
pub(crate) struct Remote {
    /// Ready entries of the usual priority.
    pub(crate) queue: queue::Shared,
    /// Everything else, and what others sent to this worker.
    pub(crate) lanes: SharedLanes,
    /// What it has done.
    pub(crate) counters: Counters,
}

/// The kernel's lanes behind a short lock, with counts to look at without it.
#[derive(Default)]
pub(crate) struct SharedLanes {
    lanes: Mutex<Lanes<Runnable>>,
    /// Entries of each lane.
    len: [AtomicUsize; 3],
    /// Those that any worker may run.
    stealable: AtomicUsize,
    /// Those of the ready lane that go before, or with, entries of the usual priority.
    leading: AtomicUsize,
}

/// Whether an entry of the usual priority does not go before one at this place.
fn leads(place: Place) -> bool {
    matches!(place, Place::Ready(priority) if priority >= Priority::DEFAULT)
}

impl SharedLanes {
    pub(crate) fn push(&self, entry: Runnable) {
        let (place, pinned) = (entry.place(), entry.pin().is_some());
        let mut lanes = lock(&self.lanes);
        lanes.push(place, entry, pinned);
        self.leading.fetch_add(usize::from(leads(place)), Release);
        self.count(&lanes, place.lane());
    }

    pub(crate) fn push_all(&self, entries: Vec<Runnable>) {
        let mut lanes = lock(&self.lanes);
        for entry in entries {
            let (place, pinned) = (entry.place(), entry.pin().is_some());
            lanes.push(place, entry, pinned);
            self.leading.fetch_add(usize::from(leads(place)), Release);
        }
        Lane::ALL.into_iter().for_each(|lane| self.count(&lanes, lane));
    }

    fn count(&self, lanes: &Lanes<Runnable>, lane: Lane) {
        self.len[lane as usize].store(lanes.len(lane), Release);
        let stealable = Lane::ALL.map(|lane| lanes.stealable(lane));
        self.stealable.store(stealable[0] + stealable[1] + stealable[2], Release);
    }

    #[inline]
    fn len(&self, lane: Lane) -> usize {
        self.len[lane as usize].load(Acquire)
    }

    #[inline]
    pub(crate) fn total(&self) -> usize {
        self.len(Lane::Cancel) + self.len(Lane::Timed) + self.len(Lane::Ready)
    }

    /// Whether there is more than plainly ready work.
    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        self.len(Lane::Cancel) + self.len(Lane::Timed) > 0
    }

    pub(crate) fn stealable(&self) -> usize {
        self.stealable.load(Acquire)
    }

    pub(crate) fn pending(&self) -> Pending {
        let [cancel, timed, ready] = Lane::ALL.map(|lane| self.len(lane) > 0);
        Pending { cancel, timed, ready }
    }

    pub(crate) fn pop(&self, lane: Lane) -> Option<Runnable> {
        if self.len(lane) == 0 {
            return None;
        }
        let mut lanes = lock(&self.lanes);
        let (place, entry) = lanes.pop(lane)?;
        self.taken(&lanes, place);
        Some(entry)
    }

    /// Takes a ready entry that an entry of the usual priority does not go before.
    pub(crate) fn pop_leading(&self) -> Option<Runnable> {
        // The lane is in the order of priorities: if there is one, it is the first.
        (self.leading.load(Acquire) > 0).then(|| self.pop(Lane::Ready)).flatten()
    }

    fn taken(&self, lanes: &Lanes<Runnable>, place: Place) {
        self.leading.fetch_sub(usize::from(leads(place)), Release);
        self.count(lanes, place.lane());
    }

    pub(crate) fn steal(&self) -> Option<Runnable> {
        if self.stealable() == 0 {
            return None;
        }
        let mut lanes = lock(&self.lanes);
        let (place, entry) = Lane::ALL.into_iter().find_map(|lane| lanes.steal_from(lane))?;
        self.taken(&lanes, place);
        Some(entry)
    }
}

impl Shared {
    pub(crate) fn new(remotes: Box<[Remote]>, blocking: Arc<Pool>) -> Arc<Shared> {
        let idle = Idle::new(remotes.len());
        // The first place is for the thread that calls `block_on`.
        idle.leave();
        Arc::new(Shared {
            idle,
            global: SharedLanes::default(),
            remotes,
            closed: AtomicBool::new(false),
            blocking,
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

    fn schedule_all(&self, entries: Vec<Runnable>) {
        let rest = Worker::with(self, entries, |worker, entries| worker.push_all(entries));
        if let Some(entries) = rest.filter(|entries| !entries.is_empty()) {
            let (pinned, free): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|entry| entry.pin().is_some());
            self.global.push_all(free);
            self.idle.notify_remote();
            pinned.into_iter().for_each(|entry| self.schedule(entry));
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

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.blocking.run(entry)
    }
}
