//! What is recorded by whoever makes the step: the events of tasks, timers and everything else.
//!
//! Each has a quick way, in a few lines that are inlined, and a slow one that writes the same.

use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::outcome::Severity;
use asx_kernel::task::TaskState;

use super::slot::{self, PackedEvent};
use super::thread_writer::ThreadWriter;
use super::{Clock, Dispatch, Recorder, Stamp};

/// The word of a task before or after a step: it has the state, and the mark of who recorded the
/// last event of the task.
pub trait Signed: Copy {
    /// The state.
    fn state(self) -> TaskState;

    /// Whether the state is `Running`.
    fn is_running(self) -> bool;

    /// Whether the task runs or has yet to, and nothing but this step is to be recorded with it.
    fn is_plain(self) -> bool;

    /// Who recorded the last event.
    fn mark(self) -> u16;

    /// The same with another mark.
    fn with_mark(self, mark: u16) -> Self;
}

/// A step that a task makes by itself, without a lock: it is signed in the instruction that makes
/// it, so that the record has the events of a task in the order of its steps, whoever makes them.
///
/// # Safety
/// Neither [`make`](Step::make) nor the methods of the word record anything, other than by what
/// `make` is given, or run code that might.
pub unsafe trait Step {
    /// The task's word.
    type Word: Signed;
    /// What comes of the step.
    type Made;

    /// The numbers of the task and of its region.
    fn ids(&self) -> (u64, u64);

    /// Makes the step. `sign` is given the word before and after, and answers the latter with the
    /// mark of who records it, or nothing: then the step is not made. It is asked again if the word
    /// has changed meanwhile.
    fn make(
        &self,
        sign: impl FnMut(Self::Word, Self::Word) -> Option<Self::Word>,
    ) -> Option<Self::Made>;
}

impl Recorder {
    /// The calling thread has nothing to poll: what it records before the next dispatch is at a
    /// time of its own.
    pub fn rest(&self) {
        self.with(ThreadWriter::rest);
    }

    /// Records an event of a thing whose lock the caller has.
    #[inline]
    pub fn note<C: Clock>(&self, clock: &C, thing: &Stamp, subject: Subject, kind: EventKind) {
        // Where the kind is known, so is most of what is to be told of it.
        match PackedEvent::new(subject, kind) {
            Some(told) if self.write_told(clock, thing, &told) => {}
            told => self.write_slowly(clock, thing, told.is_some(), &(subject, kind)),
        }
    }

    /// Gives an event its stamp, and writes it down if there is room for few words.
    #[inline(never)]
    fn write_told<C: Clock>(&self, clock: &C, thing: &Stamp, told: &PackedEvent) -> bool {
        self.with(|here| {
            here.look(clock);
            here.stamp_of(thing);
            here.write_told(self, told)
        })
    }

    /// Writes an event down that is not told in few words; it may have its stamp.
    #[cold]
    #[inline(never)]
    fn write_slowly<C: Clock>(
        &self,
        clock: &C,
        thing: &Stamp,
        stamped: bool,
        (subject, kind): &(Subject, EventKind),
    ) {
        self.with(|here| {
            if !stamped {
                here.look(clock);
                here.stamp_of(thing);
            }
            here.write_slowly(self, *subject, [Some(*kind), None]);
        });
    }

    /// Records that a task was spawned, in a region whose lock the caller has. `mark` is that in
    /// the task's word, and `sign` leaves another one there.
    #[inline(always)]
    pub fn spawned<C: Clock>(
        &self,
        clock: &C,
        thing: &Stamp,
        ids: (u64, u64),
        (priority, finalizer): (u8, bool),
        mark: u16,
        sign: impl FnOnce(u16),
    ) {
        let fields = slot::pack_spawned(priority, finalizer);
        let written = self.quickly(|here| {
            if mark != here.mark() {
                return None;
            }
            here.stamp_of(thing);
            here.draft(slot::SPAWNED, ids, fields)?;
            here.keep(1);
            Some(())
        });
        if written.is_none() {
            self.spawned_slowly(clock, thing, ids, (priority, finalizer), sign);
        }
    }

    #[inline(never)]
    fn spawned_slowly<C: Clock>(
        &self,
        clock: &C,
        thing: &Stamp,
        (id, region): (u64, u64),
        (priority, finalizer): (u8, bool),
        sign: impl FnOnce(u16),
    ) {
        self.with(|here| {
            // As a rule it has had that mark since it was made. Nobody else knows the task, so that
            // nothing else is recorded of it.
            sign(here.mark());
            here.look(clock);
            here.stamp_of(thing);
            let told = PackedEvent::spawned(id, region, priority, finalizer);
            let kind = EventKind::TaskSpawned { priority, finalizer };
            here.write(self, told, subject((id, region)), [Some(kind), None]);
        });
    }

    /// Records an event of a timer, under the lock of timers. `owner`: the task and the region it
    /// is of, each one higher, or else 0.
    #[inline(always)]
    pub fn timer<C: Clock>(
        &self,
        clock: &C,
        timers: &Stamp,
        owner: (u64, u64),
        timer: u64,
        kind: EventKind,
    ) {
        if !self.write_timer(timers, owner, timer, slot::of_timer(kind)) {
            self.timer_slowly(clock, timers, owner, timer, &kind);
        }
    }

    /// Records an event of a timer if that is done in a few lines.
    #[inline(never)]
    fn write_timer(
        &self,
        timers: &Stamp,
        owner: (u64, u64),
        timer: u64,
        (code, fields): (u64, u64),
    ) -> bool {
        let written = self.quickly(|here| {
            here.stamp_of(timers);
            here.tell_of(code, owner, timer, fields)
        });
        written.is_some()
    }

    #[inline(never)]
    fn timer_slowly<C: Clock>(
        &self,
        clock: &C,
        timers: &Stamp,
        (task, region): (u64, u64),
        timer: u64,
        kind: &EventKind,
    ) {
        let task = task.checked_sub(1);
        let region = region.checked_sub(1);
        let subject = Subject { task, region, timer: Some(timer), channel: None };
        self.note(clock, timers, subject, *kind);
    }

    /// What is recorded of a thing later comes after what this thread has recorded, and the other
    /// way round. The caller has the thing's lock.
    #[inline]
    pub fn touch(&self, thing: &Stamp) {
        self.with(|here| {
            here.see(thing);
            here.show(thing);
        });
    }

    /// What is recorded of a thing later comes after what was recorded under these marks. The
    /// caller has the thing's lock.
    #[inline]
    pub fn touch_after(&self, thing: &Stamp, marks: impl Iterator<Item = u16>) {
        self.with(|here| {
            marks.for_each(|mark| here.see_mark(self, mark));
            thing.raise(here.clock());
        });
    }

    /// What this thread records comes after what was recorded of a thing.
    #[inline]
    pub fn see(&self, thing: &Stamp) {
        self.with(|here| here.see(thing));
    }

    /// The last stamp of the calling thread.
    pub fn clock(&self) -> u64 {
        self.with(|here| here.clock())
    }

    /// The mark of the calling thread, for who may have [seen](Recorder::see_mark) another without
    /// recording anything: what comes after this one comes after that one too.
    pub fn mark_of_seen(&self) -> u16 {
        self.with(|here| here.mark_of_seen())
    }

    /// What this thread records comes after what was recorded by who left this mark.
    pub fn see_mark(&self, mark: u16) {
        self.with(|here| here.see_mark(self, mark));
    }

    /// Begins a poll, on the record. `None` if the task is not to be polled, or the lock of its
    /// cancel is needed for it; then nothing has happened.
    #[inline(always)]
    pub fn begin<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        dispatch: &Dispatch,
    ) -> Option<S::Made> {
        let begun = self.quickly(|here| {
            here.goes_on()?;
            here.begin(self, task, dispatch)
        });
        begun.or_else(|| self.begin_slowly(clock, task, dispatch))
    }

    #[inline(never)]
    fn begin_slowly<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        dispatch: &Dispatch,
    ) -> Option<S::Made> {
        // Hosts may do anything to tell the time: not while a place is lent.
        let looked = self.with(|here| here.look_if_due(self, clock));
        let begun = |here: &mut ThreadWriter| looked.then(|| here.begin(self, task, dispatch))?;
        if let Some(made) = self.quickly(begun) {
            return Some(made);
        }
        self.with(|here| {
            here.begin_poll(self, clock);
            let mut from = TaskState::Created;
            let mut to = TaskState::Created;
            let made = task.make(|before, after| {
                from = before.state();
                to = after.state();
                before.is_plain().then(|| here.sign(self, before, after))
            })?;
            let (id, region) = task.ids();
            let told = PackedEvent::dispatched(id, region, dispatch, from, to);
            let kinds = [Some(EventKind::from(*dispatch)), moved(from, to)];
            here.write(self, told, subject((id, region)), kinds);
            Some(made)
        })
    }

    /// Completes a task, on the record, as [`begin`](Recorder::begin): also the stamp.
    #[inline(always)]
    pub fn end<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        outcome: Severity,
    ) -> Option<(S::Made, u64)> {
        let ended = self.quickly(|here| here.end(self, task, outcome));
        ended.or_else(|| self.end_slowly(clock, task, outcome))
    }

    #[inline(never)]
    fn end_slowly<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        outcome: Severity,
    ) -> Option<(S::Made, u64)> {
        self.with(|here| {
            here.look(clock);
            let mut from = TaskState::Created;
            let made = task.make(|before, after| {
                from = before.state();
                before.is_plain().then(|| here.sign(self, before, after))
            })?;
            let (id, region) = task.ids();
            let to = TaskState::Completed;
            let told = PackedEvent::ended(id, region, outcome, from, to);
            let kinds = [moved(from, to), Some(EventKind::TaskEnded { outcome })];
            here.write(self, told, subject((id, region)), kinds);
            Some((made, here.clock()))
        })
    }
}

fn subject((task, region): (u64, u64)) -> Subject {
    Subject { task: Some(task), region: Some(region), ..Subject::default() }
}

fn moved(from: TaskState, to: TaskState) -> Option<EventKind> {
    (from != to).then_some(EventKind::TaskMoved { from, to })
}
