//! Results of pump operations: host calls to make, ends of drains, refusals.

use super::PumpState;
use super::burst::Limit;
use super::capability::{Capability, Denied};
use crate::status::Status;

/// A call that the host must schedule. When it runs, it calls [`enter`](super::Pump::enter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostCall {
    /// Queue a microtask: the same host turn, before anything else of the page.
    Microtask,
    /// Post a message to this page: a new host turn, after pending input and painting.
    MessagePost,
    /// `setTimeout(0)`: a new host turn, slower; only where messages cannot be posted.
    TimeoutZero,
}

impl HostCall {
    /// The name in journals and reports.
    pub const fn name(self) -> &'static str {
        match self {
            HostCall::Microtask => "microtask",
            HostCall::MessagePost => "message",
            HostCall::TimeoutZero => "timeout",
        }
    }

    /// The capability that the call requires.
    pub const fn capability(self) -> Capability {
        match self {
            HostCall::Microtask => Capability::Microtask,
            HostCall::MessagePost => Capability::Post,
            HostCall::TimeoutZero => Capability::Timer,
        }
    }

    /// The name of the caller, for denials.
    pub(super) const fn site(self) -> &'static str {
        match self {
            HostCall::Microtask => "pump kick",
            HostCall::MessagePost | HostCall::TimeoutZero => "pump hand-off",
        }
    }
}

/// The result of a pump call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Enter {
    /// Drain now, then [`leave`](super::Pump::leave).
    Begin {
        /// The host turn the drain runs in.
        turn: u64,
        /// The number of the drain.
        batch: u64,
    },
    /// A drain is on the stack. The call is remembered until it ends: record it and return.
    Deferred(ReentrancyDeferred),
    /// Nothing was scheduled: return.
    NotScheduled,
    /// The runtime has trapped.
    Trapped(Trapped),
}

/// A pump call that came while a drain was running (`scheduler_reentrancy_deferred`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReentrancyDeferred {
    /// The running drain's host turn.
    pub turn: u64,
    /// The running drain.
    pub batch: u64,
}

/// The result of leaving a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Leave {
    /// No work is left and nothing is scheduled. This is the only result that the scheduler may
    /// count as a park, which resets its cancel streak.
    Idle,
    /// Work is left, the drain [yielded to page code](super::Pump::yield_to_page), and the
    /// allowance of the turn is not used up: make this call, which continues in the same turn.
    Resume(HostCall),
    /// Work is left: make this call (`scheduler_host_handoff`, after
    /// `scheduler_burst_limit_reached` if a limit ended the drain).
    Kick(Handoff),
    /// Work is left, but the required call is denied. The pump owes the call: the next wake, or the
    /// grant, tries it again.
    Stalled {
        /// The denial.
        denied: Denied,
        /// The limit that ended the drain, if one did.
        reached: Option<Limit>,
    },
    /// No drain was running; nothing changed.
    NotRunning,
    /// The runtime has trapped.
    Trapped(Trapped),
}

/// A drain that continues in a later host turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The call to make.
    pub call: HostCall,
    /// The limit that ended the drain; `None` if the host stopped, or if a wake came last.
    pub reached: Option<Limit>,
    /// The number of steps of the drain.
    pub steps: u32,
}

/// The reason why the pump did not schedule a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The host call needs a capability that is not granted. The wake is kept.
    Denied(Denied),
    /// The runtime has trapped.
    Trapped(Trapped),
}

/// The terminal state: a drain was killed half-way and cannot be unwound, so the runtime's data
/// cannot be trusted. Contains the place of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The code that detected it.
    pub site: &'static str,
    /// The state of the pump.
    pub state: PumpState,
    /// The host turn.
    pub turn: u64,
    /// The number of the last drain.
    pub batch: u64,
    /// The number of steps begun in that drain; the last of them trapped.
    pub steps: u32,
}

errors! {
    ReentrancyDeferred { _ => Status::Reentrant; }
    Refused {
        Refused::Denied(cause) => cause.status(), "{cause}";
        Refused::Trapped(cause) => cause.status(), "{cause}";
    }
    Trapped {
        Trapped { site, state, turn, batch, steps } => Status::Internal,
            "the runtime trapped ({site}) while {state:?}: \
             turn {turn}, drain {batch}, step {steps}";
    }
}
