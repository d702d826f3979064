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

/// Where an obligation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
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

impl ObligationState {
    /// Every state.
    pub const ALL: [ObligationState; 4] = [
        ObligationState::Reserved,
        ObligationState::Committed,
        ObligationState::Aborted,
        ObligationState::Leaked,
    ];

    /// The name as the journal shows it.
    pub const fn name(self) -> &'static str {
        match self {
            ObligationState::Reserved => "Reserved",
            ObligationState::Committed => "Committed",
            ObligationState::Aborted => "Aborted",
            ObligationState::Leaked => "Leaked",
        }
    }

    /// The bit of this state in a handle's mask.
    pub const fn mask(self) -> u16 {
        1 << self as u16
    }

    /// Whether the raw step `self -> to` exists; if not, which answer it gets.
    pub const fn check(self, to: ObligationState) -> Result<(), Status> {
        match (self, to) {
            (ObligationState::Reserved, ObligationState::Reserved) => {
                Err(Status::InvalidTransition)
            }
            (ObligationState::Reserved, _) => Ok(()),
            (ObligationState::Leaked, _) => Err(Status::ObligationLeaked),
            _ => Err(Status::ObligationAlreadyResolved),
        }
    }

    /// Resolves the obligation.
    pub const fn resolve(self, resolution: Resolution) -> Result<ObligationState, Status> {
        let to = match resolution {
            Resolution::Commit => ObligationState::Committed,
            Resolution::Abort => ObligationState::Aborted,
            Resolution::Leak => ObligationState::Leaked,
        };
        match self.check(to) {
            Ok(()) => Ok(to),
            Err(status) => Err(status),
        }
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
