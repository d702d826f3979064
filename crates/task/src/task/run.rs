//! Running the entries of queues: what hosts call.

use std::fmt;
use std::marker::PhantomData;

use asx_journal::Dispatch;
use asx_kernel::lanes::{Lane, Place};

use crate::task::cell::{Activity, Runnable, Snapshot};

/// How an entry came to be taken from its queue.
#[derive(Clone, Copy, Debug)]
pub struct RunContext {
    /// It waited in another lane than that of cancels: one whose task was asked to stop meanwhile
    /// is not the one that counts.
    pub(crate) plain: bool,
    /// What the record says of it.
    pub(crate) dispatch: Option<Dispatch>,
}

impl RunContext {
    /// Nobody has chosen it from a lane: a job on its own thread, or a strategy's choice across all
    /// lanes. The entry counts wherever it waited.
    pub const UNCHOSEN: RunContext = RunContext { plain: false, dispatch: None };

    /// It was taken from this lane.
    #[inline]
    pub fn from_lane(lane: Lane) -> RunContext {
        RunContext { plain: lane != Lane::Cancel, dispatch: None }
    }

    /// The record, if there is one, says this of how it came about.
    #[inline]
    pub fn recorded(self, dispatch: Option<Dispatch>) -> RunContext {
        RunContext { dispatch, ..self }
    }
}

/// An entry whose poll has begun: the task is this thread's until [`run`](Begun::run). For hosts
/// that count what really runs.
#[must_use = "the task is being polled, as far as all others know"]
pub struct Begun {
    entry: Runnable,
    word: Snapshot,
    /// It stays on the thread that has begun it.
    _here: PhantomData<*const ()>,
}

impl Runnable {
    /// Polls the task once, if this entry is the one that counts and the task may be polled:
    /// whether it did.
    ///
    /// The record does not say how it came about: jobs are not chosen.
    ///
    /// # Panics
    /// If the task is [pinned](Runnable::pin) and the calling thread is not that worker.
    pub fn run(self) -> bool {
        let core = &self.header().region.core;
        let here = self.pin().is_none_or(|pin| core.here() == Some(pin));
        assert!(here, "a pinned task is polled by the worker it is pinned to");
        // SAFETY: looked at above.
        unsafe { self.begin(RunContext::UNCHOSEN) }.is_some_and(Begun::run)
    }

    /// Begins a poll. `None`: the entry was dead and is gone: another entry of the task counts, or
    /// the task has ended.
    ///
    /// A cancel of a queued task leaves such an entry behind. It is no dispatch: a host does not
    /// count it.
    ///
    /// # Safety
    /// The calling thread is the worker the task is [pinned](Runnable::pin) to, if it is: such a
    /// task need not be `Send`.
    #[inline]
    pub unsafe fn begin(self, context: RunContext) -> Option<Begun> {
        let word = self.header().begin(context)?;
        Some(Begun { entry: self, word, _here: PhantomData })
    }

    /// Whether the entry can still be run: it is not dead, as [`begin`](Runnable::begin) would
    /// find. Another thread may change that at any time.
    #[inline]
    pub fn is_live(&self, plain: bool) -> bool {
        let word = self.header().word.load();
        word.activity() == Activity::Runnable
            && !word.is_completed()
            && !(plain && word.state().in_cancel_lane())
    }

    /// Whether the entry was put at this place of the cancel lane and a later request has given the
    /// task another there: then that one counts, or is about to be made.
    #[inline]
    pub fn is_outdated(&self, place: Place) -> bool {
        place.lane() == Lane::Cancel && self.place() != place
    }
}

impl Begun {
    /// Polls the task: whether it did, since one that may not be polled any more ends instead, or
    /// goes to the cancel lane.
    #[cfg_attr(any(target_arch = "wasm32", feature = "lab"), inline(always))]
    pub fn run(self) -> bool {
        self.entry.poll_begun(self.word)
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("task", &self.entry.id()).finish_non_exhaustive()
    }
}
