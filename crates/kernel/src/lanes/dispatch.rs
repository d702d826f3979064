//! The decision law for one worker, over whatever queues its host has.
//!
//! There is one global queue (external and timer wakes) and one local queue per worker (wakes from
//! that worker). A worker sees the global queue and its own:
//!
//! 1. [`Fairness`] picks a lane from what the worker sees. The lane dominates the source: the
//!    global entry of that lane goes, else the local one, and in the ready lane of a queue the
//!    highest priority; each within the bounds on bypass.
//! 2. With nothing to see, the worker steals from the others what any worker may run: cancel work,
//!    then timed, then ready. A stolen entry counts like an own one of its lane.
//! 3. With the cancel streak at its limit and nothing but cancel work to see, the turn belongs to
//!    other work wherever it is: the worker first tries to steal timed or ready work. Failing that,
//!    it dispatches its own cancel work as a fallback, or, having none, steals cancel work as a
//!    fallback. The worker so keeps its bound without ever idling beside runnable work.

use super::{Fairness, Lane, Origin, Pending, Place, Suggestion, Turn, Verdict};

/// The queues that one worker takes entries from.
pub trait Queues {
    /// What waits in them.
    type Entry;

    /// Whether there can be other workers. Without any, the code that steals is left out.
    const STEALS: bool = true;

    /// The worker's streaks, as they are now.
    fn fairness(&self) -> &Fairness;

    /// The lanes in which the worker sees work: in the global queue and in its own.
    fn pending(&self) -> Pending;

    /// Whether an entry of the lane waits in the worker's own queue.
    fn has_local(&self, lane: Lane) -> bool;

    /// Takes the entry of a lane of the global queue that goes first. In the ready lane that is the
    /// one of the highest priority, or the one that was added first if the `oldest` is asked for.
    fn take_global(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Self::Entry>>;

    /// The same from the worker's own queue.
    fn take_local(&mut self, lane: Lane, oldest: bool) -> Option<Taken<Self::Entry>>;

    /// Takes an entry that another worker lets go of: of the first lane among these in which the
    /// first worker that is asked has one.
    fn steal(&mut self, lanes: &[Lane]) -> Option<Stolen<Self::Entry>>;
}

/// An entry that was taken from a queue the worker sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<E> {
    /// The entry.
    pub entry: E,
    /// The place it had.
    pub place: Place,
    /// It is a ready entry that went for its priority, before lower ones.
    pub passed_lower: bool,
}

/// An entry that was taken from another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stolen<E> {
    /// The entry.
    pub entry: E,
    /// The place it had.
    pub place: Place,
    /// Whose it was.
    pub victim: usize,
}

/// What goes next, and why. It is counted, by [`Fairness::dispatched`], once it turns out that the
/// entry is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The lane and the limit in force.
    pub verdict: Verdict,
    /// The place it had in its lane.
    pub place: Place,
    /// The queue.
    pub origin: Origin,
    /// The lanes that held work when it was taken.
    pub pending: Pending,
    /// Who waited beside it.
    pub turn: Turn,
}

/// Takes what goes next by the law. `None`: there is nothing that this worker may run.
///
/// Other workers may take entries meanwhile. If the chosen one is gone, that says nothing about the
/// other lanes: the worker decides again. Each failed attempt is another worker's success, so this
/// ends.
///
/// `suggest` is asked what a governor suggests, given what waits.
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
        // Nothing the worker sees may go as it is: see the module's points 2 and 3.
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

/// Takes from what the worker sees: global, then local, unless that has been passed as often as is
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
