//! The record of a run: the kernel's journal, written by whoever makes the step it tells of.
//!
//! Off, it costs a branch where something would be recorded. On, each thread writes its events into
//! a buffer of its own, in a word or a few each and without a lock; numbers, the chain of decisions
//! and the digest are worked out when somebody asks for the record, which merges the buffers.
//!
//! # Order
//! Every event has a stamp, and the order of the record is that of the stamps. A thread's stamps
//! grow. So do those of a thing: whoever has its lock and records something about it gives a stamp
//! later than the last one given there, and leaves it there ([`Stamp`]). A task has no lock for its
//! ordinary steps: its word has the mark of the buffer in which its last event is. A step of the
//! word is signed in the same instruction, with a stamp that is later than any given so far by who
//! signed before; stamps are published before they are used, some at a time. So whatever one event
//! could know of another comes after it on the record. A stamp is never less than the time it was
//! given at, as far as the thread knew, so that the order is also about that of time.
//!
//! A record that is read while tasks run may lack what is being written just then.
//!
//! # Speed
//! What most tasks do is written by a worker in a few lines, if it has a place here, knows the time
//! and one word will do; of a task also only if nobody has cancelled it. Everything else takes the
//! long way, which writes the same.
//!
//! # Time
//! A worker looks at a clock that passes by itself when it begins a poll: at every one, or as often
//! as keeps what it knows no older than some microseconds, if polls take about as long as before.

//!
//! # Who records
//! This crate knows no tasks and no hosts. Whoever makes a step gives the numbers of what it is
//! about, and the [`Clock`] it goes by; a task whose word is signed gives the [`Step`].

mod buffer;
mod config;
mod delta;
mod fold;
mod prim;
mod recorder;
mod slot;
mod step;
#[cfg(all(test, not(loom)))]
mod tests;
mod thread_writer;

use std::num::NonZero;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Lane;
use asx_kernel::time::Time;

pub use config::Recording;
#[doc(hidden)]
pub use config::may_record;
pub use recorder::Recorder;
pub use step::{Signed, Step};

/// What the time of a record is told by.
pub trait Clock {
    /// The time.
    fn now(&self) -> Time;
}

/// How a dispatch came about, as a worker knows it.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    worker: u16,
    lane: Lane,
    fallback: bool,
    streak: u32,
    limit: u32,
    /// All of that in one word, if there is room.
    packed: Option<NonZero<u64>>,
}

impl Dispatch {
    /// A dispatch by this worker from this lane, with the worker's cancel streak before it and the
    /// limit in force.
    #[inline]
    pub fn new(worker: u16, lane: Lane, streak: u32, limit: u32) -> Dispatch {
        let packed = slot::pack_dispatch(worker, lane, [streak, limit], false);
        Dispatch { worker, lane, fallback: false, streak, limit, packed }
    }

    /// Whether it is cancel work over its limit, for want of anything else.
    #[inline]
    pub fn fallback(self, fallback: bool) -> Dispatch {
        let Dispatch { worker, lane, streak, limit, .. } = self;
        let packed = slot::pack_dispatch(worker, lane, [streak, limit], fallback);
        Dispatch { fallback, packed, ..self }
    }
}

/// What a runtime has recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The retained events, oldest first.
    pub events: Vec<Event>,
    /// The digest of every event ever recorded; where the time passes by itself, of those retained.
    pub digest: u64,
    /// How many events were recorded.
    pub recorded: u64,
    /// How many of them were not retained.
    pub lost: u64,
    /// What sockets are called, by the numbers that events have for them: their addresses. Not in
    /// the digest.
    pub sockets: Vec<(u64, String)>,
}

/// The last stamp given to an event of a thing that has a lock: a Lamport clock [Lamport 1978].
#[derive(Debug, Default)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// The last stamp.
    #[inline]
    pub fn last(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// What is recorded of the thing later comes after this stamp. The caller has its lock.
    #[inline]
    pub fn raise(&self, stamp: u64) {
        if stamp > self.0.load(Relaxed) {
            self.0.store(stamp, Relaxed);
        }
    }
}

/// What decisions add up to is left open.
impl From<Dispatch> for EventKind {
    fn from(dispatch: Dispatch) -> EventKind {
        let Dispatch { worker, lane, streak, limit, fallback, .. } = dispatch;
        EventKind::Decision {
            worker: worker.into(),
            lane,
            decision_seq: 0,
            decision_hash: 0,
            cancel_streak: streak.into(),
            limit: limit.into(),
            fallback,
        }
    }
}
