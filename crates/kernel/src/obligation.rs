//! Obligations: promises that must be committed or aborted, and are reported otherwise.
//!
//! ```text
//!              +--> Committed
//!  Reserved ---+--> Aborted
//!              +--> Leaked     (the region closed first, or a tracked permit was dropped)
//! ```
//! A second resolution is deliberately an error.

use crate::session::Resolution;
use crate::status::Status;

named_enum! {
    /// The state of an obligation.
    pub enum ObligationState {
        /// Outstanding.
        Reserved = 0,
        /// Fulfilled.
        Committed = 1,
        /// Withdrawn.
        Aborted = 2,
        /// Never resolved.
        Leaked = 3,
    }
}

impl ObligationState {
    /// Checks that the transition `self -> to` exists, and otherwise returns the status to report.
    pub const fn check(self, to: ObligationState) -> Result<(), Status> {
        use ObligationState::*;
        match (self, to) {
            (Reserved, Reserved) => Err(Status::InvalidTransition),
            (Reserved, _) => Ok(()),
            (Leaked, _) => Err(Status::ObligationLeaked),
            (Committed | Aborted, _) => Err(Status::ObligationAlreadyResolved),
        }
    }

    /// Resolves the obligation.
    pub fn resolve(self, resolution: Resolution) -> Result<ObligationState, Status> {
        let to = match resolution {
            Resolution::Commit => ObligationState::Committed,
            Resolution::Abort => ObligationState::Aborted,
            Resolution::Leak => ObligationState::Leaked,
        };
        self.check(to).map(|()| to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_names_and_bits() {
        let names = ["Reserved", "Committed", "Aborted", "Leaked"];
        assert_eq!(ObligationState::ALL.map(ObligationState::name), names);
        assert_eq!(ObligationState::ALL.map(ObligationState::mask), [1, 2, 4, 8]);
    }
}
