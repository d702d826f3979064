//! The reference model of the timer wheel: an ordered map with the same semantics.
//!
//! Handles are found by linear search. The tests of the kernel and the fuzz target `wheel` compare
//! the wheel with this model.

use std::collections::BTreeMap;

use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, Expired, RegisterError, TimerHandle, WheelConfig};

/// The handle of the new timer, and the token of the replaced one if that was live.
type Updated<T> = Result<(TimerHandle, Option<T>), RegisterError<T>>;

/// A set of timers with tokens, ordered by (deadline, insertion sequence).
#[derive(Debug)]
pub(crate) struct TimerHeap<T> {
    config: WheelConfig,
    now: Time,
    timers: BTreeMap<(Time, u64), (TimerHandle, T)>,
    /// The number of registrations so far.
    seq: u64,
    /// Free ids, in the order in which they were freed.
    free: Vec<u64>,
    /// Timers up to this time are due because their group expired early (coalescing).
    group_end: Time,
}

impl<T> TimerHeap<T> {
    /// Creates a heap without timers at the time `now`.
    pub(crate) fn new(config: WheelConfig, now: Time) -> Self {
        let timers = BTreeMap::new();
        let free = Vec::new();
        TimerHeap { config, now, timers, seq: 0, free, group_end: Time::ZERO }
    }

    /// Adds a timer. A deadline in the past is accepted and due at once.
    pub(crate) fn register(
        &mut self,
        deadline: Time,
        token: T,
    ) -> Result<TimerHandle, RegisterError<T>> {
        let token = self.admit(deadline, self.len(), token)?;
        Ok(self.insert(deadline, token))
    }

    /// Removes a timer and returns its token, or `None` if the handle is stale or unknown.
    pub(crate) fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let order = self.find(handle)?;
        let (_, token) = self.timers.remove(&order)?;
        self.free.push(handle.id);
        self.settle();
        Some(token)
    }

    /// Registers the new timer and cancels the old one, as the wheel does.
    pub(crate) fn update(&mut self, old: TimerHandle, deadline: Time, token: T) -> Updated<T> {
        let others = self.len() - usize::from(self.find(old).is_some());
        let token = self.admit(deadline, others, token)?;
        let was = self.cancel(old);
        Ok((self.insert(deadline, token), was))
    }

    /// Advances the current time. An earlier `now` changes nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Advances to `now`, appends up to `max` due timers in order, and returns their number.
    pub(crate) fn collect(&mut self, now: Time, max: usize, out: &mut Vec<Expired<T>>) -> usize {
        self.advance(now);
        if let Some(coalesce) = &self.config.coalesce {
            let end = boundary(coalesce, self.now);
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

    /// Returns the deadline of the earliest live timer.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.timers.keys().next().map(|order| order.0)
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of live timers.
    pub(crate) fn len(&self) -> usize {
        self.timers.len()
    }

    fn admit(&self, deadline: Time, live: usize, token: T) -> Result<T, RegisterError<T>> {
        if deadline - self.now > self.config.max_timer_duration {
            Err(RegisterError::DurationExceeded(token))
        } else if live >= self.config.limit {
            Err(RegisterError::Exhausted(token))
        } else {
            Ok(token)
        }
    }

    fn insert(&mut self, deadline: Time, token: T) -> TimerHandle {
        let generation = self.config.first_generation.wrapping_add(self.seq);
        // Without free ids, the ids in use are the first ones.
        let unused = self.config.first_id.wrapping_add(self.timers.len() as u64);
        let handle = TimerHandle { id: self.free.pop().unwrap_or(unused), generation };
        self.timers.insert((deadline, self.seq), (handle, token));
        self.seq += 1;
        handle
    }

    fn find(&self, handle: TimerHandle) -> Option<(Time, u64)> {
        self.timers.iter().find(|(_, (live, _))| *live == handle).map(|(order, _)| *order)
    }

    /// Ends a group without members, and restarts the ids if there are no timers.
    fn settle(&mut self) {
        if self.next_deadline().is_none_or(|first| first > self.group_end) {
            self.group_end = Time::ZERO;
        }
        if self.timers.is_empty() {
            self.free.clear();
        }
    }
}

/// Returns the least multiple of the window that is not before `now`. A window of zero groups
/// nothing; past the end of time every deadline is in the group.
fn boundary(coalesce: &Coalesce, now: Time) -> Time {
    let window = u64::try_from(coalesce.window.as_nanos()).unwrap_or(u64::MAX);
    if window == 0 {
        return now;
    }
    Time::from_nanos(now.as_nanos().checked_next_multiple_of(window).unwrap_or(u64::MAX))
}
