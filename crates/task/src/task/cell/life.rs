//! The begin of a task's polls, and its end: the one way through a task's life.
//!
//! Each is one step of the word. Where the run is recorded, the step is signed: the record has the
//! events of a task in the order of its steps, whoever makes them. A task that was asked to stop
//! makes its steps under the lock of the cancel, which is on record with them.

use asx_journal::Dispatch;
use asx_kernel::cancel::Phase;
use asx_kernel::journal::EventKind;
use asx_kernel::outcome::Severity;

use super::Header;
use super::word::{Begin, Complete, Ended, RESERVE, Snapshot, unsigned};
use crate::task::run::RunContext;

/// How a task ends.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) severity: Severity,
    /// Not by itself.
    pub(crate) forced: bool,
    pub(crate) how: Complete,
}

impl Header {
    /// A poll begins: the word as it was, if the task is the caller's to poll.
    #[inline(always)]
    pub(crate) fn begin(&self, context: RunContext) -> Option<Snapshot> {
        // What is bounded may have no poll left: it is not running yet.
        let how = Begin { starts: self.attrs.is_none(), plain: context.plain, reserve: RESERVE };
        match context.dispatch {
            Some(dispatch) => {
                let noted = self.region.core.note_begin(self, how, &dispatch);
                noted.or_else(|| self.begin_cancelled(how, Some(dispatch)))
            }
            None if self.region.core.recording() => self.begin_cancelled(how, None),
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

    /// The poll that has begun goes on: the step that [`begin`](Header::begin) has not made.
    #[cold]
    pub(crate) fn start(&self) {
        self.with_cancel_on_record(|_, _| {
            let from = self.word.load().state();
            self.word.start();
            self.note_moved(from);
        });
    }

    /// Nothing is left to run, and the result is in the cell. Also the stamp under which it is
    /// recorded, if it is.
    #[inline]
    pub(crate) fn complete(&self, end: End) -> (Ended, u64) {
        if !self.region.core.recording() {
            return (self.word.complete(end.how, unsigned).unwrap_or_default(), 0);
        }
        let noted = if end.forced { None } else { self.region.core.note_end(self, end) };
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
            (ended, self.region.core.clock())
        })
    }
}
