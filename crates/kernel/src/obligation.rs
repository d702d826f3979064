//! Obligations: something promised that must be committed or aborted, and is reported if neither.
//!
//! ```text
//!              +--> Committed
//!  Reserved ---+--> Aborted
//!              +--> Leaked     (the region closed first, or a tracked permit was dropped)
//! ```
//! A second resolution is an error, on purpose.

use crate::session::Resolution;
use crate::status::Status;

named_enum! {
    /// Where an obligation stands.
    pub enum ObligationState {
        /// Promised.
        Reserved = 0,
        /// Kept.
        Committed = 1,
        /// Given up.
        Aborted = 2,
        /// Never resolved.
        Leaked = 3,
    }
}

impl ObligationState {
    /// Whether the raw step `self -> to` exists; if not, which answer it gets.
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
