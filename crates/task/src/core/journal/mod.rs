//! What tasks, regions and timers have to do with the record: the steps that are signed, and the
//! recorder of a runtime, if it has one.
//!
//! Off, it costs a branch where something would be recorded. The record itself is `asx-journal`'s,
//! which knows nothing of cells and hosts.

#[cfg(all(test, not(loom)))]
mod tests;

use asx_journal::{Clock, Dispatch, Recorded, Recorder, Signed, Stamp, Step};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::core::Core;
use crate::raw::{Begin, Complete, End, Ended, Header, Snapshot};

impl Clock for Core {
    #[inline]
    fn now(&self) -> Time {
        self.host.now()
    }
}

impl Signed for Snapshot {
    #[inline(always)]
    fn state(self) -> TaskState {
        self.state()
    }

    #[inline(always)]
    fn is_running(self) -> bool {
        self.is_running()
    }

    #[inline(always)]
    fn is_plain(self) -> bool {
        self.is_plain()
    }

    #[inline(always)]
    fn mark(self) -> u16 {
        self.mark()
    }

    #[inline(always)]
    fn with_mark(self, mark: u16) -> Snapshot {
        self.with_mark(mark)
    }
}

/// A poll of a task begins.
struct Begins<'a>(&'a Header, Begin);

// SAFETY: a step of the word is an atomic operation and what is worked out for it.
unsafe impl Step for Begins<'_> {
    type Word = Snapshot;
    type Made = Snapshot;

    #[inline(always)]
    fn ids(&self) -> (u64, u64) {
        self.0.ids()
    }

    #[inline(always)]
    fn make(&self, sign: impl FnMut(Snapshot, Snapshot) -> Option<Snapshot>) -> Option<Snapshot> {
        self.0.word.begin(self.1, sign)
    }
}

/// A task ends.
struct Ends<'a>(&'a Header, Complete);

// SAFETY: as above.
unsafe impl Step for Ends<'_> {
    type Word = Snapshot;
    type Made = Ended;

    #[inline(always)]
    fn ids(&self) -> (u64, u64) {
        self.0.ids()
    }

    #[inline(always)]
    fn make(&self, sign: impl FnMut(Snapshot, Snapshot) -> Option<Snapshot>) -> Option<Ended> {
        self.0.word.complete(self.1, sign)
    }
}

impl Core {
    /// The recorder, if events are recorded.
    #[inline(always)]
    fn recorder(&self) -> Option<&Recorder> {
        if asx_journal::may_record() { self.recorder.as_ref() } else { None }
    }

    /// Whether events are recorded.
    #[inline]
    pub fn recording(&self) -> bool {
        self.recorder().is_some()
    }

    /// What was recorded so far, if anything is. Exact when nothing is running.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorder().map(Recorder::read)
    }

    /// How many events were recorded so far.
    pub fn events(&self) -> u64 {
        self.recorder().map_or(0, Recorder::events)
    }

    /// The calling thread has nothing to poll: what it records before the next dispatch is at a
    /// time of its own.
    pub fn rest(&self) {
        if let Some(recorder) = self.recorder() {
            recorder.rest();
        }
    }

    /// Whether a full journal refuses new work.
    #[inline]
    pub(crate) fn is_refusing(&self) -> bool {
        self.recorder().is_some_and(Recorder::is_refusing)
    }

    /// Records an event that is in order with those of this thread, if events are recorded.
    #[inline]
    pub(crate) fn note(&self, subject: Subject, kind: EventKind) {
        // What no other sees is in order with everything.
        self.note_of(&Stamp::default(), subject, kind);
    }

    /// Records an event of a thing whose lock the caller has.
    #[inline]
    pub(crate) fn note_of(&self, thing: &Stamp, subject: Subject, kind: EventKind) {
        if let Some(recorder) = self.recorder() {
            recorder.note(self, thing, subject, kind);
        }
    }

    /// What a socket is called on the record, if there is one.
    #[cfg(not(any(loom, target_family = "wasm")))]
    pub(crate) fn name_socket(&self, number: u64, name: String) {
        if let Some(recorder) = self.recorder() {
            recorder.name_socket(number, name);
        }
    }

    /// Records that a task was spawned, in a region whose lock the caller has.
    #[inline]
    pub(crate) fn note_spawned(&self, thing: &Stamp, task: &Header) {
        if let Some(recorder) = self.recorder() {
            let how = (task.priority().0, task.is_finalizer());
            let mark = task.word.load().mark();
            recorder.spawned(self, thing, task.ids(), how, mark, |mark| task.word.sign(mark));
        }
    }

    /// Records an event of a timer, under the lock of timers. `owner`: the task and the region it
    /// is of, each one higher, or else 0.
    #[inline(always)]
    pub(crate) fn note_timer(&self, owner: (u64, u64), timer: TimerHandle, kind: EventKind) {
        if let Some(recorder) = self.recorder() {
            recorder.timer(self, &self.timers.stamp, owner, timer.generation, kind);
        }
    }

    /// What is recorded of a thing later comes after what this thread has recorded, and the other
    /// way round. The caller has the thing's lock.
    #[inline]
    pub(crate) fn touch(&self, thing: &Stamp) {
        if let Some(recorder) = self.recorder() {
            recorder.touch(thing);
        }
    }

    /// What is recorded of a thing later comes after what was recorded under these marks. The
    /// caller has the thing's lock.
    #[inline]
    pub(crate) fn touch_after(&self, thing: &Stamp, marks: impl Iterator<Item = u16>) {
        if let Some(recorder) = self.recorder() {
            recorder.touch_after(thing, marks);
        }
    }

    /// What this thread records comes after what was recorded of a thing.
    #[inline]
    pub(crate) fn see(&self, thing: &Stamp) {
        if let Some(recorder) = self.recorder() {
            recorder.see(thing);
        }
    }

    /// The last stamp of the calling thread.
    pub(crate) fn clock(&self) -> u64 {
        self.recorder().map_or(0, Recorder::clock)
    }

    /// The mark of the calling thread; 0 if nothing is recorded.
    #[inline]
    pub(crate) fn mark(&self) -> u16 {
        if let Some(recorder) = self.recorder() { recorder.mark() } else { 0 }
    }

    /// The mark of the calling thread, for who may have [seen](Core::see_mark) another without
    /// recording anything: what comes after this one comes after that one too.
    pub(crate) fn mark_of_seen(&self) -> u16 {
        self.recorder().map_or(0, Recorder::mark_of_seen)
    }

    /// What this thread records comes after what was recorded by who left this mark.
    pub(crate) fn see_mark(&self, mark: u16) {
        if let Some(recorder) = self.recorder() {
            recorder.see_mark(mark);
        }
    }

    /// Begins a poll, on the record: the word before. `None` if the task is not to be polled, or
    /// the lock of its cancel is needed for it; then nothing has happened.
    #[inline(always)]
    pub(crate) fn note_begin(
        &self,
        task: &Header,
        how: Begin,
        dispatch: &Dispatch,
    ) -> Option<Snapshot> {
        self.recorder()?.begin(self, &Begins(task, how), dispatch)
    }

    /// Completes a task, on the record, as [`note_begin`](Core::note_begin): also the stamp.
    #[inline(always)]
    pub(crate) fn note_end(&self, task: &Header, end: End) -> Option<(Ended, u64)> {
        self.recorder()?.end(self, &Ends(task, end.how), end.severity)
    }
}
