//! Signals of the operating system: Ctrl-C, a request to terminate, and others.
//!
//! A [`Signal`] receives every signal of its kind from its creation on. Signals that arrive before
//! the next [`recv`](Signal::recv) are reported as one. In the lab no signal ever arrives.
//!
//! On Unix, [`SignalKind`] has the usual signals. On Windows it has the two keys of the console,
//! `INTERRUPT` (Ctrl-C) and `BREAK` (Ctrl-Break).
//!
//! ```no_run
//! use asx::prelude::*;
//! use asx::signal::{self, SignalKind};
//! use asx::io;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> io::Result<()> {
//!     cx.scope(async |s| {
//!         s.task("work").spawn(async |cx: Cx| {
//!             while !cx.is_stopping() {
//!                 cx.sleep(1.secs()).await?;
//!             }
//!             Ok(())
//!         });
//!         let mut interrupt = signal::listen(cx, SignalKind::INTERRUPT)?;
//!         interrupt.recv(cx).await?;
//!         s.stop_within(10.secs());
//!         Ok(())
//!     })
//!     .await
//! }
//! ```

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use asx_runtime::Cx;

use crate::io;
#[cfg(feature = "stream")]
pub use sys::Signals;
pub use sys::{Recv, Signal, SignalKind, listen};
#[cfg(unix)]
use unix as sys;
#[cfg(windows)]
use windows as sys;

/// Waits for Ctrl-C once: `SIGINT` on Unix, the console event on Windows.
///
/// Signals that arrive before the first poll are missed. Create a [`Signal`] with [`listen`] to
/// receive those as well.
///
/// # Errors
/// As [`listen`], or the cancellation.
///
/// # Cancel safety
/// Not cancel-safe: a signal that arrives between two calls is missed.
pub async fn ctrl_c(cx: &Cx) -> io::Result<()> {
    listen(cx, SignalKind::INTERRUPT)?.recv(cx).await
}
