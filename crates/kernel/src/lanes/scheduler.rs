//! The decision law for N workers.
//!
//! There is one global queue (external and timer wakes) and one local queue per worker (wakes from
//! that worker). A worker sees the global queue and its own:
//!
//! 1. [`Fairness`] picks a lane from what the worker sees. The lane dominates the source: the
//!    global entry of that lane goes, else the local one, and in the ready lane of a queue the
//!    highest priority; each within the bounds on bypass. Only ties in a local ready lane are open
//!    to choice.
//! 2. With nothing to see, the worker steals: it asks the other workers in circular order, once
//!    each, and takes the first entry found (cancel, timed, ready). A stolen entry counts like
//!    an own one of its lane.
//! 3. With the cancel streak at its limit and nothing but cancel work to see, the turn belongs to
//!    other work wherever it is: the worker first tries to steal timed or ready work. Failing that,
//!    it dispatches its own cancel work as a fallback, or, having none, steals cancel work as a
//!    fallback. The worker so keeps its bound without ever idling beside runnable work.
//!
//! The oracle is asked where to start stealing only when somebody has something to steal; otherwise
//! the answer would change nothing.

use super::{
    Certificate, Decision, DecisionChain, Fairness, FairnessConfig, Lane, Lanes, Origin, Pending,
    Place, Source, Suggestion, Ticket, Token, Turn, Verdict,
};
use crate::choose::{Choose, Point};
use alloc::vec::Vec;

/// The other workers in the order a thief asks them: a circle that begins behind the thief, turned
/// by `start`.
pub fn steal_order(worker: usize, workers: usize, start: usize) -> impl Iterator<Item = usize> {
    let others = (worker.saturating_add(1)..workers).chain(0..worker.min(workers));
    others.clone().skip(start).chain(others.take(start))
}

/// How entries of equal priority, or in the timed lane of equal deadline, are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// By insertion.
    #[default]
    Fifo,
    /// In a local ready lane as the oracle chooses, elsewhere by insertion: exploration.
    Seeded,
    /// By task id, then by insertion, in every lane of every queue.
    TaskKey,
}

settings! {
    /// The settings of a [`Scheduler`].
    #[derive(Copy)]
    pub struct SchedulerConfig {
        /// How many workers; 0 counts as 1.
        workers: usize = 1,
        /// See [`FairnessConfig`].
        cancel_streak_limit: u32 = FairnessConfig::default().cancel_streak_limit,
        /// The order of equals.
        tie_break: TieBreak = TieBreak::Fifo,
    }
}

record! {
    #[derive(Clone, Debug)]
    struct Worker<T> {
        fn new(cancel_streak_limit: u32);
        lanes: Lanes<T>,
        fairness: Fairness = Fairness::new(FairnessConfig {
            cancel_streak_limit,
            ..FairnessConfig::default()
        }),
        certificate: Certificate,
    }
}

record! {
    /// All queues and the law over them.
    ///
    /// ```
    /// use asx_kernel::choose::First;
    /// use asx_kernel::lanes::*;
    /// let mut scheduler = Scheduler::new(SchedulerConfig::default());
    /// scheduler.enqueue(Source::Local(0), Place::Ready(Priority::DEFAULT), 7u64, false);
    /// scheduler.enqueue(Source::Global, Place::Cancel(Priority::DEFAULT), 8, false);
    /// let mut next = || scheduler.next(0, Suggestion::NoPreference, &mut First).map(|d| d.token);
    /// assert_eq!([next(), next(), next()], [Some(8), Some(7), None]);
    /// ```
    #[derive(Clone, Debug)]
    pub struct Scheduler<T> {
        /// Empty queues.
        pub fn new(config: SchedulerConfig);
        global: Lanes<T>,
        workers: Vec<Worker<T>> = (0..config.workers.max(1))
            .map(|_| Worker::new(config.cancel_streak_limit)).collect(),
        tie_break: TieBreak = config.tie_break,
        chain: DecisionChain,
        dead: Vec<T>,
        /// Without the chain of decisions, where nobody looks at it: number and hash stay as they
        /// are.
        pub unchained: bool,
    }
}

/// A decision before it is written down.
type Found<T> = (Verdict, Origin, Turn, T);

impl<T: Token> Scheduler<T> {
    /// Adds an entry. A pinned one is never stolen, so it belongs in a local queue.
    pub fn enqueue(&mut self, source: Source, place: Place, token: T, pinned: bool) -> Ticket {
        let known = matches!(source, Source::Local(worker) if worker < self.workers.len());
        let source = if known { source } else { Source::Global };
        let by_word = self.tie_break == TieBreak::TaskKey;
        let queue = self.queue_mut(source);
        let entry = match by_word {
            false => queue.push(place, token, pinned),
            true => queue.push_by_word(place, token, pinned),
        };
        Ticket { source, entry }
    }

    /// Takes an entry back, unless it has left already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.queue_mut(ticket.source).remove(ticket.entry)
    }

    /// Keeps a dead entry for [`take_dead`](Scheduler::take_dead): to drop it may run code of the
    /// user's, which must not find the host's lock taken.
    pub fn set_aside(&mut self, token: T) {
        self.dead.push(token);
    }

    /// The dead entries so far.
    pub fn take_dead(&mut self) -> Vec<T> {
        core::mem::take(&mut self.dead)
    }

    /// Decides and dispatches for a worker. `None`: nothing it could run, back off. Entries that
    /// turn out to be dead are [set aside](Scheduler::set_aside): they are no dispatches.
    pub fn next(
        &mut self,
        worker: usize,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Decision<T>> {
        self.dispatch::<true>(worker, suggestion, choose)
    }

    /// [`next`](Scheduler::next) for the only worker there is, without the code that steals.
    pub fn next_alone(
        &mut self,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Decision<T>> {
        debug_assert_eq!(self.workers.len(), 1);
        self.dispatch::<false>(0, suggestion, choose)
    }

    fn dispatch<const STEALS: bool>(
        &mut self,
        worker: usize,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Decision<T>> {
        let (pending, (verdict, source, turn, token)) = loop {
            let pending = self.pending(worker);
            let found = self.find::<STEALS>(worker, pending, suggestion, choose)?;
            if found.3.is_live(found.0.lane) {
                break (pending, found);
            }
            self.set_aside(found.3);
        };
        let Worker { fairness, certificate, .. } = &mut self.workers[worker];
        let streak = fairness.streak();
        certificate.record(verdict, streak, fairness.base_limit(), pending);
        fairness.record(verdict, pending);
        fairness.record_turn(verdict.lane, turn);
        let Verdict { lane, fallback, limit } = verdict;
        if !self.unchained {
            self.chain.extend(lane, token.word(), streak, limit);
        }
        let DecisionChain { seq, hash } = self.chain;
        Some(Decision { worker, lane, source, fallback, streak, limit, seq, hash, token })
    }

    /// Takes what the law says goes next.
    fn find<const STEALS: bool>(
        &mut self,
        worker: usize,
        pending: Pending,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Found<T>> {
        let fairness = &self.workers.get(worker)?.fairness;
        let limit = fairness.limit(suggestion);
        let wanted =
            if fairness.cancel_may_go(suggestion) { &Lane::ALL[..] } else { &Lane::ALL[1..] };
        let own = fairness.decide(pending, suggestion);
        match own {
            Some(verdict) if !verdict.fallback || !STEALS => self.take(worker, verdict, choose),
            None if !STEALS => None,
            // Nothing the worker sees may go as it is: see the module's points 2 and 3.
            _ => self.steal(worker, wanted, false, limit, choose).or_else(|| match own {
                Some(fallback) => self.take(worker, fallback, choose),
                None => self.steal(worker, &[Lane::Cancel], true, limit, choose),
            }),
        }
    }

    /// Notes that a worker parked (or, with one worker and no threads, that all lanes ran empty).
    pub fn parked(&mut self, worker: usize) {
        self.workers.get_mut(worker).into_iter().for_each(|w| w.fairness.parked());
    }

    /// What a worker sees: the global queue and its own.
    pub fn pending(&self, worker: usize) -> Pending {
        let waits = |lane| {
            self.global.len(lane) > 0
                || self.workers.get(worker).is_some_and(|w| w.lanes.len(lane) > 0)
        };
        let [cancel, timed, ready] = Lane::ALL.map(waits);
        Pending { cancel, timed, ready }
    }

    /// Whether [`next`](Scheduler::next) would find something for a worker.
    pub fn can_run(&self, worker: usize) -> bool {
        worker < self.workers.len()
            && (self.pending(worker).any() || self.stealable(worker, &Lane::ALL))
    }

    getters! {
        /// How many workers there are.
        workers(&self) -> usize = self.workers.len();
        /// How many entries wait in all queues.
        total(&self) -> usize =
            self.global.total() + self.workers.iter().map(|w| w.lanes.total()).sum::<usize>();
        /// Whether none waits.
        is_empty(&self) -> bool = self.total() == 0;
        /// The chain of all decisions so far.
        chain(&self) -> DecisionChain = self.chain;
    }

    /// One queue.
    pub fn lanes(&self, source: Source) -> &Lanes<T> {
        let Source::Local(worker) = source else { return &self.global };
        self.workers.get(worker).map_or(&self.global, |w| &w.lanes)
    }

    /// A worker's certificate; an empty one of a worker that does not exist.
    pub fn certificate(&self, worker: usize) -> Certificate {
        self.workers.get(worker).map(|w| w.certificate).unwrap_or_default()
    }

    /// A worker's streaks.
    pub fn fairness(&self, worker: usize) -> Option<&Fairness> {
        self.workers.get(worker).map(|w| &w.fairness)
    }

    /// Whether every queue is sound.
    pub fn check(&self) -> Result<(), &'static str> {
        self.global.check()?;
        self.workers.iter().try_for_each(|w| w.lanes.check())
    }

    fn queue_mut(&mut self, source: Source) -> &mut Lanes<T> {
        let Source::Local(worker) = source else { return &mut self.global };
        self.workers.get_mut(worker).map_or(&mut self.global, |w| &mut w.lanes)
    }

    /// Takes from what the worker sees: global, then local.
    fn take(
        &mut self,
        worker: usize,
        verdict: Verdict,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Found<T>> {
        let lane = verdict.lane;
        let Worker { lanes: local, fairness, .. } = &mut self.workers[worker];
        let waits = [&*local, &self.global].map(|queue| queue.len(lane) > 0);
        let global = waits[1] && !(waits[0] && fairness.local_first(lane));
        let queue = if global { &mut self.global } else { local };
        let mixed = lane == Lane::Ready && queue.is_mixed();
        let oldest = mixed && fairness.oldest_first(global);
        let (_, token) = match self.tie_break {
            _ if oldest => queue.pop_oldest(),
            TieBreak::Seeded if lane == Lane::Ready && !global => {
                queue.pop_ready_tied(|count| choose.pick(Point::ReadyTie(worker), count))
            }
            _ => queue.pop(lane),
        }?;
        let turn =
            Turn { global, passed_local: global && waits[0], passed_lower: mixed && !oldest };
        let origin = if global { Origin::Global } else { Origin::Local };
        Some((verdict, origin, turn, token))
    }

    /// Takes the first entry in one of the lanes that some other worker lets go of.
    fn steal(
        &mut self,
        worker: usize,
        lanes: &[Lane],
        fallback: bool,
        limit: u32,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Found<T>> {
        self.stealable(worker, lanes).then_some(())?;
        let start = choose.pick(Point::StealStart(worker), self.workers.len() - 1);
        let mut scan = steal_order(worker, self.workers.len(), start);
        scan.find_map(|victim| {
            let queue = &mut self.workers[victim].lanes;
            let (place, token) = lanes.iter().find_map(|lane| queue.steal_from(*lane))?;
            let verdict = Verdict { lane: place.lane(), fallback, limit };
            Some((verdict, Origin::Stolen(victim), Turn::default(), token))
        })
    }

    /// Whether another worker has an entry in one of the lanes to let go of.
    fn stealable(&self, worker: usize, lanes: &[Lane]) -> bool {
        let has = |w: &Worker<T>| lanes.iter().any(|lane| w.lanes.stealable(*lane) > 0);
        self.workers.iter().enumerate().any(|(other, w)| other != worker && has(w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_chain_the_same_is_decided() {
        use crate::choose::First;
        use crate::lanes::Priority;
        let mut chained: Scheduler<u64> = Scheduler::new(SchedulerConfig::default());
        let mut plain = Scheduler::new(SchedulerConfig::default());
        plain.unchained = true;
        for scheduler in [&mut chained, &mut plain] {
            scheduler.enqueue(Source::Local(0), Place::Ready(Priority::DEFAULT), 1, false);
            scheduler.enqueue(Source::Global, Place::Cancel(Priority::DEFAULT), 2, false);
        }
        for token in [2, 1] {
            let a = chained.next(0, Suggestion::NoPreference, &mut First).unwrap();
            let b = plain.next(0, Suggestion::NoPreference, &mut First).unwrap();
            assert_eq!((a.token, b.token), (token, token));
            assert_eq!((a.lane, a.streak, a.limit), (b.lane, b.streak, b.limit));
            assert!(a.seq > 0 && a.hash != 0 && (b.seq, b.hash) == (0, 0));
        }
    }

    /// Every lane, queue and priority, with cancel work over its limit now and then.
    #[test]
    fn a_worker_alone_decides_as_one_that_could_steal() {
        use crate::choose::First;
        use crate::lanes::Priority;
        use crate::time::Time;
        let config = SchedulerConfig { cancel_streak_limit: 2, ..SchedulerConfig::default() };
        let (mut a, mut b) = (Scheduler::<u64>::new(config), Scheduler::<u64>::new(config));
        for token in 0..200_u64 {
            let source = if token % 3 == 0 { Source::Global } else { Source::Local(0) };
            let place = match token % 7 {
                0 => Place::Timed(Time::from_nanos(token)),
                1 => Place::Ready(Priority((token % 5) as u8)),
                _ => Place::Cancel(Priority::DEFAULT),
            };
            for scheduler in [&mut a, &mut b] {
                scheduler.enqueue(source, place, token, false);
            }
            if token % 4 == 0 {
                assert_eq!(a.next_alone(SUGGESTION, &mut First), b.next(0, SUGGESTION, &mut First));
            }
        }
        let mut fallbacks = 0;
        loop {
            let next = a.next_alone(SUGGESTION, &mut First);
            assert_eq!(next, b.next(0, SUGGESTION, &mut First));
            let Some(decision) = next else { break };
            fallbacks += u32::from(decision.fallback);
        }
        assert!(fallbacks > 0 && a.is_empty() && b.is_empty());
        assert_eq!(a.certificate(0), b.certificate(0));
    }

    const SUGGESTION: Suggestion = Suggestion::NoPreference;

    /// Entries that are put back as soon as they went, as tasks that yield are; how long each of
    /// the others waits at most.
    fn longest_wait(entries: &[(Source, Place)]) -> u32 {
        use crate::choose::First;
        let mut scheduler: Scheduler<u64> = Scheduler::new(SchedulerConfig::default());
        let config = FairnessConfig { bypass_limit: LIMIT, ..FairnessConfig::default() };
        scheduler.workers[0].fairness = Fairness::new(config);
        for (token, (source, place)) in entries.iter().enumerate() {
            scheduler.enqueue(*source, *place, token as u64, false);
        }
        let mut waits = std::vec![0_u32; entries.len()];
        let mut longest = 0;
        for _ in 0..1000 {
            let went = scheduler.next(0, Suggestion::NoPreference, &mut First).unwrap().token;
            waits.iter_mut().for_each(|wait| *wait += 1);
            waits[went as usize] = 0;
            longest = longest.max(waits.iter().copied().max().unwrap());
            let (source, place) = entries[went as usize];
            scheduler.enqueue(source, place, went, false);
        }
        longest
    }

    const LIMIT: u32 = 2;

    /// All sets that mix lanes, queues and priorities: nothing waits for ever.
    #[test]
    fn whatever_yields_for_ever_the_rest_has_its_turns() {
        use crate::lanes::Priority;
        use crate::time::Time;
        let places = [
            Place::Timed(Time::from_nanos(9)),
            Place::Ready(Priority(200)),
            Place::Ready(Priority::DEFAULT),
            Place::Ready(Priority(3)),
        ];
        let kinds = [Source::Global, Source::Local(0)]
            .into_iter()
            .flat_map(|source| places.map(|place| (source, place)));
        let kinds: std::vec::Vec<_> = kinds.collect();
        for bits in 1..1_u32 << kinds.len() {
            let chosen = |at: &usize| bits >> at & 1 == 1;
            let entries: std::vec::Vec<_> =
                (0..kinds.len()).filter(chosen).map(|at| kinds[at]).collect();
            let longest = longest_wait(&entries);
            // Passed for its lane, its queue and its priority, each time to the limit.
            // Three priorities in a queue take turns in the order they were added.
            let bound = if entries.len() < 3 { LIMIT + 1 } else { 3 * (LIMIT + 1).pow(3) };
            assert!(longest <= bound, "{entries:?} {longest}");
        }
    }

    #[test]
    fn a_dead_entry_is_no_dispatch() {
        use crate::choose::First;
        use crate::lanes::Priority;
        #[derive(Clone, Copy)]
        struct Task(u64, bool);
        impl Token for Task {
            fn word(&self) -> u64 {
                self.0
            }
            fn is_live(&self, _: Lane) -> bool {
                self.1
            }
        }
        let config = SchedulerConfig { cancel_streak_limit: 2, ..SchedulerConfig::default() };
        let mut scheduler = Scheduler::new(config);
        for token in 0..10 {
            let ready = Place::Ready(Priority::DEFAULT);
            scheduler.enqueue(Source::Local(0), ready, Task(token, false), false);
            let cancel = Place::Cancel(Priority::DEFAULT);
            scheduler.enqueue(Source::Local(0), cancel, Task(token, true), false);
        }
        let last = Place::Ready(Priority::DEFAULT);
        scheduler.enqueue(Source::Local(0), last, Task(99, true), false);
        let mut next =
            || scheduler.next(0, Suggestion::NoPreference, &mut First).map(|d| d.token.0);
        assert_eq!([next(), next(), next(), next()], [Some(0), Some(1), Some(99), Some(2)]);
        let certificate = scheduler.certificate(0);
        assert_eq!((certificate.cancel, certificate.ready), (3, 1));
    }

    #[test]
    fn by_task_key_the_oldest_is_passed_no_more_often_than_the_bound_says() {
        let tie_break = TieBreak::TaskKey;
        let config = SchedulerConfig { tie_break, ..SchedulerConfig::default() };
        let mut scheduler: Scheduler<u64> = Scheduler::new(config);
        let ready = Place::Ready(crate::lanes::Priority::DEFAULT);
        scheduler.enqueue(Source::Local(0), ready, 9, false);
        let mut passed = 0;
        loop {
            // A task of a lower id that always yields.
            scheduler.enqueue(Source::Local(0), ready, 1, false);
            let next = scheduler.next(0, Suggestion::NoPreference, &mut crate::choose::First);
            match next.map(|decision| decision.token) {
                Some(1) => passed += 1,
                other => break assert_eq!(other, Some(9)),
            }
        }
        assert_eq!(passed, 64);
    }

    #[test]
    fn check_looks_at_every_queue() {
        let wrong = Err("a count of stealable entries is wrong");
        let mut scheduler: Scheduler<u64> = Scheduler::new(SchedulerConfig::default());
        scheduler.workers[0].lanes.stealable[0] = 1;
        assert_eq!(scheduler.check(), wrong);
        scheduler.workers[0].lanes.stealable[0] = 0;
        scheduler.global.stealable[0] = 1;
        assert_eq!(scheduler.check(), wrong);
    }
}
