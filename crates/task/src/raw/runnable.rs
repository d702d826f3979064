//! Entries for the queues of hosts, the begin of a poll, and the end of a task.
//!
//! Begin and end are each one step of the state word. In a recorded run the step is signed, so that
//! the journal has the events of a task in the order of its steps, on any thread. A task with a
//! cancel request makes its steps under the lock of the cancel, and they are recorded under it.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx_journal::Dispatch;
use asx_kernel::cancel::Phase;
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::{Lane, Place, Priority, Token};
use asx_kernel::outcome::Severity;

use super::owner::TaskOwner;
use super::word::{Begin, Complete, Ended, RESERVE, Snapshot, Woken, unsigned};
use super::{Activity, BLOCKING, Header, TaskRef, poll_context};
use crate::footprint::{Object, Part};
use crate::raw::audit::Owner;

/// An entry for a queue: a task that is to be polled. It owns a reference (rule 1).
///
/// A task that is cancelled while it is in a queue has a second entry, in the cancel lane. The
/// entry that is taken first runs the task. The other one is dead by then, and is dropped.
#[must_use = "its task is not polled until the entry runs"]
pub struct Runnable(pub(super) TaskRef);

/// An entry is identified by the number of its task.
impl Token for Runnable {
    fn word(&self) -> u64 {
        self.id()
    }
}

impl Runnable {
    /// # Safety
    /// Rule 1: a reference was counted for this entry.
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Runnable {
        // SAFETY: the caller's promise.
        let (task, entry) = unsafe { (header.as_ref(), TaskRef::from_raw(header, Owner::Entry)) };
        task.books.enter(&task.word, Owner::Entry, 1);
        Runnable(entry)
    }

    /// Creates an entry that owns no reference, for a host to look at.
    ///
    /// # Safety
    /// Rule 1: the cell is alive as long as this.
    pub(crate) unsafe fn lent(header: NonNull<Header>) -> ManuallyDrop<Runnable> {
        // SAFETY: the caller's promise; it is not dropped.
        ManuallyDrop::new(Runnable(unsafe { TaskRef::from_raw(header, Owner::Entry) }))
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.0
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0.as_ptr()
    }

    /// Another reference to the task.
    pub(crate) fn to_ref(&self) -> TaskRef {
        self.0.clone()
    }

    /// Returns the task for its poll, which owns the reference from now on. The step that ends the
    /// poll gives it up.
    pub(crate) fn into_task(self) -> ManuallyDrop<TaskRef> {
        ManuallyDrop::new(self.0.given_to(Owner::Poll))
    }

    /// The only worker that may run the task, if it is pinned.
    #[inline]
    pub fn pin(&self) -> Option<u16> {
        Some(self.header().pin).filter(|pin| *pin < BLOCKING)
    }

    /// Whether the task is in the ready lane at the default priority.
    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub fn is_plain(&self) -> bool {
        self.place() == Place::ready(Priority::DEFAULT)
    }

    /// The place of the task in the lanes.
    #[inline]
    pub fn place(&self) -> Place {
        let header = self.header();
        let own = header.priority();
        if header.word.load().state().in_cancel_lane() {
            return Place::cancel(own.max(Priority(header.cleanup_priority.load(Relaxed))));
        }
        match header.deadline() {
            Some(deadline) => Place::timed(deadline),
            None => Place::ready(own),
        }
    }

    /// The number of the task.
    #[inline]
    pub fn id(&self) -> u64 {
        self.header().id()
    }

    /// The number of its region.
    pub fn region(&self) -> u64 {
        self.header().owner.id()
    }

    /// The name of the task, if it was given one.
    #[inline]
    pub fn name(&self) -> Option<Arc<str>> {
        self.header().attrs.as_ref()?.name.clone()
    }

    /// The name of its region among the [objects](crate::footprint) of the program, if the task is
    /// a finalizer of that region.
    #[cfg(feature = "lab")]
    #[inline]
    pub fn finalizes(&self) -> Option<u64> {
        let header = self.header();
        header.is_finalizer().then(|| header.owner.object().name())
    }

    /// Converts the entry to a pointer, for a queue of pointers.
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        self.0.into_raw().cast()
    }

    /// Converts a pointer back to an entry.
    ///
    /// # Safety
    /// The pointer came from [`Runnable::into_raw`] and is used once.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Runnable {
        // SAFETY: the caller's promise.
        Runnable(unsafe { TaskRef::from_raw(raw.cast(), Owner::Entry) })
    }
}

/// Wakes a task: adds an entry for it to a queue, unless it has one or is being polled.
#[cfg_attr(target_arch = "wasm32", inline(always))]
pub(crate) fn wake_task(task: &TaskRef) {
    Object::of_task(task.id(), Part::Turn).read_neutral();
    // Shortcut: `raw::poll_context::note_wake`: a task that wakes itself in a poll is queued when
    // the poll ends, and its state word changes only then.
    // Law: one entry per task (`raw::word::Word::wake`).
    // Equal: `wakes_make_one_entry_and_no_step` (every word: the wake and the end in one step),
    // `a_task_that_wakes_itself_has_one_entry_after_the_poll`.
    // Worth: 15.7 % of `yield_1k`.

    if !poll_context::note_wake(task.as_ptr()) {
        wake_from_outside(task);
    }
}

/// Wakes a task that this thread is not polling.
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn wake_from_outside(task: &TaskRef) {
    match task.word.wake() {
        // SAFETY: the wake has counted a reference for it.
        Woken::Enqueue => task.owner.schedule(unsafe { Runnable::new(task.as_ptr()) }),
        Woken::Pending => {
            #[cfg(feature = "lab")]
            task.owner.rewoken();
        }
        Woken::Stale => task.owner.stale_wake(task),
    }
}

/// How an entry was taken from its queue.
#[derive(Clone, Copy, Debug)]
pub struct RunContext {
    /// The entry waited in another lane than the cancel lane. It is dead if its task has been
    /// cancelled since.
    pub(crate) plain: bool,
    /// The dispatch to record.
    pub(crate) dispatch: Option<Dispatch>,
}

impl RunContext {
    /// It was not chosen from a lane: a job on a separate thread, or a strategy's choice across all
    /// lanes. The entry is live in any lane.
    pub const UNCHOSEN: RunContext = RunContext { plain: false, dispatch: None };

    /// The entry was taken from this lane.
    #[inline]
    pub fn from_lane(lane: Lane) -> RunContext {
        RunContext { plain: lane != Lane::Cancel, dispatch: None }
    }

    /// Adds the dispatch to record, if there is one.
    #[inline]
    pub fn recorded(self, dispatch: Option<Dispatch>) -> RunContext {
        RunContext { dispatch, ..self }
    }
}

/// An entry whose poll has begun: no other thread polls the task before [`run`](Begun::run). For
/// hosts that count polls.
#[must_use = "the task counts as being polled until `run`"]
pub struct Begun {
    pub(crate) entry: Runnable,
    /// The word before the poll.
    pub(crate) word: Snapshot,
    /// It stays on the thread that began it.
    _here: PhantomData<*const ()>,
}

impl Runnable {
    /// Begins a poll. Returns `None` if the entry is dead: the task has a newer entry, or has
    /// ended.
    ///
    /// A cancel of a queued task leaves a dead entry behind. A host does not count it as a
    /// dispatch.
    ///
    /// # Safety
    /// The calling thread is the worker the task is [pinned](Runnable::pin) to, if it is: such a
    /// task need not be `Send`.
    #[inline]
    pub unsafe fn begin(self, context: RunContext) -> Option<Begun> {
        let word = self.header().begin(context)?;
        Some(Begun { entry: self, word, _here: PhantomData })
    }

    /// Whether [`begin`](Runnable::begin) would begin a poll. Another thread may change that at any
    /// time.
    #[inline]
    pub fn is_live(&self, plain: bool) -> bool {
        let word = self.header().word.load();
        word.activity() == Activity::Runnable
            && !word.is_completed()
            && !(plain && word.state().in_cancel_lane())
    }

    /// Whether the entry is at this place of the cancel lane and a later request has moved the task
    /// to another place there. That request makes another entry.
    #[inline]
    pub fn is_outdated(&self, place: Place) -> bool {
        place.lane() == Lane::Cancel && self.place() != place
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("task", &self.entry.id()).finish_non_exhaustive()
    }
}

/// The end of a task.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) severity: Severity,
    /// It is ended by force.
    pub(crate) forced: bool,
    pub(crate) how: Complete,
}

impl Header {
    /// Begins a poll. Returns the word before, if the caller is to poll the task.
    #[inline(always)]
    pub(crate) fn begin(&self, context: RunContext) -> Option<Snapshot> {
        // A task with limits may have no poll left, so it does not start yet.
        let how = Begin { starts: self.attrs.is_none(), plain: context.plain, reserve: RESERVE };
        match context.dispatch {
            Some(dispatch) => {
                let noted = self.owner.note_begin(self, how, &dispatch);
                noted.or_else(|| self.begin_cancelled(how, Some(dispatch)))
            }
            None if self.owner.recording() => self.begin_cancelled(how, None),
            None => self.word.begin(how, unsigned),
        }
    }

    #[cold]
    fn begin_cancelled(&self, how: Begin, dispatch: Option<Dispatch>) -> Option<Snapshot> {
        self.with_cancel_on_record(|_, _| {
            let before = self.word.begin(how, unsigned)?;
            let moved = self.moved(before.state());
            dispatch.into_iter().for_each(|dispatch| self.note(dispatch.into()));
            moved.into_iter().for_each(|moved| self.note(moved));
            Some(before)
        })
    }

    /// Makes the step to Running that [`begin`](Header::begin) leaves out for a task with limits.
    #[cold]
    pub(crate) fn start(&self) {
        self.with_cancel_on_record(|_, _| {
            let from = self.word.load().state();
            self.word.start();
            self.note_moved(from);
        });
    }

    /// Completes the task, whose result is in the cell. Also returns the stamp of the recorded end,
    /// or 0.
    #[inline]
    pub(crate) fn complete(&self, end: End) -> (Ended, u64) {
        if !self.owner.recording() {
            return (self.word.complete(end.how, unsigned).unwrap_or_default(), 0);
        }
        let noted = if end.forced { None } else { self.owner.note_end(self, end) };
        noted.unwrap_or_else(|| self.complete_cancelled(end))
    }

    #[cold]
    fn complete_cancelled(&self, end: End) -> (Ended, u64) {
        self.with_cancel_on_record(|reason, allowance| {
            let from = self.word.load().state();
            let ended = self.word.complete(end.how, unsigned).unwrap_or_default();
            let witnessed = from.acknowledged() || end.forced;
            let witness = self.witness(reason, allowance, Phase::Completed, false);
            let events = [
                self.moved(from),
                witness.filter(|_| witnessed),
                Some(EventKind::TaskEnded { outcome: end.severity }),
            ];
            events.into_iter().flatten().for_each(|kind| self.note(kind));
            (ended, self.owner.clock())
        })
    }
}
