//! The corpus on every host, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod c;
mod corpus;
mod defaults;
mod errors;
mod features;
mod forbidden;
mod guide;
mod native;
mod random;
mod skip;
mod traces;
mod web;
mod workers;
