//! Reading and writing: errors, traits, buffers, frames, copies.
//!
//! [`Read`] and [`Write`] are the traits of streams. Unlike the traits in `std`, each operation
//! takes a context and may wait. Unlike `AsyncRead` and `AsyncWrite` of other libraries, a
//! cancellation is a variant of [`Error`], and each operation documents its cancel safety: a
//! cancelled [`read`](Read::read) loses nothing, and a cancelled
//! [`write_all`](Write::write_all) returns the number of written bytes in [`WriteAllError`].

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
