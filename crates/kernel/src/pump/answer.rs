//! What the pump answers: host calls to make, ends of drains, refusals.

use super::PumpState;
use super::burst::Limit;
use super::capability::{Capability, Denied};
use crate::status::Status;

/// What the host must schedule next. When it runs, it calls [`enter`](super::Pump::enter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostCall {
    /// Queue a microtask: the same host turn, before anything else of the page.
    Microtask,
    /// Post a message to oneself: a new host turn, after waiting input and painting.
    MessagePost,
    /// `setTimeout(0)`: a new host turn, slower; only where no message can be posted.
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

    /// What must be granted to make the call.
    pub const fn capability(self) -> Capability {
        match self {
            HostCall::Microtask => Capability::Microtask,
            HostCall::MessagePost => Capability::Post,
            HostCall::TimeoutZero => Capability::Timer,
        }
    }

    /// The name of the caller, for refusals.
    pub(super) const fn site(self) -> &'static str {
        match self {
            HostCall::Microtask => "pump kick",
            HostCall::MessagePost | HostCall::TimeoutZero => "pump hand-off",
        }
    }
}

/// The answer to a pump call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Enter {
    /// Drain now, then [`leave`](super::Pump::leave).
    Begin {
        /// The host turn the drain runs in.
        turn: u64,
        /// The drain's own number.
        batch: u64,
    },
    /// A drain is on the stack: noted for when it ends. Record and return.
    Deferred(ReentrancyDeferred),
    /// Nothing was scheduled: return.
    NotScheduled,
    /// The runtime is dead.
    Trapped(Trapped),
}

/// A pump call came while a drain was running (`scheduler_reentrancy_deferred`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReentrancyDeferred {
    /// The running drain's host turn.
    pub turn: u64,
    /// The running drain.
    pub batch: u64,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Leave {
    /// Nothing left, nothing scheduled. The only answer that the scheduler may count as a park,
    /// which restarts its cancel streak.
    Idle,
    /// Work is left, the drain [yielded to page code](super::Pump::yield_to_page), and the
    /// allowance of the turn is not used up: make this call, which continues in the same turn.
    Resume(HostCall),
    /// Work is left: make this call (`scheduler_host_handoff`, after
    /// `scheduler_burst_limit_reached` if a limit ended the drain).
    Kick(Handoff),
    /// Work is left, but the call it needs is denied. The pump owes it: the next wake, or the
    /// grant, tries again.
    Stalled {
        /// The refusal.
        denied: Denied,
        /// The limit that ended the drain, if one did.
        reached: Option<Limit>,
    },
    /// No drain was running; nothing changed.
    NotRunning,
    /// The runtime is dead.
    Trapped(Trapped),
}

/// A drain passes on to a later host turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The call to make.
    pub call: HostCall,
    /// The limit that ended the drain; `None` if the host stopped by itself or a wake came last.
    pub reached: Option<Limit>,
    /// Steps the drain took.
    pub steps: u32,
}

/// Why the pump would not schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The host call needs a capability that is not granted. The wake is kept.
    Denied(Denied),
    /// The runtime is dead.
    Trapped(Trapped),
}

/// The terminal state: a drain was killed half-way and cannot be unwound, so nothing the runtime
/// holds can be trusted. Says where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// Who noticed.
    pub site: &'static str,
    /// What the pump was doing.
    pub state: PumpState,
    /// The host turn.
    pub turn: u64,
    /// The last drain.
    pub batch: u64,
    /// Steps that drain had begun: the last of them is the one that trapped.
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
