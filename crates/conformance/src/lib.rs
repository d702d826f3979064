//! Scenarios as data, and one interpreter for every host.
//!
//! A scenario is a TOML file (`docs/SCENARIOS.md`). [`parse_str`] turns it into a [`Scenario`] or
//! into a list of everything that is wrong; [`run_scenario`] runs it on a [`Host`] under each of
//! its seeds and reports what did not hold; [`corpus()`] is the built-in collection.
//!
//! ```text
//! file -> parse -> Scenario -> run: op by op -> Host::apply -> Reply -> compare -> Report
//!                                    task polled -> BodyRunner -> TaskOps::poll_op -> Reply
//! ```

mod api;
pub mod body;
mod book;
#[cfg(feature = "hosts")]
pub mod c;
pub mod corpus;
mod ends;
pub mod events;
pub mod host;
mod interpreter;
pub mod laws;
pub mod model;
pub mod names;
#[cfg(feature = "hosts")]
pub mod native;
#[cfg(feature = "hosts")]
pub mod parity;
pub mod parse;
pub mod pattern;
pub mod run;
pub mod scenario;
pub mod skip;
mod snapshot;
pub mod value;

pub use body::{BodyEnd, BodyRunner, TaskOps};
#[cfg(feature = "hosts")]
pub use c::C;
pub use corpus::{Fixture, corpus};
pub use ends::Ends;
pub use host::{Failure, Host, Record, Reply};
pub use model::Model;
#[cfg(feature = "hosts")]
pub use native::Native;
pub use parse::{SchemaError, parse_str};
pub use run::{
    Replayed, Report, SeedRun, run_against, run_once, run_scenario, run_seeds, shell_word,
};
pub use scenario::Scenario;
pub use skip::{Expressible, SkippedLine, expressible, without_ops};
