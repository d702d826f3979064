//! Proof of how far a task's cancel has come.

use super::Reason;
use crate::ids::{RegionId, TaskId};
use crate::named::ensure;
use crate::status::Status;

named_enum! {
    /// How far a cancel has come. "Not cancelled" is the absence of a witness, not a phase.
    #[derive(PartialOrd, Ord)]
    pub enum Phase {
        /// Asked for, not yet seen by the task.
        Requested = 0,
        /// Seen; the task's own cleanup runs.
        Cancelling = 1,
        /// The body has ended; the cleanup stack runs.
        Finalizing = 2,
        /// Over.
        Completed = 3,
    }
}

/// A statement about one task's cancel at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Whose cancel.
    pub task: TaskId,
    /// The task's region.
    pub region: RegionId,
    /// Which cancel of the task: 1 from its first request on.
    pub epoch: u64,
    /// How far.
    pub phase: Phase,
    /// Why, as strengthened so far.
    pub reason: Reason,
}

impl Witness {
    /// Whether `next` may follow this witness. Checks, in this order: same task, same region, same
    /// epoch, phase not lower, severity not lower. An equal phase is a strengthening; skipping
    /// phases forward is fine.
    pub fn validate(&self, next: &Witness) -> Result<(), Status> {
        let as_severe = self.reason.kind.severity() <= next.reason.kind.severity();
        ensure(self.task == next.task, Status::WitnessTaskMismatch)?;
        ensure(self.region == next.region, Status::WitnessRegionMismatch)?;
        ensure(self.epoch == next.epoch, Status::WitnessEpochMismatch)?;
        ensure(self.phase <= next.phase, Status::WitnessPhaseRegression)?;
        ensure(as_severe, Status::WitnessReasonWeakened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_names() {
        let names = ["Requested", "Cancelling", "Finalizing", "Completed"];
        assert_eq!(Phase::ALL.map(Phase::name), names);
    }
}
