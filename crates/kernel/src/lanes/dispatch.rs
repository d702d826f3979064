//! The decision law for one worker, over the queues of its host.
//!
//! There is one global queue (external and timer wakes) and one local queue per worker (wakes from
//! that worker). A worker sees the global queue and its own:
//!
//! 1. [`Fairness`] picks a lane among those that the worker sees. The lane takes precedence over
//!    the source: the global entry of that lane goes first, else the local one. In the ready lane
//!    of a queue the highest priority goes first. Both preferences are subject to the bounds on
//!    bypass.
//! 2. If it sees no work, the worker steals work that any worker may run: cancel work, then timed,
//!    then ready. A stolen entry counts like a local one of its lane.
//! 3. If the cancel streak is at its limit and only cancel work is visible, other work has
//!    precedence wherever it is: the worker first tries to steal timed or ready work. Otherwise it
//!    dispatches its own cancel work as a fallback or, having none, steals cancel work as a
//!    fallback. The worker thus observes its bound without idling while work is runnable.

use super::{Fairness, Lane, Origin, Pending, Place, Suggestion, Turn, Verdict};

/// The queues from which one worker takes entries.
pub trait Queues {
    /// The type of the entries.
    type Entry;

    /// Whether there can be other workers. If not, the stealing code is omitted.
    const STEALS: bool = true;

    /// The worker's current streaks.
    fn fairness(&self) -> &Fairness;

    /// The lanes with work that the worker sees: in the global queue and in its own.
    fn pending(&self) -> Pending;

    /// Whether the worker's own queue has an entry in the lane.
    fn has_local(&self, lane: Lane) -> bool;

    /// Takes the first entry of a lane of the global queue. In the ready lane this is the one with
    /// the highest priority, or the one that was added first if `oldest` is set.
    fn take_global(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Self::Entry>>;

    /// Like [`take_global`](Queues::take_global), from the worker's own queue.
    fn take_local(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Self::Entry>>;

    /// Steals an entry from another worker: of the first of these lanes in which the first worker
    /// in the scan has a stealable entry.
    fn steal(&mut self, lanes: &[Lane]) -> Option<Stolen<Self::Entry>>;
}

/// An entry that was taken from a visible queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<E> {
    /// The entry.
    pub entry: E,
    /// Its place.
    pub place: Place,
    /// Whether it is a ready entry that was preferred to lower priorities.
    pub passed_lower: bool,
}

/// An entry that was stolen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stolen<E> {
    /// The entry.
    pub entry: E,
    /// Its place.
    pub place: Place,
    /// The worker it was stolen from.
    pub victim: usize,
}

/// The choice of an entry and its circumstances. [`Fairness::dispatched`] counts it once the entry
/// is known to be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The lane and the limit in force.
    pub verdict: Verdict,
    /// The entry's place in its lane.
    pub place: Place,
    /// The queue.
    pub origin: Origin,
    /// The lanes that held work when the entry was taken.
    pub pending: Pending,
    /// The work that the entry passed.
    pub turn: Turn,
}

/// Takes the next entry by the law. Returns `None` if there is none that this worker may run.
///
/// Other workers may take entries concurrently. If the chosen entry is gone, nothing is known about
/// the other lanes, so the worker decides again. Each failed attempt is another worker's success,
/// so the loop ends.
///
/// `suggest` is called with the waiting lanes and returns the governor's suggestion.
#[inline]
pub fn dispatch<Q: Queues>(
    queues: &mut Q,
    mut suggest: impl FnMut(&Q, Pending) -> Suggestion,
) -> Option<(Chosen, Q::Entry)> {
    loop {
        let pending = queues.pending();
        let suggestion = suggest(queues, pending);
        let found = find(queues, pending, suggestion);
        if found.is_some() || !pending.any() {
            return found;
        }
    }
}

#[inline]
fn find<Q: Queues>(
    queues: &mut Q,
    pending: Pending,
    suggestion: Suggestion,
) -> Option<(Chosen, Q::Entry)> {
    let fairness = queues.fairness();
    let limit = fairness.limit(suggestion);
    let may_go = fairness.cancel_may_go(suggestion);
    let own = fairness.decide(pending, suggestion);
    if Q::STEALS && own.is_none_or(|own| own.fallback) {
        // No visible work may be dispatched as it is: see the module's points 2 and 3.
        let wanted = if may_go { &Lane::ALL[..] } else { &Lane::ALL[1..] };
        let stolen = |Stolen { entry, place, victim }: Stolen<Q::Entry>, fallback| {
            let verdict = Verdict { lane: place.lane(), fallback, limit };
            let origin = Origin::Stolen(victim);
            let turn = Turn::default();
            (Chosen { verdict, place, origin, pending, turn }, entry)
        };
        if let Some(other) = queues.steal(wanted) {
            return Some(stolen(other, false));
        }
        if own.is_none() {
            return queues.steal(&[Lane::Cancel]).map(|cancel| stolen(cancel, true));
        }
    }
    take(queues, own?, pending)
}

/// Takes a visible entry: global before local, unless local work has been passed as often as
/// allowed.
#[inline]
fn take<Q: Queues>(
    queues: &mut Q,
    verdict: Verdict,
    pending: Pending,
) -> Option<(Chosen, Q::Entry)> {
    let lane = verdict.lane;
    let waits = queues.has_local(lane);
    let fairness = queues.fairness();
    let local_first = waits && fairness.local_first(lane);
    let [oldest, oldest_global] = [false, true].map(|global| fairness.oldest_first(global));
    let chosen = |global: bool, Taken { entry, place, passed_lower }: Taken<Q::Entry>| {
        let origin = if global { Origin::Global } else { Origin::Local };
        let turn = Turn { global, passed_local: global && waits, passed_lower };
        (Chosen { verdict, place, origin, pending, turn }, entry)
    };
    if !local_first && let Some(taken) = queues.take_global(lane, oldest_global) {
        return Some(chosen(true, taken));
    }
    queues.take_local(lane, oldest).map(|taken| chosen(false, taken))
}
