//! Timers: replacing live timers (the life of a timeout that seldom fires) and firing them.
//!
//! Every peer gets the same deadlines in nanoseconds and the same clock, which moves in steps of
//! 1 ms. Peers that know milliseconds only round as they do. Each keeps one key per timer, as its
//! user would have to.
//!
//! `handles` is not a peer but the floor: entries and handles to them, in no order, never due. What
//! it costs more with many timers than with few is what random reads cost on this machine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hint::black_box;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Expired, TimerHandle, Wheel, WheelConfig};
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};
use tokio_util::time::{DelayQueue, delay_queue};

use crate::harness::Case;

const MS: u64 = 1_000_000;
/// Timed operations of a churn repetition.
const OPS: u64 = 200_000;
/// Operations between two steps of the clock.
const OPS_PER_STEP: u64 = 256;
/// Timers of a fire repetition, and the span their deadlines lie in.
const FIRED: u32 = 100_000;
const FIRE_SPAN: u64 = 10_000 * MS;

/// The cases of this file.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (workload, live) in [
        ("wheel_churn", 16_384),
        ("wheel_churn_1k", 1_000),
        ("wheel_churn_100k", 100_000),
        ("wheel_churn_1m", 1_000_000),
    ] {
        peers(&mut cases, workload, live);
        cases.push(Case::new(workload, "handles", move || measure::<Handles>(live)));
    }
    peers(&mut cases, "wheel_fire", 0);
    cases
}

/// The workload on each peer; `live` timers in churn, 0 for fire.
fn peers(cases: &mut Vec<Case>, workload: &'static str, live: u32) {
    let mut add = |peer, run: fn(u32) -> f64| {
        cases.push(Case::new(workload, peer, move || run(live)));
    };
    add("asx", measure::<Asx>);
    add("heap_lazy", measure::<HeapLazy>);
    add("btreemap", measure::<Tree>);
    add("hash_wheel", measure::<HashWheel>);
    add("delay_queue", measure::<Delay>);
}

/// A timer structure holding timers numbered from 0.
trait Timers {
    /// Room for `count` timers, clock at 0.
    fn new(count: u32) -> Self;
    fn register(&mut self, timer: u32, deadline: u64);
    fn cancel(&mut self, timer: u32);
    /// Moves the clock to `now`, 1 ms later; the timers that fire.
    fn step(&mut self, now: u64, fired: &mut Vec<u32>);
}

fn measure<P: Timers>(live: u32) -> f64 {
    if live == 0 { fire::<P>() } else { churn::<P>(live) }
}

/// Nanoseconds per replaced timer.
fn churn<P: Timers>(live: u32) -> f64 {
    let mut timers = P::new(live);
    let mut rng = DetRng::new(1, 0);
    for timer in 0..live {
        timers.register(timer, far(rng.next_u64()));
    }
    let mut now = 0;
    let mut fired = Vec::new();
    let mut turn = |ops: u64| {
        for op in 1..=ops {
            let bits = rng.next_u64();
            let timer = ((bits & 0xFFFF_FFFF) * u64::from(live)) >> 32;
            timers.cancel(timer as u32);
            timers.register(timer as u32, now + far(bits));
            if op % OPS_PER_STEP == 0 {
                now += MS;
                timers.step(now, &mut fired);
                for timer in fired.drain(..) {
                    timers.register(timer, now + far(rng.next_u64()));
                }
            }
        }
    };
    turn(OPS / 4);
    let start = Instant::now();
    turn(OPS);
    start.elapsed().as_nanos() as f64 / OPS as f64
}

/// 1 ms to 60 s, from the upper half of random bits. No division: the peers are what is measured.
fn far(bits: u64) -> u64 {
    MS + (((bits >> 32) * 59_999_000) >> 32) * 1000
}

/// Nanoseconds per timer registered and fired.
fn fire<P: Timers>() -> f64 {
    let mut timers = P::new(FIRED);
    let mut rng = DetRng::new(2, 0);
    let deadlines: Vec<u64> = (0..FIRED).map(|_| MS + rng.next_u64() % FIRE_SPAN).collect();
    let mut fired = Vec::new();
    let mut count = 0;
    let start = Instant::now();
    for (timer, deadline) in deadlines.iter().enumerate() {
        timers.register(timer as u32, *deadline);
    }
    let mut now = 0;
    while count < FIRED {
        now += MS;
        timers.step(now, &mut fired);
        count += fired.len() as u32;
        black_box(&fired);
        fired.clear();
    }
    start.elapsed().as_nanos() as f64 / f64::from(FIRED)
}

/// Our wheel.
struct Asx {
    wheel: Wheel<u32>,
    keys: Vec<TimerHandle>,
    due: Vec<Expired<u32>>,
}

impl Timers for Asx {
    fn new(count: u32) -> Self {
        let keys = vec![TimerHandle { id: 0, generation: 0 }; count as usize];
        Asx { wheel: Wheel::new(WheelConfig::default(), Time::ZERO), keys, due: Vec::new() }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        let key = self.wheel.register(Time::from_nanos(deadline), timer);
        self.keys[timer as usize] = key.expect("in range");
    }

    fn cancel(&mut self, timer: u32) {
        assert!(self.wheel.cancel(self.keys[timer as usize]).is_some());
    }

    fn step(&mut self, now: u64, fired: &mut Vec<u32>) {
        self.wheel.collect(Time::from_nanos(now), usize::MAX, &mut self.due);
        fired.extend(self.due.drain(..).map(|expired| expired.token));
    }
}

/// The least that gives every timer a handle that tells stale from live.
struct Handles {
    entries: Vec<(u64, u64, Option<u32>)>,
    free: Vec<u32>,
    keys: Vec<TimerHandle>,
    next: u64,
}

impl Timers for Handles {
    fn new(count: u32) -> Self {
        let keys = vec![TimerHandle { id: 0, generation: 0 }; count as usize];
        Handles { entries: Vec::new(), free: Vec::new(), keys, next: 0 }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        self.next += 1;
        let entry = (deadline, self.next, Some(timer));
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(at as usize) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        self.keys[timer as usize] = TimerHandle { id: u64::from(at), generation: self.next };
    }

    fn cancel(&mut self, timer: u32) {
        let key = self.keys[timer as usize];
        let (_, generation, token) = &mut self.entries[key.id as usize];
        assert!(*generation == key.generation && token.take().is_some());
        self.free.push(key.id as u32);
    }

    fn step(&mut self, _: u64, _: &mut Vec<u32>) {}
}

/// A binary heap; a cancelled timer only leaves the map, its heap entry stays until it is due.
struct HeapLazy {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    live: HashMap<u64, u32>,
    keys: Vec<u64>,
    next: u64,
}

impl Timers for HeapLazy {
    fn new(count: u32) -> Self {
        let heap = BinaryHeap::new();
        let live = HashMap::new();
        HeapLazy { heap, live, keys: vec![0; count as usize], next: 0 }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        self.next += 1;
        self.heap.push(Reverse((deadline, self.next)));
        self.live.insert(self.next, timer);
        self.keys[timer as usize] = self.next;
    }

    fn cancel(&mut self, timer: u32) {
        assert!(self.live.remove(&self.keys[timer as usize]).is_some());
    }

    fn step(&mut self, now: u64, fired: &mut Vec<u32>) {
        while let Some(Reverse((deadline, id))) = self.heap.peek()
            && *deadline <= now
        {
            fired.extend(self.live.remove(id));
            self.heap.pop();
        }
    }
}

/// An ordered map by (deadline, sequence).
struct Tree {
    tree: BTreeMap<(u64, u64), u32>,
    keys: Vec<(u64, u64)>,
    next: u64,
}

impl Timers for Tree {
    fn new(count: u32) -> Self {
        Tree { tree: BTreeMap::new(), keys: vec![(0, 0); count as usize], next: 0 }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        self.next += 1;
        self.tree.insert((deadline, self.next), timer);
        self.keys[timer as usize] = (deadline, self.next);
    }

    fn cancel(&mut self, timer: u32) {
        assert!(self.tree.remove(&self.keys[timer as usize]).is_some());
    }

    fn step(&mut self, now: u64, fired: &mut Vec<u32>) {
        while let Some(first) = self.tree.first_entry()
            && first.key().0 <= now
        {
            fired.push(first.remove());
        }
    }
}

/// The cancellable wheel of `hierarchical_hash_wheel_timer`.
struct HashWheel {
    wheel: QuadWheelWithOverflow<HashEntry>,
    keys: Vec<u64>,
    next: u64,
    now: u64,
}

#[derive(Debug)]
struct HashEntry {
    id: u64,
    timer: u32,
}

impl CancellableTimerEntry for HashEntry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

impl Timers for HashWheel {
    fn new(count: u32) -> Self {
        let wheel = QuadWheelWithOverflow::new();
        HashWheel { wheel, keys: vec![0; count as usize], next: 0, now: 0 }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        self.next += 1;
        let entry = Rc::new(HashEntry { id: self.next, timer });
        let delay = Duration::from_nanos(deadline - self.now);
        assert!(self.wheel.insert_ref_with_delay(entry, delay).is_ok());
        self.keys[timer as usize] = self.next;
    }

    fn cancel(&mut self, timer: u32) {
        assert!(self.wheel.cancel(&self.keys[timer as usize]).is_ok());
    }

    fn step(&mut self, now: u64, fired: &mut Vec<u32>) {
        self.now = now;
        fired.extend(self.wheel.tick().iter().map(|entry| entry.timer));
    }
}

/// tokio-util's queue, on a runtime whose clock stands still until told.
struct Delay {
    queue: DelayQueue<u32>,
    keys: Vec<Option<delay_queue::Key>>,
    start: tokio::time::Instant,
    runtime: tokio::runtime::Runtime,
}

impl Timers for Delay {
    fn new(count: u32) -> Self {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
        let entered = runtime.enter();
        let queue = DelayQueue::new();
        let start = tokio::time::Instant::now();
        drop(entered);
        Delay { queue, keys: vec![None; count as usize], start, runtime }
    }

    fn register(&mut self, timer: u32, deadline: u64) {
        let _entered = self.runtime.enter();
        let key = self.queue.insert_at(timer, self.start + Duration::from_nanos(deadline));
        self.keys[timer as usize] = Some(key);
    }

    fn cancel(&mut self, timer: u32) {
        let _entered = self.runtime.enter();
        let key = self.keys[timer as usize].take().expect("a live timer");
        assert!(self.queue.try_remove(&key).is_some());
    }

    fn step(&mut self, _: u64, fired: &mut Vec<u32>) {
        self.runtime.block_on(tokio::time::advance(Duration::from_millis(1)));
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            fired.push(expired.into_inner());
        }
    }
}
