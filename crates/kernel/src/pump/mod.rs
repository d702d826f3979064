//! The browser pump: decides when a drain may run, for how long, and which host call comes next.
//!
//! ```text
//!          wake: microtask               enter
//!   Idle ------------------> Scheduled --------> Running
//!    ^                          ^                  |  |
//!    |                          +------------------+  |
//!    |                           leave, work is left: |
//!    |                           message (or timeout) |
//!    +------------------------------------------------+
//!                   leave, nothing is left
//! ```
//!
//! The pump does not know tasks. The host makes the calls that it returns and drives the drain:
//!
//! ```text
//! enter -> Begin; collect at most timer_batch() expired timers -> timers_fired
//! while something is runnable and may_step(clock, if wants_clock): poll one task
//! leave(something is runnable) -> Idle | Kick(call)
//! ```
//!
//! * *No recursion.* While a drain runs, a wake is only noted, and a pump call is deferred. At most
//!   one host call is outstanding, and only in the state Scheduled.
//! * *The page remains responsive.* A host turn has an allowance of steps and of time. The time
//!   counts from its first drain on and includes page code between its drains. A drain that a
//!   microtask begins later in the turn continues that account. When the allowance is used up, the
//!   rest is handed off to another host turn, and never to another microtask, which would run
//!   before input and painting.
//! * *Page code alternates with tasks.* A step that queues reactions of the page (for example by
//!   settling a promise) calls [`yield_to_page`](Pump::yield_to_page). The drain ends after that
//!   step and resumes in a microtask behind the reactions, so it sees how long they took.
//! * *Ends of turns.* The pump cannot observe the end of a macrotask. After an idle drain it
//!   requests a call that reports it ([`watch_turn`](Pump::watch_turn),
//!   [`end_turn`](Pump::end_turn)): the next drain then has a fresh allowance. If that call is
//!   denied, a pause as long as the time limit counts as the end of a turn.
//! * *No wake is lost.* A wake leads to a host call, or is handled by the running drain: the note
//!   is cleared only when a later step is granted, that is, when the drain examines the lanes after
//!   the wake. If the host call is denied, the pump is idle but owes it. Each wake, and the grant,
//!   tries the same call again; no other call replaces it.
//! * *Numbers.* `host_turn_id` counts the macrotasks that the pump can observe. It is 1 for the
//!   macrotask that created the pump, and increases when a drain is entered through a message or
//!   timeout, on each [`host_turn`](Pump::host_turn), and when a drain is entered after
//!   [`end_turn`](Pump::end_turn). Any other drain entered through a microtask belongs to the
//!   current turn. `microtask_batch_id` counts drains and increases on each [`Enter::Begin`].

mod answer;
mod burst;
mod capability;
mod read;
mod timer;

pub use answer::{Enter, Handoff, HostCall, Leave, ReentrancyDeferred, Refused, Trapped};
pub use burst::Limit;
pub use capability::{Capabilities, Capability, Denied};
pub use timer::{HostTimer, MAX_DELAY_MS, StaleTimer, plan_timer};

use crate::time::Time;
use burst::Burst;
use core::time::Duration;

/// The state of the pump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PumpState {
    /// No drain runs and none is scheduled.
    Idle,
    /// A host call is outstanding that will enter a drain.
    Scheduled,
    /// A drain is on the stack.
    Running,
}

settings! {
    /// Limits of a host turn, and the facilities of the platform.
    #[derive(Copy)]
    pub struct PumpConfig {
        /// The maximal number of steps per host turn; at least 1.
        microtask_burst_limit: u32 = 256,
        /// The maximal time per host turn, from its first drain on. `None`: no limit, and the clock
        /// is not read.
        burst_time_limit: Option<Duration> = Some(Duration::from_millis(4)),
        /// The maximal number of expired timers per host turn; at least 1.
        timer_batch_limit: usize = 64,
        /// Whether messages can be posted. If not, hand-offs use a zero timeout.
        has_message_channel: bool = true,
        /// The maximal number of polls between two clock readings; at least 1. With 1, the default,
        /// a drain ends at most one poll late. With more, a poll that is slower than all before it
        /// may be noticed that many polls late.
        clock_check_every: u32 = 1,
    }
}

impl PumpConfig {
    /// Returns the call that continues in another host turn.
    fn handoff(&self) -> HostCall {
        if self.has_message_channel { HostCall::MessagePost } else { HostCall::TimeoutZero }
    }
}

/// The pump of one browser runtime.
///
/// ```
/// use asx_kernel::pump::*;
/// let mut pump = Pump::new(PumpConfig::default(), Capabilities::all());
/// assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
/// assert_eq!(pump.wake(), Ok(None)); // already on its way
/// assert_eq!(pump.enter(None), Enter::Begin { turn: 1, batch: 1 });
/// assert!(pump.may_step(None));
/// assert_eq!(pump.leave(false), Leave::Idle);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pump {
    config: PumpConfig,
    capabilities: Capabilities,
    state: State,
    turn: u64,
    batch: u64,
    /// The initial spacing of clock readings in the next turn, in polls.
    stride: u32,
    /// The account of the current turn while no drain runs; `None` before its first drain.
    account: Option<Burst>,
    /// Whether the host has reported the end of the current turn.
    turn_ended: bool,
    watch: Watch,
}

/// Whether the host will report the end of the current turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    NotAsked,
    Asked,
    Denied,
}

/// The state with its data, so that impossible combinations cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `owed`: the host call that was denied.
    Idle {
        owed: Option<HostCall>,
    },
    Scheduled(HostCall),
    Running(Burst),
    Trapped(Trapped),
}

impl Pump {
    /// Creates an idle pump. Limits of 0 count as 1, since a drain must make progress.
    pub fn new(config: PumpConfig, capabilities: Capabilities) -> Pump {
        let config = PumpConfig {
            microtask_burst_limit: config.microtask_burst_limit.max(1),
            timer_batch_limit: config.timer_batch_limit.max(1),
            clock_check_every: config.clock_check_every.max(1),
            ..config
        };
        let state = State::Idle { owed: None };
        let (account, turn_ended, watch) = (None, false, Watch::NotAsked);
        Pump {
            config,
            capabilities,
            state,
            turn: 1,
            batch: 0,
            stride: 1,
            account,
            turn_ended,
            watch,
        }
    }

    /// Changes the limits. Must not be called during a drain, which may have exceeded the new ones.
    pub fn configure(&mut self, config: PumpConfig) {
        self.config = Pump::new(config, self.capabilities).config;
    }

    /// Records that something became runnable. Returns the host call to make, if one is needed.
    #[inline(always)]
    pub fn wake(&mut self) -> Result<Option<HostCall>, Refused> {
        match &mut self.state {
            State::Idle { owed } => {
                let call = owed.unwrap_or(HostCall::Microtask);
                self.schedule(call).map(Some).map_err(Refused::Denied)
            }
            State::Scheduled(_) => Ok(None),
            State::Running(burst) => {
                burst.pending = true;
                Ok(None)
            }
            State::Trapped(trapped) => Err(Refused::Trapped(*trapped)),
        }
    }

    /// Begins a drain; called by the scheduled host call. `now` is needed if the clock is
    /// [wanted](Pump::wants_clock): a turn with a time limit and an unknown start ends after one
    /// step.
    pub fn enter(&mut self, now: Option<Time>) -> Enter {
        match &mut self.state {
            State::Idle { .. } => Enter::NotScheduled,
            State::Scheduled(call) => {
                if *call != HostCall::Microtask || self.turn_ended || self.paused_unseen(now) {
                    self.begin_turn();
                }
                self.batch += 1;
                let burst = match &self.account {
                    Some(account) => account.resume(&self.config, now),
                    None => {
                        // Without an initial reading, the next one is due after one poll.
                        let most = if now.is_some() { self.config.clock_check_every } else { 1 };
                        Burst::new(now, self.stride.min(most))
                    }
                };
                self.state = State::Running(burst);
                Enter::Begin { turn: self.turn, batch: self.batch }
            }
            State::Running(burst) => {
                burst.pending = true;
                Enter::Deferred(ReentrancyDeferred { turn: self.turn, batch: self.batch })
            }
            State::Trapped(trapped) => Enter::Trapped(*trapped),
        }
    }

    /// Whether the next [`enter`](Pump::enter) or [`may_step`](Pump::may_step) needs the
    /// time. The host reads its clock only if granted; without a reading the drain ends early.
    pub fn wants_clock(&self) -> bool {
        match &self.state {
            State::Scheduled(_) => self.config.burst_time_limit.is_some(),
            State::Running(burst) => burst.clock_due(&self.config),
            State::Idle { .. } | State::Trapped(_) => false,
        }
    }

    /// Requests one more step of the running drain. If granted, it is counted and the host examines
    /// its lanes again. The first step of a turn is always granted. From the second on, a given
    /// `now` is used whether it was wanted or not.
    #[inline(always)]
    pub fn may_step(&mut self, now: Option<Time>) -> bool {
        let State::Running(burst) = &mut self.state else { return false };
        burst.step(&self.config, now)
    }

    /// Ends the running drain after the current step, so that page code which that step queued
    /// (reactions of a promise it settled) runs before the next step. The drain resumes in a
    /// microtask of the same turn: see [`Leave::Resume`]. Without effect outside a drain.
    pub fn yield_to_page(&mut self) {
        if let State::Running(burst) = &mut self.state {
            burst.pause();
        }
    }

    /// The refusal that [`leave`](Pump::leave) would answer now if work remains: the drain cannot
    /// resume in this turn, and the hand-off to the next one is denied. `None` outside a drain.
    pub fn handoff_denied(&self) -> Option<Denied> {
        let State::Running(burst) = &self.state else { return None };
        if burst.may_resume(&self.config) {
            return None;
        }
        let call = self.config.handoff();
        self.capabilities.require(call.capability(), call.site()).err()
    }

    /// Notes a step beyond the allowance, for a task that fails because the
    /// [hand-off is denied](Pump::handoff_denied). The host bounds these steps.
    pub fn step_overtime(&mut self) {
        if let State::Running(burst) = &mut self.state {
            burst.pending = false;
        }
    }

    /// Returns the number of expired timers that the running drain may still collect; 0 outside a
    /// drain.
    pub fn timer_batch(&self) -> usize {
        let State::Running(burst) = &self.state else { return 0 };
        self.config.timer_batch_limit.saturating_sub(burst.timers)
    }

    /// Records that the drain collected `count` expired timers. `more_due` is true if the cap left
    /// some behind, which the next drain collects in a later host turn.
    pub fn timers_fired(&mut self, count: usize, more_due: bool) {
        let State::Running(burst) = &mut self.state else { return };
        burst.timers = burst.timers.saturating_add(count);
        burst.timers_left = more_due;
    }

    /// Ends the drain. `work_remains` says whether something is runnable now.
    pub fn leave(&mut self, work_remains: bool) -> Leave {
        let mut burst = match &self.state {
            State::Running(burst) => *burst,
            State::Trapped(trapped) => return Leave::Trapped(*trapped),
            State::Idle { .. } | State::Scheduled(_) => return Leave::NotRunning,
        };
        let resumes = burst.may_resume(&self.config);
        burst.end(&self.config);
        self.account = Some(burst);
        if !(work_remains || burst.pending || burst.timers_left) {
            (self.state, self.stride) = (State::Idle { owed: None }, 1);
            return Leave::Idle;
        }
        let reached = burst.reached();
        self.stride = burst.stride;
        if resumes {
            return match self.schedule(HostCall::Microtask) {
                Ok(call) => Leave::Resume(call),
                Err(denied) => Leave::Stalled { denied, reached },
            };
        }
        match self.schedule(self.config.handoff()) {
            Ok(call) => Leave::Kick(Handoff { call, reached, steps: burst.steps }),
            Err(denied) => Leave::Stalled { denied, reached },
        }
    }

    /// Begins a host turn for a macrotask of the host, such as its timer's callback.
    ///
    /// The host runs no macrotask while a drain is on the stack. If one seems to run, the drain was
    /// killed without a report, and the pump traps instead of deferring indefinitely.
    pub fn host_turn(&mut self) -> Result<u64, Trapped> {
        if matches!(self.state, State::Running(_) | State::Trapped(_)) {
            return Err(self.trap("a host turn began inside a drain"));
        }
        self.begin_turn();
        Ok(self.turn)
    }

    /// Requests the call by which the host reports the end of the current turn, after a drain has
    /// left without such a call. Make it, and call [`end_turn`](Pump::end_turn) when it arrives.
    /// Returns `None` if it is scheduled already, or if the platform's hand-off is not granted.
    pub fn watch_turn(&mut self) -> Option<HostCall> {
        if self.account.is_none() || self.watch == Watch::Asked {
            return None;
        }
        let call = self.config.handoff();
        let granted = self.capabilities.has(call.capability());
        self.watch = if granted { Watch::Asked } else { Watch::Denied };
        granted.then_some(call)
    }

    /// Ends the current turn. The next drain belongs to another turn and has a fresh allowance.
    pub fn end_turn(&mut self) -> Result<(), Trapped> {
        if matches!(self.state, State::Running(_) | State::Trapped(_)) {
            return Err(self.trap("a host turn ended inside a drain"));
        }
        // A turn without a drain has nothing to renew and keeps its number.
        self.turn_ended = self.account.take().is_some() || self.turn_ended;
        self.watch = Watch::NotAsked;
        Ok(())
    }

    /// Records that a poll was killed and could not be unwound. Terminal; the first diagnosis is
    /// kept.
    pub fn trap(&mut self, site: &'static str) -> Trapped {
        if let State::Trapped(trapped) = self.state {
            return trapped;
        }
        let turn = self.turn;
        let batch = self.batch;
        let steps = self.steps();
        let trapped = Trapped { site, state: self.state(), turn, batch, steps };
        self.state = State::Trapped(trapped);
        trapped
    }

    /// Grants `capability`. Returns an owed host call that can be made now.
    pub fn grant(&mut self, capability: Capability) -> Option<HostCall> {
        self.capabilities.grant(capability);
        let State::Idle { owed: Some(call) } = self.state else { return None };
        self.schedule(call).ok()
    }

    /// Revokes `capability`. A host call that was made before still arrives.
    pub fn revoke(&mut self, capability: Capability) {
        self.capabilities.revoke(capability);
    }

    /// Returns the host timer to arm for the wheel's next deadline, if timers are granted.
    pub fn plan_timer(&self, now: Time, next: Option<Time>) -> Result<Option<HostTimer>, Denied> {
        match plan_timer(now, next) {
            None => Ok(None),
            timer => self.capabilities.require(Capability::Timer, "host timer").map(|()| timer),
        }
    }

    /// Begins another host turn.
    fn begin_turn(&mut self) {
        self.turn += 1;
        (self.account, self.turn_ended, self.watch) = (None, false, Watch::NotAsked);
    }

    /// Whether the turn counts as ended: its end is not reported, and the pause was long enough.
    fn paused_unseen(&self, now: Option<Time>) -> bool {
        let is_past = |account: &Burst| account.is_past(&self.config, now);
        self.watch == Watch::Denied && self.account.as_ref().is_some_and(is_past)
    }

    /// Changes to the state Scheduled. All host calls originate here.
    fn schedule(&mut self, call: HostCall) -> Result<HostCall, Denied> {
        let granted = self.capabilities.require(call.capability(), call.site());
        self.state = match granted {
            Ok(()) => State::Scheduled(call),
            Err(_) => State::Idle { owed: Some(call) },
        };
        granted.map(|()| call)
    }
}

#[cfg(test)]
mod tests;
