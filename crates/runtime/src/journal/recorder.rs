//! The recorder of a runtime, and a thread's place in it.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::AtomicU64;
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
/// Events that a thread takes room for at once.
const LEASE: u64 = 256;
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
    /// Events that threads have taken room for; where nothing is refused, none.
    leased: AtomicU64,
    near: [OnceLock<Arc<Buffer>>; NEAR],
    buffers: Mutex<Vec<Arc<Buffer>>>,
    /// What is not retained: in a ring what came before it, else what came after it was full.
    lost: Mutex<Option<Fold>>,
    /// How many were not written for want of room.
    dropped: AtomicU64,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

impl Recorder {
    pub(crate) fn new(capacity: usize, when_full: WhenFull, passes: bool) -> Recorder {
        Recorder {
            id: NEXT_ID.fetch_add(1, Relaxed),
            capacity,
            refuses: when_full == WhenFull::Refuse,
            passes,
            leased: AtomicU64::new(0),
            near: [const { OnceLock::new() }; NEAR],
            buffers: Mutex::default(),
            lost: Mutex::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Calls `f` with the calling thread's place.
    #[inline]
    pub(super) fn here<R>(&self, f: impl FnOnce(&mut Here) -> R) -> R {
        let mut f = Some(f);
        let found = HERE.try_with(|here| {
            let mut here = here.try_borrow_mut().ok()?;
            let here = match &mut *here {
                Some(here) if here.recorder == self.id => here,
                other => self.enter(other),
            };
            f.take().map(|f| f(here))
        });
        match (found, f) {
            (Ok(Some(answer)), _) => answer,
            // The thread is about to end, or is here already.
            (_, Some(f)) => f(&mut self.place()),
            _ => unreachable!("one who was not called is still there"),
        }
    }

    #[cold]
    fn enter<'a>(&self, here: &'a mut Option<Here>) -> &'a mut Here {
        // First the old place, so that it can be had again.
        *here = None;
        here.insert(self.place())
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
        let chunk = buffer.last();
        Here {
            recorder: self.id,
            at: chunk.len(),
            clock: buffer.clock.load(Relaxed),
            events: buffer.events.load(Relaxed),
            chunk,
            buffer,
            lease: 0,
            now: 0,
            polls: 0,
            per_look: 1,
            outside: true,
        }
    }

    /// The latest stamp of the thread that left this mark.
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
        buffers.iter().map(|buffer| buffer.events.load(Relaxed)).sum()
    }

    /// Whether a full journal refuses new work.
    pub(super) fn is_refusing(&self) -> bool {
        self.refuses
            && self.leased.load(Relaxed) >= self.capacity as u64
            && self.events() >= self.capacity as u64
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
    fn lose(&self, time: u64, subject: Subject, kinds: impl IntoIterator<Item = EventKind>) {
        let mut lost = lock_unseen(&self.lost);
        let fold = lost.get_or_insert_with(|| {
            let ((slots, wide), mut fold) = (self.slots(), Fold::new());
            fold.add(slots, &wide, |_| ());
            fold
        });
        for kind in kinds {
            fold.event(time, subject, kind);
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Takes the oldest chunk of a ring that has enough without it, for the thread to write to.
    fn recycle(&self, buffer: &Buffer) -> Option<Arc<Chunk>> {
        let mut lost = lock_unseen(&self.lost);
        let oldest = buffer.pop_oldest(self.capacity)?;
        let (mut slots, mut wide) = (Vec::new(), Vec::new());
        oldest.read(&mut slots, &mut wide);
        let fold = lost.get_or_insert_with(Fold::new);
        if self.passes { fold.skip(&slots) } else { fold.add(slots, &wide, |_| ()) }
        Some(buffer.reuse(oldest))
    }
}

/// A thread that records.
pub(super) struct Here {
    recorder: u64,
    buffer: Arc<Buffer>,
    chunk: Arc<Chunk>,
    /// Where in the chunk it writes next.
    at: usize,
    /// The last stamp.
    clock: u64,
    events: u64,
    /// How many events it has room for.
    lease: u64,
    /// The time when it was looked at last.
    now: u64,
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

impl Here {
    /// Looks at the clock, if the time may be another than it was.
    #[inline]
    pub(super) fn look(&mut self, recorder: &Recorder, host: &dyn Host) {
        if self.outside || !recorder.passes {
            self.now = self.now.max(host.now().as_nanos());
        }
    }

    /// A worker has chosen a task. It knows the time well enough while polls are short.
    #[inline]
    pub(super) fn begin_poll(&mut self, recorder: &Recorder, host: &dyn Host) {
        if !recorder.passes {
            return self.look(recorder, host);
        }
        self.outside = false;
        if self.polls > 0 {
            self.polls -= 1;
            return;
        }
        let now = host.now().as_nanos().max(self.now);
        let short = now - self.now < SHORT_POLL * u64::from(self.per_look);
        self.per_look = if short { (2 * self.per_look).min(POLLS_PER_LOOK) } else { 1 };
        (self.now, self.polls) = (now, self.per_look - 1);
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
        if mark != 0 && (mark != self.buffer.mark || mark == u16::MAX) {
            self.clock = self.clock.max(recorder.clock_of(mark));
        }
    }

    pub(super) fn mark(&self) -> u16 {
        self.buffer.mark
    }

    /// The stamp for what is written next; others see it before that.
    #[inline]
    pub(super) fn stamp(&mut self) {
        let now = if self.now < slot::MOST / 2 { self.now } else { 0 };
        self.clock = (self.clock + 1).max(now);
        self.buffer.clock.store(self.clock, Relaxed);
    }

    /// Writes something down at the last stamp: what was `told`, or else these events.
    #[inline]
    pub(super) fn write(
        &mut self,
        recorder: &Recorder,
        told: Option<Told>,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        if let Some(told) = told
            && let Some(slot) = told.at(self.clock, self.now)
            && self.lease >= told.events()
            && self.chunk.write(self.at, slot)
        {
            return self.wrote(told.events());
        }
        self.write_slowly(recorder, told, subject, kinds);
    }

    #[inline]
    fn wrote(&mut self, events: u64) {
        self.at += 1;
        self.lease -= events;
        self.events += events;
        self.buffer.events.store(self.events, Relaxed);
    }

    #[cold]
    fn write_slowly(
        &mut self,
        recorder: &Recorder,
        told: Option<Told>,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        let slot = told.and_then(|told| Some((told.at(self.clock, self.now)?, told.events())));
        if let Some((slot, events)) = slot
            && self.make_room(recorder, events)
        {
            self.chunk.write(self.at, slot);
            return self.wrote(events);
        }
        for kind in kinds.into_iter().flatten() {
            if self.make_room(recorder, 1) {
                let place = self.chunk.keep((self.now, subject, kind));
                self.chunk.write(self.at, slot::wide(self.clock, place));
                self.wrote(1);
            } else {
                recorder.lose(self.now, subject, [kind]);
                self.events += 1;
                self.buffer.events.store(self.events, Relaxed);
            }
        }
    }

    /// Makes room for a slot of so many events, if there is any to be had.
    fn make_room(&mut self, recorder: &Recorder, events: u64) -> bool {
        if self.lease < events {
            if recorder.is_refusing() {
                return false;
            }
            let most = if recorder.refuses { LEASE } else { u64::MAX / 2 };
            recorder.leased.fetch_add(most, Relaxed);
            self.lease = self.lease.saturating_add(most);
        }
        if self.at == self.chunk.room() {
            let ring = if recorder.refuses { None } else { recorder.recycle(&self.buffer) };
            self.chunk = ring.unwrap_or_else(|| self.buffer.grow());
            self.at = 0;
        }
        true
    }
}
