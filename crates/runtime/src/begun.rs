//! Entries whose poll has begun: for hosts that count what really runs.

use std::marker::PhantomData;

use asx_kernel::lanes::{Lane, Place};

use crate::cell::{Activity, RESERVE, Runnable, Snapshot};
use crate::journal::Dispatch;

/// An entry whose poll has begun: the task is this thread's until [`run`](Begun::run).
#[must_use = "the task is being polled, as far as all others know"]
pub struct Begun {
    entry: Runnable,
    word: Snapshot,
    /// It stays on the thread that has begun it.
    _here: PhantomData<*const ()>,
}

impl Runnable {
    /// Begins the poll of [`run_from`](Runnable::run_from). `None`: the entry was dead and is gone:
    /// another entry of the task counts, or the task has ended.
    ///
    /// A cancel of a queued task leaves such an entry behind. It is no dispatch: a host does not
    /// count it.
    ///
    /// # Safety
    /// As [`run_from`](Runnable::run_from).
    #[inline]
    pub unsafe fn begin_from(self, plain: bool) -> Option<Begun> {
        let header = self.header();
        // What is bounded may have no poll left: it is not running yet.
        let begun = header.word.begin_with(header.extra.is_none(), plain, RESERVE);
        self.begun(begun)
    }

    /// [`begin_from`](Runnable::begin_from), and has the record say how it came about.
    ///
    /// # Safety
    /// As [`run_from`](Runnable::run_from).
    #[inline]
    pub unsafe fn begin_recorded(self, plain: bool, dispatch: Dispatch) -> Option<Begun> {
        let header = self.header();
        match header.region.core.begin_quickly(header, &dispatch) {
            None => self.begin_recorded_slowly(plain, dispatch),
            begun => self.begun(begun),
        }
    }

    #[inline(never)]
    fn begin_recorded_slowly(self, plain: bool, dispatch: Dispatch) -> Option<Begun> {
        let header = self.header();
        let looked = header.region.core.begin_after_look(header, &dispatch);
        let begun =
            looked.or_else(|| header.begin_on_record(header.extra.is_none(), plain, dispatch));
        self.begun(begun)
    }

    /// Whether the entry can still be run: it is not dead, as [`begin_from`](Runnable::begin_from)
    /// would find. Another thread may change that at any time.
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

    #[inline]
    fn begun(self, word: Option<Snapshot>) -> Option<Begun> {
        word.map(|word| Begun { entry: self, word, _here: PhantomData })
    }
}

impl Begun {
    /// Polls the task: whether it did, since one that may not be polled any more ends instead, or
    /// goes to the cancel lane.
    #[inline]
    pub fn run(self) -> bool {
        self.entry.run_begun(Some(self.word))
    }
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").field("task", &self.entry.id()).finish_non_exhaustive()
    }
}
