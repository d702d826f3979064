//! The API of asx on every host: tasks, scopes and time from `asx-task`, channels, locks and
//! `select!` from `asx-sync`, and the combinators of this crate.
//!
//! Hosts and the facade depend on this crate only.

mod combine;
mod prim;

pub use asx_sync::{__select, WaitError, channel, select, sync, wait_errors_into};
pub use asx_task::*;
/// The expansion of [`join!`](crate::join!) and the other macros.
#[doc(hidden)]
pub use combine::expansion as __combine;
pub use combine::{
    Backoff, BoxFuture, Child, Group, NextChild, group, hedge, join, join_all, join3, join4, race,
    race_all, race_ok, race_ok_all, race3, race4, retry, retry_if, try_join, try_join_all,
    try_join3, try_join4,
};

/// What tests of the laws see and do beyond what programs can. Not for programs, and not stable.
#[doc(hidden)]
pub mod probe {
    pub use asx_sync::probe::*;
    pub use asx_task::probe::*;
}
