//! Recording: the events of tasks, timers and all other objects.
//!
//! Each has an inlined fast path, and a slow path that writes the same record.

use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::outcome::Severity;
use asx_kernel::task::TaskState;

use super::slot::{self, PackedEvent};
use super::thread_writer::ThreadWriter;
use super::{Clock, Dispatch, Recorder, Stamp};

/// The word of a task before or after a step. It holds the task's state, and the mark of the thread
/// that recorded the task's last event.
pub trait Signed: Copy {
    /// Returns the state.
    fn state(self) -> TaskState;

    /// Whether the state is `Running`.
    fn is_running(self) -> bool;

    /// Whether the task is `Created` or `Running` and the step is its only event (in particular,
    /// the task is not cancelled).
    fn is_plain(self) -> bool;

    /// Returns the mark of the thread that recorded the last event.
    fn mark(self) -> u16;

    /// Returns the word with another mark.
    fn with_mark(self, mark: u16) -> Self;
}

/// A step that a task makes without a lock. It is signed by the instruction that makes it, so the
/// record has a task's events in the order of its steps, on whichever threads these are made.
///
/// # Safety
/// Neither [`make`](Step::make) nor the methods of the word may record anything, except through the
/// closure that is passed to `make`, or run code that might.
pub unsafe trait Step {
    /// The task's word.
    type Word: Signed;
    /// The result of the step.
    type Made;

    /// Returns the ids of the task and of its region.
    fn ids(&self) -> (u64, u64);

    /// Makes the step. `sign` receives the word before and after it, and returns the latter with
    /// the recording thread's mark, or `None` to prevent the step. It is called again if the word
    /// has changed meanwhile.
    fn make(
        &self,
        sign: impl FnMut(Self::Word, Self::Word) -> Option<Self::Word>,
    ) -> Option<Self::Made>;
}

impl Recorder {
    /// The calling thread has nothing to poll. It reads the clock for each event that it records
    /// before its next dispatch.
    pub fn rest(&self) {
        self.with(ThreadWriter::rest);
    }

    /// Records an event of an object. The caller holds the object's lock.
    #[inline]
    pub fn note<C: Clock>(&self, clock: &C, object: &Stamp, subject: Subject, kind: EventKind) {
        // Inlined: where the kind is a constant, most of the packing is done at compile time.
        match PackedEvent::new(subject, kind) {
            Some(packed) if self.write_packed(clock, object, &packed) => {}
            packed => self.write_slow(clock, object, packed.is_some(), &(subject, kind)),
        }
    }

    /// Stamps a packed event and writes it, if there is room.
    #[inline(never)]
    fn write_packed<C: Clock>(&self, clock: &C, object: &Stamp, packed: &PackedEvent) -> bool {
        self.with(|writer| {
            writer.refresh_time(clock);
            writer.stamp_of(object);
            writer.write_packed(self, packed)
        })
    }

    /// Writes an event that cannot be packed or did not fit; `stamped` if it has its stamp already.
    #[cold]
    #[inline(never)]
    fn write_slow<C: Clock>(
        &self,
        clock: &C,
        object: &Stamp,
        stamped: bool,
        (subject, kind): &(Subject, EventKind),
    ) {
        self.with(|writer| {
            if !stamped {
                writer.refresh_time(clock);
                writer.stamp_of(object);
            }
            writer.write_slow(self, *subject, [Some(*kind), None]);
        });
    }

    /// Records that a task was spawned in a region whose lock the caller holds. `mark` is the one
    /// in the task's word; `sign` replaces it.
    #[inline(always)]
    pub fn spawned<C: Clock>(
        &self,
        clock: &C,
        object: &Stamp,
        ids: (u64, u64),
        (priority, finalizer): (u8, bool),
        mark: u16,
        sign: impl FnOnce(u16),
    ) {
        let fields = slot::pack_spawned(priority, finalizer);
        let written = self.with_fast(|writer| {
            if mark != writer.mark() {
                return None;
            }
            writer.stamp_of(object);
            writer.draft(slot::SPAWNED, ids, fields)?;
            writer.commit(1);
            Some(())
        });
        if written.is_none() {
            self.spawned_slow(clock, object, ids, (priority, finalizer), sign);
        }
    }

    #[inline(never)]
    fn spawned_slow<C: Clock>(
        &self,
        clock: &C,
        object: &Stamp,
        (id, region): (u64, u64),
        (priority, finalizer): (u8, bool),
        sign: impl FnOnce(u16),
    ) {
        self.with(|writer| {
            // Usually the task already has this mark since its creation. No other thread knows the
            // task yet, so there are no other events of it.
            sign(writer.mark());
            writer.refresh_time(clock);
            writer.stamp_of(object);
            let packed = PackedEvent::spawned(id, region, priority, finalizer);
            let kind = EventKind::TaskSpawned { priority, finalizer };
            writer.write(self, packed, subject((id, region)), [Some(kind), None]);
        });
    }

    /// Records an event of a timer, under the lock of the timers. `owner` has the ids of the
    /// timer's task and region, each plus one, or 0 for none.
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
            self.timer_slow(clock, timers, owner, timer, &kind);
        }
    }

    /// Records an event of a timer on the fast path. Returns false if that is not possible.
    #[inline(never)]
    fn write_timer(
        &self,
        timers: &Stamp,
        owner: (u64, u64),
        timer: u64,
        (code, fields): (u64, u64),
    ) -> bool {
        let written = self.with_fast(|writer| {
            writer.stamp_of(timers);
            writer.write_object_event(code, owner, timer, fields)
        });
        written.is_some()
    }

    #[inline(never)]
    fn timer_slow<C: Clock>(
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

    /// Orders later events of the object after those of this thread, and later events of this
    /// thread after those of the object. The caller holds the object's lock.
    #[inline]
    pub fn touch(&self, object: &Stamp) {
        self.with(|writer| {
            writer.see(object);
            writer.store_to(object);
        });
    }

    /// Orders later events of the object after those recorded under `marks`. The caller holds the
    /// object's lock.
    #[inline]
    pub fn touch_after(&self, object: &Stamp, marks: impl Iterator<Item = u16>) {
        self.with(|writer| {
            marks.for_each(|mark| writer.see_mark(self, mark));
            object.raise(writer.clock());
        });
    }

    /// Orders later events of this thread after those of the object.
    #[inline]
    pub fn see(&self, object: &Stamp) {
        self.with(|writer| writer.see(object));
    }

    /// Returns the last stamp of the calling thread.
    pub fn clock(&self) -> u64 {
        self.with(|writer| writer.clock())
    }

    /// Returns the mark of the calling thread. Use this instead of `mark` if the thread may have
    /// [seen](Recorder::see_mark) another mark without recording anything: events that follow the
    /// returned mark then also follow those that the thread has seen.
    pub fn mark_of_seen(&self) -> u16 {
        self.with(|writer| writer.mark_of_seen())
    }

    /// Orders later events of this thread after those recorded under `mark`.
    pub fn see_mark(&self, mark: u16) {
        self.with(|writer| writer.see_mark(self, mark));
    }

    /// Begins and records a poll. Returns `None`, without any effect, if the task is not to be
    /// polled or the lock of its cancellation is needed.
    #[inline(always)]
    pub fn begin<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        dispatch: &Dispatch,
    ) -> Option<S::Made> {
        let begun = self.with_fast(|writer| {
            writer.count_poll()?;
            writer.begin(self, task, dispatch)
        });
        begun.or_else(|| self.begin_slow(clock, task, dispatch))
    }

    #[inline(never)]
    fn begin_slow<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        dispatch: &Dispatch,
    ) -> Option<S::Made> {
        // A host's clock may run any code, so it is not called while the writer is in use.
        let looked = self.with(|writer| writer.read_clock_if_due(self, clock));
        let begun =
            |writer: &mut ThreadWriter| looked.then(|| writer.begin(self, task, dispatch))?;
        if let Some(made) = self.with_fast(begun) {
            return Some(made);
        }
        self.with(|writer| {
            writer.begin_poll(self, clock);
            let mut from = TaskState::Created;
            let mut to = TaskState::Created;
            let made = task.make(|before, after| {
                from = before.state();
                to = after.state();
                before.is_plain().then(|| writer.sign(self, before, after))
            })?;
            let (id, region) = task.ids();
            let packed = PackedEvent::dispatched(id, region, dispatch, from, to);
            let kinds = [Some(EventKind::from(*dispatch)), moved(from, to)];
            writer.write(self, packed, subject((id, region)), kinds);
            Some(made)
        })
    }

    /// Completes and records the end of a task, like [`begin`](Recorder::begin). Also returns the
    /// stamp.
    #[inline(always)]
    pub fn end<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        outcome: Severity,
    ) -> Option<(S::Made, u64)> {
        let ended = self.with_fast(|writer| writer.end(self, task, outcome));
        ended.or_else(|| self.end_slow(clock, task, outcome))
    }

    #[inline(never)]
    fn end_slow<C: Clock, S: Step>(
        &self,
        clock: &C,
        task: &S,
        outcome: Severity,
    ) -> Option<(S::Made, u64)> {
        self.with(|writer| {
            writer.refresh_time(clock);
            let mut from = TaskState::Created;
            let made = task.make(|before, after| {
                from = before.state();
                before.is_plain().then(|| writer.sign(self, before, after))
            })?;
            let (id, region) = task.ids();
            let to = TaskState::Completed;
            let packed = PackedEvent::ended(id, region, outcome, from, to);
            let kinds = [moved(from, to), Some(EventKind::TaskEnded { outcome })];
            writer.write(self, packed, subject((id, region)), kinds);
            Some((made, writer.clock()))
        })
    }
}

fn subject((task, region): (u64, u64)) -> Subject {
    Subject { task: Some(task), region: Some(region), ..Subject::default() }
}

fn moved(from: TaskState, to: TaskState) -> Option<EventKind> {
    (from != to).then_some(EventKind::TaskMoved { from, to })
}
