//! The part of asx that users touch, whatever the host: one name for the crates it is made of.
//!
//! Tasks are those of `asx-task`, channels, locks and `select!` those of `asx-sync`. Hosts and the
//! facade know only this crate.

pub use asx_sync::{__select, WaitError, channel, select, sync, wait_errors_into};
pub use asx_task::*;

/// What tests of the laws see and do beyond what programs can. Not for programs, and not stable.
#[doc(hidden)]
pub mod probe {
    pub use asx_sync::probe::*;
    pub use asx_task::probe::*;
}
