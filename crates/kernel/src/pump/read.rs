//! Queries of the pump: its state, its counters, its invariants.

use super::{Capabilities, Denied, HostCall, Pump, PumpConfig, PumpState, State, Trapped};
use crate::named::ensure;

impl Pump {
    getters! {
        /// Whether a wake or pump call came since the running drain last examined the lanes.
        pending(&self) -> bool = matches!(self.state, State::Running(burst) if burst.pending);
        /// Whether a host call is owed because it was denied.
        stalled(&self) -> bool = matches!(self.state, State::Idle { owed: Some(_) });
        /// The number of the current host turn.
        host_turn_id(&self) -> u64 = self.turn;
        /// The number of the last drain; 0 before the first.
        microtask_batch_id(&self) -> u64 = self.batch;
        /// The outstanding host call.
        outstanding(&self) -> Option<HostCall> =
            if let State::Scheduled(call) = self.state { Some(call) } else { None };
        /// The diagnosis, if the runtime has trapped.
        trapped(&self) -> Option<Trapped> =
            if let State::Trapped(trapped) = self.state { Some(trapped) } else { None };
        /// The number of steps of the running drain; 0 outside a drain.
        steps(&self) -> u32 =
            if let State::Running(burst) = &self.state { burst.steps } else { 0 };
        /// The limits in force.
        config(&self) -> &PumpConfig = &self.config;
        /// The granted capabilities.
        capabilities(&self) -> Capabilities = self.capabilities;
    }

    /// Returns the denial of the owed host call, if it is still denied.
    pub fn stalled_by(&self) -> Option<Denied> {
        let State::Idle { owed: Some(call) } = self.state else { return None };
        self.capabilities.require(call.capability(), call.site()).err()
    }

    /// Returns the state of the pump; a trapped pump is idle permanently.
    pub fn state(&self) -> PumpState {
        match self.state {
            State::Idle { .. } | State::Trapped(_) => PumpState::Idle,
            State::Scheduled(_) => PumpState::Scheduled,
            State::Running(_) => PumpState::Running,
        }
    }

    /// Checks the invariants that are visible in the state. Two others cannot be violated by any
    /// state: a drain is never entered twice, and a host call is outstanding only while Scheduled.
    pub fn check(&self) -> Result<(), &'static str> {
        let State::Running(burst) = &self.state else { return Ok(()) };
        ensure(self.batch > 0, "INV-BR-01: a drain runs that was never entered")?;
        burst.check(&self.config)
    }
}
