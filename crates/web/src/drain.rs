//! One drain: from a call of the event loop to the next host call.
//!
//! ```text
//! enter -> Begin; loop { due timers (a batch) ; one step } while the pump grants it
//!       -> failed yields -> watchers from outside -> leave -> Kick | Resume | Idle
//!       -> the host timer
//! ```

use asx_kernel::lanes::{Decision, Lane};
use asx_kernel::pump::{Enter, Leave, Limit};
use asx_kernel::status::Coded;
use asx_kernel::time::Time;
use asx_runtime::{Begun, Dispatch, Host, RunContext, Runnable};

use crate::adapter::{Call, Entry, Made, State, fail};
use crate::log::Decided;
use crate::runtime::{Inner, PumpInfo};

impl Inner {
    /// Runs a drain if one is due.
    pub(crate) fn enter(&self) {
        let wants = self.adapter.lock().pump.wants_clock();
        let now = (wants || self.every_step).then(|| self.adapter.now());
        let begun = self.adapter.lock().pump.enter(now);
        if let Enter::Begin { .. } = begun {
            self.drain();
        }
    }

    fn drain(&self) {
        self.collect_timers();
        let mut now = None;
        let mut ended = None;
        let plainly = !self.every_step && !self.adapter.records;
        loop {
            // The fast path: nearly every poll.
            if plainly && now.is_none() && ended.is_none() {
                self.drain_plain();
            }
            // Once per step, under one lock.
            let go = self.adapter.lock().go(now, self.every_step, ended.take());
            now = None;
            match go {
                // Timers are collected whenever the clock is read.
                Go::Clock => {
                    now = Some(self.adapter.now());
                    self.collect_timers();
                }
                Go::Step(decision, decided) => {
                    self.poll(decision);
                    ended = decided;
                }
                Go::End => break,
            }
        }
        self.fail_yields();
        self.tell_watches();
        self.leave();
    }

    /// Polls plainly ready tasks until the drain needs the clock or ends. Takes the same steps as
    /// [`State::go`], without recording decisions.
    fn drain_plain(&self) {
        loop {
            let next = self.adapter.lock_quickly().next_plain();
            let Some(entry) = next else { return };
            // SAFETY: as in `poll`.
            if let Some(begun) = unsafe { entry.begin(RunContext::from_lane(Lane::Ready)) } {
                begun.run();
            }
        }
    }

    /// Collects expired timers, at most a batch per host turn. They only make tasks runnable.
    pub(crate) fn collect_timers(&self) {
        let Some(next) = self.core.next_timer() else { return };
        let now = self.adapter.now();
        if next > now {
            return;
        }
        let most = self.adapter.lock().pump.timer_batch();
        let fired = self.core.fire_some(now, most);
        let more = self.core.next_wake().is_some_and(|next| next <= now);
        self.adapter.lock().pump.timers_fired(fired, more);
    }

    /// Takes one step, if an entry is queued. Returns the task's id and lane, and whether it was
    /// polled: a dead entry is a step, too.
    pub(crate) fn step(&self) -> Option<(u64, Lane, bool)> {
        let (decision, decided) = self.adapter.lock().decide()?;
        let task = decision.token.task.id();
        let lane = decision.lane;
        let polled = self.poll(decision);
        self.adapter.lock().polled(decided);
        Some((task, lane, polled))
    }

    fn poll(&self, decision: Decision<Entry>) -> bool {
        let Decision { lane, streak, limit, fallback, token: entry, .. } = decision;
        let dispatch = || Dispatch::new(0, lane, streak, limit).fallback(fallback);
        let dispatch = self.core.recording().then(dispatch);
        // SAFETY: worker 0 is the thread that created this runtime, which is not `Send`.
        let begun = unsafe { entry.task.begin(RunContext::from_lane(lane).recorded(dispatch)) };
        begun.is_some_and(Begun::run)
    }

    /// Fails the tasks that wait only for their next turn if the hand-off to that turn is denied
    /// (R-55): cancels them with the refusal as the reason, and polls each once, so that it learns
    /// of it. A task that yields again waits for the grant.
    fn fail_yields(&self) {
        let (denied, yielding) = {
            let state = self.adapter.lock();
            let denied = state.pump.handoff_denied().filter(|_| !state.is_empty());
            let Some(denied) = denied else { return };
            (denied, state.yielding())
        };
        let mut has_failed = false;
        for task in yielding {
            has_failed |= fail(&task, denied);
        }
        if !has_failed {
            return;
        }
        // Cancelled tasks go first, apart from the turns that the cancel streak gives to others.
        let mut left = self.adapter.queued(Lane::Cancel);
        while left > 0 && self.adapter.queued(Lane::Cancel) > 0 {
            match self.step() {
                Some((_, Lane::Cancel, _)) => left -= 1,
                Some(_) => {}
                None => break,
            }
            self.adapter.lock().pump.step_overtime();
        }
    }

    fn leave(&self) {
        let (made, dead, denied) = {
            let mut state = self.adapter.lock();
            let work = !state.is_empty();
            if !work {
                state.set_dead_aside();
            }
            let leave = state.pump.leave(work);
            let denied = match leave {
                Leave::Stalled { denied, .. } => Some(denied),
                _ => None,
            };
            (state.left(leave), state.scheduler.take_dead(), denied)
        };
        // Outside the lock: it may free a task with values of the program.
        drop(dead);
        self.adapter.make(made);
        self.adapter.arm(self.core.next_timer());
        if let Some(denied) = denied {
            let then = self.when_stalled.borrow().clone();
            then.into_iter().for_each(|then| then(denied));
        }
    }
}

/// The next action of a drain.
enum Go {
    /// Read the clock, and ask again.
    Clock,
    /// Poll this entry.
    Step(Decision<Entry>, Option<Decided>),
    /// End the drain.
    End,
}

impl State {
    /// Returns the next action of the drain. `ended` is the recorded decision of the step before.
    fn go(&mut self, now: Option<Time>, every_step: bool, ended: Option<Decided>) -> Go {
        self.polled(ended);
        if now.is_none() && (every_step || self.pump.wants_clock()) {
            return Go::Clock;
        }
        if self.is_empty() || !self.pump.may_step(now) {
            return Go::End;
        }
        self.decide().map_or(Go::End, |(decision, decided)| Go::Step(decision, decided))
    }

    /// Takes the next plainly ready task if the drain may poll it without reading the clock. In all
    /// other cases [`go`](State::go) decides; a step that is refused here is refused there, too.
    #[inline(always)]
    fn next_plain(&mut self) -> Option<Runnable> {
        self.local = false;
        let [outside, own] = &self.plain;
        if self.in_lanes || (outside.is_empty() && own.is_empty()) {
            return None;
        }
        let go = !self.pump.wants_clock() && self.pump.may_step(None);
        if go { self.take_unrecorded() } else { None }
    }

    /// Takes the next entry, and records the decision if host events are kept.
    fn decide(&mut self) -> Option<(Decision<Entry>, Option<Decided>)> {
        if !self.log.is_on() {
            return Some((self.next()?, None));
        }
        self.tell("scheduler_step_begin", None, Vec::new());
        let decision = self.next()?;
        self.step = Some(decided(&decision));
        self.tell("scheduler_step_decision", None, Vec::new());
        Some((decision, self.step))
    }

    /// Ends a step.
    fn polled(&mut self, decided: Option<Decided>) {
        self.local = false;
        if decided.is_some() {
            self.tell("scheduler_step_end", None, Vec::new());
            self.step = None;
        }
    }

    /// Records the end of a drain. Returns the host call to make.
    fn left(&mut self, leave: Leave) -> Made {
        let reached = match leave {
            Leave::Kick(handoff) => handoff.reached,
            Leave::Stalled { reached, .. } => reached,
            _ => None,
        };
        if let Some(limit) = reached.filter(|_| self.log.is_on()) {
            let detail = vec![("limit", limit_name(limit).to_owned())];
            self.tell("scheduler_burst_limit_reached", None, detail);
        }
        match leave {
            Leave::Kick(handoff) => {
                if self.log.is_on() {
                    let detail = vec![("call", handoff.call.name().to_owned())];
                    self.tell("scheduler_host_handoff", None, detail);
                }
                Some(self.entering(Call::Enter(handoff.call)))
            }
            Leave::Resume(_) => Some(self.entering(Call::Resume)),
            Leave::Stalled { denied, .. } => {
                self.denied(denied);
                self.watch_turn()
            }
            Leave::Idle => {
                self.parked();
                self.watch_turn()
            }
            Leave::NotRunning | Leave::Trapped(_) => None,
        }
    }

    /// Defers a pump call from inside a drain, and records that.
    pub(crate) fn defer(&mut self) {
        if let Enter::Deferred(deferred) = self.pump.enter(None) {
            self.deferred += 1;
            let class = Some(deferred.status());
            self.tell("scheduler_reentrancy_deferred", class, Vec::new());
        }
    }

    pub(crate) fn info(&self) -> PumpInfo {
        PumpInfo {
            state: self.pump.state(),
            turn: self.pump.host_turn_id(),
            batch: self.pump.microtask_batch_id(),
            outstanding: self.pump.outstanding(),
            pending: self.pump.pending(),
            stalled: self.pump.stalled(),
            deferred: self.deferred,
            stale_timers: self.stale_timers,
        }
    }
}

fn decided(decision: &Decision<Entry>) -> Decided {
    Decided {
        task_id: decision.token.task.id(),
        region_id: decision.token.task.region(),
        lane: decision.lane,
        decision_seq: decision.seq,
        decision_hash: decision.hash,
        streak: (decision.streak, decision.limit),
    }
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Steps => "steps",
        Limit::Time => "time",
        Limit::Clock => "clock",
        Limit::Timers => "timers",
    }
}
