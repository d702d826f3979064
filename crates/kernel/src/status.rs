//! The status registry: a stable number, name and sentence for every result of asx.
//!
//! Each module has its own typed errors, which map to these codes through [`Coded`]. Numbers are
//! grouped by hundreds and never reused.

use core::fmt;

/// A type with a code in the registry.
pub trait Coded {
    /// Returns the registry code.
    fn status(&self) -> Status;
}

macro_rules! registry {
    ($($variant:ident = $number:literal, $name:literal, $text:literal;)*) => {
        /// A registry code.
        ///
        /// ```
        /// # mod asx { pub use asx_kernel::status::Status; }
        /// use asx::Status;
        /// assert_eq!(Status::from_name("FULL"), Some(Status::Full));
        /// assert_eq!(Status::from_number(102), Some(Status::Full));
        /// assert_eq!(Status::Full.name(), "FULL");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum Status {
            $(#[doc = $text] $variant = $number,)*
        }

        impl Status {
            /// Every code, in numeric order.
            pub const ALL: &[Status] = &[$(Status::$variant,)*];

            /// The name of the constant, as used in files and in C.
            pub const fn name(self) -> &'static str {
                match self { $(Status::$variant => $name,)* }
            }

            /// The sentence for people.
            pub const fn text(self) -> &'static str {
                match self { $(Status::$variant => $text,)* }
            }
        }
    };
}

registry! {
    Ok = 0, "OK", "The operation succeeded.";

    WouldBlock = 100, "WOULD_BLOCK", "The operation would have to wait; the caller is registered.";
    Empty = 101, "EMPTY", "The channel holds no message now.";
    Full = 102, "FULL", "The channel has no free slot, or others are waiting for one.";
    Disconnected = 103, "DISCONNECTED", "The other side is gone.";
    Cancelled = 104, "CANCELLED", "The task was asked to stop and has now seen it.";

    InvalidArgument = 200, "INVALID_ARGUMENT", "An argument is outside its range.";
    InvalidTransition = 201, "INVALID_TRANSITION",
        "The state machine has no such step; nothing changed.";
    StaleHandle = 202, "STALE_HANDLE",
        "The handle names something that is gone or was never there.";
    ResourceExhausted = 203, "RESOURCE_EXHAUSTED",
        "A configured limit is reached; nothing changed.";
    BudgetExhausted = 204, "BUDGET_EXHAUSTED",
        "The task's deadline, polls or cost allowance is used up.";
    Reentrant = 205, "REENTRANT", "The runtime was called from inside itself where it must not be.";
    Internal = 206, "INTERNAL", "A law was broken inside asx: please report it.";

    RegionNotOpen = 300, "REGION_NOT_OPEN", "The region is closing and admits nothing new.";
    RegionClosed = 301, "REGION_CLOSED", "The region is closed; its storage is gone.";
    AdmissionClosed = 302, "ADMISSION_CLOSED", "The open region's admission gate refuses new work.";
    IncompleteChildren = 303, "INCOMPLETE_CHILDREN",
        "Tasks or child regions still live in the region.";

    ObligationAlreadyResolved = 400, "OBLIGATION_ALREADY_RESOLVED",
        "The obligation or permit was already committed or aborted.";
    ObligationLeaked = 401, "OBLIGATION_LEAKED",
        "The obligation was never resolved and is recorded as leaked.";
    UnresolvedObligations = 402, "UNRESOLVED_OBLIGATIONS",
        "Obligations are still outstanding in the region.";

    TimerDurationExceeded = 500, "TIMER_DURATION_EXCEEDED",
        "The deadline is further away than timers may be.";

    TasksStillActive = 600, "TASKS_STILL_ACTIVE", "Not quiescent: tasks are not completed.";
    ObligationsUnresolved = 601, "OBLIGATIONS_UNRESOLVED",
        "Not quiescent: obligations are still reserved.";
    RegionsNotClosed = 602, "REGIONS_NOT_CLOSED", "Not quiescent: regions are not closed.";
    TimersPending = 603, "TIMERS_PENDING", "Not quiescent: timers are armed.";
    ChannelNotDrained = 604, "CHANNEL_NOT_DRAINED",
        "Not quiescent: a channel holds messages or permits.";

    WitnessTaskMismatch = 700, "WITNESS_TASK_MISMATCH", "The witnesses are about different tasks.";
    WitnessRegionMismatch = 701, "WITNESS_REGION_MISMATCH",
        "The witnesses are about different regions.";
    WitnessEpochMismatch = 702, "WITNESS_EPOCH_MISMATCH",
        "The witnesses are about different cancel epochs.";
    WitnessPhaseRegression = 703, "WITNESS_PHASE_REGRESSION", "The cancel phase went backwards.";
    WitnessReasonWeakened = 704, "WITNESS_REASON_WEAKENED", "The cancel reason became less severe.";

    AffinityViolation = 800, "AFFINITY_VIOLATION",
        "The call came from a thread that may not make it.";
    CapabilityDenied = 801, "CAPABILITY_DENIED", "The host capability was not granted.";
    DeterminismViolation = 802, "DETERMINISM_VIOLATION", "Two runs that must be equal were not.";
    ReplayMismatch = 803, "REPLAY_MISMATCH",
        "The replayed run took another path than the recorded one.";
    TraceMalformed = 804, "TRACE_MALFORMED", "The trace cannot be read.";
    TraceTruncated = 805, "TRACE_TRUNCATED", "The trace ends early.";
    TraceVersion = 806, "TRACE_VERSION", "The trace has a version this build does not know.";
}

impl Status {
    /// The stable number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the code with this number.
    pub fn from_number(number: i32) -> Option<Status> {
        Status::ALL.iter().copied().find(|s| s.number() == number)
    }

    /// Returns the code with this name (exact, upper case).
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// The family the number belongs to.
    pub const fn family(self) -> &'static str {
        match self.number() / 100 {
            0 => "success",
            1 => "flow",
            2 => "general",
            3 => "region",
            4 => "obligation",
            5 => "timer",
            6 => "quiescence",
            7 => "witness",
            _ => "host and trace",
        }
    }
}

impl Coded for Status {
    fn status(&self) -> Status {
        *self
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.text())
    }
}

impl core::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::format;

    #[test]
    fn numbers_and_names_are_unique_ordered_and_found() {
        let names: BTreeSet<_> = Status::ALL.iter().map(|s| s.name()).collect();
        assert_eq!(names.len(), Status::ALL.len());
        assert!(Status::ALL.windows(2).all(|w| w[0].number() < w[1].number()));
        for &s in Status::ALL {
            assert_eq!(Status::from_number(s.number()), Some(s));
            assert_eq!(Status::from_name(s.name()), Some(s));
            assert_eq!(s.status(), s);
            assert!(s.text().ends_with('.'));
        }
        assert_eq!(Status::from_number(-1), None);
        assert_eq!(Status::from_name("full"), None);
    }

    #[test]
    fn numbers_are_frozen() {
        let frozen: [(i32, &str); 38] = [
            (0, "OK"),
            (100, "WOULD_BLOCK"),
            (101, "EMPTY"),
            (102, "FULL"),
            (103, "DISCONNECTED"),
            (104, "CANCELLED"),
            (200, "INVALID_ARGUMENT"),
            (201, "INVALID_TRANSITION"),
            (202, "STALE_HANDLE"),
            (203, "RESOURCE_EXHAUSTED"),
            (204, "BUDGET_EXHAUSTED"),
            (205, "REENTRANT"),
            (206, "INTERNAL"),
            (300, "REGION_NOT_OPEN"),
            (301, "REGION_CLOSED"),
            (302, "ADMISSION_CLOSED"),
            (303, "INCOMPLETE_CHILDREN"),
            (400, "OBLIGATION_ALREADY_RESOLVED"),
            (401, "OBLIGATION_LEAKED"),
            (402, "UNRESOLVED_OBLIGATIONS"),
            (500, "TIMER_DURATION_EXCEEDED"),
            (600, "TASKS_STILL_ACTIVE"),
            (601, "OBLIGATIONS_UNRESOLVED"),
            (602, "REGIONS_NOT_CLOSED"),
            (603, "TIMERS_PENDING"),
            (604, "CHANNEL_NOT_DRAINED"),
            (700, "WITNESS_TASK_MISMATCH"),
            (701, "WITNESS_REGION_MISMATCH"),
            (702, "WITNESS_EPOCH_MISMATCH"),
            (703, "WITNESS_PHASE_REGRESSION"),
            (704, "WITNESS_REASON_WEAKENED"),
            (800, "AFFINITY_VIOLATION"),
            (801, "CAPABILITY_DENIED"),
            (802, "DETERMINISM_VIOLATION"),
            (803, "REPLAY_MISMATCH"),
            (804, "TRACE_MALFORMED"),
            (805, "TRACE_TRUNCATED"),
            (806, "TRACE_VERSION"),
        ];
        let now: std::vec::Vec<_> = Status::ALL.iter().map(|s| (s.number(), s.name())).collect();
        assert_eq!(now, frozen);
    }

    #[test]
    fn families_follow_the_hundreds() {
        let family = |n| Status::from_number(n).map(Status::family);
        let all = [0, 100, 200, 300, 400, 500, 600, 700, 800].map(family).map(Option::unwrap);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 9);
        assert_eq!(
            (all[0], all[1], all[4], all[8]),
            ("success", "flow", "obligation", "host and trace")
        );
        assert_eq!(format!("{}", Status::Empty), "EMPTY: The channel holds no message now.");
    }
}
