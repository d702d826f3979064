//! Reading the pump: its state, its numbers, its invariants.

use super::{Capabilities, HostCall, Pump, PumpConfig, PumpState, State, Trapped};

impl Pump {
    /// What the pump is doing; a trapped pump is idle for ever.
    pub const fn state(&self) -> PumpState {
        match self.state {
            State::Idle { .. } | State::Trapped(_) => PumpState::Idle,
            State::Scheduled(_) => PumpState::Scheduled,
            State::Running { .. } => PumpState::Running,
        }
    }

    /// The host call on its way.
    pub const fn outstanding(&self) -> Option<HostCall> {
        match self.state {
            State::Scheduled(call) => Some(call),
            _ => None,
        }
    }

    /// Whether a wake or pump call came since the running drain last went to the lanes.
    pub const fn pending(&self) -> bool {
        matches!(self.state, State::Running { pending: true, .. })
    }

    /// Whether a host call is owed because it was denied.
    pub const fn stalled(&self) -> bool {
        matches!(self.state, State::Idle { owed: Some(_) })
    }

    /// The diagnosis, if the runtime is dead.
    pub const fn trapped(&self) -> Option<Trapped> {
        match self.state {
            State::Trapped(trapped) => Some(trapped),
            _ => None,
        }
    }

    /// Steps the running drain has taken; 0 outside a drain.
    pub const fn steps(&self) -> u32 {
        match &self.state {
            State::Running { burst, .. } => burst.steps,
            _ => 0,
        }
    }

    /// The current host turn.
    pub const fn host_turn_id(&self) -> u64 {
        self.turn
    }

    /// The last drain; 0 before the first.
    pub const fn microtask_batch_id(&self) -> u64 {
        self.batch
    }

    /// The limits in force.
    pub const fn config(&self) -> &PumpConfig {
        &self.config
    }

    /// What is granted.
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The invariants that can be seen on the state. That a drain is never entered twice, and that
    /// a host call is outstanding only while Scheduled, the state cannot even express.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.batch == 0 && matches!(self.state, State::Running { .. }) {
            return Err("INV-BR-01: a drain runs that was never entered");
        }
        match &self.state {
            State::Running { burst, .. } => burst.check(&self.config),
            _ => Ok(()),
        }
    }
}
