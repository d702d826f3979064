//! The scheduler: which runnable entry goes next, and why.
//!
//! [`Lanes`] is one queue: three lanes over one slab, each in its own order (cancel and ready by
//! priority, timed by deadline, equals by insertion). [`Fairness`] decides which lane goes, under a
//! governor's [`Suggestion`], so that no work is passed by other work for long. [`dispatch`] is the
//! whole law for a worker: one global queue, a local one each, stealing, fallback, over the
//! [`Queues`] of its host. [`Scheduler`] is such a host for N workers without threads. Each
//! dispatch is counted in the worker's [`Certificate`].
//!
//! ```text
//! wake -> enqueue(source, place) -> lanes -> decide(pending, suggestion) -> lane
//!           lane: global, then local -> token      nothing but cancel over its limit, or nothing:
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

/// A slot's place in its list; in the timed lane `prev` is its position in the heap, and of a free
/// slot `next` is the next free one.
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

/// Names one entry of one [`Lanes`]; stale once the entry has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryId {
    /// The insertion sequence: never used twice, so it serves as the slot's generation.
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
    /// How many entries each lane holds.
    len: [usize; 3],
    /// How many of them may be stolen.
    stealable: [usize; 3],
    /// Whether equals are ordered by their words: the first of them need not be the oldest.
    by_word: bool,
}

impl<T> Lanes<T> {
    /// Empty lanes.
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
    /// Adds an entry behind its equals. O(1), in the timed lane O(log n).
    ///
    /// # Panics
    ///
    /// With 2^32 - 1 entries waiting; there are fewer task ids than that.
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

    /// Adds an entry by its token's [`word`](Token::word): before those of its equals whose word is
    /// higher. O(n) in the number of equals, in the timed lane O(log n).
    ///
    /// Two entries of the same word keep the order of their insertion in the cancel and ready
    /// lanes; in the timed lane there is one entry of a word at a time.
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

    /// Counts an entry and gives it a slot; it is in no lane yet.
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

    /// Takes the first entry of a lane. O(1), in the timed lane O(log n).
    pub fn pop(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.first(lane).and_then(|slot| self.take(slot))
    }

    /// Takes a given entry, unless it has left already. O(1), in the timed lane O(log n).
    pub fn remove(&mut self, id: EntryId) -> Option<T> {
        self.entries.get(id.slot as usize).filter(|entry| entry.seq == id.seq)?;
        self.take(id.slot).map(|(_, token)| token)
    }

    /// Takes one of the ready entries that share the highest priority: the `pick(count)`-th in
    /// insertion order. `pick` is asked only when there are at least two.
    pub fn pop_ready_tied(&mut self, pick: impl FnOnce(usize) -> usize) -> Option<(Place, T)> {
        let count = self.ready.tied();
        let nth = if count < 2 { 0 } else { pick(count).min(count - 1) };
        let slot = self.ready.nth_tied(&self.links, nth)?;
        self.take(slot)
    }

    /// Takes the ready entry that was added first, whatever its priority.
    pub fn pop_oldest(&mut self) -> Option<(Place, T)> {
        let age = |slot: &u32| self.entries[*slot as usize].seq;
        let oldest = match self.by_word {
            false => self.ready.heads().min_by_key(age),
            true => self.ready.iter(&self.links).min_by_key(age),
        };
        self.take(oldest?)
    }

    /// Whether the ready entry that goes first need not be the oldest: entries of more than one
    /// priority wait, or several that are ordered by their words.
    pub fn is_mixed(&self) -> bool {
        self.ready.heads().nth(1).is_some() || (self.by_word && self.len(Lane::Ready) > 1)
    }

    /// Takes the first entry of a lane that is not pinned. Passes over the pinned ones before it
    /// (in the timed lane: looks at all), unless all are pinned, which it knows.
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

    /// How many entries of a lane may be stolen.
    pub fn stealable(&self, lane: Lane) -> usize {
        self.stealable[lane as usize]
    }

    /// How many entries a lane holds.
    pub fn len(&self, lane: Lane) -> usize {
        self.len[lane as usize]
    }

    getters! {
        /// How many entries there are.
        total(&self) -> usize = self.len.iter().sum();
        /// Whether there are none.
        is_empty(&self) -> bool = self.total() == 0;
    }

    /// Where the entry is that would be popped next.
    pub fn peek(&self, lane: Lane) -> Option<Place> {
        self.first(lane).map(|slot| self.entries[slot as usize].place)
    }

    /// A lane's entries in the order they would be popped; for diagnosis, not for speed.
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

    /// Whether the structure is sound: what is wrong, if not.
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

    /// Makes room for this many entries in all. Nothing has changed when it fails.
    pub fn try_reserve(&mut self, entries: usize) -> Result<(), TryReserveError> {
        self.entries.try_reserve(entries.saturating_sub(self.entries.len()))?;
        self.links.try_reserve(entries.saturating_sub(self.links.len()))?;
        self.timed.nodes.try_reserve(entries.saturating_sub(self.timed.nodes.len()))
    }

    /// Puts an entry into a free slot.
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

    /// Takes the entry of a slot out of its lane and frees the slot.
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
    fn an_id_goes_stale_with_its_entry_though_the_slot_lives_on() {
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
    fn by_word_equals_go_in_the_order_of_their_words() {
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
    fn the_oldest_is_the_oldest_whatever_its_word() {
        let mut lanes: Lanes<u64> = Lanes::new();
        for (level, word) in [(1, 9), (2, 1), (1, 3)] {
            lanes.push_by_word(Place::ready(Priority(level)), word, false);
        }
        assert_eq!(lanes.pop_oldest(), Some((Place::ready(Priority(1)), 9)));
    }

    #[test]
    fn ties_are_put_to_the_picker_only_when_there_are_two() {
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
        assert_eq!(take(usize::MAX), Some((READY, 2)), "too large counts as the last");
        assert_eq!(lanes.pop_ready_tied(unasked), Some((READY, 0)));
        assert_eq!(lanes.pop_ready_tied(unasked), Some((Place::ready(Priority(127)), 9)));
    }

    #[test]
    fn check_names_what_is_broken() {
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
