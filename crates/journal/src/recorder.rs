//! The recorder of a runtime.
//!
//! # Rules
//! 1. The pointer in [`HERE`] is null or owns a box. Whoever uses it takes it out first, and puts
//!    it back or drops the box; only its own thread sees it.
//! 2. What [`Recorder::quickly`] calls need not take it out: it records nothing by other ways, and
//!    runs no code but this crate's, not even a host's, and that of a [`Step`](super::Step), which
//!    promises the same.

use std::cell::Cell;
#[cfg(not(target_family = "wasm"))]
use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Arc, OnceLock};

use asx_kernel::journal::{Event, EventKind, Subject, WhenFull};

use super::Recorded;
use super::buffer::{Buffer, Chunk};
use super::fold::Fold;
use super::slot::{Slot, Wide};
use super::thread_writer::ThreadWriter;
use crate::prim::{Mutex, lock_unseen};

/// Of each recorder there ever was.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Buffers that are found without a lock.
const NEAR: usize = 64;

/// Takes events, of any number of threads.
pub struct Recorder {
    pub(super) id: u64,
    capacity: usize,
    /// Whether a full journal refuses new work.
    pub(super) refuses: bool,
    /// Whether the time passes by itself, so that it need not be looked at for each event.
    pub(super) passes: bool,
    /// At least as many events as there are, or will be before a chunk is full.
    room: AtomicU64,
    near: [OnceLock<Arc<Buffer>>; NEAR],
    buffers: Mutex<Vec<Arc<Buffer>>>,
    /// What is not retained: in a ring what came before it, else what came after it was full.
    lost: Mutex<Option<Fold>>,
    /// How many were not written for want of room.
    dropped: AtomicU64,
    /// What sockets are called, by number: the last ones, as many as there may be events.
    #[cfg(not(target_family = "wasm"))]
    sockets: Mutex<BTreeMap<u64, String>>,
}

thread_local! {
    /// The thread's place, while it is not used; null if it has none.
    static HERE: Cell<*mut ThreadWriter> = const { Cell::new(ptr::null_mut()) };
    /// Gives it up when the thread ends.
    static LEAVE: Leave = const { Leave };
}

struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        give_up(HERE.replace(ptr::null_mut()));
    }
}

/// The caller has taken this place, if it is one, out of [`HERE`].
#[cold]
fn give_up(here: *mut ThreadWriter) {
    if !here.is_null() {
        // SAFETY: rule 1.
        drop(unsafe { Box::from_raw(here) });
    }
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
            #[cfg(not(target_family = "wasm"))]
            sockets: Mutex::default(),
        }
    }

    /// Calls `f` with the calling thread's place. It records nothing by other ways.
    #[inline(always)]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut ThreadWriter) -> R) -> R {
        let mut at = HERE.replace(ptr::null_mut());
        // SAFETY: rule 1.
        if unsafe { at.as_ref() }.is_none_or(|here| here.recorder != self.id) {
            at = self.enter(at);
        }
        // SAFETY: rule 1.
        let here = unsafe { &mut *at };
        let answer = f(here);
        if here.fleeting {
            give_up(at);
        } else {
            HERE.set(at);
        }
        answer
    }

    /// [`with`](Recorder::with), if the calling thread has a place and knows the time. `f` is a few
    /// lines of this crate.
    #[inline(always)]
    pub(super) fn quickly<R>(&self, f: impl FnOnce(&mut ThreadWriter) -> Option<R>) -> Option<R> {
        // SAFETY: rule 1, and rule 2 for what `f` does.
        match unsafe { HERE.get().as_mut() } {
            Some(here) if here.knows(self) => f(here),
            _ => None,
        }
    }

    /// A new place, as [`HERE`] has it. One in another recorder, if that is what there was, is free
    /// before it is sought.
    #[cold]
    #[inline(never)]
    fn enter(&self, other: *mut ThreadWriter) -> *mut ThreadWriter {
        give_up(other);
        let mut here = Box::new(self.place());
        here.fleeting = LEAVE.try_with(|_| ()).is_err();
        Box::into_raw(here)
    }

    /// The mark of the calling thread.
    #[inline]
    pub fn mark(&self) -> u16 {
        let known = self.quickly(|here| Some(here.mark()));
        known.unwrap_or_else(|| self.with(|here| here.mark()))
    }

    /// A place that no other thread has.
    fn place(&self) -> ThreadWriter {
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
        self.make_known(&buffer.last());
        ThreadWriter::new(self, buffer)
    }

    /// A chunk is about to be written to.
    pub(super) fn make_known(&self, chunk: &Chunk) {
        // Two events in a word at most.
        self.room.fetch_add(2 * chunk.room() as u64, Relaxed);
    }

    /// No earlier than the latest stamp of the thread that left this mark.
    #[inline(never)]
    pub(super) fn clock_of(&self, mark: u16) -> u64 {
        let clock = |buffer: &Arc<Buffer>| buffer.clock.load(Relaxed);
        self.clock_near(mark).unwrap_or_else(|| match mark {
            0 => 0,
            _ => lock_unseen(&self.buffers).iter().map(clock).max().unwrap_or(0),
        })
    }

    /// [`clock_of`](Recorder::clock_of), if it is found without a lock.
    #[inline(always)]
    pub(super) fn clock_near(&self, mark: u16) -> Option<u64> {
        let near = self.near.get(usize::from(mark).wrapping_sub(1))?.get()?;
        Some(near.clock.load(Relaxed))
    }

    /// How many events were recorded.
    pub fn events(&self) -> u64 {
        let buffers = lock_unseen(&self.buffers);
        let written: u64 = buffers.iter().map(|buffer| buffer.count()).sum();
        written + self.dropped.load(Relaxed)
    }

    /// Whether a full journal refuses new work.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.refuses && self.is_full()
    }

    fn is_full(&self) -> bool {
        self.room.load(Relaxed) >= self.capacity as u64 && self.events() >= self.capacity as u64
    }

    /// Whether the calling thread has a place here where events are written quickly: the last poll
    /// that it began is recorded here, and the time passes by itself.
    #[doc(hidden)]
    pub fn is_quick(&self) -> bool {
        self.quickly(|_| Some(())).is_some()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn buffers(&self) -> usize {
        lock_unseen(&self.buffers).len()
    }

    /// What was recorded so far. Exact when nothing is running.
    pub fn read(&self) -> Recorded {
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
        let sockets = self.sockets();
        Recorded { lost: recorded - events.len() as u64, events, digest, recorded, sockets }
    }

    /// What a socket is called from now on: its addresses, which events have no room for.
    #[cfg(not(target_family = "wasm"))]
    pub fn name_socket(&self, number: u64, name: String) {
        let mut sockets = lock_unseen(&self.sockets);
        sockets.insert(number, name);
        if sockets.len() > self.capacity.max(1) {
            sockets.pop_first();
        }
    }

    #[cfg(not(target_family = "wasm"))]
    fn sockets(&self) -> Vec<(u64, String)> {
        lock_unseen(&self.sockets).clone().into_iter().collect()
    }

    /// A page has none.
    #[cfg(target_family = "wasm")]
    fn sockets(&self) -> Vec<(u64, String)> {
        Vec::new()
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
        let mut slots = Vec::new();
        let mut wide = Vec::new();
        let buffers = lock_unseen(&self.buffers).clone();
        for buffer in &buffers {
            let chunks = lock_unseen(&buffer.chunks);
            chunks.iter().for_each(|chunk| chunk.read(&mut slots, &mut wide));
        }
        (slots, wide)
    }

    /// Counts an event that there is no room for.
    #[cold]
    pub(super) fn lose(&self, time: u64, subject: Subject, kind: EventKind) {
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
    pub(super) fn recycle(&self, buffer: &Buffer) -> Option<Arc<Chunk>> {
        let mut lost = lock_unseen(&self.lost);
        let oldest = buffer.pop_oldest(self.capacity)?;
        let fold = lost.get_or_insert_with(Fold::new);
        if self.passes {
            fold.skip(oldest.counts());
        } else {
            let mut slots = Vec::new();
            let mut wide = Vec::new();
            oldest.read(&mut slots, &mut wide);
            fold.add(slots, &wide, |_| ());
        }
        Some(buffer.reuse(oldest))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({})", self.id)
    }
}
