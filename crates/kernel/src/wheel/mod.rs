//! Timers: a hierarchical wheel with exact deadlines and a total firing order.
//!
//! ```text
//!            delta >= max_wheel_duration             tick <= current tick
//! register --------------------------> overflow    +----------------------> near --> collect
//!    |                                     |       |                         ^
//!    +--> level 3 --> level 2 --> level 1 --> level 0 -----------------------+
//! ```
//! Four levels of 256 lists; a slot of level 0 spans a tick of 1 ms, one of level n 256^n ticks. A
//! timer goes to the finest level whose range covers its distance. When time enters a slot its list
//! is spread over the finer levels; what belongs to the current tick or earlier ends in *near*, a
//! heap by (deadline, insertion sequence) from which collect takes what is due. So order does not
//! depend on the way a timer came, and deadlines keep their nanoseconds.
//!
//! A slot of level n holds the timers of exactly one unit of 256^n ticks, among the 256 units after
//! the current one; every timer outside near is therefore later than every timer in it. Overflow is
//! a heap too: its timers are later than all on the wheel and move there when they are in range.
//!
//! Register and cancel touch the entry and its neighbours in the list and allocate nothing in
//! steady state; a cancelled timer leaves at once (from the heaps in O(log n)).

mod check;
mod level;
mod queue;
mod slab;
mod types;

use alloc::vec::Vec;

use crate::time::{Time, nanos};
use level::{Level, SLOTS};
use queue::{Node, Queue};
use slab::{MAX_ENTRIES, NIL, Slab};
pub use types::{Coalesce, Expired, Placement, RegisterError, TimerHandle, WheelConfig};

const LEVELS: usize = 4;
/// Nanoseconds of a slot of level 0.
const TICK: u64 = 1_000_000;
/// Nanoseconds a level spans.
const RANGE: [u64; LEVELS] = [TICK << 8, TICK << 16, TICK << 24, TICK << 32];
/// A place is level * 256 + slot, or one of these.
const NEAR: u32 = 1024;
const OVERFLOW: u32 = 1025;

/// A set of timers carrying tokens.
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
    config: WheelConfig,
    now: u64,
    /// `now` in ticks.
    tick: u64,
    /// The last instant that belongs to near: of the current tick or of the group let go.
    near_end: u64,
    /// Distances from here on go to overflow.
    horizon: u64,
    /// Distances beyond this are refused.
    max_distance: u64,
    next_generation: u64,
    /// Everything up to here is due, because a group was let go early; 0: no such group.
    group_end: u64,
    slab: Slab<T>,
    near: Queue,
    overflow: Queue,
    levels: [Level; LEVELS],
}

impl<T> Wheel<T> {
    /// A wheel without timers whose current time is `now`.
    pub fn new(mut config: WheelConfig, now: Time) -> Self {
        config.limit = config.limit.min(MAX_ENTRIES);
        let mut wheel = Wheel {
            now: now.as_nanos(),
            tick: now.as_nanos() / TICK,
            near_end: 0,
            horizon: nanos(config.max_wheel_duration).min(RANGE[LEVELS - 1]),
            max_distance: nanos(config.max_timer_duration),
            next_generation: config.first_generation,
            group_end: 0,
            slab: Slab::new(),
            near: Queue::new(NEAR),
            overflow: Queue::new(OVERFLOW),
            levels: [const { Level::new() }; LEVELS],
            config,
        };
        wheel.bound_near();
        wheel
    }

    /// Adds a timer. A deadline that has passed is accepted and due at once.
    pub fn register(&mut self, deadline: Time, token: T) -> Result<TimerHandle, RegisterError<T>> {
        let token = self.admit(deadline, self.len(), token)?;
        Ok(self.insert(deadline.as_nanos(), token))
    }

    /// Removes a timer: its token the first time, nothing for a handle that is stale or unknown.
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let at = self.find(handle)?;
        let link = self.slab.link(at);
        match link.place() {
            Some(NEAR) => self.near.remove(link.next as usize, &mut self.slab),
            Some(OVERFLOW) => self.overflow.remove(link.next as usize, &mut self.slab),
            Some(place) => {
                let (level, slot) = split(place);
                self.levels[level].pop(slot, link, &mut self.slab);
            }
            None => {
                self.slab.link_mut(link.prev).next = link.next;
                if link.next != NIL {
                    self.slab.link_mut(link.next).prev = link.prev;
                }
            }
        }
        let token = self.slab.remove(at);
        self.settle();
        token
    }

    /// Replaces a timer: registers the new one and cancels the old one, whose token comes back if
    /// it was live. When the new one is refused the old one stays. Needs no room when `old` lives.
    pub fn update(
        &mut self,
        old: TimerHandle,
        deadline: Time,
        token: T,
    ) -> Result<(TimerHandle, Option<T>), RegisterError<T>> {
        let others = self.len() - usize::from(self.find(old).is_some());
        let token = self.admit(deadline, others, token)?;
        let was = self.cancel(old);
        Ok((self.insert(deadline.as_nanos(), token), was))
    }

    /// A live timer's deadline and token.
    pub fn get(&self, handle: TimerHandle) -> Option<(Time, &T)> {
        let body = self.slab.get(self.find(handle)?)?;
        Some((Time::from_nanos(body.deadline), body.token.as_ref()?))
    }

    /// The deadline of the earliest live timer, to the nanosecond.
    pub fn next_deadline(&self) -> Option<Time> {
        if let Some(first) = self.near.first() {
            return Some(Time::from_nanos(first.deadline));
        }
        let mut best = self.overflow.first().map_or(u64::MAX, |node| node.deadline);
        for level in 0..LEVELS {
            if let Some((_, (min, _))) = self.first_slot(level, best) {
                best = best.min(min);
            }
        }
        (!self.is_empty()).then_some(Time::from_nanos(best))
    }

    /// Moves the current time on. An earlier `now` counts as the current time.
    pub fn advance(&mut self, now: Time) {
        let from = self.tick;
        self.now = self.now.max(now.as_nanos());
        self.tick = self.now / TICK;
        self.bound_near();
        if self.is_empty() {
            return;
        }
        self.sweep(from, self.tick);
        self.learn();
    }

    /// Advances to `now` and appends up to `max` due timers in (deadline, insertion) order; how
    /// many. The rest stay due and come first next time.
    pub fn collect(&mut self, now: Time, max: usize, out: &mut Vec<Expired<T>>) -> usize {
        self.advance(now);
        self.form_group();
        let due = self.due();
        let mut count = 0;
        while count < max
            && let Some(node) = self.near.first()
            && node.deadline <= due
        {
            self.near.remove(0, &mut self.slab);
            let generation = node.seq.wrapping_add(self.config.first_generation);
            let handle = TimerHandle { id: self.id(node.at), generation };
            if let Some(token) = self.slab.remove(node.at) {
                out.push(Expired { handle, deadline: Time::from_nanos(node.deadline), token });
            }
            count += 1;
        }
        self.settle();
        count
    }

    /// The current time.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// How many timers live.
    pub fn len(&self) -> usize {
        self.slab.live()
    }

    /// Whether no timer lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries are held, live or kept for reuse: never more than have lived at once, and
    /// none when no timer lives.
    pub fn storage(&self) -> usize {
        self.slab.bodies.len()
    }

    /// Where a live timer waits. For tests and tools: it may walk a slot's list.
    pub fn level_of(&self, handle: TimerHandle) -> Option<Placement> {
        let at = self.find(handle)?;
        let mut link = self.slab.link(at);
        let place = loop {
            match link.place() {
                Some(place) => break place,
                None => link = self.slab.link(link.prev),
            }
        };
        Some(match place {
            NEAR if self.slab.deadline(at) <= self.due() => Placement::Ready,
            NEAR => Placement::Level(0),
            OVERFLOW => Placement::Overflow,
            _ => Placement::Level(split(place).0 as u8),
        })
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
        let at = self.slab.insert(deadline, generation, token);
        self.place(at, deadline, generation);
        TimerHandle { id: self.id(at), generation }
    }

    fn id(&self, at: u32) -> u64 {
        self.config.first_id.wrapping_add(u64::from(at))
    }

    /// The entry of a live handle.
    #[inline]
    fn find(&self, handle: TimerHandle) -> Option<u32> {
        let at = u32::try_from(handle.id.wrapping_sub(self.config.first_id)).ok()?;
        (self.slab.get(at)?.generation == handle.generation).then_some(at)
    }

    /// Timers up to here are due.
    fn due(&self) -> u64 {
        self.now.max(self.group_end)
    }

    /// Sets the end of near after time has moved or a group has come or gone.
    fn bound_near(&mut self) {
        let tick_end = (self.tick * TICK).saturating_add(TICK - 1);
        self.near_end = tick_end.max(self.group_end);
    }

    /// Links an entry where its deadline belongs at the current time.
    #[inline]
    fn place(&mut self, at: u32, deadline: u64, generation: u64) {
        let distance = deadline.saturating_sub(self.now);
        if deadline <= self.near_end || distance >= self.horizon {
            return self.enqueue(at, deadline, generation);
        }
        let level = match distance {
            d if d < RANGE[0] => 0,
            d if d < RANGE[1] => 1,
            d if d < RANGE[2] => 2,
            _ => 3,
        };
        let place = level as u64 * SLOTS + unit(deadline, level) % SLOTS;
        self.levels[level].push(place as u32, at, deadline, &mut self.slab);
    }

    /// Puts an entry that does not belong on the wheel into the heap it belongs to.
    #[inline(never)]
    fn enqueue(&mut self, at: u32, deadline: u64, generation: u64) {
        // Generations count registrations, so the distance from the first is the sequence.
        let seq = generation.wrapping_sub(self.config.first_generation);
        let near = deadline <= self.near_end;
        let queue = if near { &mut self.near } else { &mut self.overflow };
        queue.push(Node { deadline, seq, at }, &mut self.slab);
    }

    /// Places anew what lies in the slots after tick `from` up to tick `to`, and what has come in
    /// range of the wheel. Finer levels first: what a slot gives away is not met again.
    fn sweep(&mut self, from: u64, to: u64) {
        for level in 0..LEVELS {
            let (from, to) = (from >> (8 * level), to >> (8 * level));
            if from == to {
                break;
            }
            let last = to.min(from + SLOTS);
            let mut unit = from + 1;
            while let Some(distance) = self.levels[level].distance(unit)
                && unit + distance <= last
            {
                unit += distance;
                let mut at = self.levels[level].take((unit % SLOTS) as usize);
                while let Some(body) = self.slab.get(at) {
                    let next = self.slab.link(at).next;
                    self.place(at, body.deadline, body.generation);
                    at = next;
                }
                unit += 1;
            }
        }
        while let Some(node) = self.overflow.first()
            && (node.deadline <= self.near_end || node.deadline - self.now < self.horizon)
        {
            self.overflow.remove(0, &mut self.slab);
            let generation = node.seq.wrapping_add(self.config.first_generation);
            self.place(node.at, node.deadline, generation);
        }
    }

    /// Lets a coalesced group go if enough timers are nearly due.
    fn form_group(&mut self) {
        let Some(coalesce) = &self.config.coalesce else { return };
        let end = coalesce.boundary(self.now()).as_nanos();
        if end > self.now.max(self.group_end) && self.has(coalesce.min_group_size, end) {
            self.group_end = end;
            self.bound_near();
            self.sweep(self.tick, end / TICK);
        }
    }

    /// Whether at least `count` timers have a deadline not after `end`.
    fn has(&self, count: usize, end: u64) -> bool {
        let heaps = self.near.nodes().iter().chain(self.overflow.nodes());
        let heaps = heaps.map(|node| node.deadline);
        let levels = self.levels.iter().enumerate().flat_map(|(n, level)| {
            let current = self.tick >> (8 * n);
            let units = (current + 1)..=unit(end, n).min(current + SLOTS);
            units.flat_map(move |unit| level.walk((unit % SLOTS) as usize, &self.slab))
        });
        let all = heaps.chain(levels.map(|(deadline, _)| deadline));
        count == 0 || all.filter(|deadline| *deadline <= end).nth(count - 1).is_some()
    }

    #[inline]
    /// After timers have left: a group without members is over, and without timers nothing is kept.
    fn settle(&mut self) {
        if self.group_end > 0
            && self.near.first().is_none_or(|first| first.deadline > self.group_end)
        {
            self.group_end = 0;
            self.bound_near();
        }
        if self.is_empty() {
            self.slab.release();
            self.near.release();
            self.overflow.release();
        }
    }

    /// The first occupied slot of a level and its earliest deadline, unless all of its unit is
    /// after `best`.
    fn first_slot(&self, level: usize, best: u64) -> Option<(usize, (u64, u32))> {
        let next = (self.tick >> (8 * level)) + 1;
        let unit = next + self.levels[level].distance(next)?;
        if (unit << (8 * level)) * TICK > best {
            return None;
        }
        let slot = (unit % SLOTS) as usize;
        Some((slot, self.levels[level].min(slot, &self.slab)))
    }

    /// Remembers the minima that [`Wheel::next_deadline`] would have to look for each time.
    fn learn(&mut self) {
        let mut best = u64::MAX;
        for level in 0..LEVELS {
            if let Some((slot, (min, min_at))) = self.first_slot(level, best) {
                let list = &mut self.levels[level].slots[slot];
                (list.min, list.min_at) = (min, min_at);
                best = best.min(min);
            }
        }
    }
}

/// Which span of a level an instant lies in.
const fn unit(nanos: u64, level: usize) -> u64 {
    (nanos / TICK) >> (8 * level)
}

/// The level and slot of a place on the wheel.
fn split(place: u32) -> (usize, usize) {
    (place as usize / SLOTS as usize, place as usize % SLOTS as usize)
}
