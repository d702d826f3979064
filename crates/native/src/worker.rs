//! One worker: what it runs next, and what it does when there is nothing.
//!
//! The order is the kernel's: cancel, timed, ready, global before local, with its bounds on
//! streaks. Most of the time there is only plainly ready work; that path is short.
//!
//! # Rule
//! 1. [`CURRENT`] points to a worker that [`Worker::run`] borrows for as long as it is set.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::lanes::{
    Certificate, Fairness, FairnessConfig, Lane, Pending, Suggestion, steal_order,
};
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_runtime::{Core, Host, Runnable};

use crate::idle::ParkKind;
use crate::prim::atomic::Ordering::Acquire;
use crate::queue::Queue;
use crate::shared::{Remote, Shared};

/// Sleepers get up for timers at multiples of this, so that one wake serves many.
const SLACK: u64 = 1_000_000;
/// Polls between two looks at the clock.
const POLLS_PER_LOOK: u32 = 64;
/// How long a watcher waits at first, and at most.
const WATCH: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// Nanoseconds. Tasks whose polls take less cost more to move to another core than to leave where
/// they are.
const SHORT_POLL: u64 = 700;
/// Nanoseconds. What waits less than this in a queue had better wait: two tasks that feed each
/// other are fastest on one core.
const SHORT_WAIT: u64 = 10_000;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// The thread is a worker for as long as this lives.
struct Here<'a> {
    before: *const Worker,
    worker: std::marker::PhantomData<&'a Worker>,
}

impl<'a> Here<'a> {
    fn enter(worker: &'a Worker) -> Here<'a> {
        Here { before: CURRENT.replace(worker), worker: std::marker::PhantomData }
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

pub(crate) struct Worker {
    pub(crate) index: u16,
    shared: Arc<Shared>,
    core: Arc<Core>,
    queue: Queue,
    /// Ready entries that must run here, each with the number of entries that go before it.
    pinned: RefCell<VecDeque<(u64, Runnable)>>,
    /// Entries ever pushed to the queue.
    pushed: Cell<u64>,
    fairness: RefCell<Fairness>,
    /// Whether a streak is to end with the next dispatch of another kind.
    in_streak: Cell<bool>,
    certificate: RefCell<Certificate>,
    rng: RefCell<DetRng>,
    ticks: Cell<u32>,
    /// Timers are being fired: what they wake goes to the global lanes.
    firing: Cell<bool>,
    /// Of each other worker: when it was looked at, and how many polls it had done.
    seen: RefCell<Vec<(u64, u64)>>,
}

impl Worker {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, core: Arc<Core>, queue: Queue) -> Worker {
        Worker {
            index,
            queue,
            pinned: RefCell::default(),
            pushed: Cell::new(0),
            fairness: RefCell::new(Fairness::new(FairnessConfig::default())),
            in_streak: Cell::new(false),
            certificate: RefCell::default(),
            rng: RefCell::new(DetRng::new(0, index.into())),
            ticks: Cell::new(0),
            firing: Cell::new(false),
            seen: RefCell::new(vec![(0, 0); shared.remotes.len()]),
            shared,
            core,
        }
    }

    /// Calls `f` with the worker of `shared` this thread is; if it is none, gives `value` back.
    #[inline]
    pub(crate) fn with<V>(shared: &Shared, value: V, f: impl FnOnce(&Worker, V)) -> Option<V> {
        // SAFETY: rule 1.
        match unsafe { CURRENT.get().as_ref() } {
            Some(worker) if ptr::eq(&*worker.shared, shared) => {
                f(worker, value);
                None
            }
            _ => Some(value),
        }
    }

    /// Whether this thread is running some worker.
    pub(crate) fn is_here() -> bool {
        !CURRENT.get().is_null()
    }

    fn remote(&self) -> &Remote {
        &self.shared.remotes[usize::from(self.index)]
    }

    fn is_alone(&self) -> bool {
        self.shared.remotes.len() == 1
    }

    /// Puts an entry into this worker's queues.
    pub(crate) fn push(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) if pin != self.index => return self.shared.send_to(pin, entry),
            // Nobody steals from a worker that is alone.
            Some(_) if !self.is_alone() && entry.is_plain() => {
                self.pinned.borrow_mut().push_back((self.pushed.get(), entry));
                return;
            }
            _ => {}
        }
        if self.firing.get() && entry.pin().is_none() {
            self.shared.global.push(entry);
        } else if entry.is_plain() {
            self.queue.push(&self.remote().queue, entry);
            self.pushed.set(self.pushed.get() + 1);
        } else {
            self.remote().lanes.push(entry);
        }
        self.shared.idle.notify_local();
    }

    /// Puts several entries into this worker's queues: those of a cancel, as a rule.
    pub(crate) fn push_all(&self, entries: Vec<Runnable>) {
        if entries.iter().any(|entry| entry.pin().is_some() || entry.is_plain()) {
            return entries.into_iter().for_each(|entry| self.push(entry));
        }
        self.remote().lanes.push_all(entries);
        self.shared.idle.notify_local();
    }

    /// Runs tasks until `done`.
    pub(crate) fn run(&self, done: impl Fn() -> bool) {
        let _here = Here::enter(self);
        while !done() {
            match self.next() {
                Some(entry) => self.poll(entry),
                None => self.wait(&done),
            }
        }
    }

    /// Runs what is runnable, and never waits.
    fn run_while_any(&self, mut go_on: impl FnMut() -> bool) {
        let _here = Here::enter(self);
        self.fire_timers();
        while go_on()
            && let Some(entry) = self.next()
        {
            self.poll(entry);
        }
    }

    /// Runs tasks for a while.
    pub(crate) fn run_for(&self, span: Duration) {
        let end = self.shared.now() + span;
        while self.shared.now() < end {
            let mut steps = 0..u32::from(u8::MAX);
            self.run_while_any(|| steps.next().is_some());
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn poll(&self, entry: Runnable) {
        entry.run();
        self.remote().counters.polls.add(1);
        let ticks = self.ticks.get() + 1;
        self.ticks.set(ticks % POLLS_PER_LOOK);
        if ticks == POLLS_PER_LOOK {
            self.fire_timers();
        }
    }

    fn fire_timers(&self) {
        if self.core.next_timer().is_some() {
            self.firing.set(true);
            self.core.fire_timers(self.shared.now());
            self.firing.set(false);
        }
    }

    /// The next entry of those this worker sees.
    fn next(&self) -> Option<Runnable> {
        let (global, local) = (&self.shared.global, &self.remote().lanes);
        if global.is_special() || local.total() > 0 || self.in_streak.get() {
            return self.decide();
        }
        if global.total() > 0
            && let Some(entry) = global.pop(Lane::Ready)
        {
            return Some(entry);
        }
        self.next_plain()
    }

    fn next_plain(&self) -> Option<Runnable> {
        let shared = &self.remote().queue;
        if !self.is_alone() {
            let mut pinned = self.pinned.borrow_mut();
            if let Some((after, _)) = pinned.front() {
                // Entries that were stolen from others are in the queue without having been pushed.
                let gone = self.pushed.get().saturating_sub(self.queue.len(shared) as u64);
                if gone >= *after {
                    return pinned.pop_front().map(|(_, entry)| entry);
                }
            }
        }
        self.queue.pop(shared)
    }

    /// The law with all three lanes.
    fn decide(&self) -> Option<Runnable> {
        let (global, local) = (&self.shared.global, &self.remote().lanes);
        let plain = self.queue.len(&self.remote().queue) > 0 || !self.pinned.borrow().is_empty();
        let (far, near) = (global.pending(), local.pending());
        let pending = Pending {
            cancel: far.cancel || near.cancel,
            timed: far.timed || near.timed,
            ready: far.ready || near.ready || plain,
        };
        let mut fairness = self.fairness.borrow_mut();
        let verdict = fairness.decide(pending, Suggestion::NoPreference)?;
        let entry = global.pop(verdict.lane).or_else(|| match verdict.lane {
            // Plain entries are in the same lane, behind the higher priorities.
            Lane::Ready => {
                let plain = local.pop_leading().or_else(|| self.next_plain());
                plain.or_else(|| local.pop(Lane::Ready))
            }
            lane => local.pop(lane),
        })?;
        let streak = fairness.streak();
        self.certificate.borrow_mut().record(verdict, streak, fairness.base_limit(), pending);
        fairness.record(verdict, pending);
        self.in_streak.set(fairness.streak() > 0 || fairness.timed_streak() > 0);
        self.remote().counters.dispatched(verdict.lane, verdict.fallback);
        Some(entry)
    }

    /// There is nothing to run here: looks around, then parks.
    fn wait(&self, done: &impl Fn() -> bool) {
        let idle = &self.shared.idle;
        let mut watch = WATCH.0;
        idle.start_search();
        loop {
            self.fire_timers();
            let entry = self
                .next()
                .or_else(|| self.steal().inspect(|_| self.remote().counters.steals.add(1)));
            if entry.is_some() || done() {
                if idle.found_work() {
                    self.call_others();
                }
                return entry.into_iter().for_each(|entry| self.poll(entry));
            }
            let kind = idle.prepare_park(self.index.into());
            if kind == ParkKind::Closed {
                idle.found_work();
                return;
            }
            if done() || self.sees_work(kind == ParkKind::Last) {
                idle.cancel_park(self.index.into());
                continue;
            }
            self.fairness.borrow_mut().parked();
            self.in_streak.set(false);
            let timer = self.core.next_timer().map(|next| round_up(next) - self.shared.now());
            let timeout = match kind {
                ParkKind::Watch => Some(timer.map_or(watch, |timer| timer.min(watch))),
                ParkKind::Last => timer,
                ParkKind::Sleep | ParkKind::Closed => None,
            };
            let counters = &self.remote().counters;
            match kind {
                ParkKind::Watch => counters.watches.add(1),
                _ => counters.parks.add(1),
            }
            idle.park(self.index.into(), timeout);
            watch = (watch * 2).min(WATCH.1);
        }
    }

    /// Whether there is anything this worker could run. Work in the queue of a worker that is
    /// running counts only for the last one to sleep: while somebody watches it is not forgotten.
    fn sees_work(&self, last: bool) -> bool {
        let others = self.shared.remotes.iter();
        self.shared.global.total() > 0
            || self.remote().lanes.total() > 0
            || others.clone().any(|remote| remote.lanes.stealable() > 0)
            || (last && others.clone().any(|remote| !remote.queue.is_empty()))
            || self.core.next_timer().is_some_and(|next| next <= self.shared.now())
    }

    /// The last one to search has found something: there may be more.
    fn call_others(&self) {
        if self.shared.global.total() > 0 {
            self.shared.idle.notify_remote();
        } else if self.shared.remotes.iter().any(|remote| !remote.queue.is_empty()) {
            self.shared.idle.notify_local();
        }
    }

    fn steal(&self) -> Option<Runnable> {
        let (me, workers) = (usize::from(self.index), self.shared.remotes.len());
        if workers == 1 {
            return None;
        }
        let start = self.rng.borrow_mut().next_u64() as usize % (workers - 1);
        steal_order(me, workers, start).find_map(|victim| {
            let remote = &self.shared.remotes[victim];
            if let Some(entry) = remote.lanes.steal() {
                return Some(entry);
            }
            let waiting = remote.queue.len() as u64;
            let worth = waiting > 0 && self.is_worth_moving(victim, waiting);
            worth.then(|| self.queue.steal(&remote.queue)).flatten()
        })
    }

    /// Whether another worker polls so slowly that its work is better moved here: as it did since
    /// it was looked at last.
    fn is_worth_moving(&self, victim: usize, waiting: u64) -> bool {
        let polls = self.shared.remotes[victim].counters.polls.get();
        let now = self.shared.now().as_nanos();
        let seen = &mut self.seen.borrow_mut()[victim];
        let (then, before) = *seen;
        let span = now.saturating_sub(then);
        if span < WATCH.0.as_nanos() as u64 / 2 {
            return false;
        }
        *seen = (now, polls);
        let poll = span / (polls - before).max(1);
        span < 4 * WATCH.1.as_nanos() as u64
            && poll > SHORT_POLL
            && poll.saturating_mul(waiting) > SHORT_WAIT
    }

    /// Gives back what is left, for the others, when the thread goes.
    pub(crate) fn hand_over(&self) {
        let lanes = &self.remote().lanes;
        let next = || Lane::ALL.into_iter().find_map(|lane| lanes.pop(lane));
        while let Some(entry) = next().or_else(|| self.next_plain()) {
            match entry.pin() {
                // Whatever was pinned here has ended; this drops its last entries.
                Some(_) => drop(entry.run()),
                None => self.shared.global.push(entry),
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Acquire)
    }
}

/// The first instant not before `time` that sleepers get up at.
fn round_up(time: Time) -> Time {
    Time::from_nanos(time.as_nanos().div_ceil(SLACK).saturating_mul(SLACK))
}
