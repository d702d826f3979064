//! Reading and writing: errors, traits, buffers, frames, copies.
//!
//! [`Read`] and [`Write`] are what streams have in common. They differ from those of std in that
//! each operation takes a context and waits; and from the `AsyncRead` and `AsyncWrite` of others in
//! that a cancel is an [`Error`] of its own and that it is written down what is lost by one:
//! nothing by a [`read`](Read::read), what [`WriteAllError`] tells by a
//! [`write_all`](Write::write_all).

mod buf_reader;
mod buf_writer;
mod copy;
mod error;
mod frame;
mod lossless;
mod traits;

pub use buf_reader::{BufReader, Lines};
pub use buf_writer::BufWriter;
pub use copy::{copy, copy_bidirectional};
pub use error::{Error, Result, WriteAllError};
pub use frame::{FrameError, FramePermit, FrameReader, FrameWriter};
pub use lossless::Lossless;
pub use traits::{Duplex, Read, Write};
