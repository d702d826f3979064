//! The part of asx that users touch, whatever the host.
//!
//! Every law (who may step where, who wakes, who goes next) is a call into `asx-kernel`; this crate
//! adds what makes it usable from several threads: cells, short locks, wakers and futures.

mod cancel_safe;
pub mod channel;
mod cx;
mod outcome;
mod prim;
pub mod sync;

pub use cancel_safe::CancelSafe;
pub use cx::Cx;
pub use outcome::{Cancelled, Outcome, Panic, Stop};
