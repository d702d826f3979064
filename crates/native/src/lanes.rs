//! Lanes that several threads put into and take from.

use asx_kernel::lanes::{Lane, Pending, Place, Taken};
use asx_kernel::time::Time;
use asx_runtime::Runnable;

use crate::lane_queue::{LaneQueue, leads};
use crate::prim::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::prim::atomic::{AtomicU64, AtomicUsize};
use crate::prim::{Mutex, lock};

/// The kernel's lanes behind a short lock, with counts to look at without it.
#[derive(Default)]
pub(crate) struct SharedLanes {
    waiting: Mutex<LaneQueue<Runnable>>,
    /// Entries of all lanes.
    total: AtomicUsize,
    /// Entries of each lane.
    len: [AtomicUsize; 3],
    /// Those of each lane that any worker may run.
    stealable: [AtomicUsize; 3],
    /// Those of the ready lane that go before, or with, entries of the usual priority.
    leading: AtomicUsize,
    /// The first deadline in the timed lane, if that has any entry.
    nearest: AtomicU64,
}

impl SharedLanes {
    /// Lanes of entries that are not pinned, in which plain ones stand in line.
    pub(crate) fn in_line() -> SharedLanes {
        SharedLanes { waiting: Mutex::new(LaneQueue::in_line()), ..SharedLanes::default() }
    }

    /// Orders equal entries by the ids of their tasks from now on. Nothing waits yet.
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

    /// Only under the lock.
    fn add(&self, waiting: &mut LaneQueue<Runnable>, entry: Runnable) -> Place {
        let place = entry.place();
        let pinned = entry.pin().is_some();
        self.leading.store(self.leading.load(Acquire) + usize::from(leads(place)), Release);
        waiting.push(place, entry, pinned);
        place
    }

    fn left(&self, waiting: &LaneQueue<Runnable>, place: Place) {
        self.leading.store(self.leading.load(Acquire) - usize::from(leads(place)), Release);
        self.count(waiting, place.lane());
    }

    /// Tells how many there are in a lane; only under the lock.
    fn count(&self, waiting: &LaneQueue<Runnable>, lane: Lane) {
        let len = waiting.len(lane);
        let told = &self.len[lane as usize];
        self.total.store(self.total.load(Relaxed) - told.load(Relaxed) + len, Release);
        told.store(len, Release);
        self.stealable[lane as usize].store(waiting.stealable(lane), Release);
        if lane == Lane::Timed
            && let Some(first) = waiting.lanes().peek(lane).and_then(Place::deadline)
        {
            self.nearest.store(first.as_nanos(), Relaxed);
        }
    }

    /// The first deadline in the timed lane.
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
        self.left(&waiting, place);
        Some((place, entry))
    }

    /// Takes the first entry of a lane; of ready entries the `oldest`, if that is asked for and
    /// several priorities wait.
    #[inline]
    pub(crate) fn take(&self, lane: Lane, oldest: bool) -> Option<Taken<Runnable>> {
        if self.len(lane) == 0 {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let mixed = lane == Lane::Ready && waiting.is_mixed();
        let taken = if mixed && oldest { waiting.pop_oldest() } else { waiting.pop(lane) };
        let (place, entry) = taken?;
        self.left(&waiting, place);
        Some(Taken { entry, place, passed_lower: mixed && !oldest })
    }

    /// Whether ready entries of more than one priority wait.
    pub(crate) fn is_mixed(&self) -> bool {
        self.len(Lane::Ready) > 1 && lock(&self.waiting).is_mixed()
    }

    /// Whether a ready entry waits that one of the usual priority does not go before.
    pub(crate) fn has_leading(&self) -> bool {
        self.leading.load(Acquire) > 0
    }

    /// Takes the ready entry that was added first.
    pub(crate) fn pop_oldest(&self) -> Option<(Place, Runnable)> {
        let mut waiting = lock(&self.waiting);
        let (place, entry) = waiting.pop_oldest()?;
        self.left(&waiting, place);
        Some((place, entry))
    }

    /// Takes a ready entry that one of the usual priority does not go before.
    pub(crate) fn pop_leading(&self) -> Option<(Place, Runnable)> {
        // The lane is in the order of priorities: if there is one, it is the first.
        self.has_leading().then(|| self.pop(Lane::Ready)).flatten()
    }

    /// Takes one of the ready entries that share the highest priority. Not where they stand in
    /// line.
    pub(crate) fn pop_tied(&self, pick: impl FnOnce(usize) -> usize) -> Option<(Place, Runnable)> {
        let mut waiting = lock(&self.waiting);
        let (place, entry) = waiting.lanes_mut().pop_ready_tied(pick)?;
        self.left(&waiting, place);
        Some((place, entry))
    }

    /// Takes the first entry in one of the lanes that any worker may run.
    pub(crate) fn steal(&self, wanted: &[Lane]) -> Option<(Place, Runnable)> {
        if self.stealable() == 0 {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let (place, entry) = wanted.iter().find_map(|lane| waiting.steal_from(*lane))?;
        self.left(&waiting, place);
        Some((place, entry))
    }

    /// Whether an entry in one of the lanes may be run by any worker.
    pub(crate) fn has_stealable(&self, wanted: &[Lane]) -> bool {
        wanted.iter().any(|lane| self.stealable[*lane as usize].load(Acquire) > 0)
    }

    /// Empties the lanes when no worker will.
    pub(crate) fn expire(&self) {
        let next = || {
            let mut waiting = lock(&self.waiting);
            let (place, entry) = Lane::ALL.into_iter().find_map(|lane| waiting.pop(lane))?;
            self.left(&waiting, place);
            Some(entry)
        };
        std::iter::from_fn(next).for_each(drop);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
