//! Lanes shared by several threads.

use asx_kernel::lanes::{Lane, Pending, Place, Taken};
use asx_kernel::time::Time;
use asx_runtime::Runnable;

use crate::lane_queue::{LaneQueue, precedes_default};
use crate::prim::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::prim::atomic::{AtomicU64, AtomicUsize};
use crate::prim::{Mutex, lock};

/// The kernel's lanes behind a short lock, with counters that can be read without it.
#[derive(Default)]
pub(crate) struct SharedLanes {
    waiting: Mutex<LaneQueue<Runnable>>,
    /// The number of entries of all lanes.
    total: AtomicUsize,
    /// The number of entries of each lane.
    len: [AtomicUsize; 3],
    /// The number of entries of each lane that any worker may run.
    stealable: [AtomicUsize; 3],
    /// The number of ready entries that precede, or are equal to, those at the default priority.
    leading: AtomicUsize,
    /// The first deadline in the timed lane, if that has entries.
    nearest: AtomicU64,
}

impl SharedLanes {
    /// Creates lanes with a FIFO for the default priority. No entry may be pinned.
    pub(crate) fn with_fifo() -> SharedLanes {
        SharedLanes { waiting: Mutex::new(LaneQueue::with_fifo()), ..SharedLanes::default() }
    }

    /// Orders equal entries by the ids of their tasks from now on. The lanes must be empty.
    pub(crate) fn order_by_task(&self) {
        lock(&self.waiting).order_by_word();
    }

    pub(crate) fn push(&self, entry: Runnable) {
        let mut waiting = lock(&self.waiting);
        let place = self.add(&mut waiting, entry);
        self.count(&waiting, place.lane());
    }

    pub(crate) fn push_all(&self, entries: Vec<Runnable>) {
        let mut waiting = lock(&self.waiting);
        for entry in entries {
            self.add(&mut waiting, entry);
        }
        Lane::ALL.into_iter().for_each(|lane| self.count(&waiting, lane));
    }

    /// Adds an entry. Called under the lock.
    fn add(&self, waiting: &mut LaneQueue<Runnable>, entry: Runnable) -> Place {
        let place = entry.place();
        let pinned = entry.pin().is_some();
        self.leading
            .store(self.leading.load(Acquire) + usize::from(precedes_default(place)), Release);
        waiting.push(place, entry, pinned);
        place
    }

    fn removed(&self, waiting: &LaneQueue<Runnable>, place: Place) {
        self.leading
            .store(self.leading.load(Acquire) - usize::from(precedes_default(place)), Release);
        self.count(waiting, place.lane());
    }

    /// Updates the counters of a lane. Called under the lock.
    fn count(&self, waiting: &LaneQueue<Runnable>, lane: Lane) {
        let len = waiting.len(lane);
        let counter = &self.len[lane as usize];
        self.total.store(self.total.load(Relaxed) - counter.load(Relaxed) + len, Release);
        counter.store(len, Release);
        self.stealable[lane as usize].store(waiting.stealable(lane), Release);
        if lane == Lane::Timed
            && let Some(first) = waiting.lanes().peek(lane).and_then(Place::deadline)
        {
            self.nearest.store(first.as_nanos(), Relaxed);
        }
    }

    /// Returns the first deadline in the timed lane.
    pub(crate) fn nearest(&self) -> Option<Time> {
        (self.len(Lane::Timed) > 0).then(|| Time::from_nanos(self.nearest.load(Relaxed)))
    }

    #[inline]
    pub(crate) fn len(&self, lane: Lane) -> usize {
        self.len[lane as usize].load(Acquire)
    }

    #[inline]
    pub(crate) fn total(&self) -> usize {
        self.total.load(Acquire)
    }

    pub(crate) fn stealable(&self) -> usize {
        self.stealable.iter().map(|lane| lane.load(Acquire)).sum()
    }

    pub(crate) fn pending(&self) -> Pending {
        Pending::of(|lane| self.len(lane) > 0)
    }

    pub(crate) fn pop(&self, lane: Lane) -> Option<(Place, Runnable)> {
        if self.len(lane) == 0 {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let (place, entry) = waiting.pop(lane)?;
        self.removed(&waiting, place);
        Some((place, entry))
    }

    /// Takes the first entry of a lane. For the ready lane, `oldest` takes the oldest entry instead
    /// if several priorities wait.
    #[inline]
    pub(crate) fn take(&self, lane: Lane, oldest: bool) -> Option<Taken<Runnable>> {
        if self.len(lane) == 0 {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let mixed = lane == Lane::Ready && waiting.is_mixed();
        let taken = if mixed && oldest { waiting.pop_oldest() } else { waiting.pop(lane) };
        let (place, entry) = taken?;
        self.removed(&waiting, place);
        Some(Taken { entry, place, passed_lower: mixed && !oldest })
    }

    /// Returns true if ready entries of more than one priority wait.
    pub(crate) fn is_mixed(&self) -> bool {
        self.len(Lane::Ready) > 1 && lock(&self.waiting).is_mixed()
    }

    /// Returns true if a ready entry waits that is not below the default priority.
    pub(crate) fn has_leading(&self) -> bool {
        self.leading.load(Acquire) > 0
    }

    /// Takes the oldest ready entry.
    pub(crate) fn pop_oldest(&self) -> Option<(Place, Runnable)> {
        let mut waiting = lock(&self.waiting);
        let (place, entry) = waiting.pop_oldest()?;
        self.removed(&waiting, place);
        Some((place, entry))
    }

    /// Takes a ready entry that is not below the default priority.
    pub(crate) fn pop_leading(&self) -> Option<(Place, Runnable)> {
        // The lane is ordered by priority: if there is such an entry, it is the first.
        self.has_leading().then(|| self.pop(Lane::Ready)).flatten()
    }

    /// Takes one of the ready entries that share the highest priority. Not for lanes with a FIFO.
    pub(crate) fn pop_tied(&self, pick: impl FnOnce(usize) -> usize) -> Option<(Place, Runnable)> {
        let mut waiting = lock(&self.waiting);
        let (place, entry) = waiting.lanes_mut().pop_ready_tied(pick)?;
        self.removed(&waiting, place);
        Some((place, entry))
    }

    /// Takes the first entry of these lanes that any worker may run.
    pub(crate) fn steal(&self, wanted: &[Lane]) -> Option<(Place, Runnable)> {
        if self.stealable() == 0 {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let (place, entry) = wanted.iter().find_map(|lane| waiting.steal_from(*lane))?;
        self.removed(&waiting, place);
        Some((place, entry))
    }

    /// Returns true if any worker may run an entry of these lanes.
    pub(crate) fn has_stealable(&self, wanted: &[Lane]) -> bool {
        wanted.iter().any(|lane| self.stealable[*lane as usize].load(Acquire) > 0)
    }

    /// Drops all entries of a runtime that was dropped.
    pub(crate) fn expire(&self) {
        let next = || {
            let mut waiting = lock(&self.waiting);
            let (place, entry) = Lane::ALL.into_iter().find_map(|lane| waiting.pop(lane))?;
            self.removed(&waiting, place);
            Some(entry)
        };
        std::iter::from_fn(next).for_each(drop);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
