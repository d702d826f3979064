//! The recorder of a runtime.
//!
//! # Rules
//! 1. The pointer in [`WRITER`] is null or owns a box. Code that uses the writer first takes the
//!    pointer out, and then puts it back or drops the box. Only the pointer's own thread sees it.
//! 2. Code called by [`Recorder::with_fast`] may use the writer in place. It does not record by any
//!    other path, and it runs only code of this crate and of a [`Step`](super::Step), which
//!    promises the same. It does not call a host's clock.

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

/// The id of the next recorder, unique in the process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The number of buffers that are found without a lock.
const NEAR: usize = 64;

/// Records the events of any number of threads.
pub struct Recorder {
    pub(super) id: u64,
    capacity: usize,
    /// Whether new work is refused when the journal is full.
    pub(super) refuses: bool,
    /// Whether the clock advances by itself, so that it need not be read for each event.
    pub(super) passes: bool,
    /// An upper bound of the number of events, including the free room of all chunks in use.
    room: AtomicU64,
    near: [OnceLock<Arc<Buffer>>; NEAR],
    buffers: Mutex<Vec<Arc<Buffer>>>,
    /// The fold of the events that are not retained: those before the ring's oldest event, or those
    /// after the journal was full.
    lost: Mutex<Option<Fold>>,
    /// The number of events that were not written because there was no room.
    dropped: AtomicU64,
    /// The names of the most recent sockets, by number; at most `capacity`.
    #[cfg(not(target_family = "wasm"))]
    sockets: Mutex<BTreeMap<u64, String>>,
}

thread_local! {
    /// The thread's writer, while it is not in use. Null if the thread has none.
    static WRITER: Cell<*mut ThreadWriter> = const { Cell::new(ptr::null_mut()) };
    /// Releases the writer when the thread ends.
    static RELEASE_ON_EXIT: ReleaseOnExit = const { ReleaseOnExit };
}

struct ReleaseOnExit;

impl Drop for ReleaseOnExit {
    fn drop(&mut self) {
        release(WRITER.replace(ptr::null_mut()));
    }
}

/// Releases a writer that the caller has taken out of [`WRITER`]. Null is allowed.
#[cold]
fn release(writer: *mut ThreadWriter) {
    if !writer.is_null() {
        // SAFETY: rule 1.
        drop(unsafe { Box::from_raw(writer) });
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

    /// Calls `f` with the calling thread's writer. `f` must not record by any other path.
    #[inline(always)]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut ThreadWriter) -> R) -> R {
        let mut at = WRITER.replace(ptr::null_mut());
        // SAFETY: rule 1.
        if unsafe { at.as_ref() }.is_none_or(|writer| writer.recorder != self.id) {
            at = self.enter(at);
        }
        // SAFETY: rule 1.
        let writer = unsafe { &mut *at };
        let answer = f(writer);
        if writer.temporary {
            release(at);
        } else {
            WRITER.set(at);
        }
        answer
    }

    /// Like [`with`](Recorder::with), but returns `None` if the calling thread has no writer for
    /// this recorder or does not know the time. `f` obeys rule 2.
    #[inline(always)]
    pub(super) fn with_fast<R>(&self, f: impl FnOnce(&mut ThreadWriter) -> Option<R>) -> Option<R> {
        // SAFETY: rule 1, and rule 2 for what `f` does.
        match unsafe { WRITER.get().as_mut() } {
            Some(writer) if writer.knows(self) => f(writer),
            _ => None,
        }
    }

    /// Creates the calling thread's writer. A writer for another recorder is released first, so
    /// that its buffer can be reused.
    #[cold]
    #[inline(never)]
    fn enter(&self, other: *mut ThreadWriter) -> *mut ThreadWriter {
        release(other);
        let mut writer = Box::new(self.new_writer());
        writer.temporary = RELEASE_ON_EXIT.try_with(|_| ()).is_err();
        Box::into_raw(writer)
    }

    /// Returns the mark of the calling thread.
    #[inline]
    pub fn mark(&self) -> u16 {
        let known = self.with_fast(|writer| Some(writer.mark()));
        known.unwrap_or_else(|| self.with(|writer| writer.mark()))
    }

    /// Creates a writer on a buffer that no other thread uses.
    fn new_writer(&self) -> ThreadWriter {
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
        self.add_room(&buffer.last());
        ThreadWriter::new(self, buffer)
    }

    /// Adds the room of a chunk that is about to be written to.
    pub(super) fn add_room(&self, chunk: &Chunk) {
        // A word holds at most two events.
        self.room.fetch_add(2 * chunk.room() as u64, Relaxed);
    }

    /// Returns a stamp no earlier than the latest one of the thread that left this mark.
    #[inline(never)]
    pub(super) fn clock_of(&self, mark: u16) -> u64 {
        let clock = |buffer: &Arc<Buffer>| buffer.clock.load(Relaxed);
        self.clock_near(mark).unwrap_or_else(|| match mark {
            0 => 0,
            _ => lock_unseen(&self.buffers).iter().map(clock).max().unwrap_or(0),
        })
    }

    /// Like [`clock_of`](Recorder::clock_of), but returns `None` if that needs a lock.
    #[inline(always)]
    pub(super) fn clock_near(&self, mark: u16) -> Option<u64> {
        let near = self.near.get(usize::from(mark).wrapping_sub(1))?.get()?;
        Some(near.clock.load(Relaxed))
    }

    /// Returns the number of recorded events.
    pub fn events(&self) -> u64 {
        let buffers = lock_unseen(&self.buffers);
        let written: u64 = buffers.iter().map(|buffer| buffer.count()).sum();
        written + self.dropped.load(Relaxed)
    }

    /// Whether the journal is full and refuses new work.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.refuses && self.is_full()
    }

    fn is_full(&self) -> bool {
        self.room.load(Relaxed) >= self.capacity as u64 && self.events() >= self.capacity as u64
    }

    /// Whether the calling thread records on the fast path: its last poll was recorded here, and
    /// the clock advances by itself.
    #[doc(hidden)]
    pub fn is_quick(&self) -> bool {
        self.with_fast(|_| Some(())).is_some()
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn buffers(&self) -> usize {
        lock_unseen(&self.buffers).len()
    }

    /// Returns the record so far. It is exact while nothing is running.
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

    /// Sets the name of a socket: its addresses, which do not fit into events.
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

    /// There are no sockets on wasm.
    #[cfg(target_family = "wasm")]
    fn sockets(&self) -> Vec<(u64, String)> {
        Vec::new()
    }

    /// Removes the events beyond the capacity.
    fn retain(&self, events: &mut Vec<Event>) {
        let excess = events.len().saturating_sub(self.capacity);
        if self.refuses {
            events.truncate(self.capacity);
        } else {
            events.drain(..excess);
        }
    }

    /// Returns the contents of all buffers.
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

    /// Adds an event that there is no room for to the lost ones.
    #[cold]
    pub(super) fn record_lost(&self, time: u64, subject: Subject, kind: EventKind) {
        let mut lost = lock_unseen(&self.lost);
        let fold = lost.get_or_insert_with(|| {
            let ((slots, wide), mut fold) = (self.slots(), Fold::new());
            fold.add(slots, &wide, |_| ());
            fold
        });
        fold.event(time, subject, kind);
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Takes the oldest chunk of a ring, if the other chunks hold `capacity` events, for the thread
    /// to write to.
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
