//! The short form of an event: one or two words that encode the difference from earlier slots.
//!
//! ```text
//!   63 62   59 58  57 56            42 41      32 31                      0
//!  +--+-------+------+----------------+----------+-------------------------+
//!  | 1| code  |region|  stamp - base  |  fields  |          task           |
//!  +--+-------+------+----------------+----------+-------------------------+
//!  |        timer or channel          |            more fields             |
//!  +----------------------------------+------------------------------------+
//! ```
//! The time is that of the last [slot](super::slot) in the chunk, and the stamp is relative to that
//! slot's. The two region bits select one of four remembered regions: the region of the last slot
//! with a region id that ends in these bits, with separate memories for one-word and two-word
//! events. The fields of a dispatch are relative to the last dispatch in a slot. Only events of
//! timers and channels have the second word. An event that differs by more than this can encode is
//! written as a slot.
//!
//! A word with code 0 is a time word and holds no event. It sets a new time and base stamp,
//! relative to the last slot or time word:
//!
//! ```text
//!   63 62         56 55                          28 27                    0
//!  +--+-------------+------------------------------+-----------------------+
//!  | 1|      0      |       time - last time       |  stamp - last stamp   |
//!  +--+-------------+------------------------------+-----------------------+
//! ```

use super::slot::{self, ARMED, CODE_SHIFT, DISPATCHED, FIRED, PackedEvent, SOCKET_OPENED, Slot};

const SHORT: u64 = 1 << 63;
const CODE_AT: u32 = 59;
const REGION_AT: u32 = 57;
const STAMP_AT: u32 = 42;
const FIELDS_AT: u32 = 32;
const STAMP_BITS: u32 = REGION_AT - STAMP_AT;
const FIELD_BITS: u32 = STAMP_AT - FIELDS_AT;
const REGIONS: usize = 1 << (CODE_AT - REGION_AT);
/// The bits of the fields of an event with a second word.
const ALL_FIELD_BITS: u32 = FIELD_BITS + 32;
const LOW: u64 = u32::MAX as u64;
/// The code of a time word, and the width of each of its two parts.
const TIME_WORD: u64 = 0;
const TIME_WORD_BITS: u32 = 28;

/// The state of the encoder and decoder, as determined by the earlier slots of the chunk.
#[derive(Clone, Copy)]
pub(super) struct Context {
    stamp: u64,
    /// The exclusive upper bound of stamps that can be encoded; 0 if the next event needs a slot.
    end: u64,
    time: u64,
    /// The remembered regions plus one: first those of one-word events, then those of two-word
    /// events. They are separate because a task's timer has no region, and would evict the region
    /// of the task's other events.
    regions: [u64; 2 * REGIONS],
    /// The fields of the last dispatch, without its step.
    dispatch: u64,
}

impl Context {
    /// The context of an empty chunk. The first event needs a slot, and so does the first dispatch:
    /// `dispatch` differs from all real ones by more than a word can encode.
    pub(super) const NONE: Context =
        Context { stamp: 0, end: 0, time: 0, regions: [0; 2 * REGIONS], dispatch: 1 << 63 };

    /// Encodes an event at this stamp and the last slot's time as one word. The ids are plus one.
    #[inline(always)]
    pub(super) fn word(
        &self,
        code: u64,
        (task, region): (u64, u64),
        fields: u64,
        stamp: u64,
    ) -> Option<u64> {
        let known = self.regions[at(code, region)];
        let excess = task >> 32 | fields >> FIELD_BITS | (known ^ region);
        if excess != 0 || stamp >= self.end {
            return None;
        }
        let head = SHORT | code << CODE_AT | (region % REGIONS as u64) << REGION_AT;
        Some(head | (stamp - self.stamp) << STAMP_AT | fields << FIELDS_AT | task)
    }

    /// Encodes an event of an object as two words. The ids are plus one.
    #[inline(always)]
    pub(super) fn words(
        &self,
        code: u64,
        ids: (u64, u64),
        object: u64,
        fields: u64,
        stamp: u64,
    ) -> Option<[u64; 2]> {
        let fields = fields.wrapping_sub(self.base(code));
        let word = self.word(code, ids, fields >> 32, stamp)?;
        (object <= LOW).then_some([word, object << 32 | fields & LOW])
    }

    /// Encodes a packed event as one word, or as two if it has an object.
    #[inline]
    pub(super) fn brief(&self, packed: &PackedEvent, stamp: u64) -> Option<(u64, Option<u64>)> {
        let code = packed.code >> CODE_SHIFT;
        let ids = (packed.ids & LOW, packed.ids >> 32);
        if code >= SOCKET_OPENED {
            return None;
        }
        if code >= ARMED {
            let words = self.words(code, ids, packed.object.into(), packed.fields, stamp);
            return words.map(|[word, tail]| (word, Some(tail)));
        }
        let word = self.word(code, ids, packed.fields.wrapping_sub(self.base(code)), stamp)?;
        (packed.object == 0).then_some((word, None))
    }

    /// Returns the value that the fields of this kind are relative to.
    #[inline]
    fn base(&self, code: u64) -> u64 {
        match code {
            DISPATCHED => self.dispatch,
            // Deadlines are near the time, before or after it.
            ARMED | FIRED => self.time.wrapping_sub(1 << (ALL_FIELD_BITS - 1)),
            _ => 0,
        }
    }

    /// Returns the fields of the last dispatch in a slot.
    #[inline]
    pub(super) fn dispatch(&self) -> u64 {
        self.dispatch
    }

    /// Whether a slot or time word has set the current time.
    #[inline]
    pub(super) fn is_valid(&self) -> bool {
        self.end != 0
    }

    /// Encodes a new time and base stamp as a time word. The caller writes the word.
    pub(super) fn time_word(&mut self, stamp: u64, time: u64) -> Option<u64> {
        let time_delta = time.checked_sub(self.time)?;
        let stamp_delta = stamp.checked_sub(self.stamp)?;
        if (time_delta | stamp_delta) >> TIME_WORD_BITS != 0 || stamp < time {
            return None;
        }
        self.advance(time_delta, stamp_delta);
        Some(SHORT | TIME_WORD << CODE_AT | time_delta << TIME_WORD_BITS | stamp_delta)
    }

    fn advance(&mut self, time_delta: u64, stamp_delta: u64) {
        (self.time, self.stamp) = (self.time + time_delta, self.stamp + stamp_delta);
        self.limit();
    }

    fn limit(&mut self) {
        // A slot has 32 bits for the difference between stamp and time.
        self.end = (self.stamp + (1 << STAMP_BITS)).min(self.time + (1 << 32));
    }

    /// The time has changed: the next event needs a slot or a time word.
    #[inline]
    pub(super) fn invalidate(&mut self) {
        self.end = 0;
    }

    /// Updates the context after a slot was written, except a slot of an unencoded event.
    pub(super) fn observe_slot(&mut self, slot: &Slot) {
        (self.stamp, self.time) = (slot::stamp(slot), slot::time(slot));
        self.limit();
        let region = slot[2] >> 32;
        self.regions[at(slot[0] >> CODE_SHIFT, region)] = region;
        if slot::is_dispatch(slot) {
            self.dispatch = slot[3] & !slot::STEP_MASK;
        }
    }

    fn read(&self, word: u64, tail: u64) -> Slot {
        let code = code_of(word);
        let stamp = self.stamp + (word >> STAMP_AT & ((1 << STAMP_BITS) - 1));
        let high = word >> FIELDS_AT & ((1 << FIELD_BITS) - 1);
        let fields = if code >= ARMED { high << 32 | tail & LOW } else { high };
        let region = self.regions[at(code, word >> REGION_AT)];
        [
            stamp | code << CODE_SHIFT,
            tail & !LOW | (stamp - self.time),
            region << 32 | word & LOW,
            fields.wrapping_add(self.base(code)),
        ]
    }
}

/// Returns the index of the remembered region for this code.
#[inline(always)]
fn at(code: u64, region: u64) -> usize {
    (region as usize % REGIONS) + if code >= ARMED { REGIONS } else { 0 }
}

fn code_of(word: u64) -> u64 {
    word >> CODE_AT & 0xf
}

/// Decodes the words of a chunk into slots.
pub(super) fn read(words: &[u64], mut each: impl FnMut(Slot)) {
    let mut context = Context::NONE;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word & SHORT == 0 {
            let Some(mut slot) = words[at..].first_chunk().copied() else { return };
            at += slot.len();
            if slot::wide_index(&mut slot).is_none() {
                context.observe_slot(&slot);
            }
            each(slot);
            continue;
        }
        if code_of(*word) == TIME_WORD {
            let part = |at: u32| word >> at & ((1 << TIME_WORD_BITS) - 1);
            context.advance(part(TIME_WORD_BITS), part(0));
            at += 1;
            continue;
        }
        let has_tail = code_of(*word) >= ARMED;
        let tail = if has_tail { words.get(at + 1).copied().unwrap_or(0) } else { 0 };
        at += 1 + usize::from(has_tail);
        each(context.read(*word, tail));
    }
}

/// Counts the dispatches in the words of a chunk.
pub(super) fn dispatches(words: impl Iterator<Item = u64>) -> u64 {
    let mut words = words;
    let mut count = 0;
    while let Some(word) = words.next() {
        let brief = word & SHORT != 0;
        let code = if brief { code_of(word) } else { word >> CODE_SHIFT };
        count += u64::from(code == DISPATCHED);
        match brief {
            true if code < ARMED => {}
            true => drop(words.next()),
            false => drop(words.nth(2)),
        }
    }
    count
}
