//! asx on threads.
//!
//! * [`Runtime`]: what its owner sees;
//! * `worker`: what a thread runs next, and what it does when there is nothing;
//! * `queue`, [`ring`]: a worker's run queue, from which the others steal;
//! * [`idle`]: who sleeps, and who must be woken when there is work;
//! * [`parker`]: how one thread sleeps.

pub mod idle;
mod metrics;
pub mod parker;
mod prim;
mod queue;
pub mod ring;
mod runtime;
mod shared;
mod worker;

pub use metrics::{Metrics, WorkerMetrics};
pub use runtime::{Builder, Handle, Runtime};
