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

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::lanes::{
    Certificate, Fairness, FairnessConfig, Lane, Pending, Suggestion, TieBreak, Turn, Verdict,
    steal_order,
};
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_runtime::{Core, Dispatch, Host, Runnable};

use crate::idle::{ParkKind, Sources};
use crate::parker::Woken;
use crate::prim::atomic::AtomicU64;
use crate::prim::atomic::Ordering::{Acquire, Relaxed};
use crate::queue::Queue;
use crate::shared::{self, Remote, Shared};

/// Nanoseconds. Sleepers get up for timers at multiples of this, or when they have slept for as
/// long, so that one wake serves many.
const SLACK: u64 = 1_000_000;
/// The same where [`MANY`] timers or more were due since the last time.
const SLACK_IF_MANY: u64 = 1_900_000;
const MANY: usize = 32;
/// How late a timer may be when the workers that are awake are held up by polls that do not return,
/// and another sleeps.
pub(crate) const LATE: Duration = Duration::from_millis(20);
/// Polls between two looks at the timers, at most.
const POLLS_PER_LOOK: u64 = 64;
/// Nanoseconds between two looks at the timers, unless a single poll takes longer: where so many
/// polls take more time than this, there are fewer between two looks.
const TIME_PER_LOOK: u64 = 1_000_000;
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

/// What a worker has found to run.
struct Found {
    entry: Runnable,
    /// Why, unless plain work follows plain work.
    chosen: Option<Chosen>,
}

/// A decision between lanes, to be counted once the entry turns out to be alive.
struct Chosen {
    verdict: Verdict,
    /// The lanes that held work when it was taken.
    pending: Pending,
    /// Which entry of the lane it is.
    turn: Turn,
}

pub(crate) struct Worker {
    pub(crate) index: u16,
    /// There is no other.
    alone: bool,
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

    /// Whose lanes take what is made runnable here and now: this thread's worker's, unless that is
    /// firing timers.
    pub(crate) fn source(shared: &Shared) -> Option<u16> {
        let mut source = None;
        Worker::with(shared, &mut source, |worker, source| {
            *source = (!worker.firing.get()).then_some(worker.index);
        });
        source
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
        if self.firing.get() || !stays || !entry.is_plain() {
            return self.push_aside(entry);
        }
        self.queue.push(&self.remote.queue, entry);
        self.pushed.set(self.pushed.get() + 1);
        // Else there is nobody to be called.
        if !self.alone {
            self.shared.idle.notify_local();
        }
    }

    /// Puts an entry somewhere that is no plain work of this worker's own that others may take.
    #[inline(never)]
    fn push_aside(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) if pin != self.index => return self.shared.send_to(pin, entry),
            Some(_) if !self.alone && entry.is_plain() => {
                self.pinned.borrow_mut().push_back((self.pushed.get(), entry));
                return;
            }
            _ => {}
        }
        if self.firing.get() && entry.pin().is_none() {
            self.shared.global.push(entry);
        } else if entry.is_plain() {
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
            || entries.iter().any(|entry| entry.pin().is_some() || entry.is_plain())
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

    /// Takes one step of a run that is stepped: the task that was polled, and its lane.
    /// `None`: the one that was chosen had no poll left, or there is none.
    pub(crate) fn step(&self) -> Option<(u64, Lane)> {
        let _here = Here::enter(self);
        loop {
            let found = self.decide()?;
            let lane = found.chosen.as_ref().map_or(Lane::Ready, |chosen| chosen.verdict.lane);
            let task = found.entry.id();
            if let Some(polled) = self.poll(found) {
                return polled.then_some((task, lane));
            }
        }
    }

    /// Whether there is anything for this worker, its own or to be stolen.
    pub(crate) fn can_step(&self) -> bool {
        let others = self.shared.remotes.iter().enumerate();
        self.shared.global.total() > 0
            || self.remote.lanes.total() > 0
            || others
                .filter(|(at, _)| *at != usize::from(self.index))
                .any(|(_, remote)| remote.lanes.stealable() > 0)
    }

    /// There was nothing to run anywhere.
    pub(crate) fn parked(&self) {
        self.fairness.borrow_mut().parked();
    }

    pub(crate) fn certificate(&self) -> Certificate {
        self.remote.counters.certificate()
    }

    /// Runs what is runnable, and never waits.
    fn run_while_any(&self, mut go_on: impl FnMut() -> bool) {
        let _here = Here::enter(self);
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
        let Found { entry, chosen: Some(Chosen { verdict, pending, turn }) } = found else {
            return self.poll_plain(found.entry);
        };
        let Verdict { lane, fallback, limit } = verdict;
        let streak = self.fairness.borrow().streak();
        // A task that was asked to stop while it waited has another entry in the cancel lane.
        let plain = lane != Lane::Cancel;
        let dispatch = || Dispatch::new(self.index, lane, streak, limit).fallback(fallback);
        // SAFETY: rule 2.
        let begun = unsafe { shared::begin(entry, plain, self.recording.then(dispatch)) };
        let Some(begun) = begun else { return self.discard() };
        let mut fairness = self.fairness.borrow_mut();
        self.remote.counters.dispatched(verdict, streak, fairness.base_limit(), pending);
        fairness.record(verdict, pending);
        fairness.record_turn(lane, turn);
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
        let begun = unsafe { shared::begin(entry, true, dispatch) };
        let Some(begun) = begun else { return self.discard() };
        let polled = begun.run();
        self.polled();
        Some(polled)
    }

    /// An entry was dead: a cancel moved its task to another lane, or the task has ended. It uses
    /// up no turn, and leaves the streaks as they are.
    #[cold]
    fn discard(&self) -> Option<bool> {
        self.discarded.update(|before| before + 1);
        if self.discarded.get().is_multiple_of(POLLS_PER_LOOK) && !self.shared.rules.exact {
            self.fire_timers();
        }
        None
    }

    /// Counts a poll, and looks at the clock from time to time.
    #[inline]
    fn polled(&self) {
        let polls = self.remote.counters.polled();
        if self.pace.is_due(polls) && !self.shared.rules.exact {
            self.pace.looked(polls, self.shared.now());
            self.fire_timers();
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
        let others = self.shared.global.total() + self.remote.lanes.total();
        if others > 0 { None } else { self.next_plain() }
    }

    /// The next entry of those this worker sees.
    fn next(&self) -> Option<Found> {
        let (global, local) = (&self.shared.global, &self.remote.lanes);
        if global.is_special() || local.total() > 0 || self.shared.rules.exact {
            return self.decide();
        }
        if global.total() > 0 {
            let fairness = self.streaks();
            if let Some((turn, entry)) = self.take(Lane::Ready, &fairness) {
                let limit = fairness.base_limit();
                let verdict = Verdict { lane: Lane::Ready, fallback: false, limit };
                let pending = Pending { cancel: false, timed: false, ready: true };
                return Some(Found { entry, chosen: Some(Chosen { verdict, pending, turn }) });
            }
        }
        self.next_plain().map(|entry| Found { entry, chosen: None })
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
        before.or_else(|| pinned.pop_front().map(|(_, entry)| entry))
    }

    /// The law with all three lanes. `None`: nothing waits that this worker may take.
    ///
    /// Other workers take entries meanwhile. If the chosen one is gone, that says nothing about
    /// the other lanes: the worker decides again. Each failed attempt is another worker's success,
    /// so this ends.
    fn decide(&self) -> Option<Found> {
        loop {
            let pending = self.pending();
            let found = self.decide_among(pending);
            if found.is_some() || !pending.any() {
                return found;
            }
        }
    }

    /// The lanes in which this worker sees work: the global ones and all of its own.
    fn pending(&self) -> Pending {
        let (far, near) = (self.shared.global.pending(), self.remote.lanes.pending());
        Pending {
            cancel: far.cancel || near.cancel,
            timed: far.timed || near.timed,
            ready: far.ready || near.ready || self.has_plain(),
        }
    }

    /// Whether plain entries wait in this worker's own queues.
    fn has_plain(&self) -> bool {
        self.queue.len(&self.remote.queue) > 0 || !self.pinned.borrow().is_empty()
    }

    /// The streaks, up to date: plain work after plain work is not noted there as it goes.
    fn streaks(&self) -> RefMut<'_, Fairness> {
        let mut fairness = self.fairness.borrow_mut();
        if self.remote.counters.polls.get() != self.decided.get() {
            fairness.parked();
            self.decided.set(self.remote.counters.polls.get());
        }
        fairness
    }

    /// One decision. `None`: the chosen entry is gone, or there was none. When cancel work has gone
    /// for too long and nothing else is to be seen, the turn belongs to other work wherever it is.
    fn decide_among(&self, pending: Pending) -> Option<Found> {
        let local = &self.remote.lanes;
        // The governor is the user's: nothing is borrowed while it is asked.
        let suggestion = self.shared.suggestion(pending, local, &self.core);
        let fairness = self.streaks();
        let limit = fairness.limit(suggestion);
        let own = fairness.decide(pending, suggestion);
        let (verdict, (turn, entry)) = match own {
            Some(verdict) if !verdict.fallback => (verdict, self.take(verdict.lane, &fairness)?),
            _ => {
                let may_go = fairness.cancel_may_go(suggestion);
                let wanted = if may_go { &Lane::ALL[..] } else { &Lane::ALL[1..] };
                let stolen = |lane, fallback, entry| {
                    (Verdict { lane, fallback, limit }, (Turn::default(), entry))
                };
                match (self.steal_from_lanes(wanted), own) {
                    (Some((lane, entry)), _) => stolen(lane, false, entry),
                    (None, Some(fallback)) => (fallback, self.take(fallback.lane, &fairness)?),
                    (None, None) => {
                        let (lane, entry) = self.steal_from_lanes(&[Lane::Cancel])?;
                        stolen(lane, true, entry)
                    }
                }
            }
        };
        Some(Found { entry, chosen: Some(Chosen { verdict, pending, turn }) })
    }

    /// The entry of a lane that goes first: the global one, then the worker's own, unless that has
    /// been passed as often as is allowed.
    fn take(&self, lane: Lane, fairness: &Fairness) -> Option<(Turn, Runnable)> {
        let (global, local) = (&self.shared.global, &self.remote.lanes);
        let waits = local.len(lane) > 0 || (lane == Lane::Ready && self.has_plain());
        if !(waits && fairness.local_first(lane))
            && let Some((lower, entry)) = global.pop_in_turn(lane, fairness.oldest_first(true))
        {
            let turn = Turn { global: true, passed_local: waits, passed_lower: lower };
            return Some((turn, entry));
        }
        let (passed_lower, entry) = match lane {
            Lane::Ready => self.take_ready(fairness.oldest_first(false))?,
            lane => (false, local.pop(lane)?),
        };
        Some((Turn { passed_lower, ..Turn::default() }, entry))
    }

    /// The worker's own ready entry that goes first: by priority, or the `oldest`. Also whether it
    /// went for its priority, before lower ones. Plain entries are in the queue, all else in the
    /// lanes.
    fn take_ready(&self, oldest: bool) -> Option<(bool, Runnable)> {
        let local = &self.remote.lanes;
        let in_lanes = local.len(Lane::Ready) > 0;
        let several = in_lanes && local.is_mixed();
        let mixed = several || (in_lanes && self.has_plain());
        let entry = if mixed && oldest {
            // Where both are passed by higher priorities they take turns: nobody knows which of the
            // two is older.
            self.queue_next.update(|queue| !queue);
            let queue_goes = if several { self.queue_next.get() } else { local.has_leading() };
            if queue_goes {
                self.next_plain().or_else(|| local.pop_oldest())
            } else {
                local.pop_oldest().or_else(|| self.next_plain())
            }
        } else if self.shared.rules.tie_break == TieBreak::Seeded {
            local.pop_tied(|count| self.pick(count)).or_else(|| self.next_plain())
        } else {
            let leading = local.pop_leading().or_else(|| self.next_plain());
            leading.or_else(|| local.pop(Lane::Ready))
        };
        entry.map(|entry| (mixed && !oldest, entry))
    }

    /// A random number, for tasks: not from the stream of the worker's own choices.
    pub(crate) fn draw(&self) -> u64 {
        self.entropy.borrow_mut().next_u64()
    }

    /// A random choice.
    fn pick(&self, count: usize) -> usize {
        if count < 2 { 0 } else { self.rng.borrow_mut().below(count) }
    }

    /// Takes an entry that waits in one of these lanes of another worker.
    fn steal_from_lanes(&self, wanted: &[Lane]) -> Option<(Lane, Runnable)> {
        let (me, remotes) = (usize::from(self.index), &self.shared.remotes);
        let others = || remotes.iter().enumerate().filter(|(at, _)| *at != me);
        if !others().any(|(_, remote)| remote.lanes.has_stealable(wanted)) {
            return None;
        }
        let start = self.pick(remotes.len() - 1);
        let mut victims = steal_order(me, remotes.len(), start);
        victims.find_map(|victim| remotes[victim].lanes.steal(wanted))
    }

    /// There is nothing to run here: looks around, then parks.
    fn wait(&self, done: &impl Fn() -> bool) {
        let idle = &self.shared.idle;
        self.pace.pause();
        let (mut watch, mut timers) = (WATCH.0, false);
        idle.start_search();
        loop {
            self.fire_timers();
            let entry = self
                .next()
                .or_else(|| self.steal().inspect(|_| self.remote.counters.steals.add(1)));
            if entry.is_some() || done() {
                if idle.found_work() {
                    self.call_others();
                }
                if let Some(found) = entry {
                    self.poll(found);
                }
                return;
            }
            let kind = idle.prepare_park(self.index.into());
            if kind == ParkKind::Closed {
                idle.found_work();
                return;
            }
            if done() || self.sources(kind).keep_awake() {
                idle.cancel_park(self.index.into());
                continue;
            }
            self.fairness.borrow_mut().parked();
            let (next, now) = (self.core.next_timer(), self.shared.now());
            let slack = self.due.slack();
            let timer = next.map(|next| get_up(next, now, slack) - now);
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
                }
                ParkKind::Last => {
                    let until = StandBy::at(&self.shared.relief[1], next);
                    idle.park(self.index.into(), timer);
                    drop(until);
                }
                ParkKind::Sleep | ParkKind::Closed => self.sleep(next.or(recent)),
            }
            watch = (watch * 2).min(WATCH.1);
        }
    }

    /// Sleeps until woken, or until a timer is late: then whoever looks at the timers is held up.
    /// As long as none is, this one stays asleep in the eyes of the others.
    fn sleep(&self, mut next: Option<Time>) {
        let (idle, me) = (&self.shared.idle, usize::from(self.index));
        loop {
            let by = StandBy::at(&self.shared.relief[0], next);
            let span = by.as_ref().map(|by| by.until - self.shared.now());
            let woken = idle.rest(me, span);
            drop(by);
            next = self.core.next_timer();
            if woken == Woken::Notified || next.is_some_and(|next| next + LATE <= self.shared.now())
            {
                return idle.cancel_park(me);
            }
        }
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
        if self.shared.global.total() > 0 {
            self.shared.idle.notify_remote();
        } else if self.shared.remotes.iter().any(|remote| remote.waiting() > 0) {
            self.shared.idle.notify_local();
        }
    }

    fn steal(&self) -> Option<Found> {
        let (me, workers) = (usize::from(self.index), self.shared.remotes.len());
        if workers == 1 {
            return None;
        }
        let start = self.rng.borrow_mut().next_u64() as usize % (workers - 1);
        steal_order(me, workers, start).find_map(|victim| {
            let remote = &self.shared.remotes[victim];
            let waiting = remote.waiting() as u64;
            if waiting == 0 || !self.is_worth_moving(victim, waiting) {
                return None;
            }
            if let Some((lane, entry)) = remote.lanes.steal(&Lane::ALL) {
                return Some(self.stolen(lane, entry));
            }
            self.queue.steal(&remote.queue).map(|entry| self.stolen(Lane::Ready, entry))
        })
    }

    /// A stolen entry counts like an own one of its lane; nothing else was to be seen.
    fn stolen(&self, lane: Lane, entry: Runnable) -> Found {
        let fairness = self.streaks();
        let limit = fairness.base_limit();
        let over = !fairness.cancel_may_go(Suggestion::NoPreference);
        let verdict = Verdict { lane, fallback: lane == Lane::Cancel && over, limit };
        let pending = Pending {
            cancel: lane == Lane::Cancel,
            timed: lane == Lane::Timed,
            ready: lane == Lane::Ready,
        };
        Found { entry, chosen: Some(Chosen { verdict, pending, turn: Turn::default() }) }
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
        let lanes = &self.remote.lanes;
        let next = || Lane::ALL.into_iter().find_map(|lane| lanes.pop(lane));
        while let Some(entry) = next().or_else(|| self.next_plain()) {
            match entry.pin() {
                // Whatever was pinned here has ended; this drops its last entries.
                Some(_) => drop(self.act(|| entry.run())),
                None => self.shared.global.push(entry),
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Acquire)
    }
}

/// When a worker that does not run out of work looks at the timers: after [`POLLS_PER_LOOK`] polls,
/// or as many as take [`TIME_PER_LOOK`] at the pace of the polls before.
#[derive(Debug)]
struct Pace {
    /// The count of polls at which it looks.
    due: Cell<u64>,
    polls: Cell<u64>,
    /// When it looked last; unknown after a pause.
    last: Cell<Option<Time>>,
}

impl Default for Pace {
    fn default() -> Self {
        let polls = Cell::new(POLLS_PER_LOOK);
        Pace { due: Cell::new(POLLS_PER_LOOK), polls, last: Cell::new(None) }
    }
}

impl Pace {
    #[inline]
    fn is_due(&self, polls: u64) -> bool {
        polls >= self.due.get()
    }

    /// The worker has nothing to run for a while, and looks at the timers for itself.
    fn pause(&self) {
        self.last.set(None);
    }

    /// The worker looks now.
    #[cold]
    fn looked(&self, polls: u64, now: Time) {
        let span = self.last.replace(Some(now)).map(|last| (now - last).as_nanos() as u64);
        let before = self.polls.get();
        let next = match span {
            Some(span) if span > TIME_PER_LOOK => (before * TIME_PER_LOOK / span).max(1),
            Some(_) => (before * 2).min(POLLS_PER_LOOK),
            None => before,
        };
        self.polls.set(next);
        self.due.set(polls + next);
    }
}

/// How many timers were due since the worker slept.
#[derive(Default)]
struct Due(Cell<usize>);

impl Due {
    fn add(&self, timers: usize) {
        self.0.update(|before| before.saturating_add(timers));
    }

    /// How long it is to sleep at least. Those that come after that are counted anew.
    fn slack(&self) -> u64 {
        if self.0.take() < MANY { SLACK } else { SLACK_IF_MANY }
    }
}

/// When one that lies down now gets up for a timer: at a multiple of `slack`, and not before it has
/// slept for that long. The timer is late by as much at most: it was not due yet.
fn get_up(timer: Time, now: Time, slack: u64) -> Time {
    let round = timer.as_nanos().div_ceil(slack).saturating_mul(slack);
    Time::from_nanos(round).max(now + Duration::from_nanos(slack))
}

/// One that sleeps gets up by itself a while after the next timer is due, at the latest. It says
/// so, for as long as this lives, unless another does already.
struct StandBy<'a> {
    relief: &'a AtomicU64,
    until: Time,
}

impl<'a> StandBy<'a> {
    fn at(relief: &'a AtomicU64, next: Option<Time>) -> Option<StandBy<'a>> {
        let until = next? + LATE;
        let before = relief.fetch_min(until.as_nanos(), Relaxed);
        (before > until.as_nanos()).then_some(StandBy { relief, until })
    }
}

impl Drop for StandBy<'_> {
    fn drop(&mut self) {
        let _ = self.relief.compare_exchange(self.until.as_nanos(), u64::MAX, Relaxed, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn timers_that_become_due_while_others_are_fired_count_with_them() {
        let due = Due::default();
        assert_eq!(due.slack(), SLACK);
        [MANY - 1, 0, 1, 0].into_iter().for_each(|timers| due.add(timers));
        assert_eq!([due.slack(), due.slack()], [SLACK_IF_MANY, SLACK]);
        due.add(MANY - 1);
        assert_eq!(due.slack(), SLACK);
    }

    /// The polls between looks when each poll takes so many nanoseconds, after some fast ones.
    fn looks(poll: u64) -> Vec<u64> {
        let (pace, mut now, mut last, mut between) = (Pace::default(), 0, 0, Vec::new());
        for polls in 1..2000 {
            now += if polls <= 256 { 100 } else { poll };
            if pace.is_due(polls) {
                pace.looked(polls, Time::from_nanos(now));
                between.push(polls - last);
                last = polls;
            }
        }
        between
    }

    #[test]
    fn timers_are_looked_at_every_64_polls_or_every_millisecond() {
        assert!(looks(100).iter().all(|polls| *polls == POLLS_PER_LOOK));
        // One window is as long as those before it; then the pace is known.
        let slow = looks(1_000_000);
        assert_eq!(slow[..5], [64, 64, 64, 64, 64]);
        assert!(slow[5..].iter().all(|polls| *polls <= 2), "{slow:?}");
        let medium = looks(100_000);
        assert!(medium[6..].iter().all(|polls| *polls <= 20), "{medium:?}");
        assert!(looks(u64::MAX / 4000).iter().max() == Some(&POLLS_PER_LOOK));
    }

    #[test]
    fn sleepers_get_up_seldom_and_never_early_and_late_by_the_slack_at_most() {
        for unit in [SLACK, SLACK_IF_MANY] {
            let (slack, end) = (unit as i64, i64::MAX / 2);
            let spans = [0, 1, slack / 2, slack - 1, slack, slack + 1, 9 * slack + 3, 10 * slack];
            for now in [0, 1, slack - 1, slack, 7 * slack + 60_000, end] {
                for ahead in spans {
                    let timer = Time::from_nanos((now + ahead) as u64);
                    let up = get_up(timer, Time::from_nanos(now as u64), unit).as_nanos() as i64;
                    assert!((now + ahead..=now + ahead + slack).contains(&up), "{now} {ahead}");
                    assert!(up >= now + slack, "{now} {ahead}");
                    assert!(up % slack == 0 || up == now + slack, "{now} {ahead}");
                }
            }
            assert_eq!(get_up(Time::MAX, Time::ZERO, unit), Time::MAX);
        }
    }
}
