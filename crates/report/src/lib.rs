//! Traces as something to look at.
//!
//! ```text
//! Reader -> Run -> Story -> html      one page that needs nothing else
//!                        -> perfetto  events for a trace viewer
//! ```
//!
//! A [`Run`] is a trace that was read, with the verdict of every law over it. The story is what its
//! events add up to: which task was in which state and when, what was a poll, what woke whom. Both
//! outputs are texts made of these alone, so the same trace always gives the same bytes.
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
