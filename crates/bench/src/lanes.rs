//! Lanes against what one would write without them: a sorted collection over (lane, key, sequence).

use crate::harness::Case;
use asx_kernel::lanes::{EntryId, Lane, Lanes, Place, Priority};
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hint::black_box;
use std::time::Instant;

const LIVE: usize = 10_000;
const OPS: usize = 100_000;

/// The cases of this file.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("lanes_mixed", "asx", mixed::<Lanes<u64>>),
        Case::new("lanes_mixed", "binary-heap", mixed::<Heap>),
        Case::new("lanes_mixed", "btree-map", mixed::<Tree>),
        Case::new("lanes_drain", "asx", drain::<Lanes<u64>>),
        Case::new("lanes_drain", "binary-heap", drain::<Heap>),
        Case::new("lanes_remove", "asx", to_cancel::<Lanes<u64>>),
        Case::new("lanes_remove", "btree-map", to_cancel::<Tree>),
    ]
}

/// Steady state: 10k live entries; each operation takes the first and adds another, to any lane.
fn mixed<Q: Queue>() -> f64 {
    let places = places(LIVE + OPS);
    let mut queue = filled::<Q>(&places[..LIVE]);
    timed(OPS, || {
        for place in &places[LIVE..] {
            let token = queue.pop();
            queue.push(*place, token);
        }
        black_box(&queue);
    })
}

/// 10k entries over all lanes in, then all of them out; an operation is one in and one out.
fn drain<Q: Queue>() -> f64 {
    let places = places(LIVE);
    let mut queue = filled::<Q>(&places);
    (0..LIVE).for_each(|_| _ = queue.pop());
    timed(LIVE * 4, || {
        for _ in 0..4 {
            places
                .iter()
                .enumerate()
                .for_each(|(token, place)| _ = queue.push(*place, token as u64));
            (0..LIVE).for_each(|_| _ = black_box(queue.pop()));
        }
    })
}

/// 10k live entries; each operation moves any one of them to the cancel lane, or back from it.
fn to_cancel<Q: Remove>() -> f64 {
    let places = places(LIVE);
    let mut queue = Q::default();
    let mut ids: Vec<_> = (0..LIVE).map(|n| queue.push(places[n], n as u64)).collect();
    let mut rng = DetRng::new(2, 0);
    let victims: Vec<usize> = (0..OPS).map(|_| rng.below(LIVE)).collect();
    let mut cancelled = vec![false; LIVE];
    timed(OPS, || {
        for victim in victims {
            let token = queue.remove(ids[victim]);
            cancelled[victim] = !cancelled[victim];
            let place =
                if cancelled[victim] { Place::cancel(Priority::DEFAULT) } else { places[victim] };
            ids[victim] = queue.push(place, token);
        }
        black_box(&queue);
    })
}

/// What is compared. The token of an empty queue is 0: it never is empty here.
trait Queue: Default {
    type Id: Copy;
    fn push(&mut self, place: Place, token: u64) -> Self::Id;
    fn pop(&mut self) -> u64;
}

trait Remove: Queue {
    fn remove(&mut self, id: Self::Id) -> u64;
}

impl Queue for Lanes<u64> {
    type Id = EntryId;

    fn push(&mut self, place: Place, token: u64) -> EntryId {
        Lanes::push(self, place, token, false)
    }

    fn pop(&mut self) -> u64 {
        Lane::ALL.into_iter().find_map(|lane| Lanes::pop(self, lane)).map_or(0, |(_, token)| token)
    }
}

impl Remove for Lanes<u64> {
    fn remove(&mut self, id: EntryId) -> u64 {
        Lanes::remove(self, id).unwrap_or(0)
    }
}

/// Lane rank, key, sequence: the dispatch order as one number after the other.
type Key = (u8, u64, u64);

fn key(place: Place, seq: u64) -> Key {
    let by_priority = u64::from(u8::MAX - place.priority().0);
    let primary = place.deadline().map_or(by_priority, Time::as_nanos);
    (place.lane() as u8, primary, seq)
}

#[derive(Default)]
struct Heap {
    heap: BinaryHeap<Reverse<(Key, u64)>>,
    seq: u64,
}

impl Queue for Heap {
    type Id = ();

    fn push(&mut self, place: Place, token: u64) {
        self.seq += 1;
        self.heap.push(Reverse((key(place, self.seq), token)));
    }

    fn pop(&mut self) -> u64 {
        self.heap.pop().map_or(0, |Reverse((_, token))| token)
    }
}

#[derive(Default)]
struct Tree {
    tree: BTreeMap<Key, u64>,
    seq: u64,
}

impl Queue for Tree {
    type Id = Key;

    fn push(&mut self, place: Place, token: u64) -> Key {
        self.seq += 1;
        let key = key(place, self.seq);
        self.tree.insert(key, token);
        key
    }

    fn pop(&mut self) -> u64 {
        self.tree.pop_first().map_or(0, |(_, token)| token)
    }
}

impl Remove for Tree {
    fn remove(&mut self, id: Key) -> u64 {
        self.tree.remove(&id).unwrap_or(0)
    }
}

/// Places over all three lanes: a few priorities, deadlines that move on.
fn places(count: usize) -> Vec<Place> {
    let mut rng = DetRng::new(1, 0);
    let place = |n: usize| match rng.below(3) {
        0 => Place::cancel(Priority(rng.below(8) as u8 * 32)),
        1 => Place::timed(Time::from_nanos((n * 1000 + rng.below(10_000_000)) as u64)),
        _ => Place::ready(Priority(rng.below(8) as u8 * 32)),
    };
    (0..count).map(place).collect()
}

fn filled<Q: Queue>(places: &[Place]) -> Q {
    let mut queue = Q::default();
    places.iter().enumerate().for_each(|(token, place)| _ = queue.push(*place, token as u64));
    queue
}

fn timed(ops: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / ops as f64
}
