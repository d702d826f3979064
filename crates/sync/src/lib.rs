//! Channels, locks and signals between tasks, and `select!`.
//!
//! Every law (who gets a slot, who is woken) is a call into `asx-kernel`; whether an operation goes
//! on, what it waits for and what a cancel wakes are [`asx_task::operation`]'s, which is public:
//! nothing here could not be written in another crate.

#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub mod channel;
mod prim;
#[doc(hidden)]
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub mod probe;
mod select;
pub mod sync;
mod wait_error;

pub use wait_error::WaitError;

/// What [`select!`] expands to.
#[doc(hidden)]
pub mod __select {
    pub use crate::select::{
        Branch, Either, Else, List, Nil, Select, cancel_safe, select, select_random,
    };
}
