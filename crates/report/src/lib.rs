//! Reports on traces: an HTML page, and an export for trace viewers.
//!
//! ```text
//! Reader -> Run -> Story -> html      one self-contained page
//!                        -> perfetto  events for a trace viewer
//! ```
//!
//! A [`Run`] is a trace in memory, with the result of checking it against every law. The story is
//! derived from its events: the states of each task over time, polls, and the causes of wakes. Both
//! outputs are functions of these alone, so equal traces give equal bytes.
//!
//! ```
//! use asx_report::{Axis, Run, html, perfetto};
//! use asx_trace::{Codec, Header, Reader, Writer};
//!
//! let bytes = Writer::new(Vec::new(), Codec::Json, &Header::new("demo", "model"))?.finish()?;
//! let run = Run::read(Reader::open(&bytes[..])?, 1000)?;
//! assert!(html(&run).starts_with("<!doctype html>"));
//! assert!(perfetto(&run, Axis::Order).starts_with("{"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cause;
mod json;
pub mod notes;
mod page;
mod perfetto;
mod run;
mod story;

pub use cause::{Cause, TEARDOWN};
pub use page::{PAGE_EVENTS, html};
pub use perfetto::{Axis, perfetto};
pub use run::{Run, TooLong};
