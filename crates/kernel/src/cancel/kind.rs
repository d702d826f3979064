//! The eleven kinds of cancel and the cleanup that each allows.

named_enum! {
    /// The kind of a cancel. The declaration order is the registry order, not the severity.
    pub enum Kind {
        /// An explicit request.
        User,
        /// A `timeout` elapsed.
        Timeout,
        /// The budget's deadline passed.
        Deadline,
        /// The budget's polls are used up.
        PollQuota,
        /// The budget's cost allowance is used up.
        CostBudget,
        /// A sibling failed in a fail-fast scope.
        FailFast,
        /// Another branch of a race won.
        RaceLost,
        /// A linked task ended.
        LinkedExit,
        /// The enclosing region was cancelled.
        ParentCancelled,
        /// A required resource is not available.
        ResourceUnavailable,
        /// The runtime is shutting down.
        Shutdown,
    }
}

/// By severity: the class, the polls of cleanup and their priority.
const LEVELS: [(&str, u64, u8); 6] = [
    ("explicit", 1000, 200),
    ("time", 500, 210),
    ("budget", 300, 215),
    ("peer", 200, 220),
    ("structural", 200, 220),
    ("system", 50, 255),
];

/// The cleanup that a cancel allows: polls, and the priority they run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cleanup {
    /// The polls allowed from the acknowledgement of the cancel to the end of the task.
    pub polls: u64,
    /// The priority in the cancel lane.
    pub priority: u8,
}

impl Cleanup {
    /// Returns the tighter combination: fewest polls, highest priority.
    #[must_use]
    pub fn combine(self, other: Cleanup) -> Cleanup {
        let polls = self.polls.min(other.polls);
        let priority = self.priority.max(other.priority);
        Cleanup { polls, priority }
    }

    /// Returns the allowance for everything inside the cancelled region: never more than this one
    /// or [`Kind::ParentCancelled`] allows, so that a shutdown stays tight at every depth.
    #[must_use]
    pub fn passed_on(self) -> Cleanup {
        Kind::ParentCancelled.cleanup().combine(self)
    }
}

impl Kind {
    /// Returns the severity, from 0 (mildest) to 5.
    pub const fn severity(self) -> u8 {
        match self {
            Kind::User => 0,
            Kind::Timeout | Kind::Deadline => 1,
            Kind::PollQuota | Kind::CostBudget => 2,
            Kind::FailFast | Kind::RaceLost | Kind::LinkedExit => 3,
            Kind::ParentCancelled | Kind::ResourceUnavailable => 4,
            Kind::Shutdown => 5,
        }
    }

    /// Returns the cleanup that this kind allows.
    pub const fn cleanup(self) -> Cleanup {
        let (_, polls, priority) = LEVELS[self.severity() as usize];
        Cleanup { polls, priority }
    }

    /// Returns the class of the kind.
    pub const fn class(self) -> &'static str {
        LEVELS[self.severity() as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_table_holds() {
        let rows = [
            ("User", 0, 1000, 200, "explicit"),
            ("Timeout", 1, 500, 210, "time"),
            ("Deadline", 1, 500, 210, "time"),
            ("PollQuota", 2, 300, 215, "budget"),
            ("CostBudget", 2, 300, 215, "budget"),
            ("FailFast", 3, 200, 220, "peer"),
            ("RaceLost", 3, 200, 220, "peer"),
            ("LinkedExit", 3, 200, 220, "peer"),
            ("ParentCancelled", 4, 200, 220, "structural"),
            ("ResourceUnavailable", 4, 200, 220, "structural"),
            ("Shutdown", 5, 50, 255, "system"),
        ];
        for (kind, (name, severity, polls, priority, class)) in Kind::ALL.into_iter().zip(rows) {
            assert_eq!((kind.name(), kind.severity(), kind.class()), (name, severity, class));
            assert_eq!(kind.cleanup(), Cleanup { polls, priority });
            assert_eq!(Kind::from_name(name), Some(kind));
        }
        assert_eq!(Kind::from_name("user"), None);
    }

    #[test]
    fn combining_never_widens() {
        let a = Cleanup { polls: 10, priority: 1 };
        let b = Cleanup { polls: 5, priority: 2 };
        let tight = Cleanup { polls: 5, priority: 2 };
        assert_eq!((a.combine(b), b.combine(a), a.combine(a)), (tight, tight, a));
        let mixed = Cleanup { polls: 20, priority: 9 };
        assert_eq!(a.combine(mixed), Cleanup { polls: 10, priority: 9 });
        assert_eq!(Kind::Shutdown.cleanup().passed_on(), Kind::Shutdown.cleanup());
        assert_eq!(Kind::User.cleanup().passed_on(), Kind::ParentCancelled.cleanup());
    }
}
