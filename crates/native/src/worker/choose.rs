//! What a worker runs next, where there is a choice: the kernel's law over the queues it sees.

use asx_kernel::lanes::{
    Fairness, Lane, Pending, Queues, Stolen, Taken, TieBreak, dispatch, steal_order,
};
use asx_runtime::Runnable;

use super::{Found, Worker};
use crate::lane_queue::PLAIN;
use crate::shared::Remote;

impl Worker {
    /// The law with all three lanes. `None`: nothing waits that this worker may take. `is_worth`
    /// tells whether it pays to move work of another worker that has so much waiting; without it,
    /// none is moved.
    pub(super) fn decide(&self, is_worth: Option<IsWorth<'_>>) -> Option<Found> {
        let mut view = View { worker: self, fairness: self.streaks(), is_worth };
        let suggest =
            |_: &View<'_>, pending| self.shared.suggestion(pending, &self.remote.lanes, &self.core);
        let (chosen, entry) = dispatch(&mut view, suggest)?;
        Some(Found { entry, chosen: Some(chosen) })
    }

    /// Whether plain entries wait in this worker's own queues.
    pub(super) fn has_plain(&self) -> bool {
        self.queue.len(&self.remote.queue) > 0 || !self.pinned.borrow().is_empty()
    }

    /// The streaks, up to date: plain work after plain work is not noted there as it goes.
    pub(super) fn streaks(&self) -> Fairness {
        let mut fairness = self.fairness.borrow_mut();
        if self.remote.counters.polls.get() != self.decided.get() {
            fairness.parked();
            self.decided.set(self.remote.counters.polls.get());
        }
        *fairness
    }

    /// The worker's own ready entry that goes first: by priority, or the `oldest`. Plain entries
    /// are in the queue, all else in the lanes.
    fn take_ready(&self, oldest: bool) -> Option<Taken<Runnable>> {
        let local = &self.remote.lanes;
        let in_lanes = local.len(Lane::Ready) > 0;
        let several = in_lanes && local.is_mixed();
        let mixed = several || (in_lanes && self.has_plain());
        let plain = || self.next_plain().map(|entry| (PLAIN, entry));
        let entry = if mixed && oldest {
            // Where both are passed by higher priorities they take turns: nobody knows which of the
            // two is older.
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

    /// Takes an entry that waits in one of these lanes of another worker, where that `is_worth` it.
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
            // Nothing is in this worker's own queue, into which more than one may go.
            let of_ring = || {
                let entry = ready.then(|| self.queue.steal(&remote.queue))??;
                Some((PLAIN, entry))
            };
            let (place, entry) = remote.lanes.steal(lanes).or_else(of_ring)?;
            Some(Stolen { entry, place, victim })
        })
    }
}

/// The queues of a worker, and its streaks. Those are a copy: while a governor is asked, which is
/// the user's code, nothing is borrowed.
struct View<'a> {
    worker: &'a Worker,
    fairness: Fairness,
    is_worth: Option<IsWorth<'a>>,
}

/// Whether it pays to move work of this worker, of which so much waits.
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
            ready: holds(Lane::Ready) || self.worker.has_plain(),
        }
    }

    fn has_local(&self, lane: Lane) -> bool {
        self.worker.remote.lanes.len(lane) > 0 || (lane == Lane::Ready && self.worker.has_plain())
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

    /// Where the turn belongs to other work, that of others goes whether or not it pays.
    fn steal(&mut self, lanes: &[Lane]) -> Option<Stolen<Runnable>> {
        let own = self.pending().any();
        let is_worth = if own { Some::<IsWorth<'_>>(&|_, _| true) } else { self.is_worth };
        self.worker.steal(lanes, is_worth?)
    }
}
