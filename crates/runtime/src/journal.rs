//! The record of a run: the kernel's journal, written by whoever makes the step it tells of.
//!
//! Off, it costs a branch where something would be recorded. On, each event is recorded under the
//! lock of the thing it is about (a region's, a channel's, the wheel's, the cancel bit of a task's
//! word), so that the events of one thing are in the order in which they happened. The journal's
//! own lock is taken last and held for one event, or a few that happen at once.

use asx_kernel::journal::{Event, EventKind, Journal, Subject, WhenFull};
use asx_kernel::lanes::{DecisionChain, Lane};

use crate::core::Core;
use crate::prim::{Mutex, lock_unseen};

/// How a dispatch came about, as a worker knows it.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// Who dispatches.
    pub worker: u16,
    /// The lane the task waited in.
    pub lane: Lane,
    /// The worker's cancel streak before.
    pub streak: u32,
    /// The cancel-streak limit in force.
    pub limit: u32,
    /// Cancel work over its limit, for want of anything else.
    pub fallback: bool,
}

/// What a runtime has recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The retained events, oldest first.
    pub events: Vec<Event>,
    /// The digest of every event ever recorded.
    pub digest: u64,
    /// How many events were recorded.
    pub recorded: u64,
    /// How many of them were not retained.
    pub lost: u64,
}

pub(crate) struct Recorder {
    /// Whether a full journal refuses new work.
    refuses: bool,
    book: Mutex<Book>,
}

struct Book {
    journal: Journal,
    chain: DecisionChain,
}

impl Recorder {
    pub(crate) fn new(capacity: usize, when_full: WhenFull) -> Recorder {
        let journal = Journal::new(capacity, when_full);
        let book = Mutex::new(Book { journal, chain: DecisionChain::default() });
        Recorder { refuses: when_full == WhenFull::Refuse, book }
    }

    fn is_refusing(&self) -> bool {
        self.refuses && lock_unseen(&self.book).journal.is_refusing()
    }
}

impl Core {
    /// Whether events are recorded.
    #[inline]
    pub fn recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// What was recorded so far, if anything is.
    pub fn recorded(&self) -> Option<Recorded> {
        let mut journal = lock_unseen(&self.recorder.as_ref()?.book).journal.clone();
        // What takes long is done outside the lock.
        let (digest, recorded, lost) = (journal.digest(), journal.recorded(), journal.lost());
        Some(Recorded { events: journal.take().into(), digest, recorded, lost })
    }

    /// How many events were recorded so far.
    #[inline]
    pub fn events(&self) -> u64 {
        self.recorder.as_ref().map_or(0, |recorder| lock_unseen(&recorder.book).journal.recorded())
    }

    /// Whether a full journal refuses new work.
    pub(crate) fn is_refusing(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::is_refusing)
    }

    /// Records an event, if events are recorded.
    #[inline]
    pub(crate) fn note(&self, subject: Subject, kind: EventKind) {
        if let Some(recorder) = &self.recorder {
            self.write(recorder, subject, [kind]);
        }
    }

    /// Records what happens to one thing at once.
    pub(crate) fn note_all(&self, subject: Subject, kinds: impl IntoIterator<Item = EventKind>) {
        if let Some(recorder) = &self.recorder {
            self.write(recorder, subject, kinds);
        }
    }

    #[cold]
    fn write(
        &self,
        recorder: &Recorder,
        subject: Subject,
        kinds: impl IntoIterator<Item = EventKind>,
    ) {
        let mut book = lock_unseen(&recorder.book);
        // The time is read under the lock, so that it never goes back from event to event.
        let now = self.host.now();
        kinds.into_iter().for_each(|kind| book.journal.record(now, subject, kind));
    }

    /// Records that a worker has chosen a task, and what that did to it.
    #[cold]
    pub(crate) fn note_dispatch(
        &self,
        subject: Subject,
        dispatch: Dispatch,
        moved: Option<EventKind>,
    ) {
        let Some(recorder) = &self.recorder else { return };
        let Dispatch { worker, lane, streak, limit, fallback } = dispatch;
        let book = &mut *lock_unseen(&recorder.book);
        book.chain.extend(lane, subject.task.unwrap_or(0), streak, limit);
        let kind = EventKind::Decision {
            worker: worker.into(),
            lane,
            decision_seq: book.chain.seq,
            decision_hash: book.chain.hash,
            cancel_streak: streak.into(),
            limit: limit.into(),
            fallback,
        };
        let now = self.host.now();
        [Some(kind), moved].into_iter().flatten().for_each(|kind| {
            book.journal.record(now, subject, kind);
        });
    }
}
