//! One worker: what it runs next, and what it does when there is nothing.
//!
//! The order is the kernel's: cancel, timed, ready, global before local, with its bounds on
//! streaks. Most of the time there is only plainly ready work; that path is short.
//!
//! # Rules
//! 1. [`CURRENT`] points to a worker that [`Worker::run`] borrows for as long as it is set.
//! 2. A pinned entry is only ever in the queues of the worker it is pinned to, from which nobody
//!    steals it. There is one [`Worker`] of each number; only the thread that owns it polls from
//!    its queues, and it keeps it until nothing that is pinned to it lives.

mod choose;
mod timing;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use asx_kernel::lanes::{
    Certificate, Chosen, Fairness, FairnessConfig, Lane, Origin, TieBreak, Verdict,
};
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_runtime::{Core, Dispatch, Host, RunContext, Runnable};

use crate::idle::{ParkKind, Sources};
use crate::parker::Woken;
use crate::prim::atomic::Ordering::{Acquire, Relaxed};
use crate::queue::Queue;
use crate::reactor::Driving;
use crate::reactor::presence::Tick;
use crate::shared::{Remote, Shared};
use choose::IsWorth;
use timing::{Due, POLLS_PER_LOOK, Pace, TimerBackstop, park_deadline};

/// How late a timer may be, or the event of a socket seen, when the workers that are awake are held
/// up by polls that do not return, and another sleeps.
pub(crate) const LATE: Duration = Duration::from_millis(20);
/// How long a watcher waits at first, and at most.
const WATCH: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// Nanoseconds. Tasks whose polls take less cost more to move to another core than to leave where
/// they are.
const SHORT_POLL: u64 = 700;
/// Nanoseconds. What waits less than this in a queue had better wait: two tasks that feed each
/// other are fastest on one core.
const SHORT_WAIT: u64 = 10_000;

/// Entries. Half of a queue this long moves at once, which spreads the cost over many polls, short
/// as they may be.
const DEEP: usize = 256;

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

/// What a worker has found to run.
struct Found {
    entry: Runnable,
    /// Why, unless plain work follows plain work.
    chosen: Option<Chosen>,
}

/// What came of looking around for work.
enum Look {
    /// There is something to run, or the worker is done.
    Found(Option<Found>),
    /// The runtime is closed.
    Closed,
    /// There was nothing: for all others the worker is parked now.
    Parked(ParkKind),
}

/// What a step of a worker came to.
pub(crate) enum Step {
    /// It polled this task, from this lane.
    Polled(u64, Lane),
    /// There was nothing: it is parked, and goes on when it is woken.
    Parked(ParkKind),
}

pub(crate) struct Worker {
    pub(crate) index: u16,
    /// There is no other.
    alone: bool,
    /// Equals go in the order they came.
    in_order: bool,
    /// A governor is asked before every dispatch.
    governed: bool,
    shared: Arc<Shared>,
    /// What the others see of it.
    remote: Arc<Remote>,
    core: Arc<Core>,
    queue: Queue,
    /// Ready entries that must run here, each with the number of entries that go before it.
    pinned: RefCell<VecDeque<(u64, Runnable)>>,
    /// Entries ever pushed to the queue.
    pushed: Cell<u64>,
    fairness: RefCell<Fairness>,
    rng: RefCell<DetRng>,
    /// What tasks draw from.
    entropy: RefCell<DetRng>,
    /// How many polls there had been after the last decision between lanes.
    decided: Cell<u64>,
    /// Whose turn it is when ready work that was added first goes before higher priorities: that of
    /// the queue, or of the lanes.
    queue_next: Cell<bool>,
    /// When the timers are looked at next.
    pace: Pace,
    /// Entries ever taken that were dead: no dispatches.
    discarded: Cell<u64>,
    /// How each choice came about is recorded.
    recording: bool,
    /// That of plain work after plain work.
    plain: Dispatch,
    /// Timers are being fired, or the like: what becomes runnable goes to the global lanes.
    firing: Cell<bool>,
    due: Due,
    /// Room for who is woken by sockets.
    woken: Cell<Vec<Waker>>,
    /// It slept for a short while only when it was woken last: where others have work again and
    /// again, it is cheaper to watch than to sleep and be woken.
    is_called_often: Cell<bool>,
    /// Of each other worker: when it was looked at, and how many polls it had done.
    seen: RefCell<Vec<(u64, u64)>>,
}

impl Worker {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, core: Arc<Core>, queue: Queue) -> Worker {
        let cancel_streak_limit = shared.rules.cancel_streak_limit;
        let fairness =
            Fairness::new(FairnessConfig { cancel_streak_limit, ..FairnessConfig::default() });
        Worker {
            index,
            alone: shared.remotes.len() == 1,
            in_order: shared.rules.tie_break == TieBreak::Fifo,
            governed: shared.rules.governs_all,
            remote: shared.remotes[usize::from(index)].clone(),
            queue,
            pinned: RefCell::default(),
            pushed: Cell::new(0),
            plain: Dispatch::new(index, Lane::Ready, 0, fairness.base_limit()),
            fairness: RefCell::new(fairness),
            rng: RefCell::new(DetRng::new(shared.rules.seed, index.into())),
            entropy: RefCell::new(DetRng::new(shared.rules.seed, (1 << 32) + u64::from(index))),
            decided: Cell::new(0),
            queue_next: Cell::new(false),
            pace: Pace::default(),
            discarded: Cell::new(0),
            recording: core.recording(),
            firing: Cell::new(false),
            due: Due::default(),
            woken: Cell::default(),
            is_called_often: Cell::new(false),
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

    /// Runs `f`; what it makes runnable goes to the lanes of all.
    pub(crate) fn as_outside(&self, f: &mut dyn FnMut()) {
        let before = self.firing.replace(true);
        f();
        self.firing.set(before);
    }

    /// Calls `f` as this worker.
    pub(crate) fn act<R>(&self, f: impl FnOnce() -> R) -> R {
        let _here = Here::enter(self);
        f()
    }

    /// How many tasks live that must run here.
    pub(crate) fn pins(&self) -> usize {
        self.remote.pins.load(Relaxed)
    }

    /// Whether this thread is running some worker.
    pub(crate) fn is_here() -> bool {
        !CURRENT.get().is_null()
    }

    /// Puts an entry into this worker's queues.
    #[inline]
    pub(crate) fn push(&self, entry: Runnable) {
        // Nobody steals from a worker that is alone.
        let stays = entry.pin().is_none_or(|pin| self.alone && pin == self.index);
        if self.firing.get() || !stays || !self.is_plain(&entry) {
            return self.push_aside(entry);
        }
        self.queue.push(&self.remote.queue, entry);
        self.pushed.set(self.pushed.get() + 1);
        // Else there is nobody to be called.
        if !self.alone {
            self.shared.idle.notify_local();
        }
    }

    /// Whether an entry goes into this worker's queue. Where the seed or the task id decides
    /// between equals none does: they are in the lanes.
    #[inline]
    fn is_plain(&self, entry: &Runnable) -> bool {
        self.in_order && entry.is_plain()
    }

    /// Puts an entry somewhere that is no plain work of this worker's own that others may take.
    #[inline(never)]
    fn push_aside(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) if pin != self.index => return self.shared.send_to(pin, entry),
            Some(_) if !self.alone && self.is_plain(&entry) => {
                let mut pinned = self.pinned.borrow_mut();
                pinned.push_back((self.pushed.get(), entry));
                self.remote.pinned.store(pinned.len(), Relaxed);
                return;
            }
            _ => {}
        }
        if self.firing.get() && entry.pin().is_none() {
            self.shared.global.push(entry);
        } else if self.is_plain(&entry) {
            self.queue.push(&self.remote.queue, entry);
            self.pushed.set(self.pushed.get() + 1);
        } else {
            self.remote.lanes.push(entry);
        }
        self.shared.idle.notify_local();
    }

    /// Puts several entries into this worker's queues: those of a cancel, as a rule.
    pub(crate) fn push_all(&self, entries: Vec<Runnable>) {
        if self.firing.get()
            || entries.iter().any(|entry| entry.pin().is_some() || self.is_plain(entry))
        {
            return entries.into_iter().for_each(|entry| self.push(entry));
        }
        self.remote.lanes.push_all(entries);
        self.shared.idle.notify_local();
    }

    /// Runs tasks until `done`.
    pub(crate) fn run(&self, done: impl Fn() -> bool) {
        let _here = Here::enter(self);
        while !done() {
            if let Some(entry) = self.next_at_ease() {
                self.poll_plain(entry);
                continue;
            }
            match self.next() {
                Some(found) => {
                    self.poll(found);
                }
                None => {
                    self.core.rest();
                    self.wait(&done);
                }
            }
        }
        self.core.rest();
    }

    /// What [`run`](Worker::run) does until one task was polled or the worker parks, without the
    /// wait for that to end. One that was parked is `searching`.
    pub(crate) fn step(&self, mut searching: bool) -> Step {
        let _here = Here::enter(self);
        loop {
            let found = if searching {
                // Whether it pays to move work is a matter of time, which stands still here.
                match self.look_around(&|| false, &|_, _| true, false) {
                    Look::Found(found) => found,
                    Look::Closed => None,
                    Look::Parked(kind) => return Step::Parked(kind),
                }
            } else {
                let plain = self.next_at_ease().map(|entry| Found { entry, chosen: None });
                plain.or_else(|| self.next())
            };
            searching = found.is_none();
            let Some(found) = found else {
                self.core.rest();
                self.shared.idle.start_search();
                continue;
            };
            let lane = found.chosen.as_ref().map_or(Lane::Ready, |chosen| chosen.verdict.lane);
            let task = found.entry.id();
            if self.poll(found) == Some(true) {
                return Step::Polled(task, lane);
            }
        }
    }

    /// Whether a parked worker was woken: then it is searching. Else it goes on being parked.
    pub(crate) fn is_woken(&self) -> bool {
        self.shared.idle.rest(self.index.into(), Some(Duration::ZERO)) == Woken::Notified
    }

    /// A parked worker gets up by itself, and is searching.
    pub(crate) fn get_up(&self) {
        self.shared.idle.cancel_park(self.index.into());
    }

    pub(crate) fn certificate(&self) -> Certificate {
        self.remote.counters.certificate()
    }

    /// Runs what is runnable, and never waits.
    fn run_while_any(&self, mut go_on: impl FnMut() -> bool) {
        let _here = Here::enter(self);
        self.core.note_time(self.shared.now());
        self.fire_timers();
        while go_on()
            && let Some(found) = self.next()
        {
            self.poll(found);
        }
        self.core.rest();
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

    /// Polls what was found: whether there was a poll. `None`: the entry was dead.
    fn poll(&self, found: Found) -> Option<bool> {
        let Found { entry, chosen: Some(chosen) } = found else {
            return self.poll_plain(found.entry);
        };
        let Verdict { lane, fallback, limit } = chosen.verdict;
        if entry.is_outdated(chosen.place) {
            return self.discard(lane);
        }
        let streak = self.fairness.borrow().streak();
        let dispatch = || Dispatch::new(self.index, lane, streak, limit).fallback(fallback);
        let context = RunContext::from_lane(lane).recorded(self.recording.then(dispatch));
        // SAFETY: rule 2.
        let begun = unsafe { entry.begin(context) };
        let Some(begun) = begun else { return self.discard(lane) };
        if let Origin::Stolen(_) = chosen.origin {
            self.remote.counters.steals.add(1);
        }
        let mut fairness = self.fairness.borrow_mut();
        self.remote.counters.dispatched(chosen, streak, fairness.base_limit());
        fairness.dispatched(chosen);
        self.remote.counters.bypasses.set(fairness.bypasses());
        drop(fairness);
        self.decided.set(self.remote.counters.polls.get() + 1);
        let polled = begun.run();
        self.polled();
        Some(polled)
    }

    /// The same for plain work after plain work.
    #[inline]
    fn poll_plain(&self, entry: Runnable) -> Option<bool> {
        let dispatch = self.recording.then(|| self.plain_dispatch());
        // SAFETY: rule 2.
        let begun = unsafe { entry.begin(RunContext::from_lane(Lane::Ready).recorded(dispatch)) };
        let Some(begun) = begun else { return self.discard(Lane::Ready) };
        let polled = begun.run();
        self.polled();
        Some(polled)
    }

    /// An entry was dead: a cancel moved its task to another lane, or the task has ended. It uses
    /// up no turn, and leaves the streaks as they are.
    #[cold]
    fn discard(&self, lane: Lane) -> Option<bool> {
        self.shared.dead_entries(lane, -1);
        self.discarded.update(|before| before + 1);
        if self.discarded.get().is_multiple_of(POLLS_PER_LOOK) {
            self.fire_timers();
        }
        None
    }

    /// Counts a poll, and checks timers and sockets from time to time.
    #[inline]
    fn polled(&self) {
        let polls = self.remote.counters.polled();
        if self.pace.is_due(polls) {
            self.check_events(polls);
        }
    }

    #[cold]
    #[inline(never)]
    fn check_events(&self, polls: u64) {
        if !self.pace.is_for_sockets_only(polls) {
            let now = self.shared.now();
            self.pace.looked(polls, now);
            self.core.note_time(now);
            self.fire_timers();
        }
        self.look_at_sockets();
    }

    /// Makes the worker of this thread, if it is one, check the sockets after the current poll.
    #[cfg_attr(any(loom, not(unix)), allow(dead_code, reason = "there are no sockets"))]
    pub(crate) fn check_sockets_soon() {
        // SAFETY: rule 1.
        if let Some(worker) = unsafe { CURRENT.get().as_ref() } {
            worker.pace.check_sockets_soon();
        }
    }

    pub(crate) fn fire_timers(&self) {
        if self.core.next_timer().is_some() {
            self.firing.set(true);
            let due = self.core.fire_timers(self.shared.now());
            self.firing.set(false);
            self.due.add(due);
        }
    }

    /// [`next`](Worker::next) when nothing waits but plain work of this worker's own.
    #[inline]
    fn next_at_ease(&self) -> Option<Runnable> {
        // Shortcut: `Worker::next_at_ease`: with empty lanes and no user-defined governor, the
        // worker's local queue is next.
        // Law: `lanes::dispatch`.
        // Equal: every suggestion says Ready then and the streaks stay at 0:
        // `every_verdict_follows_the_rules`, `a_streak_ends_with_a_plain_dispatch`.
        // Worth: 13.7 % of `yield_1k`.

        let others = self.shared.global.total() + self.remote.lanes.total();
        if others > 0 || self.governed { None } else { self.next_plain() }
    }

    /// The next entry of those this worker sees.
    fn next(&self) -> Option<Found> {
        self.decide(None)
    }

    /// Plain work is next, and [`decide`](Worker::decide) would say so: it will find out later that
    /// there was some.
    #[inline]
    fn plain_dispatch(&self) -> Dispatch {
        if self.remote.counters.polls.get() != self.decided.get() {
            return self.plain;
        }
        let fairness = self.fairness.borrow();
        Dispatch::new(self.index, Lane::Ready, fairness.streak(), fairness.base_limit())
    }

    #[inline]
    fn next_plain(&self) -> Option<Runnable> {
        if self.pinned.borrow().is_empty() {
            return self.queue.pop(&self.remote.queue);
        }
        self.next_plain_or_pinned()
    }

    /// [`next_plain`](Worker::next_plain) with entries that must run here: the first of those goes
    /// when the entries queued before it have left, whoever took them.
    #[inline(never)]
    fn next_plain_or_pinned(&self) -> Option<Runnable> {
        let mut pinned = self.pinned.borrow_mut();
        let (after, _) = pinned.front()?;
        // Entries that were stolen from others are in the queue without having been pushed.
        let waiting = self.queue.len(&self.remote.queue) as u64;
        let gone = self.pushed.get().saturating_sub(waiting);
        let before = if gone < *after { self.queue.pop(&self.remote.queue) } else { None };
        // Others may have stolen all that was before it since the queue was measured.
        before.or_else(|| {
            let first = pinned.pop_front().map(|(_, entry)| entry);
            self.remote.pinned.store(pinned.len(), Relaxed);
            first
        })
    }

    /// A random number, for tasks: not from the stream of the worker's own choices.
    pub(crate) fn draw(&self) -> u64 {
        self.entropy.borrow_mut().next_u64()
    }

    /// A random choice.
    fn pick(&self, count: usize) -> usize {
        if count < 2 { 0 } else { self.rng.borrow_mut().below(count) }
    }

    /// There is nothing to run here: looks around, then parks.
    fn wait(&self, done: &impl Fn() -> bool) {
        let idle = &self.shared.idle;
        self.pace.pause();
        let mut watch = WATCH.0;
        let mut timers = false;
        let mut polls = self.polls_of_all();
        idle.start_search();
        loop {
            let before = std::mem::replace(&mut polls, self.polls_of_all());
            let watches_on = self.is_called_often.get() && before != polls;
            let is_worth = |victim, waiting| self.is_worth_moving(victim, waiting);
            let kind = match self.look_around(done, &is_worth, watches_on) {
                Look::Found(Some(found)) => {
                    self.poll(found);
                    return;
                }
                Look::Found(None) | Look::Closed => return,
                Look::Parked(kind) => kind,
            };
            let next = self.core.next_timer();
            let now = self.shared.now();
            let slack = self.due.slack();
            let timer = next.map(|next| park_deadline(next, now, slack) - now);
            // Where there were timers just now there will be some again.
            let recent = std::mem::replace(&mut timers, next.is_some()).then_some(now);
            let counters = &self.remote.counters;
            match kind {
                ParkKind::Watch => counters.watches.add(1),
                _ => counters.parks.add(1),
            }
            match kind {
                ParkKind::Watch => {
                    let span = timer.map_or(watch, |timer| timer.min(watch));
                    idle.park(self.index.into(), Some(span));
                    self.look_at_sockets();
                }
                ParkKind::Last => {
                    let until = TimerBackstop::at(&self.shared.backstops[1], next);
                    self.rest(timer);
                    idle.cancel_park(self.index.into());
                    drop(until);
                }
                ParkKind::Sleep | ParkKind::Closed => self.sleep(next.or(recent)),
            }
            watch = (watch * 2).min(WATCH.1);
        }
    }

    /// A searching worker looks at everything it can run. If there is nothing, it is parked for all
    /// others, and nothing that came meanwhile was missed. `is_worth` tells whether it pays to move
    /// work of another worker that has so much waiting.
    ///
    /// `watches_on`: it would rather watch than sleep.
    fn look_around(
        &self,
        done: &impl Fn() -> bool,
        is_worth: IsWorth<'_>,
        watches_on: bool,
    ) -> Look {
        let idle = &self.shared.idle;
        let me = usize::from(self.index);
        loop {
            self.fire_timers();
            let entry = self.decide(Some(is_worth));
            if entry.is_some() || done() {
                if idle.found_work() {
                    self.call_others();
                }
                return Look::Found(entry);
            }
            let kind = if watches_on { idle.prepare_watch(me) } else { idle.prepare_park(me) };
            if kind == ParkKind::Closed {
                idle.found_work();
                return Look::Closed;
            }
            if done() || self.sources(kind).keep_awake() {
                idle.cancel_park(me);
                continue;
            }
            self.fairness.borrow_mut().parked();
            return Look::Parked(kind);
        }
    }

    /// Sleeps until woken, or until a timer is late: then whoever looks at the timers is held up.
    /// As long as none is, this one stays asleep in the eyes of the others.
    fn sleep(&self, mut next: Option<Time>) {
        let idle = &self.shared.idle;
        let me = usize::from(self.index);
        let since = self.shared.now();
        loop {
            let by = TimerBackstop::at(&self.shared.backstops[0], next);
            let span = by.as_ref().map(|by| by.until - self.shared.now());
            let woken = self.rest(span);
            drop(by);
            next = self.core.next_timer();
            let now = self.shared.now();
            self.core.note_time(now);
            self.is_called_often.set(now < since + WATCH.1);
            if woken == Woken::Notified || next.is_some_and(|next| next + LATE <= self.shared.now())
            {
                return idle.cancel_park(me);
            }
        }
    }

    /// Sleeps in the reactor, if nobody else is there and there are sockets; else where it is only
    /// woken. A worker that has got events is not parked any more.
    fn rest(&self, timeout: Option<Duration>) -> Woken {
        let idle = &self.shared.idle;
        let me = usize::from(self.index);
        let reactor = &self.shared.reactor;
        if !reactor.has_sources() {
            return idle.rest(me, timeout);
        }
        let Some(mut driving) = reactor.enter() else { return self.tick(timeout) };
        let inside = reactor.presence.enter();
        let woken = idle.rest_in(me, || driving.wait(timeout));
        drop(inside);
        if !driving.has_events() {
            return woken;
        }
        // Before it makes work: who searches need not call another for it.
        idle.cancel_park(me);
        self.take_events(driving);
        Woken::Notified
    }

    /// Sleeps beside the worker in the reactor, which may leave it for a task and be held up by
    /// that: one of those who sleep gets up from time to time, unless nothing happens.
    fn tick(&self, timeout: Option<Duration>) -> Woken {
        let idle = &self.shared.idle;
        let me = usize::from(self.index);
        let Some(mut ticking) = self.shared.reactor.presence.tick() else {
            return idle.rest(me, timeout);
        };
        if timeout.is_some_and(|timeout| timeout <= LATE) {
            return idle.rest(me, timeout);
        }
        let end = timeout.map(|timeout| self.shared.now() + timeout);
        loop {
            let left = end.map_or(LATE, |end| (end - self.shared.now()).min(LATE));
            let woken = idle.rest(me, Some(left));
            if woken == Woken::Notified || end.is_some_and(|end| end <= self.shared.now()) {
                return woken;
            }
            self.remote.counters.ticks.add(1);
            match ticking.next() {
                Tick::Again => {}
                Tick::Look => return Woken::TimedOut,
                Tick::Stop => {
                    drop(ticking);
                    return idle.rest(me, end.map(|end| end - self.shared.now()));
                }
            }
        }
    }

    /// Looks for events of sockets, and does not wait for any.
    fn look_at_sockets(&self) {
        if let Some(mut driving) = self.shared.reactor.enter() {
            driving.wait(Some(Duration::ZERO));
            self.take_events(driving);
        }
    }

    /// Wakes who waits for these events: tasks of this runtime go into this worker's queue.
    fn take_events(&self, driving: Driving<'_>) {
        let mut woken = self.woken.take();
        driving.leave(&mut woken);
        for waker in woken.drain(..) {
            // It may be a waker of the user's.
            self.core.contain(|| waker.wake());
        }
        self.woken.set(woken);
    }

    /// What this worker could run, source by source. What could be stolen counts only for the last
    /// one to sleep: otherwise a worker is Active, or another looks around after this one.
    fn sources(&self, kind: ParkKind) -> Sources {
        let mut others = self.shared.remotes.iter();
        Sources {
            pinned: !self.pinned.borrow().is_empty(),
            queue: self.queue.len(&self.remote.queue) > 0,
            lanes: self.remote.lanes.total() > 0,
            global: self.shared.global.total() > 0,
            others: kind == ParkKind::Last && others.any(|remote| remote.waiting() > 0),
            timer: self.core.next_timer().is_some_and(|next| next <= self.shared.now()),
        }
    }

    /// The last one to search has found something: there may be more. A timer armed meanwhile was
    /// left to this worker as well, which may now be held up.
    fn call_others(&self) {
        if let Some(next) = self.core.next_timer() {
            self.shared.back_up_timer(next);
        }
        // So may sockets, if nobody is in the reactor or gets up to look.
        let reactor = &self.shared.reactor;
        let unwatched = reactor.has_sources() && !reactor.presence.is_watched();
        if self.shared.global.total() > 0 {
            self.shared.idle.notify_remote();
        } else if unwatched || self.shared.remotes.iter().any(|remote| remote.waiting() > 0) {
            self.shared.idle.notify_local();
        }
    }

    /// What all workers have polled so far: if it changes, something happens.
    fn polls_of_all(&self) -> u64 {
        self.shared.remotes.iter().map(|remote| remote.counters.polls.get()).sum()
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
        let deep = self.shared.remotes[victim].queue.len() >= DEEP;
        span < 4 * WATCH.1.as_nanos() as u64
            && (poll > SHORT_POLL || deep)
            && poll.saturating_mul(waiting) > SHORT_WAIT
    }

    /// Gives back what is left, for the others, when the thread goes.
    pub(crate) fn hand_over(&self) {
        let lanes = &self.remote.lanes;
        let next =
            || Lane::ALL.into_iter().find_map(|lane| lanes.pop(lane)).map(|(_, entry)| entry);
        while let Some(entry) = next().or_else(|| self.next_plain()) {
            match entry.pin() {
                // Whatever was pinned here has ended; this drops its last entries.
                Some(_) => drop(self.act(|| entry.run())),
                None => self.shared.global.push(entry),
            }
        }
    }

    /// Runs on a worker thread until the runtime is closed.
    pub(crate) fn serve(&self) {
        self.shared.blocking.owner.adopt();
        while !self.is_closed() {
            self.run(|| self.is_closed());
        }
        self.hand_over();
        // A drop of the runtime that did not join this thread may have emptied the lanes before.
        self.shared.expire_if_closed();
    }

    fn is_closed(&self) -> bool {
        self.shared.closed.load(Acquire)
    }
}
