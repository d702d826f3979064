//! One worker: selects the next task, and searches and parks when there is none.
//!
//! The order of dispatches is that of the kernel: cancel, timed, ready, global before local, with
//! its limits on streaks. Usually there are only ready entries at the default priority in the
//! worker's own queue. For these the worker takes a fast path.
//!
//! # Rules
//! 1. [`CURRENT`] points to a worker that [`Worker::run`] borrows while the pointer is set.
//! 2. A pinned entry is only in queues of the worker to which it is pinned, from which it is never
//!    stolen. There is one [`Worker`] for each index. Only the thread that owns it polls from its
//!    queues, and that thread keeps it until no task that is pinned to it is alive.

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
use timing::{Due, POLLS_PER_CHECK, Pace, TimerBackstop, park_deadline};

/// How late a timer may fire, or a socket event be seen, if the workers that are awake are all
/// inside long polls and another one sleeps.
pub(crate) const LATE: Duration = Duration::from_millis(20);
/// The first and the longest timeout of a watcher.
const WATCH: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
/// Nanoseconds. Tasks with shorter polls cost more to move to another core than to leave in place.
const SHORT_POLL: u64 = 700;
/// Nanoseconds. Work that waits less than this in a queue is not stolen: two tasks that exchange
/// messages are fastest on one core.
const SHORT_WAIT: u64 = 10_000;

/// Entries. A steal from a queue this long moves half of it, which spreads the cost over many
/// polls, however short they are.
const DEEP: usize = 256;

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// Makes a worker the current one of the thread until it is dropped.
struct CurrentGuard<'a> {
    before: *const Worker,
    worker: std::marker::PhantomData<&'a Worker>,
}

impl<'a> CurrentGuard<'a> {
    fn enter(worker: &'a Worker) -> CurrentGuard<'a> {
        CurrentGuard { before: CURRENT.replace(worker), worker: std::marker::PhantomData }
    }
}

impl Drop for CurrentGuard<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// An entry selected for dispatch.
struct Selected {
    entry: Runnable,
    /// The decision; `None` for an entry of the fast path.
    chosen: Option<Chosen>,
}

/// The outcome of a search for work.
enum Search {
    /// An entry to run, or `None` if the worker is done.
    Found(Option<Selected>),
    /// The runtime has been shut down.
    Closed,
    /// No work was found: the worker counts as parked.
    Parked(ParkKind),
}

/// The outcome of one step of a worker.
pub(crate) enum Step {
    /// It polled this task, from this lane.
    Polled(u64, Lane),
    /// It found no work and parked. It continues when it is woken.
    Parked(ParkKind),
}

pub(crate) struct Worker {
    pub(crate) index: u16,
    /// True if this is the runtime's only worker, from which nothing is stolen.
    is_only: bool,
    /// Entries of equal priority are dispatched in the order in which they came.
    in_order: bool,
    /// The governor is called before every dispatch.
    governed: bool,
    shared: Arc<Shared>,
    /// The part that other workers see.
    remote: Arc<Remote>,
    core: Arc<Core>,
    queue: Queue,
    /// Ready entries pinned to this worker, each with the number of pushes that precede it.
    pinned: RefCell<VecDeque<(u64, Runnable)>>,
    /// The number of entries ever pushed to the queue.
    pushed: Cell<u64>,
    fairness: RefCell<Fairness>,
    rng: RefCell<DetRng>,
    /// The random numbers of tasks.
    entropy: RefCell<DetRng>,
    /// The number of polls at the last decision between lanes.
    decided: Cell<u64>,
    /// Alternates between the queue and the lanes when the bypass rule grants the oldest ready
    /// entry a turn.
    queue_next: Cell<bool>,
    /// Schedules the next check of timers and sockets.
    pace: Pace,
    /// The number of dead entries ever taken, which are no dispatches.
    discarded: Cell<u64>,
    /// The journal records how each entry was selected.
    recording: bool,
    /// The dispatch record of the fast path.
    default_dispatch: Dispatch,
    /// Entries that become runnable go to the global lanes, while timers fire for example.
    redirects: Cell<bool>,
    due: Due,
    /// A reusable buffer for wakers collected from the reactor.
    woken: Cell<Vec<Waker>>,
    /// The last sleep was short and ended by a wakeup. If work arrives that often, watching is
    /// cheaper than sleeping and being woken.
    is_woken_often: Cell<bool>,
    /// For each other worker, the time of the last sample and the number of its polls then.
    poll_samples: RefCell<Vec<(u64, u64)>>,
}

impl Worker {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, core: Arc<Core>, queue: Queue) -> Worker {
        let cancel_streak_limit = shared.rules.cancel_streak_limit;
        let fairness =
            Fairness::new(FairnessConfig { cancel_streak_limit, ..FairnessConfig::default() });
        Worker {
            index,
            is_only: shared.remotes.len() == 1,
            in_order: shared.rules.tie_break == TieBreak::Fifo,
            governed: shared.rules.governs_all,
            remote: shared.remotes[usize::from(index)].clone(),
            queue,
            pinned: RefCell::default(),
            pushed: Cell::new(0),
            default_dispatch: Dispatch::new(index, Lane::Ready, 0, fairness.base_limit()),
            fairness: RefCell::new(fairness),
            rng: RefCell::new(DetRng::new(shared.rules.seed, index.into())),
            entropy: RefCell::new(DetRng::new(shared.rules.seed, (1 << 32) + u64::from(index))),
            decided: Cell::new(0),
            queue_next: Cell::new(false),
            pace: Pace::default(),
            discarded: Cell::new(0),
            recording: core.recording(),
            redirects: Cell::new(false),
            due: Due::default(),
            woken: Cell::default(),
            is_woken_often: Cell::new(false),
            poll_samples: RefCell::new(vec![(0, 0); shared.remotes.len()]),
            shared,
            core,
        }
    }

    /// Calls `f` with the current worker if it belongs to `shared`; otherwise returns `value`.
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

    /// Runs `f`. Entries that it makes runnable go to the global lanes.
    pub(crate) fn redirect_to_global(&self, f: &mut dyn FnMut()) {
        let before = self.redirects.replace(true);
        f();
        self.redirects.set(before);
    }

    /// Calls `f` with this worker as the current one of the thread.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _current = CurrentGuard::enter(self);
        f()
    }

    /// Returns the number of live tasks that are pinned to this worker.
    pub(crate) fn pins(&self) -> usize {
        self.remote.pins.load(Relaxed)
    }

    /// Returns true if this thread is running a worker.
    pub(crate) fn is_here() -> bool {
        !CURRENT.get().is_null()
    }

    /// Adds an entry to this worker's queues.
    #[inline]
    pub(crate) fn push(&self, entry: Runnable) {
        // Nothing is stolen from the only worker, so a pinned entry may be in its queue.
        let stays = entry.pin().is_none_or(|pin| self.is_only && pin == self.index);
        if self.redirects.get() || !stays || !self.is_default_ready(&entry) {
            return self.push_slow(entry);
        }
        self.queue.push(&self.remote.queue, entry);
        self.pushed.set(self.pushed.get() + 1);
        // The only worker has none to notify.
        if !self.is_only {
            self.shared.idle.notify_local();
        }
    }

    /// Returns true if an entry goes into this worker's queue. If ties are broken by the seed or by
    /// task ids, none does, and all entries are in the lanes.
    #[inline]
    fn is_default_ready(&self, entry: &Runnable) -> bool {
        self.in_order && entry.is_plain()
    }

    /// [`push`](Worker::push) of an entry that is pinned, in another lane or at another priority.
    #[inline(never)]
    fn push_slow(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) if pin != self.index => return self.shared.send_to(pin, entry),
            Some(_) if !self.is_only && self.is_default_ready(&entry) => {
                let mut pinned = self.pinned.borrow_mut();
                pinned.push_back((self.pushed.get(), entry));
                self.remote.pinned.store(pinned.len(), Relaxed);
                return;
            }
            _ => {}
        }
        if self.redirects.get() && entry.pin().is_none() {
            self.shared.global.push(entry);
        } else if self.is_default_ready(&entry) {
            self.queue.push(&self.remote.queue, entry);
            self.pushed.set(self.pushed.get() + 1);
        } else {
            self.remote.lanes.push(entry);
        }
        self.shared.idle.notify_local();
    }

    /// Adds several entries to this worker's queues, usually those of a cancel.
    pub(crate) fn push_all(&self, entries: Vec<Runnable>) {
        if self.redirects.get()
            || entries.iter().any(|entry| entry.pin().is_some() || self.is_default_ready(entry))
        {
            return entries.into_iter().for_each(|entry| self.push(entry));
        }
        self.remote.lanes.push_all(entries);
        self.shared.idle.notify_local();
    }

    /// Runs tasks until `done` returns true.
    pub(crate) fn run(&self, done: impl Fn() -> bool) {
        let _current = CurrentGuard::enter(self);
        while !done() {
            if let Some(entry) = self.next_fast_path() {
                self.poll_default(entry);
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

    /// Does what [`run`](Worker::run) does until one task is polled or the worker parks, without
    /// waiting for the park to end. `searching` is true for a worker that was parked.
    pub(crate) fn step(&self, mut searching: bool) -> Step {
        let _current = CurrentGuard::enter(self);
        loop {
            let found = if searching {
                // Whether stealing pays depends on time, which stands still here.
                match self.search(&|| false, &|_, _| true, false) {
                    Search::Found(found) => found,
                    Search::Closed => None,
                    Search::Parked(kind) => return Step::Parked(kind),
                }
            } else {
                let fast = self.next_fast_path().map(|entry| Selected { entry, chosen: None });
                fast.or_else(|| self.next())
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

    /// Returns true if a parked worker was woken, and is searching. Otherwise it stays parked.
    pub(crate) fn is_woken(&self) -> bool {
        self.shared.idle.rest(self.index.into(), Some(Duration::ZERO)) == Woken::Notified
    }

    /// Makes a parked worker a searcher without a wakeup.
    pub(crate) fn cancel_park(&self) {
        self.shared.idle.cancel_park(self.index.into());
    }

    pub(crate) fn certificate(&self) -> Certificate {
        self.remote.counters.certificate()
    }

    /// Runs what is runnable while `more` returns true, and never waits.
    fn run_ready(&self, mut more: impl FnMut() -> bool) {
        let _current = CurrentGuard::enter(self);
        self.core.note_time(self.shared.now());
        self.fire_timers();
        while more()
            && let Some(found) = self.next()
        {
            self.poll(found);
        }
        self.core.rest();
    }

    /// Runs tasks for a time span.
    pub(crate) fn run_for(&self, span: Duration) {
        let end = self.shared.now() + span;
        while self.shared.now() < end {
            let mut steps = 0..u32::from(u8::MAX);
            self.run_ready(|| steps.next().is_some());
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Polls a selected entry. Returns whether the task was polled, and `None` for a dead entry.
    fn poll(&self, found: Selected) -> Option<bool> {
        let Selected { entry, chosen: Some(chosen) } = found else {
            return self.poll_default(found.entry);
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

    /// [`poll`](Worker::poll) of an entry of the fast path.
    #[inline]
    fn poll_default(&self, entry: Runnable) -> Option<bool> {
        let dispatch = self.recording.then(|| self.fast_path_dispatch());
        // SAFETY: rule 2.
        let begun = unsafe { entry.begin(RunContext::from_lane(Lane::Ready).recorded(dispatch)) };
        let Some(begun) = begun else { return self.discard(Lane::Ready) };
        let polled = begun.run();
        self.polled();
        Some(polled)
    }

    /// Drops a dead entry: a cancel moved its task to another lane, or the task has completed. It
    /// uses up no turn and leaves the streaks unchanged.
    #[cold]
    fn discard(&self, lane: Lane) -> Option<bool> {
        self.shared.dead_entries(lane, -1);
        self.discarded.update(|before| before + 1);
        if self.discarded.get().is_multiple_of(POLLS_PER_CHECK) {
            self.fire_timers();
        }
        None
    }

    /// Counts a poll, and checks timers and sockets when that is due.
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
            self.pace.checked(polls, now);
            self.core.note_time(now);
            self.fire_timers();
        }
        self.check_sockets();
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
            self.redirects.set(true);
            let due = self.core.fire_timers(self.shared.now());
            self.redirects.set(false);
            self.due.add(due);
        }
    }

    /// [`next`](Worker::next) if the worker's own queue has the only entries.
    #[inline]
    fn next_fast_path(&self) -> Option<Runnable> {
        // Shortcut: `Worker::next_fast_path`: with empty lanes and no user-defined governor, the
        // worker's local queue is next.
        // Law: `lanes::dispatch`.
        // Equal: every suggestion says Ready then and the streaks stay at 0:
        // `every_verdict_follows_the_rules`, `a_cancel_streak_ends_with_a_ready_dispatch`.
        // Worth: 13.7 % of `yield_1k`.

        let others = self.shared.global.total() + self.remote.lanes.total();
        if others > 0 || self.governed { None } else { self.next_default() }
    }

    /// Selects the next entry from the queues that this worker sees.
    fn next(&self) -> Option<Selected> {
        self.decide(None)
    }

    /// Returns the record that [`decide`](Worker::decide) would make for an entry of the fast path.
    /// The streaks are updated by the next decision.
    #[inline]
    fn fast_path_dispatch(&self) -> Dispatch {
        if self.remote.counters.polls.get() != self.decided.get() {
            return self.default_dispatch;
        }
        let fairness = self.fairness.borrow();
        Dispatch::new(self.index, Lane::Ready, fairness.streak(), fairness.base_limit())
    }

    #[inline]
    fn next_default(&self) -> Option<Runnable> {
        if self.pinned.borrow().is_empty() {
            return self.queue.pop(&self.remote.queue);
        }
        self.next_default_or_pinned()
    }

    /// [`next_default`](Worker::next_default) with pinned entries. The first of them is taken when
    /// all entries queued before it have left, whichever worker took them.
    #[inline(never)]
    fn next_default_or_pinned(&self) -> Option<Runnable> {
        let mut pinned = self.pinned.borrow_mut();
        let (after, _) = pinned.front()?;
        // Stolen entries are in the queue without having been pushed here.
        let waiting = self.queue.len(&self.remote.queue) as u64;
        let gone = self.pushed.get().saturating_sub(waiting);
        let before = if gone < *after { self.queue.pop(&self.remote.queue) } else { None };
        // Others may have stolen all entries before it since the length was read.
        before.or_else(|| {
            let first = pinned.pop_front().map(|(_, entry)| entry);
            self.remote.pinned.store(pinned.len(), Relaxed);
            first
        })
    }

    /// Returns a random number for tasks. The worker's own choices use a separate stream.
    pub(crate) fn draw(&self) -> u64 {
        self.entropy.borrow_mut().next_u64()
    }

    /// Chooses one of `count` items at random.
    fn pick(&self, count: usize) -> usize {
        if count < 2 { 0 } else { self.rng.borrow_mut().below(count) }
    }

    /// Searches for work and parks, until a task was polled or `done` returns true.
    fn wait(&self, done: &impl Fn() -> bool) {
        let idle = &self.shared.idle;
        self.pace.pause();
        let mut watch = WATCH.0;
        let mut timers = false;
        let mut polls = self.polls_of_all();
        idle.start_search();
        loop {
            let before = std::mem::replace(&mut polls, self.polls_of_all());
            let prefers_watch = self.is_woken_often.get() && before != polls;
            let is_worth = |victim, waiting| self.is_worth_moving(victim, waiting);
            let kind = match self.search(done, &is_worth, prefers_watch) {
                Search::Found(Some(found)) => {
                    self.poll(found);
                    return;
                }
                Search::Found(None) | Search::Closed => return,
                Search::Parked(kind) => kind,
            };
            let next = self.core.next_timer();
            let now = self.shared.now();
            let slack = self.due.slack();
            let timer = next.map(|next| park_deadline(next, now, slack) - now);
            // Armed timers a moment ago suggest more of them soon.
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
                    self.check_sockets();
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

    /// Searches everything this worker can run. If there is nothing, it counts as parked, and no
    /// entry that came meanwhile was missed. `is_worth` says whether stealing from a worker with a
    /// given number of waiting entries pays.
    ///
    /// With `prefers_watch` the worker watches rather than sleeps.
    fn search(
        &self,
        done: &impl Fn() -> bool,
        is_worth: IsWorth<'_>,
        prefers_watch: bool,
    ) -> Search {
        let idle = &self.shared.idle;
        let me = usize::from(self.index);
        loop {
            self.fire_timers();
            let entry = self.decide(Some(is_worth));
            if entry.is_some() || done() {
                if idle.found_work() {
                    self.notify_others();
                }
                return Search::Found(entry);
            }
            let kind = if prefers_watch { idle.prepare_watch(me) } else { idle.prepare_park(me) };
            if kind == ParkKind::Closed {
                idle.found_work();
                return Search::Closed;
            }
            if done() || self.sources(kind).keep_awake() {
                idle.cancel_park(me);
                continue;
            }
            self.fairness.borrow_mut().parked();
            return Search::Parked(kind);
        }
    }

    /// Sleeps until woken, or until a timer is late because the workers that check timers are
    /// inside long polls. Until then it counts as asleep.
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
            self.is_woken_often.set(now < since + WATCH.1);
            if woken == Woken::Notified || next.is_some_and(|next| next + LATE <= self.shared.now())
            {
                return idle.cancel_park(me);
            }
        }
    }

    /// Sleeps in the reactor, if sockets are registered and no other worker is there; otherwise in
    /// the parker. A worker that got events is not parked any more.
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
        // Before it makes work, so that a searching worker need not wake another for it.
        idle.cancel_park(me);
        self.take_events(driving);
        Woken::Notified
    }

    /// Sleeps outside the reactor while another worker is inside, which may leave it for a long
    /// poll. While there is activity, one such sleeper therefore wakes regularly.
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
                Tick::Continue => {}
                Tick::Enter => return Woken::TimedOut,
                Tick::Stop => {
                    drop(ticking);
                    return idle.rest(me, end.map(|end| end - self.shared.now()));
                }
            }
        }
    }

    /// Polls the sockets for events without waiting.
    fn check_sockets(&self) {
        if let Some(mut driving) = self.shared.reactor.enter() {
            driving.wait(Some(Duration::ZERO));
            self.take_events(driving);
        }
    }

    /// Wakes the tasks that wait for these events. Tasks of this runtime go into this worker's
    /// queue.
    fn take_events(&self, driving: Driving<'_>) {
        let mut woken = self.woken.take();
        driving.leave(&mut woken);
        for waker in woken.drain(..) {
            // It may be a third-party waker, which may panic.
            self.core.contain(|| waker.wake());
        }
        self.woken.set(woken);
    }

    /// Returns the sources that this worker could run from. Work that could be stolen counts only
    /// for the last worker to sleep: otherwise one is Active, or another searches after this one.
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

    /// Called when the last searcher has found work: there may be more. A timer armed meanwhile was
    /// left to this worker too, which may now be inside a long poll.
    fn notify_others(&self) {
        if let Some(next) = self.core.next_timer() {
            self.shared.back_up_timer(next);
        }
        // The same holds for sockets, if no worker is in the reactor or ticks.
        let reactor = &self.shared.reactor;
        let unwatched = reactor.has_sources() && !reactor.presence.is_watched();
        if self.shared.global.total() > 0 {
            self.shared.idle.notify_remote();
        } else if unwatched || self.shared.remotes.iter().any(|remote| remote.waiting() > 0) {
            self.shared.idle.notify_local();
        }
    }

    /// Returns the number of polls of all workers. A change means that there is activity.
    fn polls_of_all(&self) -> u64 {
        self.shared.remotes.iter().map(|remote| remote.counters.polls.get()).sum()
    }

    /// Returns true if stealing from another worker pays: its polls since the last sample were so
    /// long, or its queue is so deep, that its work is better run here.
    fn is_worth_moving(&self, victim: usize, waiting: u64) -> bool {
        let polls = self.shared.remotes[victim].counters.polls.get();
        let now = self.shared.now().as_nanos();
        let sample = &mut self.poll_samples.borrow_mut()[victim];
        let (then, before) = *sample;
        let span = now.saturating_sub(then);
        if span < WATCH.0.as_nanos() as u64 / 2 {
            return false;
        }
        *sample = (now, polls);
        let poll = span / (polls - before).max(1);
        let deep = self.shared.remotes[victim].queue.len() >= DEEP;
        span < 4 * WATCH.1.as_nanos() as u64
            && (poll > SHORT_POLL || deep)
            && poll.saturating_mul(waiting) > SHORT_WAIT
    }

    /// Moves the remaining entries to the global lanes when the thread releases this worker.
    pub(crate) fn release_entries(&self) {
        let lanes = &self.remote.lanes;
        let next =
            || Lane::ALL.into_iter().find_map(|lane| lanes.pop(lane)).map(|(_, entry)| entry);
        while let Some(entry) = next().or_else(|| self.next_default()) {
            match entry.pin() {
                // The tasks pinned here have completed; this drops their last entries.
                Some(_) => drop(self.enter(|| entry.run())),
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
        self.release_entries();
        // A drop of the runtime that did not join this thread may have emptied the lanes already.
        self.shared.expire_if_closed();
    }

    fn is_closed(&self) -> bool {
        self.shared.closed.load(Acquire)
    }
}
