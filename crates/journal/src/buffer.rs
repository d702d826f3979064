//! The buffers of events: chunks of words, each appended to by one thread.
//!
//! Writing an event takes a few plain stores, and one store of the chunk's length that publishes
//! them. The lock of a buffer is taken when a chunk is full, and by readers. A chunk of a ring that
//! is reused is first taken out under the lock.
//!
//! # Rules
//! 1. All-zero bytes are a valid [`AtomicU64`]. Chunks are allocated zeroed, so that memory which
//!    the system has just cleared is not written a second time.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, PoisonError};

use super::delta;
use super::slot::{self, Slot, Wide};
use crate::prim::{Mutex, lock_unseen};

/// The number of words of a buffer's first chunk. Each further chunk has twice as many, up to
/// `MOST`.
const FIRST: usize = 1 << 8;
const MOST: usize = 1 << 12;

/// The words of dropped chunks.
static SPARE: Spare = Spare(std::sync::Mutex::new(Vec::new()));
/// The maximal number of spare chunks, each of `MOST` words: 4 MiB in total.
const SPARES: usize = 128;

/// One event, in the `filled` counter of a chunk.
pub(super) const EVENT: u64 = 1 << 32;

/// The events of one thread at a time.
pub(super) struct Buffer {
    /// Identifies the buffer in task words.
    pub(super) mark: u16,
    /// Whether no thread is writing to this buffer.
    pub(super) free: AtomicBool,
    /// The published bound of stamps: no earlier than the latest stamp used in this buffer.
    pub(super) clock: AtomicU64,
    /// The number of events in all chunks before the last one, dropped chunks included.
    pub(super) events: AtomicU64,
    pub(super) chunks: Mutex<VecDeque<Arc<Chunk>>>,
}

/// A fixed number of words.
pub(super) struct Chunk {
    /// The number of written words, plus [`EVENT`] times the number of events in them.
    filled: AtomicU64,
    words: Box<[AtomicU64]>,
    /// Events that do not fit into a slot.
    wide: Mutex<Vec<Wide>>,
}

impl Buffer {
    pub(super) fn new(mark: u16) -> Buffer {
        Buffer {
            mark,
            free: AtomicBool::new(false),
            clock: AtomicU64::new(0),
            events: AtomicU64::new(0),
            chunks: Mutex::new(VecDeque::from([Arc::new(Chunk::new(FIRST))])),
        }
    }

    /// Returns the chunk to write to.
    pub(super) fn last(&self) -> Arc<Chunk> {
        let mut chunks = lock_unseen(&self.chunks);
        if chunks.is_empty() {
            chunks.push_back(Arc::new(Chunk::new(FIRST)));
        }
        chunks[chunks.len() - 1].clone()
    }

    /// Returns the number of events recorded in this buffer.
    pub(super) fn count(&self) -> u64 {
        let chunks = lock_unseen(&self.chunks);
        let last = chunks.back().map_or(0, |last| last.filled() / EVENT);
        self.events.load(Relaxed) + last
    }

    /// Appends a new chunk.
    pub(super) fn grow(&self) -> Arc<Chunk> {
        let mut chunks = lock_unseen(&self.chunks);
        self.count_last(&chunks);
        let words = chunks.back().map_or(FIRST, |last| (2 * last.room()).min(MOST));
        let chunk = Arc::new(Chunk::new(words));
        chunks.push_back(chunk.clone());
        chunk
    }

    /// Removes the oldest chunk if the others hold at least `keep` events.
    pub(super) fn pop_oldest(&self, keep: usize) -> Option<Arc<Chunk>> {
        let mut chunks = lock_unseen(&self.chunks);
        let held: u64 = chunks.iter().skip(1).map(|chunk| chunk.filled() / EVENT).sum();
        if held < keep as u64 { None } else { chunks.pop_front() }
    }

    /// Clears a removed chunk and appends it.
    pub(super) fn reuse(&self, chunk: Arc<Chunk>) -> Arc<Chunk> {
        chunk.clear();
        let mut chunks = lock_unseen(&self.chunks);
        self.count_last(&chunks);
        chunks.push_back(chunk.clone());
        chunk
    }

    /// Adds the events of the last chunk to the total, before another chunk is appended.
    fn count_last(&self, chunks: &VecDeque<Arc<Chunk>>) {
        let last = chunks.back().map_or(0, |last| last.filled() / EVENT);
        self.events.fetch_add(last, Relaxed);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        SPARE.put(std::mem::take(&mut self.words));
    }
}

impl Chunk {
    fn new(words: usize) -> Chunk {
        // SAFETY: rule 1.
        let zeroes = || unsafe { Box::new_zeroed_slice(words).assume_init() };
        let words = SPARE.take(words).unwrap_or_else(zeroes);
        Chunk { filled: AtomicU64::new(0), words, wide: Mutex::default() }
    }

    /// Returns the number of written words.
    fn len(&self) -> usize {
        self.filled() as u32 as usize
    }

    /// Returns the `filled` counter: the words and events that are written.
    pub(super) fn filled(&self) -> u64 {
        self.filled.load(Acquire)
    }

    /// Returns the capacity in words.
    pub(super) fn room(&self) -> usize {
        self.words.len()
    }

    /// Whether there is room for a slot.
    pub(super) fn has_room(&self) -> bool {
        self.len() + size_of::<Slot>() / size_of::<u64>() <= self.room()
    }

    /// Stores a word behind the written ones, which end at `filled`, if there is room.
    #[inline(always)]
    pub(super) fn draft(&self, filled: u64, word: u64) -> Option<()> {
        self.words.get(filled as u32 as usize)?.store(word, Relaxed);
        Some(())
    }

    /// Publishes the drafted word as `events` events. Returns the new `filled`.
    #[inline(always)]
    pub(super) fn commit_draft(&self, filled: u64, events: u64) -> u64 {
        let filled = filled + 1 + events * EVENT;
        self.filled.store(filled, Release);
        filled
    }

    /// Appends words behind `filled` and publishes them. Only the chunk's own thread calls this.
    /// Returns the new `filled`, or `None` if there is no room.
    #[inline]
    pub(super) fn write<const N: usize>(
        &self,
        filled: u64,
        words: [u64; N],
        events: u64,
    ) -> Option<u64> {
        let at = filled as u32 as usize;
        let room = self.words.get(at..at + N)?;
        room.iter().zip(words).for_each(|(word, value)| word.store(value, Relaxed));
        let filled = filled + N as u64 + events * EVENT;
        self.filled.store(filled, Release);
        Some(filled)
    }

    /// Stores an unencoded event and returns its index.
    pub(super) fn push_wide(&self, event: Wide) -> usize {
        let mut wide = lock_unseen(&self.wide);
        wide.push(event);
        wide.len() - 1
    }

    fn clear(&self) {
        self.filled.store(0, Release);
        lock_unseen(&self.wide).clear();
    }

    /// Returns the number of events, and of dispatches among them.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.filled() / EVENT, delta::dispatches(self.written()))
    }

    fn written(&self) -> impl Iterator<Item = u64> {
        self.words[..self.len()].iter().map(|word| word.load(Relaxed))
    }

    /// Appends the chunk's contents to `slots` and `wide`.
    pub(super) fn read(&self, slots: &mut Vec<Slot>, wide: &mut Vec<Wide>) {
        let before = wide.len() as u64;
        delta::read(&self.written().collect::<Vec<_>>(), |mut slot| {
            slot::wide_index(&mut slot).into_iter().for_each(|wide_index| *wide_index += before);
            slots.push(slot);
        });
        // Read after the slots, so that every index in a slot is valid.
        wide.extend_from_slice(&lock_unseen(&self.wide));
    }
}

/// The words of dropped large chunks, kept for the next recorder. Touching fresh memory costs a
/// page fault per page, which takes about as long as writing the page's events.
struct Spare(std::sync::Mutex<Vec<Box<[AtomicU64]>>>);

impl Spare {
    fn put(&self, words: Box<[AtomicU64]>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == MOST && spare.len() < SPARES && cfg!(not(asx_no_reuse)) {
            spare.push(words);
        }
    }

    /// Returns spare words. Their contents are unspecified.
    fn take(&self, words: usize) -> Option<Box<[AtomicU64]>> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words == MOST { spare.pop() } else { None }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_up_to_a_bound() {
        let spare = Spare(Default::default());
        let words = |len| Chunk::new(len).words[..].len();
        assert!(spare.take(MOST).is_none());
        (0..SPARES + 3).for_each(|_| spare.put(Box::new([const { AtomicU64::new(7) }; MOST])));
        spare.put(Box::new([const { AtomicU64::new(7) }; FIRST]));
        assert!(spare.take(FIRST).is_none());
        let kept =
            std::iter::from_fn(|| spare.take(MOST)).inspect(|kept| assert_eq!(kept.len(), MOST));
        assert_eq!(kept.count(), if cfg!(asx_no_reuse) { 0 } else { SPARES });
        assert_eq!([words(FIRST), words(MOST)], [FIRST, MOST]);
    }

    #[test]
    fn what_was_written_before_is_not_read_again() {
        let chunk = Chunk::new(MOST);
        let filled =
            (0..MOST as u64).try_fold(0, |filled, n| chunk.write(filled, [n | 1 << 63], 1));
        assert_eq!(filled.map(|filled| filled as u32 as usize), Some(MOST));
        drop(chunk);
        // Likely the same words, from the spare list.
        let chunk = Chunk::new(MOST);
        assert_eq!((chunk.filled(), chunk.written().count(), chunk.counts()), (0, 0, (0, 0)));
    }
}
