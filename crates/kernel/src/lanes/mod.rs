//! The scheduler: the choice of the next runnable entry.
//!
//! [`Lanes`] is one queue: three lanes over one slab, each with its own order (cancel and ready by
//! priority, timed by deadline, equals by insertion). [`Fairness`] chooses the lane, under a
//! governor's [`Suggestion`], such that the number of times that work is passed is bounded.
//! [`dispatch`] is the complete law for a worker: one global queue, one local queue per worker,
//! stealing and fallback, over the [`Queues`] of its host. [`Scheduler`] is such a host for N
//! workers without threads. Each dispatch is counted in the worker's [`Certificate`].
//!
//! ```text
//! wake -> enqueue(source, place) -> lanes -> decide(pending, suggestion) -> lane
//!           lane: global, then local -> token      only cancel work above its limit, or no work:
//!                                                  steal -> token, else fallback cancel, or idle
//! ```

mod bypass;
mod certificate;
mod decision;
mod dispatch;
mod fairness;
mod place;
mod priority;
mod scheduler;
mod view;

pub use bypass::Bypass;
pub use certificate::Certificate;
pub use decision::{Decision, DecisionChain, Origin, Source, Ticket, Token};
pub use dispatch::{Chosen, Queues, Stolen, Taken, dispatch};
pub use fairness::{Fairness, FairnessConfig, Pending, Suggestion, Turn, Verdict};
pub use place::{Lane, Place, Priority};
pub use scheduler::{Scheduler, SchedulerConfig, TieBreak, steal_order};

use crate::named::ensure;
use crate::queue::{Node, Queue};
use crate::time::Time;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use priority::Buckets;

/// No slot.
const NIL: u32 = u32::MAX;

/// The links of a slot in its list. In the timed lane `prev` is its position in the heap, and in a
/// free slot `next` is the next free one.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// `None` in a free slot.
    token: Option<T>,
    place: Place,
    seq: u64,
    pinned: bool,
}

/// Identifies an entry of one [`Lanes`]; stale once the entry has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId {
    /// The insertion sequence. It is never reused, so it serves as the slot's generation.
    seq: u64,
    slot: u32,
}

impl EntryId {
    /// The entry's insertion sequence in its structure.
    pub const fn seq(self) -> u64 {
        self.seq
    }
}

/// Three lanes of runnable entries with one insertion sequence.
///
/// A *pinned* entry is never stolen.
///
/// ```
/// use asx_kernel::lanes::{Lane, Lanes, Place, Priority};
/// let mut lanes = Lanes::new();
/// let low = lanes.push(Place::ready(Priority(1)), "low", false);
/// lanes.push(Place::ready(Priority(9)), "high", false);
/// assert_eq!(lanes.pop(Lane::Ready), Some((Place::ready(Priority(9)), "high")));
/// assert_eq!((lanes.remove(low), lanes.remove(low)), (Some("low"), None));
/// ```
#[derive(Clone, Debug)]
pub struct Lanes<T> {
    entries: Vec<Entry<T>>,
    links: Vec<Link>,
    free: u32,
    next_seq: u64,
    cancel: Buckets,
    timed: Queue,
    ready: Buckets,
    /// The number of entries in each lane.
    len: [usize; 3],
    /// The number of entries in each lane that may be stolen.
    stealable: [usize; 3],
    /// Whether equals are ordered by their words, so that the first one need not be the oldest.
    by_word: bool,
}

impl<T> Lanes<T> {
    /// Creates empty lanes.
    pub fn new() -> Lanes<T> {
        Lanes {
            entries: Vec::new(),
            links: Vec::new(),
            free: NIL,
            next_seq: 0,
            cancel: Buckets::new(),
            timed: Queue::default(),
            ready: Buckets::new(),
            len: Default::default(),
            stealable: Default::default(),
            by_word: false,
        }
    }
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes::new()
    }
}

impl<T> Lanes<T> {
    /// Adds an entry behind its equals. O(1); O(log n) in the timed lane.
    ///
    /// # Panics
    ///
    /// If 2^32 - 1 entries wait; there are fewer task ids than that.
    pub fn push(&mut self, place: Place, token: T, pinned: bool) -> EntryId {
        let id = self.admit(place, token, pinned);
        let links = &mut self.links[..];
        match place.lane() {
            Lane::Cancel => self.cancel.push(links, id.slot, place.priority()),
            Lane::Timed => self.push_timed(id.slot, place, id.seq),
            Lane::Ready => self.ready.push(links, id.slot, place.priority()),
        }
        id
    }

    /// Adds an entry in the order of its token's [`word`](Token::word) among its equals. O(n) in
    /// the number of equals; O(log n) in the timed lane.
    ///
    /// Two entries with the same word keep the order of their insertion in the cancel and ready
    /// lanes. In the timed lane there is at most one entry with a given word.
    #[cold]
    pub fn push_by_word(&mut self, place: Place, token: T, pinned: bool) -> EntryId
    where
        T: Token,
    {
        self.by_word = true;
        let word = token.word();
        let id = self.admit(place, token, pinned);
        let goes_first = |slot: u32| {
            let other = self.entries[slot as usize].token.as_ref();
            other.is_none_or(|other| other.word() <= word)
        };
        let links = &mut self.links[..];
        let level = place.priority();
        match place.lane() {
            Lane::Cancel => self.cancel.insert(links, id.slot, level, goes_first),
            Lane::Timed => self.push_timed(id.slot, place, word),
            Lane::Ready => self.ready.insert(links, id.slot, level, goes_first),
        }
        id
    }

    /// Counts an entry and stores it in a slot; it is not yet in a lane.
    fn admit(&mut self, place: Place, token: T, pinned: bool) -> EntryId {
        let seq = self.next_seq;
        self.next_seq += 1;
        let slot = self.store(Entry { token: Some(token), place, seq, pinned });
        self.len[place.lane() as usize] += 1;
        self.stealable[place.lane() as usize] += usize::from(!pinned);
        EntryId { seq, slot }
    }

    fn push_timed(&mut self, slot: u32, place: Place, seq: u64) {
        let links = &mut self.links[..];
        let deadline = place.deadline().map_or(u64::MAX, Time::as_nanos);
        let node = Node { deadline, seq, at: slot };
        self.timed.push(node, |at, position| links[at as usize].prev = position);
    }

    /// Removes the first entry of a lane. O(1); O(log n) in the timed lane.
    pub fn pop(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.first(lane).and_then(|slot| self.take(slot))
    }

    /// Removes an entry, unless it has left. O(1); O(log n) in the timed lane.
    pub fn remove(&mut self, id: EntryId) -> Option<T> {
        self.entries.get(id.slot as usize).filter(|entry| entry.seq == id.seq)?;
        self.take(id.slot).map(|(_, token)| token)
    }

    /// Removes one of the ready entries that share the highest priority: number `pick(count)` in
    /// insertion order. `pick` is called only if there are at least two.
    pub fn pop_ready_tied(&mut self, pick: impl FnOnce(usize) -> usize) -> Option<(Place, T)> {
        let count = self.ready.tied();
        let nth = if count < 2 { 0 } else { pick(count).min(count - 1) };
        let slot = self.ready.nth_tied(&self.links, nth)?;
        self.take(slot)
    }

    /// Removes the ready entry that was added first, regardless of its priority.
    pub fn pop_oldest(&mut self) -> Option<(Place, T)> {
        let age = |slot: &u32| self.entries[*slot as usize].seq;
        let oldest = match self.by_word {
            false => self.ready.heads().min_by_key(age),
            true => self.ready.iter(&self.links).min_by_key(age),
        };
        self.take(oldest?)
    }

    /// Whether the first ready entry need not be the oldest: entries of several priorities wait, or
    /// several that are ordered by their words.
    pub fn is_mixed(&self) -> bool {
        self.ready.heads().nth(1).is_some() || (self.by_word && self.len(Lane::Ready) > 1)
    }

    /// Removes the first entry of a lane that is not pinned. Skips pinned entries before it (in the
    /// timed lane it examines all), except that it returns immediately if all are pinned.
    pub fn steal_from(&mut self, lane: Lane) -> Option<(Place, T)> {
        if self.stealable[lane as usize] == 0 {
            return None;
        }
        let loose = |slot: &u32| !self.entries[*slot as usize].pinned;
        let slot = match lane {
            Lane::Cancel => self.cancel.iter(&self.links).find(loose),
            Lane::Timed => {
                let nodes = self.timed.nodes.iter().filter(|node| loose(&node.at));
                nodes.min_by_key(|node| node.key()).map(|node| node.at)
            }
            Lane::Ready => self.ready.iter(&self.links).find(loose),
        };
        slot.and_then(|slot| self.take(slot))
    }

    /// The number of entries of a lane that may be stolen.
    pub fn stealable(&self, lane: Lane) -> usize {
        self.stealable[lane as usize]
    }

    /// The number of entries in a lane.
    pub fn len(&self, lane: Lane) -> usize {
        self.len[lane as usize]
    }

    getters! {
        /// The number of entries.
        total(&self) -> usize = self.len.iter().sum();
        /// Whether there are no entries.
        is_empty(&self) -> bool = self.total() == 0;
    }

    /// The place of the entry that would be popped next.
    pub fn peek(&self, lane: Lane) -> Option<Place> {
        self.first(lane).map(|slot| self.entries[slot as usize].place)
    }

    /// Iterates over a lane's entries in the order in which they would be popped; slow, for
    /// diagnosis.
    pub fn iter(&self, lane: Lane) -> impl Iterator<Item = (EntryId, Place, &T)> {
        let slots: Vec<u32> = match lane {
            Lane::Cancel => self.cancel.iter(&self.links).collect(),
            Lane::Timed => {
                let mut nodes = self.timed.nodes.clone();
                nodes.sort_unstable_by_key(Node::key);
                nodes.iter().map(|node| node.at).collect()
            }
            Lane::Ready => self.ready.iter(&self.links).collect(),
        };
        slots.into_iter().filter_map(|slot| {
            let entry = &self.entries[slot as usize];
            let id = EntryId { seq: entry.seq, slot };
            entry.token.as_ref().map(|token| (id, entry.place, token))
        })
    }

    /// The entries of all lanes, in the order of their slots.
    pub fn tokens(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.token.as_ref())
    }

    /// Checks the structure. Returns the first broken rule.
    pub fn check(&self) -> Result<(), &'static str> {
        self.timed.check(|at, position| self.links[at as usize].prev == position)?;
        let cancel = self.cancel.check(&self.links)?;
        let ready = self.ready.check(&self.links)?;
        let linked = [cancel, self.timed.nodes.len(), ready];
        ensure(linked == self.len, "a lane's length is wrong")?;
        let live = || self.entries.iter().filter(|entry| entry.token.is_some());
        let loose = |lane| live().filter(|e| !e.pinned && e.place.lane() == lane).count();
        ensure(live().count() == self.total(), "an entry is in no lane")?;
        let stealable = Lane::ALL.map(loose);
        ensure(stealable == self.stealable, "a count of stealable entries is wrong")
    }

    fn first(&self, lane: Lane) -> Option<u32> {
        match lane {
            Lane::Cancel => self.cancel.first(),
            Lane::Timed => self.timed.first().map(|node| node.at),
            Lane::Ready => self.ready.first(),
        }
    }

    /// Reserves room for `entries` entries in total. Changes nothing on failure.
    pub fn try_reserve(&mut self, entries: usize) -> Result<(), TryReserveError> {
        self.entries.try_reserve(entries.saturating_sub(self.entries.len()))?;
        self.links.try_reserve(entries.saturating_sub(self.links.len()))?;
        self.timed.nodes.try_reserve(entries.saturating_sub(self.timed.nodes.len()))
    }

    /// Stores an entry in a free slot.
    fn store(&mut self, entry: Entry<T>) -> u32 {
        let slot = self.free;
        if slot != NIL {
            self.free = self.links[slot as usize].next;
            self.entries[slot as usize] = entry;
            return slot;
        }
        let slot = self.entries.len();
        assert!(slot < NIL as usize, "too many runnable entries");
        self.entries.push(entry);
        self.links.push(Link { prev: NIL, next: NIL });
        slot as u32
    }

    /// Removes the entry of a slot from its lane and frees the slot.
    fn take(&mut self, slot: u32) -> Option<(Place, T)> {
        let entry = &mut self.entries[slot as usize];
        let token = entry.token.take()?;
        let place = entry.place;
        self.len[place.lane() as usize] -= 1;
        self.stealable[place.lane() as usize] -= usize::from(!entry.pinned);
        let links = &mut self.links[..];
        match place.lane() {
            Lane::Cancel => self.cancel.remove(links, slot, place.priority()),
            Lane::Timed => {
                let position = links[slot as usize].prev;
                self.timed.remove(position, |at, position| links[at as usize].prev = position);
            }
            Lane::Ready => self.ready.remove(links, slot, place.priority()),
        }
        self.links[slot as usize].next = self.free;
        self.free = slot;
        Some((place, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: Place = Place::ready(Priority::DEFAULT);

    #[test]
    fn an_id_goes_stale_with_its_entry_even_if_the_slot_is_reused() {
        let mut lanes = Lanes::default();
        let first = lanes.push(READY, 'a', false);
        assert_eq!(lanes.pop(Lane::Ready), Some((READY, 'a')));
        assert_eq!(lanes.remove(first), None);
        let second = lanes.push(READY, 'b', false);
        assert_eq!((first.slot, second.slot), (0, 0));
        assert_eq!((first.seq, second.seq), (0, 1));
        assert_eq!(lanes.remove(first), None);
        assert_eq!(lanes.remove(second), Some('b'));
        assert_eq!(lanes.remove(EntryId { seq: 0, slot: 9 }), None);
    }

    #[test]
    fn slots_are_reused() {
        let mut lanes = Lanes::new();
        for round in 0..10 {
            let ids = [0, 1, 2].map(|n| lanes.push(READY, n, false));
            assert_eq!(lanes.entries.len(), 3, "round {round}");
            assert_eq!(ids.map(|id| lanes.remove(id)), [Some(0), Some(1), Some(2)]);
            assert_eq!(lanes.check(), Ok(()));
        }
    }

    #[test]
    fn equals_are_ordered_by_their_words() {
        let places: [fn(u8) -> Place; 3] = [
            |level| Place::cancel(Priority(level)),
            |level| Place::timed(Time::from_millis(255 - u64::from(level))),
            |level| Place::ready(Priority(level)),
        ];
        for place in places {
            let lane = place(0).lane();
            let mut lanes: Lanes<u64> = Lanes::new();
            let pushed = [(7, 5), (7, 3), (9, 8), (7, 9), (9, 1), (7, 4)];
            let ids = pushed.map(|(level, word)| lanes.push_by_word(place(level), word, false));
            assert_eq!(lanes.check(), Ok(()));
            assert_eq!(ids.map(EntryId::seq), [0, 1, 2, 3, 4, 5]);
            let order: Vec<_> = lanes.iter(lane).map(|(_, _, word)| *word).collect();
            assert_eq!(order, [1, 8, 3, 4, 5, 9]);
            assert_eq!(lanes.remove(ids[5]), Some(4));
            lanes.push_by_word(place(7), 2, false);
            lanes.push_by_word(place(7), 10, false);
            let drained: Vec<_> = core::iter::from_fn(|| lanes.pop(lane)).map(|(_, w)| w).collect();
            assert_eq!(drained, [1, 8, 2, 3, 5, 9, 10]);
            assert_eq!(lanes.check(), Ok(()));
        }
    }

    #[test]
    fn the_oldest_entry_is_found_regardless_of_its_word() {
        let mut lanes: Lanes<u64> = Lanes::new();
        for (level, word) in [(1, 9), (2, 1), (1, 3)] {
            lanes.push_by_word(Place::ready(Priority(level)), word, false);
        }
        assert_eq!(lanes.pop_oldest(), Some((Place::ready(Priority(1)), 9)));
    }

    #[test]
    fn the_picker_is_called_only_for_several_entries() {
        let mut lanes = Lanes::new();
        let unasked = |_| unreachable!("no choice to make");
        assert_eq!(lanes.pop_ready_tied(unasked), None);
        for token in 0..3 {
            lanes.push(READY, token, false);
        }
        lanes.push(Place::ready(Priority(127)), 9, false);
        let mut take = |answer| {
            lanes.pop_ready_tied(|count| {
                assert_eq!(count, if answer == 1 { 3 } else { 2 });
                answer
            })
        };
        assert_eq!(take(1), Some((READY, 1)));
        assert_eq!(take(usize::MAX), Some((READY, 2)), "too large an index means the last");
        assert_eq!(lanes.pop_ready_tied(unasked), Some((READY, 0)));
        assert_eq!(lanes.pop_ready_tied(unasked), Some((Place::ready(Priority(127)), 9)));
    }

    #[test]
    fn check_reports_the_broken_rule() {
        let broken = |harm: fn(&mut Lanes<u8>)| {
            let mut lanes = Lanes::new();
            for place in [Place::cancel(Priority(1)), Place::timed(Time::ZERO), READY] {
                lanes.push(place, 1, true);
                lanes.push(place, 2, false);
            }
            harm(&mut lanes);
            lanes.check()
        };
        assert_eq!(broken(|_| ()), Ok(()));
        assert_eq!(broken(|lanes| lanes.links[0].prev = 1), Err("a list's links disagree"));
        assert_eq!(broken(|lanes| lanes.links[4].prev = 1), Err("a list's links disagree"));
        let position = Err("a heap position is wrong");
        assert_eq!(broken(|lanes| lanes.links[2].prev = 1), position);
        let length = Err("a lane's length is wrong");
        assert_eq!(broken(|lanes| lanes.len[0] = 1), length);
        assert_eq!(broken(|lanes| lanes.len[1] = 3), length);
        assert_eq!(broken(|lanes| lanes.len[2] = 1), length);
        assert_eq!(broken(|lanes| lanes.entries[0].token = None), Err("an entry is in no lane"));
        let count = Err("a count of stealable entries is wrong");
        assert_eq!(broken(|lanes| lanes.stealable[1] = 2), count);
        assert_eq!(broken(|lanes| lanes.entries[0].pinned = false), count);
    }
}
