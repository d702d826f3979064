//! Witnesses: records of the progress of a task's cancel.

use super::Reason;
use crate::ids::{RegionId, TaskId};
use crate::named::ensure;
use crate::status::Status;

named_enum! {
    /// The phase of a cancel. A task that is not cancelled has no witness, rather than a phase.
    #[derive(PartialOrd, Ord)]
    pub enum Phase {
        /// Requested, but not yet observed by the task.
        Requested = 0,
        /// Acknowledged; the task's own cleanup runs.
        Cancelling = 1,
        /// The body has ended; the cleanup stack runs.
        Finalizing = 2,
        /// The task has completed.
        Completed = 3,
    }
}

/// The state of one task's cancel at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The cancelled task.
    pub task: TaskId,
    /// The task's region.
    pub region: RegionId,
    /// The number of the task's cancel: 1 from its first request on.
    pub epoch: u64,
    /// The phase.
    pub phase: Phase,
    /// The reason, as strengthened so far.
    pub reason: Reason,
}

impl Witness {
    /// Checks that `next` may follow this witness. The checks, in this order: same task, same
    /// region, same epoch, phase not lower, severity not lower. An equal phase is a strengthening;
    /// phases may be skipped.
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
