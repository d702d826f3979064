//! The model's browser: the world driven by the pump over a simulated event loop.
//!
//! One microtask queue, one macrotask queue, one host timer. The script's ops run as page script
//! in the current host turn; [`Engine::kick`] is what a page's wake would do.

use super::Engine;
use crate::api::HostApi as _;
use crate::book::found;
use crate::events::{HostEvent, WAIT};
use crate::host::{Failure, Reply};
use crate::scenario::{Browser, BrowserOp};
use crate::value::Value;
use asx_kernel::pump::{Capability, Denied, Enter, HostCall, Leave, Limit, Pump, Refused};
use asx_kernel::status::{Coded, Status};
use asx_kernel::world::Step;
use std::collections::VecDeque;

/// The event loop and the pump in it.
pub(super) struct EventLoop {
    pump: Pump,
    microtasks: u64,
    macrotasks: VecDeque<HostCall>,
    deferred: u64,
    stale_timers: u64,
    events: Vec<HostEvent>,
    /// How many entries were queued when the pump was last woken.
    seen: usize,
    /// The step under way.
    step: Option<Decided>,
}

/// What a decision adds to the events of its step.
#[derive(Clone)]
struct Decided {
    task: u64,
    region: u64,
    lane: &'static str,
    /// Its number and its link in the chain.
    chain: (u64, u64),
    /// Before it, and the limit in force.
    streak: (u64, u64),
}

impl EventLoop {
    pub(super) fn new(browser: &Browser) -> EventLoop {
        EventLoop {
            pump: Pump::new(browser.pump(), browser.granted()),
            microtasks: 0,
            macrotasks: VecDeque::new(),
            deferred: 0,
            stale_timers: 0,
            seen: 0,
            step: None,
            events: Vec::new(),
        }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.pump.check()
    }

    pub(super) fn events(&self) -> Vec<HostEvent> {
        self.events.clone()
    }

    pub(super) fn look(&self) -> Reply {
        Reply::ok()
            .with("state", format!("{:?}", self.pump.state()))
            .with("turn", self.pump.host_turn_id())
            .with("batch", self.pump.microtask_batch_id())
            .with("outstanding", Value::maybe(self.pump.outstanding().map(HostCall::name)))
            .with("pending", self.pump.pending())
            .with("stalled", self.pump.stalled())
            .with("deferred", self.deferred)
            .with("stale_timers", self.stale_timers)
            .with("macrotasks", self.macrotasks.len())
            .with("microtasks", self.microtasks)
    }

    fn make(&mut self, call: HostCall) {
        match call {
            HostCall::Microtask => self.microtasks += 1,
            call => self.macrotasks.push_back(call),
        }
    }

    fn denied(&mut self, denied: Denied, streak: (u64, u64)) {
        let fields = [
            ("capability", Some(denied.capability.name().into())),
            ("provenance", Some(denied.provenance.into())),
        ];
        let class = Some(Status::CapabilityDenied);
        self.emit("scheduler_capability_denied", streak, class, &fields);
    }

    /// Records a host-only event with every mandatory field: those of a decision are the ones of
    /// the step under way. `streak` is that of the moment, with its limit.
    fn emit(
        &mut self,
        kind: &'static str,
        streak: (u64, u64),
        class: Option<Status>,
        extra: &[(&'static str, Option<Value>)],
    ) {
        let step = self.step.as_ref();
        let (streak, limit) = step.map_or(streak, |step| step.streak);
        let mut fields = vec![
            ("task_id", step.map(|step| step.task.into())),
            ("region_id", step.map(|step| step.region.into())),
            ("lane", step.map(|step| step.lane.into())),
            ("decision_seq", step.map(|step| step.chain.0.into())),
            ("decision_hash", step.map(|step| step.chain.1.into())),
            ("host_turn_id", Some(self.pump.host_turn_id().into())),
            ("microtask_batch_id", Some(self.pump.microtask_batch_id().into())),
            ("cancel_streak", Some(streak.into())),
            ("cancel_streak_limit", Some(limit.into())),
            ("error_class", class.map(|status| status.name().into())),
        ];
        fields.extend(extra.iter().cloned());
        self.events.push(HostEvent { kind, fields });
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

impl Engine {
    /// The cancel streak, and its limit.
    fn streak(&self) -> (u64, u64) {
        let streak = self.world.scheduler().fairness(0).map_or(0, |fairness| fairness.streak());
        let limit = self.suggestion.limit(self.scenario.config.cancel_streak_limit);
        (streak.into(), limit.into())
    }

    /// If something is runnable, the pump must know.
    pub(super) fn kick(&mut self) {
        let queued = self.world.scheduler().total();
        let Some(browser) = &mut self.browser else { return };
        if queued > std::mem::replace(&mut browser.seen, queued) {
            self.wake_pump();
        }
    }

    fn wake_pump(&mut self) -> Status {
        let streak = self.streak();
        let Some(browser) = &mut self.browser else { return Status::InvalidArgument };
        match browser.pump.wake() {
            Ok(call) => {
                call.into_iter().for_each(|call| browser.make(call));
                Status::Ok
            }
            Err(Refused::Denied(denied)) => {
                browser.denied(denied, streak);
                denied.status()
            }
            Err(Refused::Trapped(trapped)) => trapped.status(),
        }
    }

    pub(super) fn turn_loop(&mut self, op: &BrowserOp, in_body: bool) -> Reply {
        let now = self.world.now();
        let Some(browser) = &mut self.browser else {
            return Reply::status(Status::InvalidArgument).note("there is no [config.browser]");
        };
        match op {
            BrowserOp::Microtasks => {
                let ran = browser.microtasks;
                self.microtasks();
                Reply::ok().with("ran", ran)
            }
            BrowserOp::Turn { count } => {
                let before = self.polls;
                (0..*count).for_each(|_| self.turn());
                Reply::ok().with("steps", self.polls - before)
            }
            BrowserOp::Pump => self.pump_call(in_body),
            BrowserOp::HostTimer { timer: Some(timer) } => self.late_ring(timer),
            BrowserOp::HostTimer { timer: None } => self.host_timer(),
            BrowserOp::Suspend { when } => {
                self.world.set_now(when.from(now));
                Reply::ok()
            }
            BrowserOp::Grant { capability } => {
                if let Some(call) = browser.pump.grant(capability.0) {
                    browser.make(call);
                }
                // A timer that is due by now needs no ring.
                let is_for_time = matches!(capability.0, Capability::Timer | Capability::Clock);
                let granted = browser.pump.capabilities();
                let has_time = granted.has(Capability::Timer) && granted.has(Capability::Clock);
                if is_for_time && has_time && self.due() {
                    self.wake_pump();
                }
                Reply::ok()
            }
            BrowserOp::Revoke { capability } => {
                browser.pump.revoke(capability.0);
                Reply::ok()
            }
            BrowserOp::Require { capability } => self.require(capability.0),
        }
    }

    /// Whether tasks may wait for a time: the page has to grant its clock and its timer.
    pub(super) fn may_wait(&mut self) -> Result<(), Status> {
        let streak = self.streak();
        let Some(browser) = &mut self.browser else { return Ok(()) };
        let granted = browser.pump.capabilities();
        let mut needed = [Capability::Clock, Capability::Timer].into_iter();
        match needed.find_map(|capability| granted.require(capability, WAIT).err()) {
            None => Ok(()),
            Some(denied) => {
                browser.denied(denied, streak);
                Err(denied.status())
            }
        }
    }

    fn require(&mut self, capability: Capability) -> Reply {
        let streak = self.streak();
        let Some(browser) = &mut self.browser else { return Status::InvalidArgument.into() };
        match browser.pump.capabilities().require(capability, "scenario") {
            Ok(()) => Reply::ok().with("provenance", Value::none()),
            Err(denied) => {
                browser.denied(denied, streak);
                Reply::status(denied.status()).with("provenance", denied.provenance)
            }
        }
    }

    /// A direct call of the pump.
    fn pump_call(&mut self, in_body: bool) -> Reply {
        let streak = self.streak();
        let now = self.world.now();
        let Some(browser) = &mut self.browser else { return Status::InvalidArgument.into() };
        match browser.pump.enter(Some(now)) {
            Enter::Begin { .. } if in_body => {
                let what = "a pump call inside a poll";
                self.book().failures.push(Failure::new(
                    0,
                    what,
                    "deferred",
                    "a drain inside a drain",
                ));
                Status::Internal.into()
            }
            Enter::Begin { .. } => {
                self.drain();
                Reply::ok().with("answer", "begin")
            }
            Enter::Deferred(deferred) => {
                browser.deferred += 1;
                let class = Some(deferred.status());
                browser.emit("scheduler_reentrancy_deferred", streak, class, &[]);
                Reply::status(deferred.status()).with("answer", "deferred")
            }
            Enter::NotScheduled => Reply::ok().with("answer", "not_scheduled"),
            Enter::Trapped(trapped) => Reply::status(trapped.status()).note(trapped.to_string()),
        }
    }

    /// A host timer rings for exactly this timer, perhaps after its end.
    fn late_ring(&mut self, name: &crate::scenario::Name) -> Reply {
        let handle = match found(&self.book().timers, None, name) {
            Ok(handle) => handle,
            Err(status) => return status.into(),
        };
        if self.world.timers().get(handle).is_some() {
            return self.host_timer();
        }
        let streak = self.streak();
        let Some(browser) = &mut self.browser else { return Status::InvalidArgument.into() };
        if let Err(trapped) = browser.pump.host_turn() {
            return Reply::status(trapped.status());
        }
        browser.stale_timers += 1;
        let class = Some(Status::StaleHandle);
        let fields = [("timer", Some(handle.generation.into()))];
        browser.emit("scheduler_stale_timer", streak, class, &fields);
        self.microtasks();
        Status::StaleHandle.into()
    }

    /// The host timer rings, in a turn of its own: it only wakes the pump.
    fn host_timer(&mut self) -> Reply {
        self.microtasks();
        let due = self.due();
        let reply = self.require(Capability::Timer);
        let Some(browser) = self.browser.as_mut().filter(|_| reply.status == Status::Ok) else {
            return reply;
        };
        if let Err(trapped) = browser.pump.host_turn() {
            return Reply::status(trapped.status());
        }
        let status = if due { self.wake_pump() } else { Status::Ok };
        self.microtasks();
        status.into()
    }

    fn due(&self) -> bool {
        self.world.next_wake().is_some_and(|next| next <= self.world.now())
    }

    /// Runs queued microtasks.
    fn microtasks(&mut self) {
        while let Some(browser) = self.browser.as_mut().filter(|browser| browser.microtasks > 0) {
            browser.microtasks -= 1;
            self.enter();
        }
    }

    /// The end of the current turn, then the next macrotask with its microtasks.
    fn turn(&mut self) {
        self.microtasks();
        let Some(browser) = &mut self.browser else { return };
        match browser.macrotasks.pop_front() {
            Some(_) => self.enter(),
            None => {
                let _ = browser.pump.host_turn();
            }
        }
        self.microtasks();
    }

    /// What a scheduled host call runs.
    fn enter(&mut self) {
        let now = self.world.now();
        let Some(browser) = &mut self.browser else { return };
        match browser.pump.enter(Some(now)) {
            Enter::Begin { .. } => self.drain(),
            Enter::Deferred(_) | Enter::NotScheduled | Enter::Trapped(_) => {}
        }
    }

    /// One drain, already entered.
    fn drain(&mut self) {
        loop {
            self.collect_timers();
            let now = self.world.now();
            let runnable = !self.world.scheduler().is_empty();
            let Some(browser) = &mut self.browser else { return };
            if !runnable || !browser.pump.may_step(Some(now)) {
                break;
            }
            self.pumped_step();
            self.kick();
        }
        self.leave();
    }

    /// Expired timers, at most a batch per drain.
    fn collect_timers(&mut self) {
        let Some(browser) = &mut self.browser else { return };
        self.world.allow_timers(browser.pump.timer_batch());
        let fired = self.world.expire();
        let more = self.world.timers().next_deadline().is_some_and(|next| next <= self.world.now());
        browser.pump.timers_fired(fired, more);
        // What the step itself finds due waits for the next look.
        self.world.allow_timers(0);
    }

    fn pumped_step(&mut self) {
        let streak = self.streak();
        if let Some(browser) = &mut self.browser {
            browser.emit("scheduler_step_begin", streak, None, &[]);
        }
        let now = self.world.now();
        let (task, lane) = match self.world.next(now, &mut self.choose) {
            Ok(Step::Poll { task, lane, .. }) => (task, lane),
            _ => return,
        };
        let region = self.world.task(task).map_or(0, |view| view.region.ordinal());
        let chain = self.world.scheduler().chain();
        if let Some(browser) = &mut self.browser {
            browser.step = Some(Decided {
                task: task.ordinal(),
                region,
                lane: lane.name(),
                chain: (chain.seq, chain.hash),
                streak,
            });
            browser.emit("scheduler_step_decision", streak, None, &[]);
        }
        self.poll(task);
        if let Some(browser) = &mut self.browser {
            browser.emit("scheduler_step_end", streak, None, &[]);
            browser.step = None;
        }
    }

    fn leave(&mut self) {
        let streak = self.streak();
        let work = !self.world.scheduler().is_empty();
        let Some(browser) = &mut self.browser else { return };
        let leave = browser.pump.leave(work);
        let reached = match leave {
            Leave::Kick(handoff) => handoff.reached,
            Leave::Stalled { reached, .. } => reached,
            _ => None,
        };
        if let Some(limit) = reached {
            let fields = [("limit", Some(limit_name(limit).into()))];
            browser.emit("scheduler_burst_limit_reached", streak, None, &fields);
        }
        match leave {
            Leave::Kick(handoff) => {
                let fields = [("call", Some(handoff.call.name().into()))];
                browser.emit("scheduler_host_handoff", streak, None, &fields);
                browser.make(handoff.call);
            }
            // No task of a scenario runs page code.
            Leave::Resume(call) => browser.make(call),
            Leave::Stalled { denied, .. } => {
                browser.denied(denied, streak);
                let _ = browser.pump.watch_turn();
            }
            // Only here does the cancel streak begin anew: asking an empty scheduler parks it.
            Leave::Idle => {
                // Turns end where the script says so.
                let _ = browser.pump.watch_turn();
                let now = self.world.now();
                let _ = self.world.next(now, &mut self.choose);
            }
            Leave::NotRunning | Leave::Trapped(_) => {}
        }
    }

    /// Turns the loop until nothing is queued and nothing is due.
    pub(super) fn turn_until_idle(&mut self, max_steps: u64) -> Option<u64> {
        let before = self.polls;
        let mut turns = 0;
        loop {
            self.kick();
            self.microtasks();
            let Some(browser) = &self.browser else { break };
            if !browser.macrotasks.is_empty() {
                self.turn();
            } else if !self.due() || self.host_timer().status != Status::Ok {
                break;
            }
            turns += 1;
            if self.polls - before > max_steps || turns > max_steps {
                return None;
            }
        }
        // The loop has nothing to do, so its last turn is over.
        if let Some(browser) = &mut self.browser {
            let _ = browser.pump.end_turn();
        }
        Some(self.polls - before)
    }
}
