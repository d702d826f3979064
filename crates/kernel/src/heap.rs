//! The simple reference for timers: an ordered map with the wheel's semantics.
//!
//! Every operation is O(log n) and none is clever; the wheel is tested against it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::time::Time;
use crate::wheel::{Expired, RegisterError, TimerHandle, WheelConfig};

/// When a timer fires among others: deadline, then insertion.
type Order = (Time, u64);

/// A set of timers carrying tokens, ordered by (deadline, insertion sequence).
///
/// ```
/// use asx_kernel::{heap::TimerHeap, time::Time, wheel::WheelConfig};
/// let mut heap = TimerHeap::new(WheelConfig::default(), Time::ZERO);
/// heap.register(Time::from_millis(1), 'a').unwrap();
/// let mut due = Vec::new();
/// assert_eq!(heap.collect(Time::from_millis(1), 8, &mut due), 1);
/// assert_eq!((due[0].token, heap.len()), ('a', 0));
/// ```
#[derive(Debug)]
pub struct TimerHeap<T> {
    config: WheelConfig,
    now: Time,
    seq: u64,
    timers: BTreeMap<Order, (TimerHandle, T)>,
    /// Live slots: which generation, and where in `timers`.
    slots: BTreeMap<u64, (u64, Order)>,
    /// Slots below `slots_used` that are not live, last freed last.
    free: Vec<u64>,
    slots_used: u64,
    /// Everything up to here is due, because a group was let go early.
    group_end: Time,
}

impl<T> TimerHeap<T> {
    /// A heap without timers whose current time is `now`.
    pub fn new(config: WheelConfig, now: Time) -> Self {
        TimerHeap {
            config,
            now,
            seq: 0,
            timers: BTreeMap::new(),
            slots: BTreeMap::new(),
            free: Vec::new(),
            slots_used: 0,
            group_end: Time::ZERO,
        }
    }

    /// Adds a timer. A deadline that has passed is accepted and due at once.
    pub fn register(&mut self, deadline: Time, token: T) -> Result<TimerHandle, RegisterError<T>> {
        let token = self.admit(deadline, self.len(), token)?;
        Ok(self.insert(deadline, token))
    }

    /// Removes a timer: its token the first time, nothing for a handle that is stale or unknown.
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let order = self.find(handle)?;
        let (_, token) = self.timers.remove(&order)?;
        self.free_slot(handle);
        self.end_group();
        Some(token)
    }

    /// Registers the new timer and cancels the old one, as the wheel does.
    pub fn update(
        &mut self,
        old: TimerHandle,
        deadline: Time,
        token: T,
    ) -> Result<(TimerHandle, Option<T>), RegisterError<T>> {
        let others = self.len() - usize::from(self.find(old).is_some());
        let token = self.admit(deadline, others, token)?;
        let was = self.cancel(old);
        Ok((self.insert(deadline, token), was))
    }

    /// The deadline of the earliest live timer.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Moves the current time on. An earlier `now` counts as the current time.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Advances to `now` and appends up to `max` due timers in order; how many.
    pub fn collect(&mut self, now: Time, max: usize, out: &mut Vec<Expired<T>>) -> usize {
        self.advance(now);
        if let Some(coalesce) = &self.config.coalesce {
            let end = coalesce.boundary(self.now);
            let group = self.timers.keys().filter(|(deadline, _)| *deadline <= end).count();
            if end > self.now && group >= coalesce.min_group_size {
                self.group_end = self.group_end.max(end);
            }
        }
        let due = self.now.max(self.group_end);
        let before = out.len();
        while out.len() - before < max && self.next_deadline().is_some_and(|first| first <= due) {
            if let Some(((deadline, _), (handle, token))) = self.timers.pop_first() {
                self.free_slot(handle);
                out.push(Expired { handle, deadline, token });
            }
        }
        self.end_group();
        out.len() - before
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many timers live.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether no timer lives.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    fn admit(&self, deadline: Time, live: usize, token: T) -> Result<T, RegisterError<T>> {
        let in_range = deadline - self.now <= self.config.max_timer_duration;
        RegisterError::unless(in_range, live < self.config.limit, token)
    }

    fn insert(&mut self, deadline: Time, token: T) -> TimerHandle {
        let slot = self.free.pop().unwrap_or(self.slots_used);
        self.slots_used = self.slots_used.max(slot + 1);
        let generation = self.config.first_generation.wrapping_add(self.seq);
        let handle = TimerHandle { id: self.config.first_id.wrapping_add(slot), generation };
        self.slots.insert(handle.id, (generation, (deadline, self.seq)));
        self.timers.insert((deadline, self.seq), (handle, token));
        self.seq += 1;
        handle
    }

    fn find(&self, handle: TimerHandle) -> Option<Order> {
        let (generation, order) = self.slots.get(&handle.id)?;
        (*generation == handle.generation).then_some(*order)
    }

    fn free_slot(&mut self, handle: TimerHandle) {
        self.slots.remove(&handle.id);
        self.free.push(handle.id.wrapping_sub(self.config.first_id));
        if self.timers.is_empty() {
            self.free.clear();
            self.slots_used = 0;
        }
    }

    /// A group is over when none of its timers is left.
    fn end_group(&mut self) {
        if self.next_deadline().is_none_or(|first| first > self.group_end) {
            self.group_end = Time::ZERO;
        }
    }
}
