//! What a worker runs next, where there is a choice: the kernel's law over what it can see.

use std::cell::RefMut;

use asx_kernel::lanes::{Fairness, Lane, Pending, TieBreak, Turn, Verdict};
use asx_runtime::Runnable;

use super::{Chosen, Found, Worker};

impl Worker {
    /// The law with all three lanes. `None`: nothing waits that this worker may take.
    ///
    /// Other workers take entries meanwhile. If the chosen one is gone, that says nothing about
    /// the other lanes: the worker decides again. Each failed attempt is another worker's success,
    /// so this ends.
    pub(super) fn decide(&self) -> Option<Found> {
        loop {
            let pending = self.pending();
            let found = self.decide_among(pending);
            if found.is_some() || !pending.any() {
                return found;
            }
        }
    }

    /// The lanes in which this worker sees work: the global ones and all of its own.
    pub(super) fn pending(&self) -> Pending {
        let (far, near) = (self.shared.global.pending(), self.remote.lanes.pending());
        Pending {
            cancel: far.cancel || near.cancel,
            timed: far.timed || near.timed,
            ready: far.ready || near.ready || self.has_plain(),
        }
    }

    /// Whether plain entries wait in this worker's own queues.
    pub(super) fn has_plain(&self) -> bool {
        self.queue.len(&self.remote.queue) > 0 || !self.pinned.borrow().is_empty()
    }

    /// The streaks, up to date: plain work after plain work is not noted there as it goes.
    pub(super) fn streaks(&self) -> RefMut<'_, Fairness> {
        let mut fairness = self.fairness.borrow_mut();
        if self.remote.counters.polls.get() != self.decided.get() {
            fairness.parked();
            self.decided.set(self.remote.counters.polls.get());
        }
        fairness
    }

    /// One decision. `None`: the chosen entry is gone, or there was none. When cancel work has gone
    /// for too long and nothing else is to be seen, the turn belongs to other work wherever it is.
    fn decide_among(&self, pending: Pending) -> Option<Found> {
        let local = &self.remote.lanes;
        // The governor is the user's: nothing is borrowed while it is asked.
        let suggestion = self.shared.suggestion(pending, local, &self.core);
        let fairness = self.streaks();
        let limit = fairness.limit(suggestion);
        let own = fairness.decide(pending, suggestion);
        let (verdict, (turn, entry)) = match own {
            Some(verdict) if !verdict.fallback => (verdict, self.take(verdict.lane, &fairness)?),
            _ => {
                let may_go = fairness.cancel_may_go(suggestion);
                let wanted = if may_go { &Lane::ALL[..] } else { &Lane::ALL[1..] };
                let stolen = |lane, fallback, entry| {
                    (Verdict { lane, fallback, limit }, (Turn::default(), entry))
                };
                match (self.steal_from_lanes(wanted), own) {
                    (Some((lane, entry)), _) => stolen(lane, false, entry),
                    (None, Some(fallback)) => (fallback, self.take(fallback.lane, &fairness)?),
                    (None, None) => {
                        let (lane, entry) = self.steal_from_lanes(&[Lane::Cancel])?;
                        stolen(lane, true, entry)
                    }
                }
            }
        };
        Some(Found { entry, chosen: Some(Chosen { verdict, pending, turn }) })
    }

    /// The entry of a lane that goes first: the global one, then the worker's own, unless that has
    /// been passed as often as is allowed.
    pub(super) fn take(&self, lane: Lane, fairness: &Fairness) -> Option<(Turn, Runnable)> {
        let (global, local) = (&self.shared.global, &self.remote.lanes);
        let waits = local.len(lane) > 0 || (lane == Lane::Ready && self.has_plain());
        if !(waits && fairness.local_first(lane))
            && let Some((lower, entry)) = global.pop_in_turn(lane, fairness.oldest_first(true))
        {
            let turn = Turn { global: true, passed_local: waits, passed_lower: lower };
            return Some((turn, entry));
        }
        let (passed_lower, entry) = match lane {
            Lane::Ready => self.take_ready(fairness.oldest_first(false))?,
            lane => (false, local.pop(lane)?),
        };
        Some((Turn { passed_lower, ..Turn::default() }, entry))
    }

    /// The worker's own ready entry that goes first: by priority, or the `oldest`. Also whether it
    /// went for its priority, before lower ones. Plain entries are in the queue, all else in the
    /// lanes.
    pub(super) fn take_ready(&self, oldest: bool) -> Option<(bool, Runnable)> {
        let local = &self.remote.lanes;
        let in_lanes = local.len(Lane::Ready) > 0;
        let several = in_lanes && local.is_mixed();
        let mixed = several || (in_lanes && self.has_plain());
        let entry = if mixed && oldest {
            // Where both are passed by higher priorities they take turns: nobody knows which of the
            // two is older.
            self.queue_next.update(|queue| !queue);
            let queue_goes = if several { self.queue_next.get() } else { local.has_leading() };
            if queue_goes {
                self.next_plain().or_else(|| local.pop_oldest())
            } else {
                local.pop_oldest().or_else(|| self.next_plain())
            }
        } else if self.shared.rules.tie_break == TieBreak::Seeded {
            local.pop_tied(|count| self.pick(count)).or_else(|| self.next_plain())
        } else {
            let leading = local.pop_leading().or_else(|| self.next_plain());
            leading.or_else(|| local.pop(Lane::Ready))
        };
        entry.map(|entry| (mixed && !oldest, entry))
    }
}
