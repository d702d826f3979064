//! What all tasks of one runtime share, and the seam to its host.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Waker;

use asx_kernel::budget::Exhausted;
use asx_kernel::cancel::Kind;
use asx_kernel::time::Time;

use crate::cell::{Runnable, TaskRef};
use crate::outcome::Panic;
use crate::prim::{Mutex, lock};
use crate::region::Region;
use crate::time::Timers;

/// Where and when things run: threads, queues, the clock.
pub trait Host: Send + Sync + 'static {
    /// Puts a runnable task into a queue.
    fn schedule(&self, entry: Runnable);

    /// Puts several into queues, in order.
    fn schedule_all(&self, entries: Vec<Runnable>) {
        entries.into_iter().for_each(|entry| self.schedule(entry));
    }

    /// The time.
    fn now(&self) -> Time;

    /// A timer was registered that is earlier than all others.
    fn timer_moved(&self, deadline: Time);

    /// The worker the calling thread is, if it is one of this host.
    fn here(&self) -> Option<u16>;

    /// Runs an entry on a thread where it may block; gives it back if there is none to be had.
    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable>;
}

/// What went wrong in tasks without anybody having to notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Wakes of tasks that were over.
    pub stale_wakes: u64,
    /// Tasks ended by force.
    pub overruns: u64,
    /// Panics in the destructors of results nobody wanted.
    pub lost_panics: u64,
}

/// What a host decides for its tasks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many channel and lock operations that need not wait a task may do in one poll before it
    /// lets others run; `u32::MAX`: any number.
    pub operations: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { operations: 128 }
    }
}

/// What the runtime itself waits for.
pub(crate) enum Alarm {
    /// A task's deadline.
    Deadline(TaskRef),
    /// A region that was told to stop is cancelled.
    Cancel(Weak<Region>, Kind),
    /// What still lives in a region is ended by force.
    Force(Weak<Region>),
}

impl Alarm {
    fn ring(self) {
        match self {
            Alarm::Deadline(task) => task.region.exhausted(&task, Exhausted::Deadline),
            Alarm::Cancel(region, kind) => {
                region.upgrade().inspect(|region| region.close_as(kind));
            }
            Alarm::Force(region) => {
                region.upgrade().inspect(Region::force);
            }
        }
    }
}

/// The shared part of a runtime.
pub struct Core {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) timers: Timers<Waker>,
    /// When budgets and graces run out: no timers of anybody's, so that they count for no limit.
    pub(crate) alarms: Timers<Alarm>,
    /// How many operations a poll may do before it lets others run; `u32::MAX`: any number.
    pub(crate) operations: u32,
    /// Those who wait for a soft stop.
    stop_waiters: Mutex<BTreeMap<u64, Waker>>,
    /// Tasks and regions are numbered together, so that numbers tell the order of creation.
    next_id: AtomicU64,
    stale_wakes: AtomicU64,
    overruns: AtomicU64,
    lost_panics: AtomicU64,
}

impl Core {
    /// The shared part over a host.
    pub fn new(host: Arc<dyn Host>, settings: Settings) -> Arc<Core> {
        let now = host.now();
        Arc::new(Core {
            host,
            timers: Timers::new(now),
            alarms: Timers::new(now),
            operations: settings.operations,
            stop_waiters: Mutex::default(),
            next_id: AtomicU64::new(1),
            stale_wakes: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            lost_panics: AtomicU64::new(0),
        })
    }

    /// A region without a parent.
    pub fn root(self: &Arc<Core>) -> Arc<Region> {
        Region::root(self.clone())
    }

    /// Wakes the tasks whose timers are due, and cancels those whose time is up.
    pub fn fire_timers(&self, now: Time) {
        self.alarms.fire(now, Alarm::ring);
        self.timers.fire(now, Waker::wake);
    }

    /// When [`fire_timers`](Core::fire_timers) has something to do next.
    pub fn next_timer(&self) -> Option<Time> {
        match (self.timers.next(), self.alarms.next()) {
            (Some(timer), Some(alarm)) => Some(timer.min(alarm)),
            (timer, alarm) => timer.or(alarm),
        }
    }

    /// How many timers are armed: sleeps, timeouts, and what the runtime itself waits for.
    pub fn live_timers(&self) -> usize {
        self.timers.len() + self.alarms.len()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Has `waker` woken at the next soft stop anywhere; `place` is where it is noted.
    pub(crate) fn watch_stop(&self, place: &mut Option<u64>, waker: &Waker) {
        let place = *place.get_or_insert_with(|| self.next_id());
        let old = lock(&self.stop_waiters).insert(place, waker.clone());
        drop(old);
    }

    pub(crate) fn forget_stop(&self, place: u64) {
        let waker = lock(&self.stop_waiters).remove(&place);
        drop(waker);
    }

    pub(crate) fn wake_stopping(&self) {
        let waiters = std::mem::take(&mut *lock(&self.stop_waiters));
        waiters.into_values().for_each(Waker::wake);
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            stale_wakes: self.stale_wakes.load(Relaxed),
            overruns: self.overruns.load(Relaxed),
            lost_panics: self.lost_panics.load(Relaxed),
        }
    }

    /// A waker outlived its task.
    pub(crate) fn stale_wake(&self, _task: u64) {
        self.stale_wakes.fetch_add(1, Relaxed);
    }

    /// A task used up its cleanup allowance.
    pub(crate) fn overrun(&self, _task: u64) {
        self.overruns.fetch_add(1, Relaxed);
    }

    /// The destructor of a result nobody wanted panicked.
    pub(crate) fn lost_panic(&self, _task: u64, _panic: &Panic) {
        self.lost_panics.fetch_add(1, Relaxed);
    }
}
