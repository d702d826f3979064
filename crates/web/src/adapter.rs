//! The host of the tasks: lanes, pump and clock. All state is under one short lock. No poll and no
//! host call is made with the lock held.
//!
//! ```text
//!  a waker is used -> schedule: into the lanes, pump.wake() --HostCall--> the page
//!  the page calls back -> Runtime::called -> drain: pump.may_step, scheduler.next, poll
//! ```
//!
//! A trap kills a poll, which cannot be unwound. Then the pump is Running with no drain on the
//! stack. `Runtime::called` distinguishes that from a pump call inside a drain: the event loop
//! calls back only when the stack is empty.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use asx_kernel::cancel::Kind;
use asx_kernel::choose::Seeded;
use asx_kernel::lanes::{
    Bypass, Certificate, Decision, Lane, Origin, Place, Scheduler, Source, Suggestion, TieBreak,
    Token,
};
use asx_kernel::pump::{
    Capabilities, Capability, Denied, HostCall, Pump, PumpState, Refused, StaleTimer,
};
use asx_kernel::rng::DetRng;
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_runtime::hosted::HostTask;
use asx_runtime::{Cx, Host, Runnable};

use crate::calls::HostCalls;
use crate::log::{Decided, HostEvent, Log};
use crate::ring::Ring;
use crate::runtime::Config;

/// The host of the tasks of a page.
pub(crate) struct Adapter {
    calls: Arc<dyn HostCalls>,
    /// The last reading of the clock. It never goes back.
    last: AtomicU64,
    /// Added to each reading of the clock, to compensate for every jump back.
    made_up: AtomicU64,
    /// Whether the clock is granted: a copy of the pump's set that needs no lock.
    clock: AtomicBool,
    /// Whether the current denial of the clock to a task was recorded.
    clock_told: AtomicBool,
    /// The thread that created it.
    owner: usize,
    /// Whether every step is recorded.
    pub(crate) records: bool,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) pump: Pump,
    pub(crate) scheduler: Scheduler<Entry>,
    suggestion: Suggestion,
    pub(crate) log: Log,
    pub(crate) deferred: u64,
    pub(crate) stale_timers: u64,
    /// The last issued token of a host call, and the token of the call that enters next.
    pub(crate) issued: u32,
    pub(crate) kick: u32,
    /// The token of the call that reports the end of a host turn; 0 if none is awaited.
    pub(crate) turn_end: u32,
    /// The token of the last host timer.
    pub(crate) timer: u32,
    /// The deadline of the host timer, while one is set.
    pub(crate) armed: Option<Time>,
    /// The deadline for which the host timer was last denied.
    refused: Option<Time>,
    /// The dead entries in the queues, by lane.
    dead: [isize; 3],
    /// Plainly ready entries from outside and from tasks, each in order. Used while the lanes are
    /// empty and no cancel streak is active.
    pub(crate) plain: [Ring<Entry>; 2],
    /// How many of those were dispatched without a record.
    plain_steps: u64,
    /// Whether equal tasks run in FIFO order. Otherwise all entries are in the lanes.
    in_order: bool,
    /// Bounds how often entries from outside bypass those from tasks.
    passed: Bypass,
    /// Whether the lanes may contain entries, or a streak is active.
    pub(crate) in_lanes: bool,
    /// Whether a task is being polled: then wakes are local to the worker.
    pub(crate) local: bool,
    /// The current step, if host events are kept.
    pub(crate) step: Option<Decided>,
    choose: Seeded,
    seed: Option<DetRng>,
}

/// A host call to make, with its token.
pub(crate) type Made = Option<(Call, u32)>;

/// Why a host call is made.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    /// To begin a drain.
    Enter(HostCall),
    /// To resume in the same host turn, behind page code.
    Resume,
    /// To learn of the end of the host turn.
    WatchTurn(HostCall),
}

/// A runnable task in a queue.
pub(crate) struct Entry {
    pub(crate) task: Runnable,
    /// The task was woken during its last poll, mostly by itself: it waits only for its next turn.
    pub(crate) yields: bool,
}

impl Entry {
    /// The task, if it waits only for its next turn.
    fn yielding(&self) -> Option<HostTask> {
        (self.yields && self.task.is_live(false)).then(|| HostTask::of_entry(&self.task))
    }
}

impl Token for Entry {
    fn word(&self) -> u64 {
        self.task.id()
    }

    /// A cancel of a queued task leaves its entry behind.
    fn is_live(&self, place: Place) -> bool {
        self.task.is_live(place.lane() != Lane::Cancel) && !self.task.is_outdated(place)
    }
}

impl Adapter {
    pub(crate) fn new(
        config: &Config,
        granted: Capabilities,
        calls: Arc<dyn HostCalls>,
    ) -> Adapter {
        let mut scheduler = Scheduler::new(config.scheduler);
        let records = config.settings.journal.is_some() || config.host_events > 0;
        scheduler.unchained = !records;
        let in_order = config.scheduler.tie_break == TieBreak::Fifo;
        let state = State {
            pump: Pump::new(config.pump, granted),
            scheduler,
            suggestion: Suggestion::NoPreference,
            log: Log::new(config.host_events),
            deferred: 0,
            stale_timers: 0,
            issued: 0,
            kick: 0,
            turn_end: 0,
            timer: 0,
            armed: None,
            refused: None,
            dead: [0; 3],
            in_order,
            plain: Default::default(),
            plain_steps: 0,
            passed: Bypass::default(),
            in_lanes: !in_order,
            local: false,
            step: None,
            choose: Seeded::new(config.seed.unwrap_or(0), 1),
            seed: config.seed.map(|seed| DetRng::new(seed, 1 << 32)),
        };
        let clock = AtomicBool::new(granted.has(Capability::Clock));
        let (last, made_up) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = Mutex::new(state);
        let clock_told = AtomicBool::new(false);
        Adapter { calls, last, made_up, clock, clock_told, owner: this_thread(), records, state }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// `lock` for the fast path. Inlined also where a page is optimised for size.
    #[inline(always)]
    pub(crate) fn lock_quickly(&self) -> MutexGuard<'_, State> {
        if let Ok(state) = self.state.try_lock() {
            return state;
        }
        self.lock()
    }

    /// Makes a host call that the pump has requested.
    pub(crate) fn make(&self, made: Made) {
        match made {
            Some((Call::Enter(call), token)) => self.calls.call(call, token),
            Some((Call::Resume, token)) => self.calls.resume(token),
            Some((Call::WatchTurn(call), token)) => self.calls.watch_turn(call, token),
            None => {}
        }
    }

    /// Wakes the pump: something became runnable, or needs a drain.
    pub(crate) fn wake(&self) {
        let made = self.lock().wake();
        self.make(made);
    }

    /// Wakes the pump unless a drain runs, which does this work when it ends.
    pub(crate) fn attend(&self) {
        let made = {
            let mut state = self.lock();
            if state.pump.state() == PumpState::Running { None } else { state.wake() }
        };
        self.make(made);
    }

    /// A waker was used, perhaps in a poll.
    fn put(&self, entry: Entry) {
        let left = self.lock_quickly().push_plain(entry);
        if let Some(entry) = left {
            self.enqueue(entry, true);
        }
    }

    /// Queues an entry. `own`: the wake is local if a task is being polled.
    fn enqueue(&self, entry: Entry, own: bool) {
        let made = {
            let mut state = self.lock();
            let source = if own && state.local { Source::Local(0) } else { Source::Global };
            state.push(entry, source);
            state.wake()
        };
        self.make(made);
    }

    /// Returns an error, and records it, if a capability is denied. `site` names the caller.
    pub(crate) fn require(&self, capability: Capability, site: &'static str) -> Result<(), Denied> {
        let mut state = self.lock();
        let granted = state.pump.capabilities().require(capability, site);
        granted.inspect_err(|denied| state.denied(*denied))
    }

    pub(crate) fn grant(&self, capability: Capability) {
        let made = {
            let mut state = self.lock();
            let call = state.pump.grant(capability);
            state.refused = None;
            call.map(|call| state.entering(Call::Enter(call)))
        };
        if capability == Capability::Clock {
            self.clock.store(true, Relaxed);
        }
        self.make(made);
    }

    pub(crate) fn revoke(&self, capability: Capability) {
        self.lock().pump.revoke(capability);
        if capability == Capability::Clock {
            self.clock.store(false, Relaxed);
            self.clock_told.store(false, Relaxed);
        }
    }

    /// The last reading of the clock, which is denied now. The first denial to a task is recorded.
    #[cold]
    #[inline(never)]
    fn last_reading(&self) -> Time {
        if !self.clock_told.load(Relaxed) && self.lock().local {
            self.clock_told.store(true, Relaxed);
            let _ = self.require(Capability::Clock, "a task's reading of the clock");
        }
        Time::from_nanos(self.last.load(Relaxed))
    }

    /// Compensates for a clock that went back by `by` nanoseconds. Otherwise waits would last until
    /// the clock has caught up.
    #[cold]
    #[inline(never)]
    fn clock_went_back(&self, by: u64) -> Time {
        self.made_up.fetch_add(by, Relaxed);
        let detail = vec![("by_ns", by.to_string())];
        let class = Some(Status::InvalidArgument);
        self.lock().tell("scheduler_clock_went_back", class, detail);
        Time::from_nanos(self.last.load(Relaxed))
    }

    /// Sets the host timer for a deadline, unless it is set for that.
    pub(crate) fn arm(&self, next: Option<Time>) {
        let Some(next) = next else { return };
        {
            let state = self.lock();
            let is_set = state.armed.is_some_and(|armed| armed <= next);
            if is_set || state.refused == Some(next) || state.pump.trapped().is_some() {
                return;
            }
        }
        let now = self.now();
        let mut state = self.lock();
        // The host timer cannot replace the clock: without a reading, a late or early ring is not
        // recognisable.
        let clock = state.pump.capabilities().require(Capability::Clock, "host timer");
        match clock.and_then(|()| state.pump.plan_timer(now, Some(next))) {
            Ok(Some(timer)) if timer.after_ms > 0 => {
                (state.armed, state.refused) = (Some(next), None);
                state.timer = state.timer.wrapping_add(1);
                let token = state.timer;
                drop(state);
                self.calls.arm(timer.after_ms, token);
            }
            Ok(Some(_)) => {
                let made = state.wake();
                drop(state);
                self.make(made);
            }
            Ok(None) => {}
            Err(denied) => {
                // Recorded once: the timer waits for the grant.
                state.refused = Some(next);
                state.denied(denied);
            }
        }
    }

    /// Records a ring for a timer that is no longer set.
    pub(crate) fn stale_ring(&self, stale: StaleTimer) {
        let mut state = self.lock();
        state.stale_timers += 1;
        let detail = vec![("timer", stale.generation.to_string())];
        state.tell("scheduler_stale_timer", Some(stale.status()), detail);
    }

    /// Fails closed: cancels the running task, which needs what was denied.
    fn refuse(&self, denied: Denied) {
        if let Some(cx) = Cx::current() {
            fail(&HostTask::of(&cx), denied);
        }
    }
}

/// Cancels a task that needs what was denied. Returns whether it was not cancelled before.
#[inline(never)]
pub(crate) fn fail(task: &HostTask, denied: Denied) -> bool {
    let why = denied.to_string().into();
    task.cancel(Kind::ResourceUnavailable, Some(why)) == Ok(true)
}

impl State {
    /// Takes the next entry, if there is one.
    pub(crate) fn next(&mut self) -> Option<Decision<Entry>> {
        if !self.in_lanes {
            return self.next_of_plain();
        }
        let decision = self.scheduler.next_alone(self.suggestion, &mut self.choose)?;
        self.look_at_lanes();
        self.local = true;
        Some(decision)
    }

    /// Takes the next entry when only plainly ready ones are queued. Same order as the scheduler.
    fn next_of_plain(&mut self) -> Option<Decision<Entry>> {
        let (origin, entry) = self.take_plain()?;
        self.local = true;
        Some(self.scheduler.dispatch_alone(origin, entry, self.suggestion))
    }

    /// The same without a record.
    #[inline(always)]
    pub(crate) fn take_unrecorded(&mut self) -> Option<Runnable> {
        let (_, entry) = self.take_plain()?;
        self.local = true;
        self.plain_steps += 1;
        Some(entry.task)
    }

    /// Takes the next plainly ready entry.
    #[inline(always)]
    fn take_plain(&mut self) -> Option<(Origin, Entry)> {
        loop {
            let [outside, own] = &mut self.plain;
            // Entries from outside go first, up to the bypass limit.
            let both = !outside.is_empty() && !own.is_empty();
            let own_goes = outside.is_empty() || (both && self.passed.is_due());
            let entry = if own_goes { own } else { outside }.pop()?;
            if entry.task.is_live(true) {
                self.passed.record(both && !own_goes);
                return Some((if own_goes { Origin::Local } else { Origin::Global }, entry));
            }
            self.scheduler.set_aside(Lane::Ready, entry);
        }
    }

    pub(crate) fn wake(&mut self) -> Made {
        match self.pump.wake() {
            Ok(call) => call.map(|call| self.entering(Call::Enter(call))),
            Err(Refused::Denied(denied)) => {
                self.denied(denied);
                None
            }
            Err(Refused::Trapped(_)) => None,
        }
    }

    /// Issues the token for a host call that begins a drain.
    pub(crate) fn entering(&mut self, call: Call) -> (Call, u32) {
        self.issued = self.issued.wrapping_add(1);
        self.kick = self.issued;
        (call, self.kick)
    }

    /// Returns the call that reports the end of this host turn, unless it is on its way.
    pub(crate) fn watch_turn(&mut self) -> Made {
        let call = self.pump.watch_turn()?;
        self.issued = self.issued.wrapping_add(1);
        self.turn_end = self.issued;
        Some((Call::WatchTurn(call), self.turn_end))
    }

    pub(crate) fn denied(&mut self, denied: Denied) {
        let detail = vec![
            ("capability", denied.capability.name().to_owned()),
            ("provenance", denied.provenance.to_owned()),
        ];
        self.tell("scheduler_capability_denied", Some(Status::CapabilityDenied), detail);
    }

    /// Records a host event.
    pub(crate) fn tell(
        &mut self,
        kind: &'static str,
        error_class: Option<Status>,
        detail: Vec<(&'static str, String)>,
    ) {
        let turn = self.pump.host_turn_id();
        let batch = self.pump.microtask_batch_id();
        let fairness = self.scheduler.fairness(0);
        let now = fairness.map_or((0, 0), |it| (it.streak(), it.limit(self.suggestion)));
        let (cancel_streak, cancel_streak_limit) = self.step.map_or(now, |step| step.streak);
        self.log.push(HostEvent {
            seq: 0,
            kind,
            decided: self.step,
            cancel_streak,
            cancel_streak_limit,
            host_turn_id: turn,
            microtask_batch_id: batch,
            error_class,
            detail,
        });
    }

    /// Whether nothing is runnable.
    pub(crate) fn is_empty(&self) -> bool {
        let all = self.scheduler.total() + self.plain.iter().map(Ring::len).sum::<usize>();
        all == 0 || Lane::ALL.into_iter().all(|lane| self.queued(lane) == 0)
    }

    /// Sets the suggestion to the scheduler. It does not affect plainly ready work.
    pub(crate) fn suggest(&mut self, suggestion: Suggestion) {
        self.suggestion = suggestion;
    }

    /// Nothing was runnable: resets the cancel streak.
    pub(crate) fn parked(&mut self) {
        self.scheduler.parked(0);
        self.look_at_lanes();
    }

    /// Updates whether plainly ready work has to go through the lanes.
    fn look_at_lanes(&mut self) {
        let no_streak = self.scheduler.fairness(0).is_none_or(|fairness| fairness.streak() == 0);
        self.in_lanes = !self.in_order || !self.scheduler.is_empty() || !no_streak;
    }

    /// The counts of dispatches.
    pub(crate) fn certificate(&self) -> Certificate {
        let certificate = self.scheduler.certificate(0);
        Certificate { ready: certificate.ready + self.plain_steps, ..certificate }
    }

    /// Queues an entry directly if it is plainly ready, all other entries are, and a task of the
    /// running drain has woken it. Returns the entry otherwise.
    #[inline(always)]
    fn push_plain(&mut self, entry: Entry) -> Option<Entry> {
        let plain = self.local && !self.in_lanes && entry.task.is_plain();
        if !plain || self.pump.state() != PumpState::Running {
            return Some(entry);
        }
        // Makes no host call inside a drain.
        let _ = self.pump.wake();
        self.plain[1].push(entry);
        None
    }

    /// Puts an entry into its lane.
    fn push(&mut self, entry: Entry, source: Source) {
        if !self.in_lanes && entry.task.is_plain() {
            self.plain[usize::from(source != Source::Global)].push(entry);
            return;
        }
        self.move_to_lanes();
        self.enqueue(entry, source);
    }

    /// Removes dead entries when nothing queued is alive.
    pub(crate) fn set_dead_aside(&mut self) {
        if self.scheduler.total() > 0 || self.plain.iter().any(|ring| !ring.is_empty()) {
            // Taking the next live entry sets dead ones aside.
            if let Some(live) = self.next() {
                self.push(live.token, Source::Global);
            }
            self.look_at_lanes();
        }
    }

    /// Moves plainly ready entries into the lanes, in their order: other entries were queued.
    fn move_to_lanes(&mut self) {
        for (at, source) in [Source::Global, Source::Local(0)].into_iter().enumerate() {
            while let Some(entry) = self.plain[at].pop() {
                // A task that was cancelled meanwhile has another entry.
                if entry.task.is_live(true) {
                    self.enqueue(entry, source);
                } else {
                    self.scheduler.set_aside(Lane::Ready, entry);
                }
            }
        }
    }

    fn enqueue(&mut self, entry: Entry, source: Source) {
        self.in_lanes = true;
        let place = entry.task.place();
        self.scheduler.enqueue(source, place, entry, false);
    }

    /// The queued tasks that wait only for their next turn.
    pub(crate) fn yielding(&self) -> Vec<HostTask> {
        let mut yielding = Vec::new();
        let mut add = |entry: &Entry| yielding.extend(entry.yielding());
        self.plain.iter().for_each(|ring| ring.iter().for_each(&mut add));
        for source in [Source::Global, Source::Local(0)] {
            self.scheduler.lanes(source).tokens().for_each(&mut add);
        }
        yielding
    }

    pub(crate) fn queued(&self, lane: Lane) -> usize {
        let queues = [Source::Local(0), Source::Global];
        let queued = queues.into_iter().map(|queue| self.scheduler.lanes(queue).len(lane));
        let plain = self.plain.iter().map(Ring::len).sum::<usize>();
        let all = queued.sum::<usize>() + if lane == Lane::Ready { plain } else { 0 };
        let dead = self.dead[lane as usize] - self.scheduler.set_aside_from(lane) as isize;
        all.saturating_sub(usize::try_from(dead).unwrap_or(0))
    }
}

// SAFETY: worker 0 is the thread that made the runtime, which is not `Send` and polls everything;
// entries are found by the number of their task, which no other task of the runtime has.
unsafe impl Host for Adapter {
    fn schedule(&self, entry: Runnable) {
        // The fast path: nearly every wake.
        self.put(Entry { task: entry, yields: false });
    }

    fn schedule_again(&self, entry: Runnable) {
        self.put(Entry { task: entry, yields: true });
    }

    fn schedule_globally(&self, entry: Runnable) {
        self.enqueue(Entry { task: entry, yields: false }, false);
    }

    fn now(&self) -> Time {
        if !self.clock.load(Relaxed) {
            return self.last_reading();
        }
        let now = self.calls.now().as_nanos().saturating_add(self.made_up.load(Relaxed));
        let last = self.last.fetch_max(now, Relaxed);
        if now < last {
            return self.clock_went_back(last - now);
        }
        Time::from_nanos(now)
    }

    fn timer_moved(&self, deadline: Time) {
        // A running drain plans the host timer when it ends.
        if self.lock().pump.state() != PumpState::Running {
            self.arm(Some(deadline));
        }
    }

    fn deny_wait(&self, site: &'static str) {
        // Records the first missing capability; the clock comes first.
        let denied = self.require(Capability::Clock, site);
        let _ = denied.and_then(|()| self.require(Capability::Timer, site));
    }

    fn on_behalf(&self, f: &mut dyn FnMut()) {
        let local = std::mem::replace(&mut self.lock().local, false);
        f();
        self.lock().local = local;
    }

    fn dead_entries(&self, lane: Lane, more: isize) {
        self.lock().dead[lane as usize] += more;
    }

    fn queued(&self, lane: Lane) -> usize {
        self.lock().queued(lane)
    }

    fn has_reports(&self) -> bool {
        true
    }

    fn report(&self, line: &str) {
        self.calls.report(line);
    }

    fn here(&self) -> Option<u16> {
        (self.owner == this_thread()).then_some(0)
    }

    fn entropy(&self) -> u64 {
        if let Some(seed) = &mut self.lock().seed {
            return seed.next_u64();
        }
        match self.require(Capability::Entropy, "a task's random number") {
            Ok(()) => self.calls.entropy(),
            Err(denied) => {
                self.refuse(denied);
                0
            }
        }
    }

    /// Refuses jobs: a page has no thread for blocking code.
    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

/// Returns a number that is unique to this thread: the runtime of a page may outlive its thread.
#[cfg(not(target_family = "wasm"))]
fn this_thread() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A page has one thread, and its workers have separate memories.
#[cfg(target_family = "wasm")]
fn this_thread() -> usize {
    0
}
