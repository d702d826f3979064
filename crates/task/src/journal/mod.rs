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

mod buffer;
mod config;
mod delta;
mod fold;
mod recorder;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod thread_writer;

use std::num::NonZero;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::task::TaskState;
use asx_kernel::wheel::TimerHandle;

use crate::cell::{Begin, End, Ended, Header, Snapshot};
use crate::core::Core;
pub use config::Recording;
pub(crate) use recorder::Recorder;
use slot::PackedEvent;
use thread_writer::ThreadWriter;

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
}

/// The last stamp given to an event of a thing that has a lock.
#[derive(Default)]
pub(crate) struct Stamp(AtomicU64);

impl Stamp {
    /// The last stamp.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// What is recorded of the thing later comes after this stamp. The caller has its lock.
    #[inline]
    pub(crate) fn raise(&self, stamp: u64) {
        if stamp > self.0.load(Relaxed) {
            self.0.store(stamp, Relaxed);
        }
    }
}

impl Core {
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
            recorder.with(ThreadWriter::rest);
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
            // Where the kind is known, so is most of what is to be told of it.
            match PackedEvent::new(subject, kind) {
                Some(told) if self.write_told(recorder, thing, &told) => {}
                told => self.write_slowly(recorder, thing, told.is_some(), &(subject, kind)),
            }
        }
    }

    /// Gives an event its stamp, and writes it down if there is room for few words.
    #[inline(never)]
    fn write_told(&self, recorder: &Recorder, thing: &Stamp, told: &PackedEvent) -> bool {
        recorder.with(|here| {
            here.look(&self.host);
            here.stamp_of(thing);
            here.write_told(recorder, told)
        })
    }

    /// Writes an event down that is not told in few words; it may have its stamp.
    #[cold]
    #[inline(never)]
    fn write_slowly(
        &self,
        recorder: &Recorder,
        thing: &Stamp,
        stamped: bool,
        (subject, kind): &(Subject, EventKind),
    ) {
        recorder.with(|here| {
            if !stamped {
                here.look(&self.host);
                here.stamp_of(thing);
            }
            here.write_slowly(recorder, *subject, [Some(*kind), None]);
        });
    }

    /// Records that a task was spawned, in a region whose lock the caller has.
    #[inline]
    pub(crate) fn note_spawned(&self, thing: &Stamp, task: &Header) {
        if let Some(recorder) = self.recorder() {
            self.write_spawned(recorder, thing, task);
        }
    }

    #[inline(always)]
    fn write_spawned(&self, recorder: &Recorder, thing: &Stamp, task: &Header) {
        let fields = slot::pack_spawned(task.priority().0, task.is_finalizer());
        let written = recorder.quickly(|here| {
            if task.word.load().mark() != here.mark() {
                return None;
            }
            here.stamp_of(thing);
            here.draft(slot::SPAWNED, task.ids(), fields)?;
            here.keep(1);
            Some(())
        });
        if written.is_none() {
            self.write_spawned_slowly(recorder, thing, task);
        }
    }

    #[inline(never)]
    fn write_spawned_slowly(&self, recorder: &Recorder, thing: &Stamp, task: &Header) {
        recorder.with(|here| {
            // As a rule it has had that mark since it was made. Nobody else knows the task, so that
            // nothing else is recorded of it.
            task.word.sign(here.mark());
            here.look(&self.host);
            here.stamp_of(thing);
            let priority = task.priority().0;
            let finalizer = task.is_finalizer();
            let (id, region) = task.ids();
            let told = PackedEvent::spawned(id, region, priority, finalizer);
            let kind = EventKind::TaskSpawned { priority, finalizer };
            here.write(recorder, told, task.subject(), [Some(kind), None]);
        });
    }

    /// Records an event of a timer, under the lock of timers. `owner`: the task and the region it
    /// is of, each one higher, or else 0.
    #[inline(always)]
    pub(crate) fn note_timer(&self, owner: (u64, u64), timer: TimerHandle, kind: EventKind) {
        if self.recording() && !self.write_timer(owner, timer.generation, slot::of_timer(kind)) {
            self.note_timer_slowly(owner, timer.generation, &kind);
        }
    }

    /// Records an event of a timer if that is done in a few lines.
    #[inline(never)]
    fn write_timer(&self, owner: (u64, u64), timer: u64, (code, fields): (u64, u64)) -> bool {
        let written = self.recorder().and_then(|recorder| {
            recorder.quickly(|here| {
                here.stamp_of(&self.timers.stamp);
                here.tell_of(code, owner, timer, fields)
            })
        });
        written.is_some()
    }

    #[inline(never)]
    fn note_timer_slowly(&self, (task, region): (u64, u64), timer: u64, kind: &EventKind) {
        let task = task.checked_sub(1);
        let region = region.checked_sub(1);
        let subject = Subject { task, region, timer: Some(timer), channel: None };
        self.note_of(&self.timers.stamp, subject, *kind);
    }

    /// What is recorded of a thing later comes after what this thread has recorded, and the other
    /// way round. The caller has the thing's lock.
    #[inline]
    pub(crate) fn touch(&self, thing: &Stamp) {
        if let Some(recorder) = self.recorder() {
            recorder.with(|here| {
                here.see(thing);
                here.show(thing);
            });
        }
    }

    /// What is recorded of a thing later comes after what was recorded under these marks. The
    /// caller has the thing's lock.
    #[inline]
    pub(crate) fn touch_after(&self, thing: &Stamp, marks: impl Iterator<Item = u16>) {
        if let Some(recorder) = self.recorder() {
            recorder.with(|here| {
                marks.for_each(|mark| here.see_mark(recorder, mark));
                thing.raise(here.clock());
            });
        }
    }

    /// What this thread records comes after what was recorded of a thing.
    #[inline]
    pub(crate) fn see(&self, thing: &Stamp) {
        if let Some(recorder) = self.recorder() {
            recorder.with(|here| here.see(thing));
        }
    }

    /// The last stamp of the calling thread.
    pub(crate) fn clock(&self) -> u64 {
        self.recorder().map_or(0, |recorder| recorder.with(|here| here.clock()))
    }

    /// The mark of the calling thread; 0 if nothing is recorded.
    #[inline]
    pub(crate) fn mark(&self) -> u16 {
        if let Some(recorder) = self.recorder() { recorder.mark() } else { 0 }
    }

    /// The mark of the calling thread, for who may have [seen](Core::see_mark) another without
    /// recording anything: what comes after this one comes after that one too.
    pub(crate) fn mark_of_seen(&self) -> u16 {
        self.recorder().map_or(0, |recorder| recorder.with(|here| here.mark_of_seen()))
    }

    /// What this thread records comes after what was recorded by who left this mark.
    pub(crate) fn see_mark(&self, mark: u16) {
        if let Some(recorder) = self.recorder() {
            recorder.with(|here| here.see_mark(recorder, mark));
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
        let recorder = self.recorder()?;
        let begun = recorder.quickly(|here| {
            here.goes_on()?;
            here.begin(recorder, task, how, dispatch)
        });
        begun.or_else(|| self.note_begin_slowly(recorder, task, how, dispatch))
    }

    #[inline(never)]
    fn note_begin_slowly(
        &self,
        recorder: &Recorder,
        task: &Header,
        how: Begin,
        dispatch: &Dispatch,
    ) -> Option<Snapshot> {
        // Hosts may do anything to tell the time: not while a place is lent.
        let looked = recorder.with(|here| here.look_if_due(recorder, &self.host));
        let begun =
            |here: &mut ThreadWriter| looked.then(|| here.begin(recorder, task, how, dispatch))?;
        if let Some(before) = recorder.quickly(begun) {
            return Some(before);
        }
        recorder.with(|here| {
            here.begin_poll(recorder, &self.host);
            let mut to = TaskState::Created;
            let before = task.word.begin(how, |before, after| {
                to = after.state();
                before.is_plain().then(|| here.sign(recorder, before, after))
            })?;
            let (id, region) = task.ids();
            let from = before.state();
            let told = PackedEvent::dispatched(id, region, dispatch, from, to);
            let kinds = [Some(EventKind::from(*dispatch)), moved(from, to)];
            here.write(recorder, told, task.subject(), kinds);
            Some(before)
        })
    }

    /// Completes a task, on the record, as [`note_begin`](Core::note_begin): also the stamp.
    #[inline(always)]
    pub(crate) fn note_end(&self, task: &Header, end: End) -> Option<(Ended, u64)> {
        let recorder = self.recorder()?;
        let ended = recorder.quickly(|here| here.end(recorder, task, end));
        ended.or_else(|| self.note_end_slowly(recorder, task, end))
    }

    #[inline(never)]
    fn note_end_slowly(
        &self,
        recorder: &Recorder,
        task: &Header,
        end: End,
    ) -> Option<(Ended, u64)> {
        recorder.with(|here| {
            here.look(&self.host);
            let mut from = TaskState::Created;
            let ended = task.word.complete(end.how, |before, after| {
                from = before.state();
                before.is_plain().then(|| here.sign(recorder, before, after))
            })?;
            let (id, region) = task.ids();
            let outcome = end.severity;
            let to = TaskState::Completed;
            let told = PackedEvent::ended(id, region, outcome, from, to);
            let kinds = [moved(from, to), Some(EventKind::TaskEnded { outcome })];
            here.write(recorder, told, task.subject(), kinds);
            Some((ended, here.clock()))
        })
    }
}

fn moved(from: TaskState, to: TaskState) -> Option<EventKind> {
    (from != to).then_some(EventKind::TaskMoved { from, to })
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
