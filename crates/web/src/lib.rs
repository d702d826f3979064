//! asx in the browser.
//!
//! A page has one thread and an event loop that must not be kept busy. The runtime is driven by the
//! loop itself: a wake queues a microtask, the microtask runs a drain, and a drain that has had its
//! share (256 steps or 4 ms) passes on through a message, so that input and painting come first.
//!
//! * [`Runtime`]: what the page calls, and what people ask;
//! * [`HostCalls`]: what the runtime asks of the page, each behind a capability;
//! * [`Program`]: a body in a region of its own;
//! * [`HostEvent`]: what the scheduler did in which host turn;
//! * [`page`]: a page without a browser, under a clock that somebody moves;
//! * `adapter`, `drain`, `watch`: lanes and pump, one drain, those who wait from outside.
//!
//! Compiled for WebAssembly there is also `js`: real pages and workers, promises, abort signals,
//! `fetch` and events.

mod adapter;
mod calls;
mod drain;
mod error;
#[cfg(target_arch = "wasm32")]
pub mod js;
mod log;
pub mod page;
mod program;
mod ring;
mod runtime;
mod watch;

pub use asx_kernel::pump::{Capabilities, Capability, HostCall, PumpConfig};
pub use calls::HostCalls;
pub use error::WebError;
#[cfg(target_arch = "wasm32")]
pub use js::start;
pub use log::{Decided, HostEvent};
pub use program::{Ended, Program, Start};
pub use runtime::{Config, Handle, PumpInfo, Pumped, Runtime};
