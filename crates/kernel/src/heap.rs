//! The simple reference for timers: an ordered map with the wheel's semantics.
//!
//! Nothing here is clever, and a handle is searched for; the wheel is tested against it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::time::Time;
use crate::wheel::{Expired, RegisterError, TimerHandle, Updated, WheelConfig};

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
    timers: BTreeMap<(Time, u64), (TimerHandle, T)>,
    /// How many were registered.
    seq: u64,
    /// Ids that can be used again, last freed last.
    free: Vec<u64>,
    /// Everything up to here is due, because a group was let go early.
    group_end: Time,
}

impl<T> TimerHeap<T> {
    /// A heap without timers whose current time is `now`.
    pub fn new(config: WheelConfig, now: Time) -> Self {
        let timers = BTreeMap::new();
        let free = Vec::new();
        TimerHeap { config, now, timers, seq: 0, free, group_end: Time::ZERO }
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
        self.free.push(handle.id);
        self.settle();
        Some(token)
    }

    /// Registers the new timer and cancels the old one, as the wheel does.
    pub fn update(&mut self, old: TimerHandle, deadline: Time, token: T) -> Updated<T> {
        let others = self.len() - usize::from(self.find(old).is_some());
        let token = self.admit(deadline, others, token)?;
        let was = self.cancel(old);
        Ok((self.insert(deadline, token), was))
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
        while out.len() - before < max
            && let Some(first) = self.timers.first_entry()
            && first.key().0 <= due
        {
            let ((deadline, _), (handle, token)) = first.remove_entry();
            self.free.push(handle.id);
            out.push(Expired { handle, deadline, token });
        }
        self.settle();
        out.len() - before
    }

    getters! {
        /// The deadline of the earliest live timer.
        next_deadline(&self) -> Option<Time> = self.timers.keys().next().map(|order| order.0);
        /// The current time.
        now(&self) -> Time = self.now;
        /// How many timers live.
        len(&self) -> usize = self.timers.len();
        /// Whether no timer lives.
        is_empty(&self) -> bool = self.timers.is_empty();
    }

    fn admit(&self, deadline: Time, live: usize, token: T) -> Result<T, RegisterError<T>> {
        let in_range = deadline - self.now <= self.config.max_timer_duration;
        RegisterError::unless(in_range, live < self.config.limit, token)
    }

    fn insert(&mut self, deadline: Time, token: T) -> TimerHandle {
        let generation = self.config.first_generation.wrapping_add(self.seq);
        // With no id to use again, those in use are the first ones.
        let unused = self.config.first_id.wrapping_add(self.timers.len() as u64);
        let handle = TimerHandle { id: self.free.pop().unwrap_or(unused), generation };
        self.timers.insert((deadline, self.seq), (handle, token));
        self.seq += 1;
        handle
    }

    fn find(&self, handle: TimerHandle) -> Option<(Time, u64)> {
        self.timers.iter().find(|(_, (live, _))| *live == handle).map(|(order, _)| *order)
    }

    /// After timers have left: a group without members is over, and ids begin anew without timers.
    fn settle(&mut self) {
        if self.next_deadline().is_none_or(|first| first > self.group_end) {
            self.group_end = Time::ZERO;
        }
        if self.is_empty() {
            self.free.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Coalesce;
    use core::time::Duration;

    #[test]
    fn a_batch_is_counted_and_a_capped_group_keeps_its_last_member_due() {
        let window = Duration::from_nanos(10);
        let coalesce = Some(Coalesce { window, min_group_size: 2 });
        let mut heap = TimerHeap::new(WheelConfig { coalesce, ..Default::default() }, Time::ZERO);
        for deadline in [9, 10, 11] {
            heap.register(Time::from_nanos(deadline), deadline).unwrap();
        }
        let mut out = Vec::new();
        assert_eq!(heap.collect(Time::from_nanos(1), 1, &mut out), 1);
        // Alone it would be no group; as the rest of one it is due, at the very end of the window.
        assert_eq!(heap.collect(Time::from_nanos(1), 9, &mut out), 1);
        assert_eq!(out.iter().map(|timer| timer.token).collect::<Vec<_>>(), [9, 10]);
        assert_eq!((heap.collect(Time::from_nanos(1), 9, &mut out), heap.len()), (0, 1));
    }
}
