//! The record of a run: the kernel's journal, written concurrently by the threads that take the
//! steps.
//!
//! Without a recorder, each recording point costs one branch. With one, each thread appends its
//! events to its own buffer, in one to four words each and without a lock. Sequence numbers, the
//! decision chain and the digest are computed when the record is read, which merges the buffers.
//!
//! # Order
//! Every event has a stamp, and the record is ordered by stamp. The stamps form a Lamport clock
//! [Lamport 1978]:
//!
//! - The stamps of a thread increase.
//! - The stamps of an object with a lock increase: the lock holder records with a stamp later than
//!   the object's last one, and stores the new stamp in the object ([`Stamp`]).
//! - A task has no lock for its ordinary steps. Its state word holds the mark of the buffer that
//!   has its last event. A step of the word is signed in the same instruction, with a stamp later
//!   than any that the buffer of the previous mark has used. Each thread publishes a bound on its
//!   stamps before it uses them, several stamps at a time.
//!
//! An event that could depend on another one therefore follows it in the record. A stamp is never
//! less than the time at which it was given, as far as the thread knew the time, so the order also
//! agrees approximately with the time.
//!
//! A record that is read while tasks run may lack events that are being written at that moment.
//!
//! # Speed
//! The common events of a task have an inlined fast path. It is taken by a worker that has a writer
//! for this recorder and knows the time, if the event fits into one word and the task is not
//! cancelled. All other events take the slow path, which writes the same record.
//!
//! # Time
//! A worker with a real clock reads it at the beginning of a poll: at every poll, or less often if
//! the polls are short. The time it uses is then at most some microseconds old, provided that polls
//! take about as long as before.
//!
//! # Callers
//! This crate knows neither tasks nor hosts. The caller passes the ids of the subject and the
//! [`Clock`] to use. The signed steps of a task implement [`Step`].
//!
//! [Lamport 1978]: https://doi.org/10.1145/359545.359563

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

/// The source of the times in a record.
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> Time;
}

/// A worker's decision to poll a task, with the fields of [`EventKind::Decision`].
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    worker: u16,
    lane: Lane,
    fallback: bool,
    streak: u32,
    limit: u32,
    /// All fields in one word, if they fit.
    packed: Option<NonZero<u64>>,
}

impl Dispatch {
    /// Creates the decision of a worker for a task from `lane`, with the worker's cancel streak
    /// before the decision and the limit in force.
    #[inline]
    pub fn new(worker: u16, lane: Lane, streak: u32, limit: u32) -> Dispatch {
        let packed = slot::pack_dispatch(worker, lane, [streak, limit], false);
        Dispatch { worker, lane, fallback: false, streak, limit, packed }
    }

    /// Sets whether cancel work was dispatched above its limit because no other work was ready.
    #[inline]
    pub fn fallback(self, fallback: bool) -> Dispatch {
        let Dispatch { worker, lane, streak, limit, .. } = self;
        let packed = slot::pack_dispatch(worker, lane, [streak, limit], fallback);
        Dispatch { fallback, packed, ..self }
    }
}

/// The record of a runtime.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The retained events, oldest first.
    pub events: Vec<Event>,
    /// The digest of all recorded events. With a real clock: of the retained events.
    pub digest: u64,
    /// The number of recorded events.
    pub recorded: u64,
    /// The number of recorded events that were not retained.
    pub lost: u64,
    /// The names (addresses) of sockets, by the socket numbers in the events. Not part of the
    /// digest.
    pub sockets: Vec<(u64, String)>,
}

/// The last stamp given to an event of an object that has a lock: a Lamport clock [Lamport 1978].
///
/// [Lamport 1978]: https://doi.org/10.1145/359545.359563
#[derive(Debug, Default)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// Returns the last stamp.
    #[inline]
    pub fn last(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Orders later events of the object after `stamp`. The caller holds the object's lock.
    #[inline]
    pub fn raise(&self, stamp: u64) {
        if stamp > self.0.load(Relaxed) {
            self.0.store(stamp, Relaxed);
        }
    }
}

/// Leaves the position in the decision chain at zero; reading the record computes it.
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
