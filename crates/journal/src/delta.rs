//! Most events in a word or two, which say what is not as in the slots before them.
//!
//! ```text
//!   63 62   59 58  57 56            42 41      32 31                      0
//!  +--+-------+------+----------------+----------+-------------------------+
//!  | 1| code  |region| stamp, by more |  fields  |          task           |
//!  +--+-------+------+----------------+----------+-------------------------+
//!  |        timer or channel          |            more fields             |
//!  +----------------------------------+------------------------------------+
//! ```
//! The time is that of the last [slot](super::slot) in the chunk, and the stamp is later than its
//! by so much. The region is that of the last slot about one whose number ends in these bits, among
//! those of the same number of words; how a dispatch came about is as in the last slot of one. Only
//! events of timers and channels have the second word. Whatever is too far from what was before is
//! written as a slot.
//!
//! A word of the code 0 is no event. It says by how much it is later than at the last slot or such
//! word, and which stamp is the first one then:
//!
//! ```text
//!   63 62         56 55                          28 27                    0
//!  +--+-------------+------------------------------+-----------------------+
//!  | 1|      0      |         time, by more        |     stamp, by more    |
//!  +--+-------------+------------------------------+-----------------------+
//! ```

use super::slot::{self, ARMED, CODE_SHIFT, DISPATCHED, FIRED, PackedEvent, SOCKET_OPENED, Slot};

const BRIEF: u64 = 1 << 63;
const CODE_AT: u32 = 59;
const REGION_AT: u32 = 57;
const STAMP_AT: u32 = 42;
const FIELDS_AT: u32 = 32;
const STAMP_BITS: u32 = REGION_AT - STAMP_AT;
const FIELD_BITS: u32 = STAMP_AT - FIELDS_AT;
const REGIONS: usize = 1 << (CODE_AT - REGION_AT);
/// Of an event with a second word.
const ALL_FIELD_BITS: u32 = FIELD_BITS + 32;
const LOW: u64 = u32::MAX as u64;
/// The code of a word that only says how late it is, and the bits of either part.
const LATER: u64 = 0;
const LATER_BITS: u32 = 28;

/// What slots in a chunk said, as far as it matters for what is next.
#[derive(Clone, Copy)]
pub(super) struct Context {
    stamp: u64,
    /// Stamps from here on are too far.
    end: u64,
    time: u64,
    /// One higher. Those of tasks and regions, then those of timers and channels: a task's timer is
    /// in none, and would put that in place of the task's.
    regions: [u64; 2 * REGIONS],
    /// Without the step that was made.
    dispatch: u64,
}

impl Context {
    /// That of a chunk of which nothing is known: what is next is a slot. So is the first dispatch,
    /// which is far from that.
    pub(super) const NONE: Context =
        Context { stamp: 0, end: 0, time: 0, regions: [0; 2 * REGIONS], dispatch: 1 << 63 };

    /// A word for an event at this stamp, and at the time of the last slot. The ids are one higher.
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
        let head = BRIEF | code << CODE_AT | (region % REGIONS as u64) << REGION_AT;
        Some(head | (stamp - self.stamp) << STAMP_AT | fields << FIELDS_AT | task)
    }

    /// The words for an event of a thing, whose id is one higher, too.
    #[inline(always)]
    pub(super) fn words(
        &self,
        code: u64,
        ids: (u64, u64),
        thing: u64,
        fields: u64,
        stamp: u64,
    ) -> Option<[u64; 2]> {
        let fields = fields.wrapping_sub(self.base(code));
        let word = self.word(code, ids, fields >> 32, stamp)?;
        (thing <= LOW).then_some([word, thing << 32 | fields & LOW])
    }

    /// What was told, in few words: the second is there for a thing.
    #[inline]
    pub(super) fn brief(&self, told: &PackedEvent, stamp: u64) -> Option<(u64, Option<u64>)> {
        let code = told.code >> CODE_SHIFT;
        let ids = (told.ids & LOW, told.ids >> 32);
        if code >= SOCKET_OPENED {
            return None;
        }
        if code >= ARMED {
            let words = self.words(code, ids, told.thing.into(), told.fields, stamp);
            return words.map(|[word, tail]| (word, Some(tail)));
        }
        let word = self.word(code, ids, told.fields.wrapping_sub(self.base(code)), stamp)?;
        (told.thing == 0).then_some((word, None))
    }

    /// What fields of this kind are counted from.
    #[inline]
    fn base(&self, code: u64) -> u64 {
        match code {
            DISPATCHED => self.dispatch,
            // Deadlines are near the time, before or after it.
            ARMED | FIRED => self.time.wrapping_sub(1 << (ALL_FIELD_BITS - 1)),
            _ => 0,
        }
    }

    /// The last dispatch that is in a slot.
    #[inline]
    pub(super) fn dispatch(&self) -> u64 {
        self.dispatch
    }

    /// Whether a slot has told the time, and it is the same still.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.end != 0
    }

    /// A word for another time than the last known one, and stamps from this one on; the caller
    /// writes it.
    pub(super) fn later(&mut self, stamp: u64, time: u64) -> Option<u64> {
        let later = time.checked_sub(self.time)?;
        let on = stamp.checked_sub(self.stamp)?;
        if (later | on) >> LATER_BITS != 0 || stamp < time {
            return None;
        }
        self.go_on(later, on);
        Some(BRIEF | LATER << CODE_AT | later << LATER_BITS | on)
    }

    fn go_on(&mut self, later: u64, on: u64) {
        (self.time, self.stamp) = (self.time + later, self.stamp + on);
        self.limit();
    }

    fn limit(&mut self) {
        // A slot has 32 bits for how much later than the time the stamp is.
        self.end = (self.stamp + (1 << STAMP_BITS)).min(self.time + (1 << 32));
    }

    /// It is another time: what is next is a slot.
    #[inline]
    pub(super) fn is_over(&mut self) {
        self.end = 0;
    }

    /// A slot was written; not one of an event that is kept elsewhere.
    pub(super) fn wrote(&mut self, slot: &Slot) {
        (self.stamp, self.time) = (slot::stamp(slot), slot::time(slot));
        self.limit();
        let region = slot[2] >> 32;
        self.regions[at(slot[0] >> CODE_SHIFT, region)] = region;
        if slot::is_dispatch(slot) {
            self.dispatch = slot[3] & !slot::STEP;
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

/// Where the region of an event of this kind is known.
#[inline(always)]
fn at(code: u64, region: u64) -> usize {
    (region as usize % REGIONS) + if code >= ARMED { REGIONS } else { 0 }
}

fn code_of(word: u64) -> u64 {
    word >> CODE_AT & 0xf
}

/// Gives each of the slots that the words of a chunk are.
pub(super) fn read(words: &[u64], mut each: impl FnMut(Slot)) {
    let mut context = Context::NONE;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word & BRIEF == 0 {
            let Some(mut slot) = words[at..].first_chunk().copied() else { return };
            at += slot.len();
            if slot::place(&mut slot).is_none() {
                context.wrote(&slot);
            }
            each(slot);
            continue;
        }
        if code_of(*word) == LATER {
            let part = |at: u32| word >> at & ((1 << LATER_BITS) - 1);
            context.go_on(part(LATER_BITS), part(0));
            at += 1;
            continue;
        }
        let has_tail = code_of(*word) >= ARMED;
        let tail = if has_tail { words.get(at + 1).copied().unwrap_or(0) } else { 0 };
        at += 1 + usize::from(has_tail);
        each(context.read(*word, tail));
    }
}

/// How many of the slots that the words of a chunk are tell of a dispatch.
pub(super) fn dispatches(words: impl Iterator<Item = u64>) -> u64 {
    let mut words = words;
    let mut count = 0;
    while let Some(word) = words.next() {
        let brief = word & BRIEF != 0;
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
