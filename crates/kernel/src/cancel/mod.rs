//! Cancellation: reasons and their kinds, strengthening, phases and witnesses.
//!
//! A cancel is a protocol, not a drop: *request*, then *drain* while the task cleans up inside a
//! bounded [`Cleanup`] allowance, then *finalize*. A stronger reason may replace a weaker one on
//! the way, never the reverse, and combining allowances never widens one.

mod kind;
mod reason;
mod witness;

pub use kind::{Cleanup, Kind};
pub use reason::{ChainLimits, Combined, LINK_COST, Reason};
pub use witness::{Phase, Witness};
