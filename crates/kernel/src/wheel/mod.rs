//! Timers: a hierarchical wheel with exact deadlines and a total firing order.
//!
//! ```text
//!            late, or max_wheel_duration away
//! register ----------------------------------> heap ------------------------+--> collect
//!    |                                          |                           |
//!    +--> level 3 --> level 2 --> level 1 --> level 0 --> run --------------+
//! ```
//! There are four levels of 256 lists. A slot of level 0 spans a tick of 1 ms, a slot of level n
//! spans 256^n ticks. A timer goes to the finest level with a range that covers its distance. When
//! time enters a slot, its list is distributed over the finer levels. Timers of the current tick or
//! earlier are added to the *run*, in order of (deadline, insertion sequence), from which collect
//! takes those that are due. The firing order therefore does not depend on a timer's path through
//! the levels, and deadlines have nanosecond precision.
//!
//! A slot of level n holds the timers of exactly one unit of 256^n ticks, among the 256 units after
//! the current one. Every timer on the wheel is therefore later than every timer in the run, and
//! timers are added to the end of the run. The heap has the timers that did not belong on the
//! wheel when they were registered: those of the current tick or earlier (*late*), and distant
//! ones. A distant timer moves to the wheel when it is first in the heap and in range.
//!
//! With many timers, cache misses dominate the cost of every operation. So there is one entry per
//! timer and no other random access: a slot is a sequence of references to entries, register
//! appends one, and cancel frees the entry and leaves its reference behind, *dead*, to be skipped
//! by later traversals. Run and heap keep dead nodes in the same way, but never as their first
//! node. Dead references are counted. When there are twice as many as entries, all references are
//! rebuilt in the order of the entries.
//!
//! The data structure: Varghese, Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987.

mod check;
mod level;
mod slab;
#[cfg(test)]
mod tests;
mod turn;
mod types;

use alloc::collections::TryReserveError;
use alloc::vec::Vec;

use crate::queue::{Node, Queue, sort};
use crate::time::{Time, nanos};
use level::{Levels, SLOTS};
use slab::{Body, MAX_ENTRIES, Slab};
pub use turn::refs_of;
pub(crate) use types::Updated;
pub use types::{Coalesce, Expired, Placement, RegisterError, TimerHandle, WheelConfig};

const LEVELS: usize = 4;
/// The nanoseconds of a slot of level 0.
const TICK: u64 = 1_000_000;
/// The nanoseconds spanned by all levels.
const RANGE: u64 = TICK << (8 * LEVELS);

/// A set of timers with tokens.
///
/// ```
/// use asx_kernel::{time::Time, wheel::{Wheel, WheelConfig}};
/// let mut wheel = Wheel::new(WheelConfig::default(), Time::ZERO);
/// let late = wheel.register(Time::from_millis(20), "late").unwrap();
/// wheel.register(Time::from_millis(10), "early").unwrap();
/// assert_eq!(wheel.next_deadline(), Some(Time::from_millis(10)));
/// let mut due = Vec::new();
/// assert_eq!(wheel.collect(Time::from_millis(15), 8, &mut due), 1);
/// assert_eq!(due[0].token, "early");
/// assert_eq!(wheel.cancel(late), Some("late"));
/// assert_eq!(wheel.cancel(late), None);
/// ```
#[derive(Debug)]
pub struct Wheel<T> {
    now: u64,
    /// The current time in ticks.
    tick: u64,
    /// Timers up to this deadline are in run or heap: those of the current tick or of the open
    /// group.
    near_end: u64,
    /// Timers at this distance or more go to the heap.
    horizon: u64,
    /// Timers beyond this distance are refused.
    max_distance: u64,
    next_generation: u64,
    /// Timers up to this deadline are due because their group fires early; 0 if there is no group.
    group_end: u64,
    /// The number of references and nodes of cancelled timers in slots, run and heap.
    dead: usize,
    /// The next generation at the time of the last rebuild.
    renewed: u64,
    slab: Slab<T>,
    run: Vec<Node>,
    /// The number of nodes of the run that have been taken.
    taken: usize,
    heap: Queue,
    levels: Levels,
    config: WheelConfig,
}

impl<T> Wheel<T> {
    fn begun(config: WheelConfig, now: u64) -> Wheel<T> {
        Wheel {
            now,
            tick: now / TICK,
            near_end: 0,
            horizon: nanos(config.max_wheel_duration).min(RANGE),
            max_distance: nanos(config.max_timer_duration),
            next_generation: config.first_generation,
            group_end: 0,
            dead: 0,
            renewed: config.first_generation,
            slab: Slab::new(),
            run: Vec::new(),
            taken: 0,
            heap: Queue::default(),
            levels: Levels::new(),
            config,
        }
    }
}

impl<T> Wheel<T> {
    /// Creates a wheel without timers at the time `now`.
    pub fn new(mut config: WheelConfig, now: Time) -> Self {
        config.limit = config.limit.min(MAX_ENTRIES);
        let mut wheel = Wheel::begun(config, now.as_nanos());
        wheel.bound_near();
        wheel
    }

    /// Adds a timer. A deadline in the past is accepted and due immediately.
    #[inline]
    pub fn register(&mut self, deadline: Time, token: T) -> Result<TimerHandle, RegisterError<T>> {
        let token = self.admit(deadline, self.len(), token)?;
        Ok(self.insert(deadline.as_nanos(), token))
    }

    /// Removes a timer and returns its token, or `None` if the handle is stale or unknown.
    #[inline]
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let (token, deadline) = self.slab.remove(self.find(handle)?)?;
        self.dead += 1;
        if self.slot(deadline).is_none() {
            self.trim();
        }
        self.tidy();
        self.settle();
        Some(token)
    }

    /// Removes every timer with a token that `is_over` accepts, and returns them in (deadline,
    /// insertion) order.
    pub fn cancel_if(&mut self, mut is_over: impl FnMut(&T) -> bool) -> Vec<Expired<T>> {
        let mut found = Vec::new();
        for (at, body) in (0..).zip(&self.slab.bodies) {
            if body.token.as_ref().is_some_and(&mut is_over) {
                found.push(self.node(at, body.deadline, body.generation));
            }
        }
        sort(&mut found);
        let mut cancelled = Vec::new();
        for node in found {
            let handle = TimerHandle { id: self.id(node.at), generation: self.generation(&node) };
            let deadline = Time::from_nanos(node.deadline);
            cancelled.extend(self.cancel(handle).map(|token| Expired { handle, deadline, token }));
        }
        cancelled
    }

    /// Replaces a timer: registers the new one and cancels the old one. Returns the old token if it
    /// was live. If the new timer is refused the old one remains. Needs no room if `old` is live.
    pub fn update(&mut self, old: TimerHandle, deadline: Time, token: T) -> Updated<T> {
        let others = self.len() - usize::from(self.find(old).is_some());
        let token = self.admit(deadline, others, token)?;
        let was = self.cancel(old);
        Ok((self.insert(deadline.as_nanos(), token), was))
    }

    /// Returns a live timer's deadline and token.
    pub fn get(&self, handle: TimerHandle) -> Option<(Time, &T)> {
        let body = self.slab.get(self.find(handle)?)?;
        Some((Time::from_nanos(body.deadline), body.token.as_ref()?))
    }

    /// Iterates over the live timers with their deadlines, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &T)> {
        let bodies = self.slab.bodies.iter();
        bodies.filter_map(|body| Some((Time::from_nanos(body.deadline), body.token.as_ref()?)))
    }

    /// Returns the deadline of the earliest live timer, to the nanosecond.
    ///
    /// Examines one slot of each level. A slot is searched if its earliest timer was cancelled; the
    /// next [`advance`](Wheel::advance) caches the result of such a search.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        if let Some(first) = self.first() {
            return Some(Time::from_nanos(first.deadline));
        }
        let far = self.heap.first().map_or(u64::MAX, |node| node.deadline);
        let best = (0..LEVELS).fold(far, |best, level| {
            let first = self.slots(level, best).find_map(|slot| self.levels.min(slot, &self.slab));
            first.map_or(best, |(min, _)| best.min(min))
        });
        Some(Time::from_nanos(best))
    }

    /// Advances the current time. An earlier `now` changes nothing.
    pub fn advance(&mut self, now: Time) {
        let from = self.tick;
        self.now = self.now.max(now.as_nanos());
        self.tick = self.now / TICK;
        self.bound_near();
        if self.is_empty() {
            return;
        }
        self.sweep(from, self.tick);
        self.tidy();
        self.learn();
    }

    /// Advances to `now`, appends up to `max` due timers in (deadline, insertion) order, and
    /// returns their number. The others remain due and come first in the next call.
    pub fn collect(&mut self, now: Time, max: usize, out: &mut Vec<Expired<T>>) -> usize {
        self.advance(now);
        self.form_group();
        let due = self.due();
        let before = out.len();
        while out.len() - before < max
            && let Some(node) = self.first()
            && node.deadline <= due
        {
            match self.run.get(self.taken) {
                Some(run) if run.seq == node.seq => self.taken += 1,
                _ => self.heap.remove(0, turn::unmoved),
            }
            let handle = TimerHandle { id: self.id(node.at), generation: self.generation(&node) };
            let deadline = Time::from_nanos(node.deadline);
            match self.find(handle).and_then(|at| self.slab.remove(at)) {
                Some((token, _)) => out.push(Expired { handle, deadline, token }),
                None => self.dead -= 1,
            }
        }
        self.trim();
        self.settle();
        out.len() - before
    }

    /// Reserves room for the entries of `more` timers, even if all become due or distant at once.
    /// The slots grow on demand. Changes nothing on failure.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        let more = more.min(self.config.limit.saturating_sub(self.len()));
        let most = self.refs() + more;
        self.run.try_reserve(most.saturating_sub(self.run.len() - self.taken))?;
        self.heap.nodes.try_reserve(most.saturating_sub(self.heap.nodes.len()))?;
        self.slab.try_reserve(more)
    }

    getters! {
        /// The number of references to live and cancelled timers in slots, run and heap, which
        /// bounds the work of advancing.
        refs(&self) -> usize = self.len() + self.dead;
        /// The current time.
        now(&self) -> Time = Time::from_nanos(self.now);
        /// The number of live timers.
        len(&self) -> usize = self.slab.bodies.len() - self.slab.free.len();
        /// Whether there are no live timers.
        is_empty(&self) -> bool = self.len() == 0;
        /// The number of entries, live or kept for reuse: at most the largest number of timers that
        /// were live at once, and 0 if no timer is live.
        storage(&self) -> usize = self.slab.bodies.len();
    }

    /// Returns the place of a live timer, for tests and tools: it may traverse a slot's list.
    pub fn level_of(&self, handle: TimerHandle) -> Option<Placement> {
        let at = self.find(handle)?;
        let deadline = self.slab.bodies[at as usize].deadline;
        if deadline <= self.due() {
            return Some(Placement::Ready);
        }
        let waits = |level: &usize| {
            let mut slot = self.levels.walk(place(*level, unit(deadline, *level)), &self.slab);
            deadline <= self.near_end || slot.any(|(_, entry)| entry == at)
        };
        let level = (0..LEVELS).find(waits);
        Some(level.map_or(Placement::Overflow, |level| Placement::Level(level as u8)))
    }

    #[inline]
    fn admit(&self, deadline: Time, live: usize, token: T) -> Result<T, RegisterError<T>> {
        let distance = deadline.as_nanos().saturating_sub(self.now);
        RegisterError::unless(distance <= self.max_distance, live < self.config.limit, token)
    }

    #[inline]
    fn insert(&mut self, deadline: u64, token: T) -> TimerHandle {
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let at = self.slab.insert(Body { deadline, generation, token: Some(token) });
        self.place(at, deadline, generation);
        TimerHandle { id: self.id(at), generation }
    }

    fn id(&self, at: u32) -> u64 {
        self.config.first_id.wrapping_add(u64::from(at))
    }

    /// Returns the entry of a live handle.
    fn find(&self, handle: TimerHandle) -> Option<u32> {
        let at = u32::try_from(handle.id.wrapping_sub(self.config.first_id)).ok()?;
        (self.slab.get(at)?.generation == handle.generation).then_some(at)
    }

    /// Returns the latest deadline that is due.
    fn due(&self) -> u64 {
        self.now.max(self.group_end)
    }
}

/// Returns the unit of a level in which an instant lies.
const fn unit(nanos: u64, level: usize) -> u64 {
    (nanos / TICK) >> (8 * level)
}

/// Returns the index of the slot for a unit of a level.
const fn place(level: usize, unit: u64) -> usize {
    level * SLOTS as usize + (unit % SLOTS) as usize
}
