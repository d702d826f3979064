//! Traces: recorded runs as files that can be read, checked and compared.
//!
//! A trace is a [`Header`] and a stream of [`Record`]s: the kernel's events in order, the free
//! choices that were made, names for the ids in events, host events, marked moments, and an [`End`]
//! with the number of events and their digest.
//!
//! ```text
//! journal -> Record -> Writer -> JSON lines | binary -> Reader -> Record -> verify, diff, report
//! ```
//!
//! Both codecs carry the same records and thus the same digest. [`Reader`] detects the codec by the
//! first bytes. Reading and writing need memory for one record (or one block), never for the whole
//! file. A malformed file yields an [`Error`] with its position, after all records before the
//! damage. `docs/TRACE.md` describes the formats.
//!
//! ```
//! use asx_trace::{Codec, Header, Label, Class, Reader, Record, Writer, verify};
//!
//! let mut writer = Writer::new(Vec::new(), Codec::Json, &Header::new("demo", "model"))?;
//! writer.write(&Label { class: Class::Task, number: 1, text: "feed".into() }.into())?;
//! let bytes = writer.finish()?;
//!
//! let mut reader = Reader::open(&bytes[..])?;
//! assert_eq!(reader.header().program, "demo");
//! let report = verify(&mut reader, false);
//! assert!(report.holds(), "{:?}", report.violations);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod binary;
mod check;
mod describe;
mod diff;
mod error;
mod fields;
mod input;
mod json;
mod kinds;
mod limits;
mod monitor;
mod reader;
mod record;
pub mod refine;
mod scheduler;
mod writer;

pub use check::{Checker, Report, Violation, verify};
pub use describe::socket_words;
pub use diff::{Comparison, Difference, Unread, diff};
pub use error::{Error, ErrorKind, Place};
pub use input::{Sink, Source};
pub use kinds::{EXHAUSTIBLE, kind_code, kind_of_fields};
pub use limits::Limits;
pub use monitor::{Mismatch, Monitor, MonitorError};
pub use reader::Reader;
pub use record::{Choice, Class, End, Header, HostEvent, Label, Mark, Record, VERSION, Value};
pub use scheduler::{MANDATORY, SCHEDULER_KINDS, SchedulerKind};
pub use writer::{Codec, Writer, json_line};
