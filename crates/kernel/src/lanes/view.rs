//! The queues of a [`Scheduler`](super::Scheduler) from the view of one worker.

use super::scheduler::Worker;
use super::{Fairness, Lane, Lanes, Pending, Place, Queues, Stolen, Taken, TieBreak, steal_order};
use crate::choose::{Choose, Point};

/// The queues visible to one worker, with the oracle for its choices.
pub(super) struct View<'a, T, C: ?Sized, const STEALS: bool> {
    pub(super) worker: usize,
    pub(super) global: &'a mut Lanes<T>,
    pub(super) workers: &'a mut [Worker<T>],
    pub(super) tie_break: TieBreak,
    pub(super) choose: &'a mut C,
}

impl<T, C: Choose + ?Sized, const STEALS: bool> Queues for View<'_, T, C, STEALS> {
    type Entry = T;
    const STEALS: bool = STEALS;

    fn fairness(&self) -> &Fairness {
        &self.workers[self.worker].fairness
    }

    fn pending(&self) -> Pending {
        Pending::of(|lane| self.global.len(lane) > 0 || self.has_local(lane))
    }

    fn has_local(&self, lane: Lane) -> bool {
        self.workers[self.worker].lanes.len(lane) > 0
    }

    fn take_global(&mut self, lane: Lane, oldest: bool) -> Option<Taken<T>> {
        take(self.global, lane, oldest, |queue| queue.pop(lane))
    }

    fn take_local(&mut self, lane: Lane, oldest: bool) -> Option<Taken<T>> {
        let View { worker, tie_break, choose, .. } = self;
        let queue = &mut self.workers[*worker].lanes;
        take(queue, lane, oldest, |queue| match tie_break {
            TieBreak::Seeded if lane == Lane::Ready => {
                queue.pop_ready_tied(|count| choose.pick(Point::ReadyTie(*worker), count))
            }
            _ => queue.pop(lane),
        })
    }

    fn steal(&mut self, lanes: &[Lane]) -> Option<Stolen<T>> {
        let thief = self.worker;
        let workers = self.workers.len();
        stealable(self.workers, thief, lanes).then_some(())?;
        let start = self.choose.pick(Point::StealStart(thief), workers - 1);
        steal_order(thief, workers, start).find_map(|victim| {
            let queue = &mut self.workers[victim].lanes;
            let (place, entry) = lanes.iter().find_map(|lane| queue.steal_from(*lane))?;
            Some(Stolen { entry, place, victim })
        })
    }
}

/// Removes an entry of a lane: with `pop`, or the oldest of several priorities.
fn take<T>(
    queue: &mut Lanes<T>,
    lane: Lane,
    oldest: bool,
    pop: impl FnOnce(&mut Lanes<T>) -> Option<(Place, T)>,
) -> Option<Taken<T>> {
    let mixed = lane == Lane::Ready && queue.is_mixed();
    let popped = if mixed && oldest { queue.pop_oldest() } else { pop(queue) };
    popped.map(|(place, entry)| Taken { entry, place, passed_lower: mixed && !oldest })
}

/// Whether another worker has a stealable entry in one of the lanes.
pub(super) fn stealable<T>(workers: &[Worker<T>], thief: usize, lanes: &[Lane]) -> bool {
    let has = |w: &Worker<T>| lanes.iter().any(|lane| w.lanes.stealable(*lane) > 0);
    workers.iter().enumerate().any(|(other, w)| other != thief && has(w))
}
