//! The choice between lanes: applies the kernel's dispatch law to the queues that a worker sees.

use asx_kernel::lanes::{
    Fairness, Lane, Pending, Queues, Stolen, Taken, TieBreak, dispatch, steal_order,
};
use asx_runtime::Runnable;

use super::{Selected, Worker};
use crate::lane_queue::DEFAULT_PLACE;
use crate::shared::Remote;

impl Worker {
    /// Applies the dispatch law to all three lanes. Returns `None` if nothing waits that this
    /// worker may take. `is_worth` says whether stealing from a worker with a given number of
    /// waiting entries pays; without it, nothing is stolen.
    pub(super) fn decide(&self, is_worth: Option<IsWorth<'_>>) -> Option<Selected> {
        let mut view = View { worker: self, fairness: self.streaks(), is_worth };
        let suggest =
            |_: &View<'_>, pending| self.shared.suggestion(pending, &self.remote.lanes, &self.core);
        let (chosen, entry) = dispatch(&mut view, suggest)?;
        Some(Selected { entry, chosen: Some(chosen) })
    }

    /// Returns true if ready entries at the default priority wait in this worker's own queues.
    pub(super) fn has_default_ready(&self) -> bool {
        self.queue.len(&self.remote.queue) > 0 || !self.pinned.borrow().is_empty()
    }

    /// Returns the streaks. They are updated first, since the fast path does not record its polls.
    pub(super) fn streaks(&self) -> Fairness {
        let mut fairness = self.fairness.borrow_mut();
        if self.remote.counters.polls.get() != self.decided.get() {
            fairness.parked();
            self.decided.set(self.remote.counters.polls.get());
        }
        *fairness
    }

    /// Takes the worker's own next ready entry: by priority, or the `oldest`. Entries at the
    /// default priority are in the queue, all others in the lanes.
    fn take_ready(&self, oldest: bool) -> Option<Taken<Runnable>> {
        let local = &self.remote.lanes;
        let in_lanes = local.len(Lane::Ready) > 0;
        let several = in_lanes && local.is_mixed();
        let mixed = several || (in_lanes && self.has_default_ready());
        let plain = || self.next_default().map(|entry| (DEFAULT_PLACE, entry));
        let entry = if mixed && oldest {
            // If higher priorities passed both the queue and the lanes, the two take turns: their
            // relative age is unknown.
            self.queue_next.update(|queue| !queue);
            let queue_goes = if several { self.queue_next.get() } else { local.has_leading() };
            if queue_goes {
                plain().or_else(|| local.pop_oldest())
            } else {
                local.pop_oldest().or_else(plain)
            }
        } else if self.shared.rules.tie_break == TieBreak::Seeded {
            local.pop_tied(|count| self.pick(count)).or_else(plain)
        } else {
            let leading = local.pop_leading().or_else(plain);
            leading.or_else(|| local.pop(Lane::Ready))
        };
        entry.map(|(place, entry)| Taken { entry, place, passed_lower: mixed && !oldest })
    }

    /// Steals an entry that waits in one of these lanes of a worker for which `is_worth` is true.
    fn steal(&self, lanes: &[Lane], is_worth: IsWorth<'_>) -> Option<Stolen<Runnable>> {
        let me = usize::from(self.index);
        let remotes = &self.shared.remotes;
        let ready = lanes.contains(&Lane::Ready);
        let has = |remote: &Remote| {
            remote.lanes.has_stealable(lanes) || (ready && remote.queue.len() > 0)
        };
        let mut others = remotes.iter().enumerate().filter(|(at, _)| *at != me);
        if !others.any(|(_, remote)| has(remote)) {
            return None;
        }
        let start = self.pick(remotes.len() - 1);
        steal_order(me, remotes.len(), start).find_map(|victim| {
            let remote = &remotes[victim];
            if !has(remote) || !is_worth(victim, remote.waiting() as u64) {
                return None;
            }
            // The worker's own queue is empty here. A steal from a ring may move entries into it.
            let from_ring = || {
                let entry = ready.then(|| self.queue.steal(&remote.queue))??;
                Some((DEFAULT_PLACE, entry))
            };
            let (place, entry) = remote.lanes.steal(lanes).or_else(from_ring)?;
            Some(Stolen { entry, place, victim })
        })
    }
}

/// The queues of a worker, and a copy of its streaks: nothing may be borrowed while a user-defined
/// governor runs.
struct View<'a> {
    worker: &'a Worker,
    fairness: Fairness,
    is_worth: Option<IsWorth<'a>>,
}

/// Says whether stealing from the worker with this index and this number of waiting entries pays.
pub(super) type IsWorth<'a> = &'a dyn Fn(usize, u64) -> bool;

impl Queues for View<'_> {
    type Entry = Runnable;

    fn fairness(&self) -> &Fairness {
        &self.fairness
    }

    fn pending(&self) -> Pending {
        let global = &self.worker.shared.global;
        let local = &self.worker.remote.lanes;
        let holds = |lane| (global.len(lane) | local.len(lane)) > 0;
        Pending {
            cancel: holds(Lane::Cancel),
            timed: holds(Lane::Timed),
            ready: holds(Lane::Ready) || self.worker.has_default_ready(),
        }
    }

    fn has_local(&self, lane: Lane) -> bool {
        self.worker.remote.lanes.len(lane) > 0
            || (lane == Lane::Ready && self.worker.has_default_ready())
    }

    fn take_global(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Runnable>> {
        self.worker.shared.global.take(lane, oldest)
    }

    fn take_local(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Runnable>> {
        match lane {
            Lane::Ready => self.worker.take_ready(oldest),
            lane => self.worker.remote.lanes.take(lane, oldest),
        }
    }

    /// When the turn belongs to other work, an entry is stolen even if that does not pay.
    fn steal(&mut self, lanes: &[Lane]) -> Option<Stolen<Runnable>> {
        let own = self.pending().any();
        let is_worth = if own { Some::<IsWorth<'_>>(&|_, _| true) } else { self.is_worth };
        self.worker.steal(lanes, is_worth?)
    }
}
