//! The law for N workers without threads: one global queue and a local queue for each worker.
//!
//! [`dispatch`] makes the decisions. The only free choices are ties in a local ready lane and the
//! start of a steal scan, which visits the other workers in circular order, once each. The oracle
//! chooses the start only if there is something to steal, since otherwise the choice has no effect.

use super::view::{View, stealable};
use super::{
    Certificate, Chosen, Decision, DecisionChain, Fairness, FairnessConfig, Lane, Lanes, Origin,
    Pending, Place, Priority, Source, Suggestion, Ticket, Token, Turn, Verdict, dispatch,
};
use crate::choose::Choose;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;

/// Returns the other workers in the order of a steal scan: a circle that begins behind the thief,
/// rotated by `start`.
pub fn steal_order(worker: usize, workers: usize, start: usize) -> impl Iterator<Item = usize> {
    let others = (worker.saturating_add(1)..workers).chain(0..worker.min(workers));
    others.clone().skip(start).chain(others.take(start))
}

/// The order of entries of equal priority, or of equal deadline in the timed lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// By insertion.
    #[default]
    Fifo,
    /// In a local ready lane by choice of the oracle, elsewhere by insertion: for exploration.
    Seeded,
    /// By task id, then by insertion, in every lane of every queue.
    TaskKey,
}

settings! {
    /// The settings of a [`Scheduler`].
    #[derive(Copy)]
    pub struct SchedulerConfig {
        /// The number of workers; 0 counts as 1.
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

/// All queues, with the law that dispatches from them.
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
    /// The number of entries that were set aside, for each lane.
    died: [u64; 3],
    /// Disables the hash chain of decisions, for hosts that do not use it: number and hash do not
    /// change.
    pub unchained: bool,
}

impl<T> Scheduler<T> {
    /// Creates empty queues.
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
    /// Adds an entry. A pinned entry is never stolen, so it belongs in a local queue.
    pub fn enqueue(&mut self, source: Source, place: Place, token: T, pinned: bool) -> Ticket {
        if self.tie_break != TieBreak::TaskKey {
            return self.enqueue_in_order(source, place, token, pinned);
        }
        let source = self.known(source);
        Ticket { source, entry: self.queue_mut(source).push_by_word(place, token, pinned) }
    }

    /// Like [`enqueue`](Scheduler::enqueue), for hosts without the tie-break by task id, which then
    /// is not linked.
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

    /// Replaces a worker that does not exist by the global queue.
    fn known(&self, source: Source) -> Source {
        let known = matches!(source, Source::Local(worker) if worker < self.workers.len());
        if known { source } else { Source::Global }
    }

    /// Reserves room for this many entries in every queue. Changes nothing on failure.
    pub fn try_reserve(&mut self, entries: usize) -> Result<(), TryReserveError> {
        self.global.try_reserve(entries)?;
        self.workers.iter_mut().try_for_each(|worker| worker.lanes.try_reserve(entries))
    }

    /// Removes an entry, unless it has left.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.queue_mut(ticket.source).remove(ticket.entry)
    }

    /// Keeps a dead entry for [`take_dead`](Scheduler::take_dead). Dropping it may run user code,
    /// which must not run under the host's lock.
    pub fn set_aside(&mut self, lane: Lane, token: T) {
        self.died[lane as usize] += 1;
        self.dead.push(token);
    }

    /// Returns the number of entries of a lane that were set aside.
    pub fn set_aside_from(&self, lane: Lane) -> u64 {
        self.died[lane as usize]
    }

    /// Removes and returns the dead entries.
    pub fn take_dead(&mut self) -> Vec<T> {
        core::mem::take(&mut self.dead)
    }

    /// Decides and dispatches for a worker. Returns `None` if it has nothing to run. Dead entries
    /// are [set aside](Scheduler::set_aside) and do not count as dispatches.
    #[inline]
    pub fn next(
        &mut self,
        worker: usize,
        suggestion: Suggestion,
        choose: &mut (impl Choose + ?Sized),
    ) -> Option<Decision<T>> {
        self.dispatch::<true>(worker, suggestion, choose)
    }

    /// Like [`next`](Scheduler::next) for a single worker, without the stealing code.
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

    /// Dispatches a ready entry of default priority that the host of a single worker stores itself.
    /// The lanes are empty and there is no streak.
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

    /// Counts and records a dispatch.
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

    /// Records that a worker parked (or, with one worker and no threads, that all lanes are empty).
    pub fn parked(&mut self, worker: usize) {
        self.workers.get_mut(worker).into_iter().for_each(|w| w.fairness.parked());
    }

    /// Returns the lanes that a worker sees: in the global queue and in its own.
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
        /// The number of workers.
        workers(&self) -> usize = self.workers.len();
        /// The number of entries in all queues.
        total(&self) -> usize =
            self.global.total() + self.workers.iter().map(|w| w.lanes.total()).sum::<usize>();
        /// Whether all queues are empty.
        is_empty(&self) -> bool = self.total() == 0;
        /// The hash chain of all decisions so far.
        chain(&self) -> DecisionChain = self.chain;
    }

    /// Returns a queue.
    pub fn lanes(&self, source: Source) -> &Lanes<T> {
        let Source::Local(worker) = source else { return &self.global };
        self.workers.get(worker).map_or(&self.global, |w| &w.lanes)
    }

    /// Returns a worker's certificate, or an empty one for an unknown worker.
    pub fn certificate(&self, worker: usize) -> Certificate {
        self.workers.get(worker).map(|w| w.certificate).unwrap_or_default()
    }

    /// Returns a worker's streaks.
    pub fn fairness(&self, worker: usize) -> Option<&Fairness> {
        self.workers.get(worker).map(|w| &w.fairness)
    }

    /// Checks every queue.
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
    fn decisions_do_not_depend_on_the_chain() {
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

    /// Every lane, queue and priority, with cancel work above its limit at times.
    #[test]
    fn a_single_worker_decides_like_one_that_could_steal() {
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

    /// Puts entries back as soon as they were dispatched, like tasks that yield. Returns the
    /// longest time that another entry waits.
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

    /// All sets that mix lanes, queues and priorities: every wait is bounded.
    #[test]
    fn entries_that_always_yield_do_not_starve_the_others() {
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
            // Passed for its lane, its queue and its priority, each time up to the limit.
            // Three priorities in a queue alternate in the order in which they were added.
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
    fn with_the_tie_break_by_task_key_the_oldest_entry_waits_within_the_bound() {
        let tie_break = TieBreak::TaskKey;
        let config = SchedulerConfig { tie_break, ..SchedulerConfig::default() };
        let mut scheduler: Scheduler<u64> = Scheduler::new(config);
        let ready = Place::ready(crate::lanes::Priority::DEFAULT);
        scheduler.enqueue(Source::Local(0), ready, 9, false);
        let mut passed = 0;
        loop {
            // A task with a lower id that always yields.
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
    fn check_examines_every_queue() {
        let wrong = Err("a count of stealable entries is wrong");
        let mut scheduler: Scheduler<u64> = Scheduler::new(SchedulerConfig::default());
        scheduler.workers[0].lanes.stealable[0] = 1;
        assert_eq!(scheduler.check(), wrong);
        scheduler.workers[0].lanes.stealable[0] = 0;
        scheduler.global.stealable[0] = 1;
        assert_eq!(scheduler.check(), wrong);
    }
}
