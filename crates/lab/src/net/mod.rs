//! The network of the lab: what programs bind, connect, send and receive on, in memory.
//!
//! A program reaches it through the seam that all hosts have ([`asx_runtime::net`]), and so is the
//! same text as on threads. What it writes is queued at the sender. A *carrier* moves it on: each
//! direction of a connection has one, and so has each pair of a UDP socket and an address it sends
//! to. A carrier is a task for the strategy: it can run while it has something to deliver, one step
//! of it delivers the next segment, and what it touches is the two ends of its pipe. So random
//! walks, reductions, shrinking, tokens and replays know how to treat it, and deliveries on
//! different connections commute.
//!
//! ```text
//!  task --write--> queue --(step of the carrier)--> buffer --read--> task
//!                            | SYN, data, FIN or RST: one of them
//!                            | faults: asked of the strategy, if there may be any
//! ```
//!
//! Unix sockets have no carriers: the kernel moves what they are given at once, and so does this.
//! Carriers are no tasks of the program: what they have not delivered does not keep a run alive.
//!
//! Everything has a name that is the same in every run: a socket is named after the task that makes
//! it, and its ports are drawn from that name. Nothing here knows the host but by [`Driver`], nor
//! the time but by asking it.

mod faults;

#[cfg(target_family = "wasm")]
mod absent;
#[cfg(not(target_family = "wasm"))]
mod datagrams;
#[cfg(not(target_family = "wasm"))]
mod delivery;
#[cfg(not(target_family = "wasm"))]
mod failures;
#[cfg(not(target_family = "wasm"))]
mod listener;
#[cfg(not(target_family = "wasm"))]
mod mishap;
mod names;
#[cfg(not(target_family = "wasm"))]
mod network;
#[cfg(not(target_family = "wasm"))]
mod pipe;
#[cfg(not(target_family = "wasm"))]
mod ports;
#[cfg(not(target_family = "wasm"))]
mod settings;
#[cfg(not(target_family = "wasm"))]
mod socket;
#[cfg(not(target_family = "wasm"))]
mod stream;
#[cfg(not(target_family = "wasm"))]
mod waiters;

use asx_kernel::time::Time;

use crate::explore::TaskPath;

#[cfg(target_family = "wasm")]
pub(crate) use absent::SimNet;
pub use faults::Faults;
pub(crate) use names::Names;
#[cfg(not(target_family = "wasm"))]
pub(crate) use socket::SimNet;

/// Who runs carriers and answers what is free.
pub(crate) trait Driver: Send + Sync {
    /// A carrier can run.
    fn enable(&self, carrier: TaskPath);

    /// A carrier that could run can't.
    fn disable(&self, carrier: TaskPath);

    /// Which of `count` faults is made at a place; 0 is none.
    fn pick(&self, place: (u64, u64), count: usize) -> usize;

    /// A fault was made, in words. Without `shows`, a program must not notice.
    fn made(&self, fault: String, shows: bool);

    /// The time.
    fn time(&self) -> Time;

    /// The number of the task that is being polled; 0 if none is.
    fn current_task(&self) -> u64;
}

/// Whether a path is that of a carrier: those of tasks are odd.
#[inline]
pub(crate) const fn is_carrier(path: TaskPath) -> bool {
    path.0 & 1 == 0
}
