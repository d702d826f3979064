//! The quiescence check, which counts everything that is still alive.

use crate::named::ensure;
use crate::status::Status;
use alloc::vec::Vec;

/// The objects that are still alive, by the five criteria of quiescence.
///
/// ```
/// use asx_kernel::quiescence::Census;
/// use asx_kernel::status::Status;
/// let census = Census { timers: 2, channels: 1, ..Census::default() };
/// let failures = census.check().unwrap_err();
/// assert_eq!(failures.first(), Status::TimersPending);
/// assert_eq!(failures.all(), [Status::TimersPending, Status::ChannelNotDrained]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Tasks not Completed.
    pub tasks: usize,
    /// Obligations still Reserved.
    pub obligations: usize,
    /// Regions not Closed.
    pub regions: usize,
    /// Armed timers.
    pub timers: usize,
    /// Registered channels that hold messages or permits.
    pub channels: usize,
}

/// The reasons why a run is not quiescent: never empty, in the order of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotQuiescent {
    failures: Vec<(Status, usize)>,
}

impl NotQuiescent {
    getters! {
        /// The first failure in order.
        first(&self) -> Status = self.failures[0].0;
        /// Every failure in order.
        all(&self) -> Vec<Status> = self.failures.iter().map(|(status, _)| *status).collect();
        /// Every failure with the number of objects.
        counts(&self) -> &[(Status, usize)] = &self.failures;
    }
}

impl Census {
    /// Succeeds if the run is quiescent, and otherwise returns all objects that prevent it.
    pub fn check(&self) -> Result<(), NotQuiescent> {
        let failures: Vec<_> = [
            (Status::TasksStillActive, self.tasks),
            (Status::ObligationsUnresolved, self.obligations),
            (Status::RegionsNotClosed, self.regions),
            (Status::TimersPending, self.timers),
            (Status::ChannelNotDrained, self.channels),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
        ensure(failures.is_empty(), NotQuiescent { failures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_census_is_quiescent() {
        assert_eq!(Census::default().check(), Ok(()));
    }
}
