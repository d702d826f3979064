//! The lab: concurrent programs run under control, one schedule after another.
//!
//! [`explore`] decides which schedule is next, keeps a log of what was decided, and makes a failing
//! schedule short. It knows nothing of futures: whoever runs the program asks it at every choice.

#![deny(unsafe_code)]

mod check;
pub mod explore;
mod failure;
#[allow(unsafe_code, reason = "it promises to keep pinned tasks on its thread")]
mod machine;
mod quiet;
pub mod workers;

pub use check::{Check, Found, How, Judged, Report, check};
pub use failure::{Failure, Finding, Kind};
