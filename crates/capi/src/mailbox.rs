//! Wakes from other threads and from signal handlers: a bit per task slot.
//!
//! ```text
//!  owner:  publish(task)   the slot's generation is written, its bit cleared
//!  anyone: post(task)      generation compared, bit set, then `pending` set
//!  owner:  drain           `pending` taken, then every word of bits taken: whom to wake
//! ```
//! *Nothing is lost.* A bit set before a drain takes its word is delivered by that drain; one set
//! later is followed by `pending`, which the next drain finds. *Nothing waits.* A post is a few
//! loads and two `fetch_or`, whatever it interrupts. *Nothing fills up.* Posting again
//! finds the bit set: duplicates are one wake. What is written before a post is seen by the poll
//! that follows the drain (release, acquire).
//!
//! A post that races with its task's end may set the bit after the slot has a new tenant. That one
//! is then polled once more than it had to be, which a poll must always bear.
//!
//! Rules of the unsafe code:
//! 1. A segment's pointer is null or came from `Box::into_raw` in `segment_for`, of a slice of one,
//!    which only the owner's thread runs.
//! 2. A segment is freed by the mailbox's drop only, when nobody else has the mailbox.

use crate::sync::{AtomicPtr, AtomicU32, Ordering};
use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use asx_kernel::arena::Key;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ptr::null_mut;

/// Task slots per word.
const PER_WORD: u32 = 32;
/// Segment n has 2^n words: together enough for every slot there can be.
const SEGMENTS: usize = 28;

/// The slots of 32 tasks.
struct Word {
    bits: AtomicU32,
    /// The generations of the tenants, low and high halves; 0: none.
    low: [AtomicU32; PER_WORD as usize],
    high: [AtomicU32; PER_WORD as usize],
}

impl Word {
    fn new() -> Word {
        let zeros = || core::array::from_fn(|_| AtomicU32::new(0));
        Word { bits: AtomicU32::new(0), low: zeros(), high: zeros() }
    }

    fn generation(&self, bit: u32) -> u64 {
        let half = |of: &[AtomicU32]| of.get(bit as usize).map_or(0, |g| g.load(Ordering::Acquire));
        u64::from(half(&self.low)) | (u64::from(half(&self.high)) << 32)
    }
}

/// A box of one vector of words.
type Segment = Vec<Word>;

/// The mailbox of a runtime.
pub(crate) struct Mailbox {
    pending: AtomicU32,
    segments: [AtomicPtr<Segment>; SEGMENTS],
}

/// Where a slot's bit is: segment, word in it, bit.
fn place(index: u32) -> (usize, usize, u32) {
    let word = u64::from(index / PER_WORD) + 1;
    let segment = word.ilog2();
    (segment as usize, (word - (1 << segment)) as usize, index % PER_WORD)
}

impl Mailbox {
    /// A mailbox without room.
    pub(crate) fn new() -> Mailbox {
        let segments = core::array::from_fn(|_| AtomicPtr::new(null_mut()));
        Mailbox { pending: AtomicU32::new(0), segments }
    }

    /// Owner only: makes room for this many slots, if there is none. What was made stays when the
    /// rest is not to be had.
    pub(crate) fn try_reserve(&self, slots: usize) -> Result<(), TryReserveError> {
        let last = u32::try_from(slots.max(1) - 1).unwrap_or(u32::MAX);
        let (last, ..) = place(last);
        let there = |segment: &usize| self.segment(*segment).is_some();
        // Segments are made in order: of the last one the others can be told.
        if there(&last) {
            return Ok(());
        }
        (0..=last).filter(|segment| !there(segment)).try_for_each(|s| self.segment_for(s))
    }

    /// Owner only: whoever has this key from now on may be woken.
    pub(crate) fn publish(&self, task: Key) {
        let (segment, at, bit) = place(task.index);
        let Some(word) = self.word(segment, at) else { return };
        if word.generation(bit) == task.generation {
            return;
        }
        let store = |half: &[AtomicU32], value: u64| {
            if let Some(slot) = half.get(bit as usize) {
                slot.store(value as u32, Ordering::Release);
            }
        };
        store(&word.low, task.generation);
        store(&word.high, task.generation >> 32);
        word.bits.fetch_and(!(1 << bit), Ordering::AcqRel);
    }

    /// Anyone, any time: wakes the task at the next drain.
    pub(crate) fn post(&self, task: Key) -> Answer {
        let (segment, at, bit) = place(task.index);
        let word = self.word(segment, at).ok_or(Status::StaleHandle)?;
        if task.generation == 0 || word.generation(bit) != task.generation {
            return Err(Status::StaleHandle);
        }
        word.bits.fetch_or(1 << bit, Ordering::AcqRel);
        self.pending.fetch_or(1, Ordering::AcqRel);
        Ok(())
    }

    /// Whether something was posted since the last drain began.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Owner only: hands out what was posted, by slot. What `wake` does not take stays.
    pub(crate) fn drain(&self, mut wake: impl FnMut(Key) -> bool) {
        if self.pending.swap(0, Ordering::AcqRel) == 0 {
            return;
        }
        for segment in 0..SEGMENTS {
            // Segments need not be made in order.
            let Some(words) = self.segment(segment) else { continue };
            let first = (1_u32 << segment) - 1;
            for (at, word) in words.iter().enumerate() {
                let base = (first + at as u32).wrapping_mul(PER_WORD);
                self.drain_word(word, base, &mut wake);
            }
        }
    }

    fn drain_word(&self, word: &Word, base: u32, wake: &mut impl FnMut(Key) -> bool) {
        if word.bits.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut bits = word.bits.swap(0, Ordering::AcqRel);
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let key = Key { generation: word.generation(bit), index: base + bit };
            if !wake(key) {
                word.bits.fetch_or(1 << bit, Ordering::AcqRel);
                self.pending.fetch_or(1, Ordering::AcqRel);
            }
        }
    }

    fn word(&self, segment: usize, at: usize) -> Option<&Word> {
        self.segment(segment)?.get(at)
    }

    fn segment(&self, segment: usize) -> Option<&[Word]> {
        let pointer = self.segments.get(segment)?.load(Ordering::Acquire);
        // SAFETY: rules 1 and 2: null, or a box that lives as long as the mailbox.
        unsafe { pointer.as_ref() }.map(Vec::as_slice)
    }

    /// Owner only: makes the segment.
    fn segment_for(&self, segment: usize) -> Result<(), TryReserveError> {
        let Some(slot) = self.segments.get(segment) else { return Ok(()) };
        let mut words = Vec::new();
        let mut home = Vec::new();
        words.try_reserve_exact(1 << segment)?;
        home.try_reserve_exact(1)?;
        words.resize_with(1 << segment, Word::new);
        home.push(words);
        // A vector, because it can be refused where a box cannot.
        let home: Box<[Vec<Word>]> = home.into_boxed_slice();
        slot.store(Box::into_raw(home).cast::<Vec<Word>>(), Ordering::Release);
        Ok(())
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        for slot in &self.segments {
            let pointer = slot.load(Ordering::Acquire);
            if !pointer.is_null() {
                // SAFETY: rules 1 and 2: made by `Box::into_raw`, and this is the last use.
                drop(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(pointer, 1)) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u32, generation: u64) -> Key {
        Key { generation, index }
    }

    fn with_room(slots: usize) -> Mailbox {
        let mailbox = Mailbox::new();
        mailbox.try_reserve(slots).unwrap();
        mailbox
    }

    #[cfg(not(loom))]
    fn drained(mailbox: &Mailbox) -> Vec<Key> {
        let mut keys = Vec::new();
        mailbox.drain(|key| {
            keys.push(key);
            true
        });
        keys
    }

    #[cfg(not(loom))]
    #[test]
    fn places_cover_every_slot_once() {
        let mut expected = (0, 0, 0);
        for index in 0..10_000 {
            assert_eq!(place(index), expected, "{index}");
            expected.2 += 1;
            if expected.2 == 32 {
                expected = (expected.0, expected.1 + 1, 0);
            }
            if expected.1 == 1 << expected.0 {
                expected = (expected.0 + 1, 0, 0);
            }
        }
        assert!(place(u32::MAX).0 < SEGMENTS);
    }

    #[cfg(not(loom))]
    #[test]
    fn posts_come_out_once_by_slot_and_stale_ones_are_refused() {
        let mailbox = with_room(1);
        assert_eq!(mailbox.post(key(3, 1)), Err(Status::StaleHandle));
        mailbox.publish(key(500, 8));
        assert_eq!(mailbox.post(key(500, 8)), Err(Status::StaleHandle));
        mailbox.try_reserve(501).unwrap();
        for (index, generation) in [(3, 7), (500, 8), (31, 1 << 40)] {
            mailbox.publish(key(index, generation));
        }
        assert_eq!(mailbox.post(key(3, 6)), Err(Status::StaleHandle));
        assert_eq!(mailbox.post(key(3, 0)), Err(Status::StaleHandle));
        assert_eq!(mailbox.post(key(u32::MAX, 7)), Err(Status::StaleHandle));
        assert!(!mailbox.is_pending());
        for _ in 0..3 {
            assert_eq!(mailbox.post(key(500, 8)), Ok(()));
        }
        assert_eq!(mailbox.post(key(3, 7)), Ok(()));
        assert_eq!(mailbox.post(key(31, 1 << 40)), Ok(()));
        assert_eq!(drained(&mailbox), [key(3, 7), key(31, 1 << 40), key(500, 8)]);
        assert_eq!(drained(&mailbox), []);
    }

    #[cfg(not(loom))]
    #[test]
    fn what_is_not_taken_stays_and_a_new_tenant_starts_clean() {
        let mailbox = with_room(64);
        mailbox.publish(key(40, 1));
        assert_eq!(mailbox.post(key(40, 1)), Ok(()));
        mailbox.drain(|_| false);
        assert!(mailbox.is_pending());
        mailbox.publish(key(40, 2));
        assert_eq!(drained(&mailbox), []);
        assert_eq!(mailbox.post(key(40, 1)), Err(Status::StaleHandle));
    }

    /// Two posters, and an owner who drains meanwhile: each post is followed by one delivery, which
    /// sees what was written before it.
    #[cfg(loom)]
    #[test]
    fn no_post_is_lost() {
        use loom::sync::Arc;
        loom::model(|| {
            let mailbox = Arc::new(with_room(1));
            let data = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            mailbox.publish(key(0, 1));
            mailbox.publish(key(1, 2));
            let posters: Vec<_> = [(0, 1_u64), (1, 2)]
                .into_iter()
                .map(|(index, generation)| {
                    let mailbox = Arc::clone(&mailbox);
                    let data = Arc::clone(&data);
                    loom::thread::spawn(move || {
                        data[index as usize].store(1, Ordering::Relaxed);
                        assert_eq!(mailbox.post(key(index, generation)), Ok(()));
                    })
                })
                .collect();
            let mut seen = [0; 2];
            let mut look = |seen: &mut [u32; 2]| {
                mailbox.drain(|key| {
                    assert_eq!(data[key.index as usize].load(Ordering::Relaxed), 1);
                    seen[key.index as usize] += 1;
                    true
                });
            };
            look(&mut seen);
            posters.into_iter().for_each(|poster| poster.join().unwrap());
            look(&mut seen);
            assert_eq!(seen, [1, 1]);
        });
    }
}
