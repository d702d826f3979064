//! The law for N workers without threads: one global queue, a local queue for each worker.
//!
//! What goes next is decided by [`dispatch`]. Only ties in a local ready lane are open to choice.
//! A thief asks the other workers in circular order, once each. The oracle is asked where to start
//! only when somebody has something to steal; otherwise the answer would change nothing.

use super::view::{View, stealable};
use super::{
    Certificate, Chosen, Decision, DecisionChain, Fairness, FairnessConfig, Lane, Lanes, Origin,
    Pending, Place, Priority, Source, Suggestion, Ticket, Token, Turn, Verdict, dispatch,
};
use crate::choose::Choose;
use alloc::collections::TryReserveError;
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

#[derive(Clone, Debug)]
pub(super) struct Worker<T> {
    pub(super) lanes: Lanes<T>,
    pub(super) fairness: Fairness,
    certificate: Certificate,
}

impl<T> Worker<T> {
    fn new(cancel_streak_limit: u32) -> Worker<T> {
        Worker {
            lanes: Lanes::default(),
            fairness: Fairness::new(FairnessConfig {
                cancel_streak_limit,
                ..FairnessConfig::default()
            }),
            certificate: Certificate::default(),
        }
    }
}

/// All queues and the law over them.
///
/// ```
/// use asx_kernel::choose::First;
/// use asx_kernel::lanes::*;
/// let mut scheduler = Scheduler::new(SchedulerConfig::default());
/// scheduler.enqueue(Source::Local(0), Place::ready(Priority::DEFAULT), 7u64, false);
/// scheduler.enqueue(Source::Global, Place::cancel(Priority::DEFAULT), 8, false);
/// let mut next = || scheduler.next(0, Suggestion::NoPreference, &mut First).map(|d| d.token);
/// assert_eq!([next(), next(), next()], [Some(8), Some(7), None]);
/// ```
#[derive(Clone, Debug)]
pub struct Scheduler<T> {
    global: Lanes<T>,
    workers: Vec<Worker<T>>,
    tie_break: TieBreak,
    chain: DecisionChain,
    dead: Vec<T>,
    /// Entries ever set aside, of each lane.
    died: [u64; 3],
    /// Without the chain of decisions, where nobody looks at it: number and hash stay as they
    /// are.
    pub unchained: bool,
}

impl<T> Scheduler<T> {
    /// Empty queues.
    pub fn new(config: SchedulerConfig) -> Scheduler<T> {
        Scheduler {
            global: Lanes::default(),
            workers: (0..config.workers.max(1))
                .map(|_| Worker::new(config.cancel_streak_limit))
                .collect(),
            tie_break: config.tie_break,
            chain: DecisionChain::default(),
            dead: Vec::new(),
            died: Default::default(),
            unchained: false,
        }
    }
}

impl<T: Token> Scheduler<T> {
    /// Adds an entry. A pinned one is never stolen, so it belongs in a local queue.
    pub fn enqueue(&mut self, source: Source, place: Place, token: T, pinned: bool) -> Ticket {
        if self.tie_break != TieBreak::TaskKey {
            return self.enqueue_in_order(source, place, token, pinned);
        }
        let source = self.known(source);
        Ticket { source, entry: self.queue_mut(source).push_by_word(place, token, pinned) }
    }

    /// [`enqueue`](Scheduler::enqueue) for hosts without the tie-break by task id, which need not
    /// link it.
    pub fn enqueue_in_order(
        &mut self,
        source: Source,
        place: Place,
        token: T,
        pinned: bool,
    ) -> Ticket {
        let source = self.known(source);
        Ticket { source, entry: self.queue_mut(source).push(place, token, pinned) }
    }

    /// A worker that does not exist means the global queue.
    fn known(&self, source: Source) -> Source {
        let known = matches!(source, Source::Local(worker) if worker < self.workers.len());
        if known { source } else { Source::Global }
    }

    /// Makes room for this many entries in every queue. Nothing has changed when it fails.
    pub fn try_reserve(&mut self, entries: usize) -> Result<(), TryReserveError> {
        self.global.try_reserve(entries)?;
        self.workers.iter_mut().try_for_each(|worker| worker.lanes.try_reserve(entries))
    }

    /// Takes an entry back, unless it has left already.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.queue_mut(ticket.source).remove(ticket.entry)
    }

    /// Keeps a dead entry for [`take_dead`](Scheduler::take_dead): to drop it may run code of the
    /// user's, which must not find the host's lock taken.
    pub fn set_aside(&mut self, lane: Lane, token: T) {
        self.died[lane as usize] += 1;
        self.dead.push(token);
    }

    /// How many entries of a lane were ever set aside.
    pub fn set_aside_from(&self, lane: Lane) -> u64 {
        self.died[lane as usize]
    }

    /// The dead entries so far.
    pub fn take_dead(&mut self) -> Vec<T> {
        core::mem::take(&mut self.dead)
    }

    /// Decides and dispatches for a worker. `None`: nothing it could run, back off. Entries that
    /// turn out to be dead are [set aside](Scheduler::set_aside): they are no dispatches.
    #[inline]
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

    #[inline]
    fn dispatch<const STEALS: bool>(
        &mut self,
        worker: usize,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Decision<T>> {
        (worker < self.workers.len()).then_some(())?;
        let (chosen, token) = loop {
            let Scheduler { global, workers, tie_break, .. } = self;
            let tie_break = *tie_break;
            let choose = &mut *choose;
            let mut view = View::<_, _, STEALS> { worker, global, workers, tie_break, choose };
            let (chosen, token) = dispatch(&mut view, |_, _| suggestion)?;
            if token.is_live(chosen.place) {
                break (chosen, token);
            }
            self.set_aside(chosen.verdict.lane, token);
        };
        Some(self.decided(worker, chosen, token))
    }

    /// Dispatches a ready entry of the usual priority that the host of the only worker has kept
    /// elsewhere: nothing waits in the lanes, and there is no streak.
    pub fn dispatch_alone(
        &mut self,
        origin: Origin,
        token: T,
        suggestion: Suggestion,
    ) -> Decision<T> {
        debug_assert!(self.is_empty() && self.workers[0].fairness.streak() == 0);
        let lane = Lane::Ready;
        let place = Place::ready(Priority::DEFAULT);
        let limit = self.workers[0].fairness.limit(suggestion);
        let verdict = Verdict { lane, fallback: false, limit };
        let pending = Pending::of(|other| other == lane);
        let turn = Turn::default();
        self.decided(0, Chosen { verdict, place, origin, pending, turn }, token)
    }

    /// Counts a dispatch and writes it down.
    #[inline]
    fn decided(&mut self, worker: usize, chosen: Chosen, token: T) -> Decision<T> {
        let Worker { fairness, certificate, .. } = &mut self.workers[worker];
        let Chosen { verdict, origin: source, pending, .. } = chosen;
        let streak = fairness.streak();
        certificate.record(verdict, streak, fairness.base_limit(), pending);
        fairness.dispatched(chosen);
        let Verdict { lane, fallback, limit } = verdict;
        if !self.unchained {
            self.chain.extend(lane, token.word(), streak, limit);
        }
        let DecisionChain { seq, hash } = self.chain;
        Decision { worker, lane, source, fallback, streak, limit, seq, hash, token }
    }

    /// Notes that a worker parked (or, with one worker and no threads, that all lanes ran empty).
    pub fn parked(&mut self, worker: usize) {
        self.workers.get_mut(worker).into_iter().for_each(|w| w.fairness.parked());
    }

    /// What a worker sees: the global queue and its own.
    pub fn pending(&self, worker: usize) -> Pending {
        let local = self.workers.get(worker);
        Pending::of(|lane| {
            self.global.len(lane) > 0 || local.is_some_and(|w| w.lanes.len(lane) > 0)
        })
    }

    /// Whether [`next`](Scheduler::next) would find something for a worker.
    pub fn can_run(&self, worker: usize) -> bool {
        worker < self.workers.len()
            && (self.pending(worker).any() || stealable(&self.workers, worker, &Lane::ALL))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_chain_the_same_is_decided() {
        use crate::choose::First;
        let mut chained: Scheduler<u64> = Scheduler::new(SchedulerConfig::default());
        let mut plain = Scheduler::new(SchedulerConfig::default());
        plain.unchained = true;
        for scheduler in [&mut chained, &mut plain] {
            scheduler.enqueue(Source::Local(0), Place::ready(Priority::DEFAULT), 1, false);
            scheduler.enqueue(Source::Global, Place::cancel(Priority::DEFAULT), 2, false);
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
        use crate::time::Time;
        let config = SchedulerConfig { cancel_streak_limit: 2, ..SchedulerConfig::default() };
        let mut a = Scheduler::<u64>::new(config);
        let mut b = Scheduler::<u64>::new(config);
        for token in 0..200_u64 {
            let source = if token % 3 == 0 { Source::Global } else { Source::Local(0) };
            let place = match token % 7 {
                0 => Place::timed(Time::from_nanos(token)),
                1 => Place::ready(Priority((token % 5) as u8)),
                _ => Place::cancel(Priority::DEFAULT),
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
        use crate::time::Time;
        let places = [
            Place::timed(Time::from_nanos(9)),
            Place::ready(Priority(200)),
            Place::ready(Priority::DEFAULT),
            Place::ready(Priority(3)),
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
        #[derive(Clone, Copy)]
        struct Task(u64, bool);
        impl Token for Task {
            fn word(&self) -> u64 {
                self.0
            }
            fn is_live(&self, _: Place) -> bool {
                self.1
            }
        }
        let config = SchedulerConfig { cancel_streak_limit: 2, ..SchedulerConfig::default() };
        let mut scheduler = Scheduler::new(config);
        for token in 0..10 {
            let ready = Place::ready(Priority::DEFAULT);
            scheduler.enqueue(Source::Local(0), ready, Task(token, false), false);
            let cancel = Place::cancel(Priority::DEFAULT);
            scheduler.enqueue(Source::Local(0), cancel, Task(token, true), false);
        }
        let last = Place::ready(Priority::DEFAULT);
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
        let ready = Place::ready(crate::lanes::Priority::DEFAULT);
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
