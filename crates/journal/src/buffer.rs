//! Where a thread writes its events: chunks of words that only it appends to.
//!
//! An event is a few plain stores, then the chunk's length says that it is there. The lock of a
//! buffer is taken when a chunk is full and by who reads; a chunk that is written again (of a ring)
//! is taken out under it first.
//!
//! # Rules
//! 1. Zeroes are an [`AtomicU64`]. A chunk asks for them, so that memory which the system has just
//!    cleared is not cleared, nor touched, once more.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, PoisonError};

use super::delta;
use super::slot::{self, Slot, Wide};
use crate::prim::{Mutex, lock_unseen};

/// Words of a buffer's first chunk. Each further one has twice as many, up to the most.
const FIRST: usize = 1 << 8;
const MOST: usize = 1 << 12;

/// Words that no chunk has any more.
static SPARE: Spare = Spare(std::sync::Mutex::new(Vec::new()));
/// How many chunks of the most words there can be of them: 4 MiB.
const SPARES: usize = 128;

/// An event, in the count of a chunk.
pub(super) const EVENT: u64 = 1 << 32;

/// The events of one thread at a time.
pub(super) struct Buffer {
    /// By which tasks know it; see [`Mark`](super::Mark).
    pub(super) mark: u16,
    /// No thread writes into it.
    pub(super) free: AtomicBool,
    /// No earlier than the latest stamp given in it, or about to be.
    pub(super) clock: AtomicU64,
    /// Events recorded here before the last chunk.
    pub(super) events: AtomicU64,
    pub(super) chunks: Mutex<VecDeque<Arc<Chunk>>>,
}

/// A number of words.
pub(super) struct Chunk {
    /// How many are written, and (times [`EVENT`]) how many events they are.
    filled: AtomicU64,
    words: Box<[AtomicU64]>,
    /// Events that no slot has room for.
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

    /// The chunk to write to.
    pub(super) fn last(&self) -> Arc<Chunk> {
        let mut chunks = lock_unseen(&self.chunks);
        if chunks.is_empty() {
            chunks.push_back(Arc::new(Chunk::new(FIRST)));
        }
        chunks[chunks.len() - 1].clone()
    }

    /// How many events were recorded here.
    pub(super) fn count(&self) -> u64 {
        let chunks = lock_unseen(&self.chunks);
        let last = chunks.back().map_or(0, |last| last.filled() / EVENT);
        self.events.load(Relaxed) + last
    }

    /// A new last chunk.
    pub(super) fn grow(&self) -> Arc<Chunk> {
        let mut chunks = lock_unseen(&self.chunks);
        self.count_last(&chunks);
        let words = chunks.back().map_or(FIRST, |last| (2 * last.room()).min(MOST));
        let chunk = Arc::new(Chunk::new(words));
        chunks.push_back(chunk.clone());
        chunk
    }

    /// Takes the oldest chunk out if the others hold at least so many events.
    pub(super) fn pop_oldest(&self, keep: usize) -> Option<Arc<Chunk>> {
        let mut chunks = lock_unseen(&self.chunks);
        let held: u64 = chunks.iter().skip(1).map(|chunk| chunk.filled() / EVENT).sum();
        if held < keep as u64 { None } else { chunks.pop_front() }
    }

    /// Puts a chunk that was taken out at the end, empty.
    pub(super) fn reuse(&self, chunk: Arc<Chunk>) -> Arc<Chunk> {
        chunk.clear();
        let mut chunks = lock_unseen(&self.chunks);
        self.count_last(&chunks);
        chunks.push_back(chunk.clone());
        chunk
    }

    /// What is last will not be any more.
    fn count_last(&self, chunks: &VecDeque<Arc<Chunk>>) {
        let last = chunks.back().map_or(0, |last| last.filled() / EVENT);
        self.events.fetch_add(last, Relaxed);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        SPARE.keep(std::mem::take(&mut self.words));
    }
}

impl Chunk {
    fn new(words: usize) -> Chunk {
        // SAFETY: rule 1.
        let zeroes = || unsafe { Box::new_zeroed_slice(words).assume_init() };
        let words = SPARE.take(words).unwrap_or_else(zeroes);
        Chunk { filled: AtomicU64::new(0), words, wide: Mutex::default() }
    }

    /// How many words are written.
    fn len(&self) -> usize {
        self.filled() as u32 as usize
    }

    /// Words and events that are written.
    pub(super) fn filled(&self) -> u64 {
        self.filled.load(Acquire)
    }

    /// How many words there is room for.
    pub(super) fn room(&self) -> usize {
        self.words.len()
    }

    /// Whether there is room for a slot.
    pub(super) fn has_room(&self) -> bool {
        self.len() + size_of::<Slot>() / size_of::<u64>() <= self.room()
    }

    /// Puts a word where the next one goes, after those of `filled`, if there is room.
    #[inline(always)]
    pub(super) fn draft(&self, filled: u64, word: u64) -> Option<()> {
        self.words.get(filled as u32 as usize)?.store(word, Relaxed);
        Some(())
    }

    /// What was put there is written, and is so many events: what is filled then.
    #[inline(always)]
    pub(super) fn keep_draft(&self, filled: u64, events: u64) -> u64 {
        let filled = filled + 1 + events * EVENT;
        self.filled.store(filled, Release);
        filled
    }

    /// Writes the words that come next, after those of `filled`; only the thread whose chunk it is.
    /// What is filled then, or nothing if there is no room.
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

    /// Keeps an event as it is: where.
    pub(super) fn keep(&self, event: Wide) -> usize {
        let mut wide = lock_unseen(&self.wide);
        wide.push(event);
        wide.len() - 1
    }

    fn clear(&self) {
        self.filled.store(0, Release);
        lock_unseen(&self.wide).clear();
    }

    /// How many events are written, and how many of them are dispatches.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.filled() / EVENT, delta::dispatches(self.written()))
    }

    fn written(&self) -> impl Iterator<Item = u64> {
        self.words[..self.len()].iter().map(|word| word.load(Relaxed))
    }

    /// Copies what is written to the end of what was read before.
    pub(super) fn read(&self, slots: &mut Vec<Slot>, wide: &mut Vec<Wide>) {
        let before = wide.len() as u64;
        delta::read(&self.written().collect::<Vec<_>>(), |mut slot| {
            slot::place(&mut slot).into_iter().for_each(|place| *place += before);
            slots.push(slot);
        });
        // After the slots, so that each finds what it names.
        wide.extend_from_slice(&lock_unseen(&self.wide));
    }
}

/// The words of large chunks, until the next recorder needs some: to touch new memory, a page at a
/// time, takes about as long as to write what it holds.
struct Spare(std::sync::Mutex<Vec<Box<[AtomicU64]>>>);

impl Spare {
    fn keep(&self, words: Box<[AtomicU64]>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == MOST && spare.len() < SPARES && cfg!(not(asx_no_reuse)) {
            spare.push(words);
        }
    }

    /// What they say is of no meaning.
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
        (0..SPARES + 3).for_each(|_| spare.keep(Box::new([const { AtomicU64::new(7) }; MOST])));
        spare.keep(Box::new([const { AtomicU64::new(7) }; FIRST]));
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
        // Likely the same words.
        let chunk = Chunk::new(MOST);
        assert_eq!((chunk.filled(), chunk.written().count(), chunk.counts()), (0, 0, (0, 0)));
    }
}
