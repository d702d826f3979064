//! The recorder of a runtime, and a thread's place in it.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::{Arc, OnceLock};

use asx_kernel::journal::{Event, EventKind, Subject, WhenFull};

use super::buffer::{Buffer, Chunk};
use super::fold::Fold;
use super::slot::{self, Slot, Told, Wide};
use super::{Recorded, Stamp};
use crate::core::Host;
use crate::prim::{Mutex, lock_unseen};

/// Of each recorder there ever was.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Buffers that are found without a lock.
const NEAR: usize = 64;
/// Polls between two looks at the clock, at most, and the nanoseconds a poll may take for that.
const POLLS_PER_LOOK: u32 = 8;
const SHORT_POLL: u64 = 1_000;

/// Takes events, of any number of threads.
pub(crate) struct Recorder {
    id: u64,
    capacity: usize,
    /// Whether a full journal refuses new work.
    refuses: bool,
    /// Whether the time passes by itself, so that it need not be looked at for each event.
    passes: bool,
    /// At least as many events as there are, or will be before a chunk is full.
    room: AtomicU64,
    near: [OnceLock<Arc<Buffer>>; NEAR],
    buffers: Mutex<Vec<Arc<Buffer>>>,
    /// What is not retained: in a ring what came before it, else what came after it was full.
    lost: Mutex<Option<Fold>>,
    /// How many were not written for want of room.
    dropped: AtomicU64,
}

thread_local! {
    static HERE: Cell<Option<Box<Here>>> = const { Cell::new(None) };
}

impl Recorder {
    pub(crate) fn new(capacity: usize, when_full: WhenFull, passes: bool) -> Recorder {
        Recorder {
            id: NEXT_ID.fetch_add(1, Relaxed),
            capacity,
            refuses: when_full == WhenFull::Refuse,
            passes,
            room: AtomicU64::new(0),
            near: [const { OnceLock::new() }; NEAR],
            buffers: Mutex::default(),
            lost: Mutex::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Takes the calling thread's place, until it [leaves](Here::leave).
    #[inline]
    pub(super) fn here(&self) -> Box<Here> {
        match HERE.try_with(Cell::take) {
            Ok(Some(here)) if here.recorder == self.id => here,
            // A place in another recorder, if there was one, is free before a new one is sought.
            other => self.enter(other.ok().flatten()),
        }
    }

    #[cold]
    fn enter(&self, other: Option<Box<Here>>) -> Box<Here> {
        drop(other);
        Box::new(self.place())
    }

    /// The mark of the calling thread.
    #[inline(never)]
    pub(super) fn mark(&self) -> u16 {
        let here = self.here();
        let mark = here.mark;
        here.leave();
        mark
    }

    /// A place that no other thread has.
    fn place(&self) -> Here {
        let mut buffers = lock_unseen(&self.buffers);
        let free = buffers.iter().find(|buffer| buffer.free.swap(false, AcqRel)).cloned();
        let buffer = free.unwrap_or_else(|| {
            let mark = u16::try_from(buffers.len() + 1).unwrap_or(u16::MAX);
            let buffer = Arc::new(Buffer::new(mark));
            if let Some(near) = self.near.get(buffers.len()) {
                let _ = near.set(buffer.clone());
            }
            buffers.push(buffer.clone());
            buffer
        });
        let (chunk, mark) = (buffer.last(), buffer.mark);
        self.make_known(&chunk);
        Here {
            recorder: self.id,
            filled: chunk.filled(),
            clock: buffer.clock.load(Relaxed),
            chunk,
            buffer,
            mark,
            now: 0,
            floor: 0,
            polls: 0,
            per_look: 1,
            outside: true,
        }
    }

    /// A chunk is about to be written to.
    fn make_known(&self, chunk: &Chunk) {
        // Two events in a slot at most.
        self.room.fetch_add(2 * chunk.room() as u64, Relaxed);
    }

    /// The latest stamp of the thread that left this mark.
    #[cold]
    fn clock_of(&self, mark: u16) -> u64 {
        let clock = |buffer: &Arc<Buffer>| buffer.clock.load(Relaxed);
        let near = usize::from(mark).checked_sub(1).and_then(|at| self.near.get(at)?.get());
        match near {
            Some(near) => clock(near),
            None => lock_unseen(&self.buffers).iter().map(clock).max().unwrap_or(0),
        }
    }

    /// How many events were recorded.
    pub(super) fn events(&self) -> u64 {
        let buffers = lock_unseen(&self.buffers);
        let written: u64 = buffers.iter().map(|buffer| buffer.count()).sum();
        written + self.dropped.load(Relaxed)
    }

    /// Whether a full journal refuses new work.
    #[inline]
    pub(super) fn is_refusing(&self) -> bool {
        self.refuses && self.is_full()
    }

    fn is_full(&self) -> bool {
        self.room.load(Relaxed) >= self.capacity as u64 && self.events() >= self.capacity as u64
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn buffers(&self) -> usize {
        lock_unseen(&self.buffers).len()
    }

    /// What was recorded so far.
    pub(super) fn read(&self) -> Recorded {
        let lost = lock_unseen(&self.lost);
        let (slots, wide) = self.slots();
        let before = if self.refuses { None } else { lost.clone() };
        let mut fold = before.unwrap_or(Fold::new());
        let mut events = Vec::new();
        fold.add(slots, &wide, |event| events.push(event));
        let after = lost.as_ref().filter(|_| self.refuses);
        let digest = after.unwrap_or(&fold).digest();
        let recorded = fold.seq + self.dropped.load(Relaxed);
        drop(lost);
        self.retain(&mut events);
        Recorded { lost: recorded - events.len() as u64, events, digest, recorded }
    }

    /// Leaves as many as there may be.
    fn retain(&self, events: &mut Vec<Event>) {
        let excess = events.len().saturating_sub(self.capacity);
        if self.refuses {
            events.truncate(self.capacity);
        } else {
            events.drain(..excess);
        }
    }

    /// What all buffers hold.
    fn slots(&self) -> (Vec<Slot>, Vec<Wide>) {
        let (mut slots, mut wide) = (Vec::new(), Vec::new());
        let buffers = lock_unseen(&self.buffers).clone();
        for buffer in &buffers {
            let chunks = lock_unseen(&buffer.chunks);
            chunks.iter().for_each(|chunk| chunk.read(&mut slots, &mut wide));
        }
        (slots, wide)
    }

    /// Counts an event that there is no room for.
    #[cold]
    fn lose(&self, time: u64, subject: Subject, kind: EventKind) {
        let mut lost = lock_unseen(&self.lost);
        let fold = lost.get_or_insert_with(|| {
            let ((slots, wide), mut fold) = (self.slots(), Fold::new());
            fold.add(slots, &wide, |_| ());
            fold
        });
        fold.event(time, subject, kind);
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Takes the oldest chunk of a ring that has enough without it, for the thread to write to.
    fn recycle(&self, buffer: &Buffer) -> Option<Arc<Chunk>> {
        let mut lost = lock_unseen(&self.lost);
        let oldest = buffer.pop_oldest(self.capacity)?;
        let (mut slots, mut wide) = (Vec::new(), Vec::new());
        oldest.read(&mut slots, &mut wide);
        let fold = lost.get_or_insert_with(Fold::new);
        if self.passes {
            fold.skip(&slots)
        } else {
            fold.add(slots, &wide, |_| ())
        }
        Some(buffer.reuse(oldest))
    }
}

/// A thread that records.
pub(super) struct Here {
    recorder: u64,
    buffer: Arc<Buffer>,
    chunk: Arc<Chunk>,
    /// What is written in the chunk.
    filled: u64,
    /// The last stamp.
    clock: u64,
    mark: u16,
    /// The time when it was looked at last.
    now: u64,
    /// No stamp is less: the time, unless it is beyond all stamps.
    floor: u64,
    /// Polls until it is looked at again.
    polls: u32,
    per_look: u32,
    /// No poll of a worker is under way, which would know the time.
    outside: bool,
}

impl Drop for Here {
    fn drop(&mut self) {
        self.buffer.free.store(true, Release);
    }
}

/// A thread has one place.
#[cold]
fn give_up(other: Box<Here>) {
    drop(other);
}

impl Here {
    /// The place is there for what the thread records next.
    #[inline]
    pub(super) fn leave(self: Box<Self>) {
        // Where the thread is about to end, the place is given up instead.
        if let Ok(Some(other)) = HERE.try_with(move |here| here.replace(Some(self))) {
            give_up(other);
        }
    }

    /// Looks at the clock, if the time may be another than it was.
    #[inline]
    pub(super) fn look(&mut self, recorder: &Recorder, host: &Arc<dyn Host>) {
        if self.outside || !recorder.passes {
            self.is_now(host.now().as_nanos());
        }
    }

    #[inline]
    fn is_now(&mut self, now: u64) {
        self.now = self.now.max(now);
        self.floor = if self.now < slot::MOST / 2 { self.now } else { 0 };
    }

    /// A worker has chosen a task. It knows the time well enough while polls are short.
    #[inline]
    pub(super) fn begin_poll(&mut self, recorder: &Recorder, host: &Arc<dyn Host>) {
        if !recorder.passes {
            return self.look(recorder, host);
        }
        self.outside = false;
        if self.polls > 0 {
            self.polls -= 1;
        } else {
            self.look_again(host);
        }
    }

    #[inline(never)]
    fn look_again(&mut self, host: &Arc<dyn Host>) {
        let before = self.now;
        self.is_now(host.now().as_nanos());
        let short = self.now - before < SHORT_POLL * u64::from(self.per_look);
        self.per_look = if short { (2 * self.per_look).min(POLLS_PER_LOOK) } else { 1 };
        self.polls = self.per_look - 1;
    }

    /// The worker has nothing to poll: time passes unseen.
    pub(super) fn rest(&mut self) {
        (self.outside, self.polls, self.per_look) = (true, 0, 1);
    }

    /// What is recorded next comes after what this thing has seen.
    #[inline]
    pub(super) fn see(&mut self, thing: &Stamp) {
        self.clock = self.clock.max(thing.0.load(Relaxed));
    }

    /// [`see`](Here::see), and what the thing sees next comes after what was recorded here. The
    /// caller has the thing's lock.
    #[inline]
    pub(super) fn touch(&mut self, thing: &Stamp) {
        self.see(thing);
        thing.0.store(self.clock, Relaxed);
    }

    /// What is recorded next comes after what the one who left this mark has recorded.
    #[inline]
    pub(super) fn see_mark(&mut self, recorder: &Recorder, mark: u16) {
        if mark != 0 && (mark != self.mark || mark == u16::MAX) {
            self.clock = self.clock.max(recorder.clock_of(mark));
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn time(&self) -> u64 {
        self.now
    }

    #[inline]
    pub(super) fn clock(&self) -> u64 {
        self.clock
    }

    #[inline]
    pub(super) fn mark(&self) -> u16 {
        self.mark
    }

    /// The stamp for what is written next; others see it before that.
    #[inline]
    pub(super) fn stamp(&mut self) {
        self.clock = (self.clock + 1).max(self.floor);
        self.buffer.clock.store(self.clock, Relaxed);
    }

    /// Writes something down at the last stamp: what was `told`, or else what `events` there are.
    #[inline]
    pub(super) fn write(
        &mut self,
        recorder: &Recorder,
        told: Option<Told>,
        events: impl FnOnce() -> (Subject, [Option<EventKind>; 2]),
    ) {
        if !told.is_some_and(|told| self.write_told(told)) {
            let (subject, kinds) = events();
            self.write_slowly(recorder, subject, kinds);
        }
    }

    /// Writes down what was told, if there is room.
    #[inline]
    fn write_told(&mut self, told: Told) -> bool {
        let slot = told.at(self.clock, self.now);
        slot.is_some_and(|slot| self.write_slot(slot, told.events()))
    }

    #[inline]
    fn write_slot(&mut self, slot: Slot, events: u64) -> bool {
        let filled = self.chunk.write(self.filled, slot, events);
        filled.is_some_and(|filled| {
            self.filled = filled;
            true
        })
    }

    #[cold]
    fn write_slowly(
        &mut self,
        recorder: &Recorder,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        for kind in kinds.into_iter().flatten() {
            if !self.make_room(recorder) {
                recorder.lose(self.now, subject, kind);
                continue;
            }
            if !Told::new(subject, kind).is_some_and(|told| self.write_told(told)) {
                let place = self.chunk.keep((self.now, subject, kind));
                self.write_slot(slot::wide(self.clock, place), 1);
            }
        }
    }

    /// Makes room for a slot, if there is any to be had.
    fn make_room(&mut self, recorder: &Recorder) -> bool {
        if self.chunk.len() < self.chunk.room() {
            return true;
        }
        if recorder.is_refusing() {
            return false;
        }
        let ring = if recorder.refuses { None } else { recorder.recycle(&self.buffer) };
        self.chunk = ring.unwrap_or_else(|| self.buffer.grow());
        recorder.make_known(&self.chunk);
        self.filled = 0;
        true
    }
}
