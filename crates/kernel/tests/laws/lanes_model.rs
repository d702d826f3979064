//! The scheduler compared with literal implementations of its rules.

use asx_kernel::choose::{Choose, First, Point, Seeded};
use asx_kernel::digest::digest_words;
use asx_kernel::lanes::*;
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use std::cmp::Reverse;

fn limit_of(suggestion: Suggestion, base: u32) -> u32 {
    match suggestion {
        Suggestion::NoPreference | Suggestion::MeetDeadlines => base,
        Suggestion::DrainObligations | Suggestion::DrainRegions => 2 * base,
    }
}

/// The rules for one worker, one statement for each sentence. The flag is the fallback.
fn rules(
    pending: Pending,
    suggestion: Suggestion,
    streaks: (u32, u32),
    base: u32,
) -> Option<(Lane, bool)> {
    let limit = limit_of(suggestion, base);
    let (streak, timed_streak) = streaks;
    let cancel_held_back_too_long = pending.cancel && timed_streak >= limit;
    if suggestion == Suggestion::MeetDeadlines && pending.timed && !cancel_held_back_too_long {
        return Some((Lane::Timed, false));
    }
    if pending.cancel && streak < limit {
        return Some((Lane::Cancel, false));
    }
    if pending.timed {
        return Some((Lane::Timed, false));
    }
    if pending.ready {
        return Some((Lane::Ready, false));
    }
    pending.cancel.then_some((Lane::Cancel, true))
}

fn all_pending() -> impl Iterator<Item = Pending> {
    (0..8).map(|bits| Pending { cancel: bits & 1 > 0, timed: bits & 2 > 0, ready: bits & 4 > 0 })
}

fn dispatch(lane: Lane) -> Verdict {
    Verdict { lane, fallback: false, limit: 1 }
}

#[test]
fn every_verdict_follows_the_rules() {
    const BASE: u32 = 3;
    let config = FairnessConfig { cancel_streak_limit: BASE, ..FairnessConfig::default() };
    let waiting = Pending { cancel: true, timed: true, ready: true };
    // One of the two streaks is always 0.
    let states = (0..=4 * BASE + 1).flat_map(|n| [(n, 0), (0, n)]);
    for (streak, timed_streak) in states {
        let mut fairness = Fairness::new(config);
        (0..streak).for_each(|_| fairness.record(dispatch(Lane::Cancel), waiting));
        (0..timed_streak).for_each(|_| fairness.record(dispatch(Lane::Timed), waiting));
        assert_eq!((fairness.streak(), fairness.timed_streak()), (streak, timed_streak));
        for suggestion in Suggestion::ALL {
            for pending in all_pending() {
                let found = fairness.decide(pending, suggestion);
                let limit = limit_of(suggestion, BASE);
                let expected = rules(pending, suggestion, (streak, timed_streak), BASE)
                    .map(|(lane, fallback)| Verdict { lane, fallback, limit });
                assert_eq!(found, expected, "{pending:?} {suggestion:?} {streak} {timed_streak}");
            }
        }
    }
}

#[test]
fn waits_are_bounded_regardless_of_the_governor() {
    const BASE: u32 = 3;
    let fixed = Suggestion::ALL.map(|suggestion| (suggestion, false));
    for (start, changing) in fixed.into_iter().chain([(Suggestion::NoPreference, true)]) {
        let mut rng = DetRng::new(11, 0);
        let mut fairness = Fairness::new(FairnessConfig {
            cancel_streak_limit: BASE,
            ..FairnessConfig::default()
        });
        let mut others_waited = 0;
        let mut cancel_waited = 0;
        let mut longest = (0, 0);
        for _ in 0..20_000 {
            let suggestion = if changing { Suggestion::ALL[rng.below(4)] } else { start };
            let bits = rng.next_u64();
            // Lanes are mostly busy, so that streaks become long.
            let [cancel, timed, ready] = [0, 4, 8].map(|shift| bits >> shift & 15 != 0);
            let pending = Pending { cancel, timed: timed && bits >> 12 & 1 > 0, ready };
            let Some(verdict) = fairness.decide(pending, suggestion) else { continue };
            fairness.record(verdict, pending);
            assert!(!verdict.fallback || !pending.other());
            let cancelled = verdict.lane == Lane::Cancel;
            others_waited = if cancelled && pending.other() { others_waited + 1 } else { 0 };
            let passed = verdict.lane == Lane::Timed && pending.cancel;
            cancel_waited = if passed { cancel_waited + 1 } else { 0 };
            longest = (longest.0.max(others_waited), longest.1.max(cancel_waited));
            assert!(others_waited <= if changing { 2 * BASE } else { limit_of(start, BASE) });
            assert!(cancel_waited <= BASE);
        }
        let tight = match start {
            _ if changing => (2 * BASE, BASE),
            Suggestion::MeetDeadlines => (BASE, BASE),
            _ => (limit_of(start, BASE), 1),
        };
        assert_eq!(longest, tight, "{start:?} changing: {changing}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    place: Place,
    token: u64,
    pinned: bool,
    seq: u64,
}

impl Item {
    fn order(&self) -> (Lane, Reverse<u8>, u64, u64) {
        let deadline = self.place.deadline().map_or(0, Time::as_nanos);
        let priority = self.place.priority().0;
        (self.place.lane(), Reverse(priority), deadline, self.seq)
    }
}

/// A queue as a list that is sorted on access.
#[derive(Clone, Default)]
struct Sorted {
    items: Vec<Item>,
    pushed: u64,
    /// Whether equals are ordered by their tokens.
    by_token: bool,
}

impl Sorted {
    fn push(&mut self, place: Place, token: u64, pinned: bool) -> u64 {
        self.items.push(Item { place, token, pinned, seq: self.pushed });
        let by_token = self.by_token;
        self.items.sort_by_key(|item| {
            let (lane, priority, deadline, seq) = item.order();
            (lane, priority, deadline, if by_token { item.token } else { 0 }, seq)
        });
        self.pushed += 1;
        self.pushed - 1
    }

    fn take(&mut self, accept: impl Fn(&Item) -> bool) -> Option<Item> {
        self.items.iter().position(accept).map(|at| self.items.remove(at))
    }

    fn lane(&self, lane: Lane) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.place.lane() == lane)
    }

    fn take_tied(&mut self, pick: impl FnOnce(usize) -> usize) -> Option<Item> {
        let best = self.lane(Lane::Ready).next()?.place;
        let tied: Vec<u64> =
            self.items.iter().filter(|item| item.place == best).map(|item| item.seq).collect();
        let nth = if tied.len() < 2 { 0 } else { pick(tied.len()) };
        self.take(|item| item.seq == tied[nth])
    }
}

fn any_place(rng: &mut DetRng) -> Place {
    let priority = Priority([0, 64, 128, 255][rng.below(4)]);
    match rng.below(3) {
        0 => Place::cancel(priority),
        1 => Place::timed(Time::from_nanos(rng.below(5) as u64)),
        _ => Place::ready(priority),
    }
}

#[test]
fn lanes_agree_with_a_sorted_list() {
    for seed in 0..40 {
        let mut rng = DetRng::new(seed, 0);
        let mut lanes = Lanes::new();
        let mut model = Sorted::default();
        let mut ids = Vec::new();
        for token in 0..150 {
            let lane = Lane::ALL[rng.below(3)];
            let entry = |item: Item| (item.place, item.token);
            match rng.below(10) {
                0..5 => {
                    let place = any_place(&mut rng);
                    let pinned = rng.below(2) == 0;
                    ids.push(lanes.push(place, token, pinned));
                    assert_eq!(ids[ids.len() - 1].seq(), model.push(place, token, pinned));
                }
                5 => {
                    let expected = model.take(|item| item.place.lane() == lane).map(entry);
                    assert_eq!(lanes.pop(lane), expected);
                }
                6 if !ids.is_empty() => {
                    let id = ids[rng.below(ids.len())];
                    let expected = model.take(|item| item.seq == id.seq());
                    assert_eq!(lanes.remove(id), expected.map(|item| item.token));
                }
                7 => {
                    let stolen = Lane::ALL.into_iter().find_map(|lane| lanes.steal_from(lane));
                    assert_eq!(stolen, model.take(|item| !item.pinned).map(entry));
                }
                8 => {
                    let expected = model.take(|item| !item.pinned && item.place.lane() == lane);
                    assert_eq!(lanes.steal_from(lane), expected.map(entry));
                }
                _ => {
                    let wish = rng.below(100);
                    let expected = model.take_tied(|count| wish % count).map(entry);
                    assert_eq!(lanes.pop_ready_tied(|count| wish % count), expected);
                }
            }
            assert_same(&lanes, &model);
        }
    }
}

fn assert_same(lanes: &Lanes<u64>, model: &Sorted) {
    assert_eq!(lanes.check(), Ok(()));
    assert_eq!((lanes.total(), lanes.is_empty()), (model.items.len(), model.items.is_empty()));
    for lane in Lane::ALL {
        let found: Vec<_> = lanes.iter(lane).map(|(id, p, token)| (id.seq(), p, *token)).collect();
        let expected: Vec<_> =
            model.lane(lane).map(|item| (item.seq, item.place, item.token)).collect();
        assert_eq!(found, expected);
        assert_eq!(lanes.len(lane), expected.len());
        assert_eq!(lanes.stealable(lane), model.lane(lane).filter(|item| !item.pinned).count());
    }
}

/// Chooses pseudo-randomly and logs the choices.
struct Oracle {
    rng: DetRng,
    asked: Vec<(Point, usize)>,
}

impl Oracle {
    fn new(seed: u64) -> Oracle {
        Oracle { rng: DetRng::new(seed, 77), asked: Vec::new() }
    }
}

impl Choose for Oracle {
    fn choose(&mut self, point: Point, count: usize) -> usize {
        self.asked.push((point, count));
        self.rng.below(count)
    }
}

/// The law for several workers, over sorted lists.
struct Naive {
    base: u32,
    tie_break: TieBreak,
    global: Sorted,
    locals: Vec<Sorted>,
    streaks: Vec<(u32, u32)>,
    certificates: Vec<[u64; 7]>,
    chain: (u64, u64),
}

impl Naive {
    fn next(
        &mut self,
        worker: usize,
        suggestion: Suggestion,
        choose: &mut Oracle,
    ) -> Option<Decision<u64>> {
        let limit = limit_of(suggestion, self.base);
        let (streak, timed_streak) = self.streaks[worker];
        let pending = self.pending(worker);
        let own = rules(pending, suggestion, self.streaks[worker], self.base);
        let loot = if streak < limit { &Lane::ALL[..] } else { &[Lane::Timed, Lane::Ready] };
        let (source, item, fallback) = match own {
            Some((lane, false)) => self.own(worker, lane, choose).map(|(s, i)| (s, i, false))?,
            Some((lane, true)) => match self.steal(worker, loot, choose) {
                Some((source, item)) => (source, item, false),
                None => self.own(worker, lane, choose).map(|(s, i)| (s, i, true))?,
            },
            None => match self.steal(worker, loot, choose) {
                Some((source, item)) => (source, item, false),
                None => self.steal(worker, &[Lane::Cancel], choose).map(|(s, i)| (s, i, true))?,
            },
        };
        let lane = item.place.lane();
        let cancel = lane == Lane::Cancel;
        let passed = lane == Lane::Timed && pending.cancel;
        self.streaks[worker] = (
            if cancel && !fallback { streak + 1 } else { 0 },
            if passed { timed_streak + 1 } else { 0 },
        );
        let counts = &mut self.certificates[worker];
        counts[if fallback { 3 } else { lane as usize }] += 1;
        counts[4] += u64::from(cancel && streak >= self.base);
        counts[6] = counts[6].max(limit.into());
        let seq = self.chain.0 + 1;
        let words = [self.chain.1, seq, lane as u64, item.token, streak.into(), limit.into()];
        self.chain = (seq, digest_words(&words));
        let hash = self.chain.1;
        let token = item.token;
        Some(Decision { worker, lane, source, fallback, streak, limit, seq, hash, token })
    }

    fn pending(&self, worker: usize) -> Pending {
        let [cancel, timed, ready] = Lane::ALL.map(|lane| {
            self.global.lane(lane).chain(self.locals[worker].lane(lane)).next().is_some()
        });
        Pending { cancel, timed, ready }
    }

    fn own(&mut self, worker: usize, lane: Lane, choose: &mut Oracle) -> Option<(Origin, Item)> {
        if let Some(item) = self.global.take(|item| item.place.lane() == lane) {
            return Some((Origin::Global, item));
        }
        let local = &mut self.locals[worker];
        let item = if lane == Lane::Ready && self.tie_break == TieBreak::Seeded {
            local.take_tied(|count| choose.choose(Point::ReadyTie(worker), count))
        } else {
            local.take(|item| item.place.lane() == lane)
        };
        item.map(|item| (Origin::Local, item))
    }

    fn steal(
        &mut self,
        worker: usize,
        lanes: &[Lane],
        choose: &mut Oracle,
    ) -> Option<(Origin, Item)> {
        let loot = |item: &Item| !item.pinned && lanes.contains(&item.place.lane());
        let mut others: Vec<usize> = (worker + 1..self.locals.len()).chain(0..worker).collect();
        if !others.iter().any(|other| self.locals[*other].items.iter().any(loot)) {
            return None;
        }
        if others.len() > 1 {
            let start = choose.choose(Point::StealStart(worker), others.len());
            others.rotate_left(start);
        }
        others.into_iter().find_map(|victim| {
            self.locals[victim].take(loot).map(|item| (Origin::Stolen(victim), item))
        })
    }
}

#[test]
fn the_worker_law_agrees_with_sorted_lists() {
    for seed in 0..60 {
        let mut rng = DetRng::new(seed, 1);
        let workers = 1 + seed as usize % 4;
        let base = 1 + rng.below(3) as u32;
        let ties = [TieBreak::Fifo, TieBreak::Seeded, TieBreak::TaskKey];
        let tie_break = ties[seed as usize / 4 % 3];
        let config = SchedulerConfig { workers, cancel_streak_limit: base, tie_break };
        let empty = Sorted { by_token: tie_break == TieBreak::TaskKey, ..Sorted::default() };
        let mut scheduler = Scheduler::new(config);
        let mut naive = Naive {
            base,
            tie_break,
            global: empty.clone(),
            locals: vec![empty; workers],
            streaks: vec![(0, 0); workers],
            certificates: vec![[0; 7]; workers],
            chain: (0, 0),
        };
        let mut left = Oracle::new(seed);
        let mut right = Oracle::new(seed);
        let mut tickets = Vec::new();
        // Each token once, in pseudo-random order.
        for token in (0..200).map(|n: u64| n * 77 % 200) {
            let worker = rng.below(workers);
            match rng.below(9) {
                0..4 => {
                    let place = any_place(&mut rng);
                    let global = rng.below(4) == 0;
                    let pinned = !global && rng.below(3) == 0;
                    let source = if global { Source::Global } else { Source::Local(worker) };
                    tickets.push(scheduler.enqueue(source, place, token, pinned));
                    let queue = if global { &mut naive.global } else { &mut naive.locals[worker] };
                    queue.push(place, token, pinned);
                }
                4 if !tickets.is_empty() => {
                    let ticket = tickets[rng.below(tickets.len())];
                    let queue = match ticket.source {
                        Source::Global => &mut naive.global,
                        Source::Local(worker) => &mut naive.locals[worker],
                    };
                    let expected = queue.take(|item| item.seq == ticket.entry.seq());
                    assert_eq!(scheduler.remove(ticket), expected.map(|item| item.token));
                }
                5 if rng.below(4) == 0 => {
                    scheduler.parked(worker);
                    naive.streaks[worker] = (0, 0);
                }
                _ => {
                    let suggestion = Suggestion::ALL[rng.below(4)];
                    let could = scheduler.can_run(worker);
                    let found = scheduler.next(worker, suggestion, &mut left);
                    assert_eq!(found, naive.next(worker, suggestion, &mut right));
                    assert_eq!(could, found.is_some());
                }
            }
            assert_eq!(left.asked, right.asked);
            compare(&scheduler, &naive);
        }
    }
}

fn compare(scheduler: &Scheduler<u64>, naive: &Naive) {
    assert_eq!(scheduler.check(), Ok(()));
    assert_eq!((scheduler.chain().seq, scheduler.chain().hash), naive.chain);
    let total =
        naive.global.items.len() + naive.locals.iter().map(|q| q.items.len()).sum::<usize>();
    assert_eq!((scheduler.total(), scheduler.is_empty()), (total, total == 0));
    assert_eq!(scheduler.lanes(Source::Global).total(), naive.global.items.len());
    assert_eq!(scheduler.workers(), naive.locals.len());
    for (worker, local) in naive.locals.iter().enumerate() {
        assert_eq!(scheduler.lanes(Source::Local(worker)).total(), local.items.len());
        assert_eq!(scheduler.pending(worker), naive.pending(worker));
        let fairness = scheduler.fairness(worker).unwrap();
        assert_eq!((fairness.streak(), fairness.timed_streak()), naive.streaks[worker]);
        let hash = scheduler.certificate(worker).witness_hash();
        assert_eq!(hash, digest_words(&naive.certificates[worker]));
        assert_eq!(scheduler.certificate(worker).effective_exceedances, 0);
    }
}

fn ready(priority: u8) -> Place {
    Place::ready(Priority(priority))
}

fn fleet(workers: usize) -> Scheduler<u64> {
    Scheduler::new(SchedulerConfig { workers, cancel_streak_limit: 2, ..Default::default() })
}

fn drain(scheduler: &mut Scheduler<u64>, worker: usize, by: Suggestion) -> Vec<u64> {
    std::iter::from_fn(|| scheduler.next(worker, by, &mut First)).map(|d| d.token).collect()
}

/// Every set of non-empty queues under every suggestion: 64 x 4 cases.
#[test]
fn the_lane_takes_precedence_over_the_source() {
    let places = [Place::cancel(Priority(1)), Place::timed(Time::ZERO), ready(1)];
    for suggestion in Suggestion::ALL {
        for bits in 0..64u32 {
            let mut scheduler = Scheduler::new(SchedulerConfig::default());
            // Token 10 * lane + source, enqueued in reverse of the expected order.
            for n in (0..6).rev().filter(|n| bits >> n & 1 == 1) {
                let lane = n / 2;
                let source = n % 2;
                let queue = if source == 0 { Source::Global } else { Source::Local(0) };
                scheduler.enqueue(queue, places[lane], (10 * lane + source) as u64, false);
            }
            let order = match suggestion {
                Suggestion::MeetDeadlines => [10, 11, 0, 1, 20, 21],
                _ => [0, 1, 10, 11, 20, 21],
            };
            let here = |token: &u64| bits >> (token / 10 * 2 + token % 10) & 1 == 1;
            let expected: Vec<u64> = order.into_iter().filter(here).collect();
            assert_eq!(drain(&mut scheduler, 0, suggestion), expected, "{suggestion:?} {bits:b}");
        }
    }
}

/// Always chooses the same number and logs the choices.
struct Always(usize, Vec<(Point, usize)>);

impl Choose for Always {
    fn choose(&mut self, point: Point, count: usize) -> usize {
        self.1.push((point, count));
        self.0
    }
}

#[test]
fn a_steal_scan_visits_each_other_worker_once_in_a_circle() {
    for workers in 2..=5 {
        for thief in 0..workers {
            for start in 0..workers - 1 {
                for holder in (0..workers).filter(|worker| *worker != thief) {
                    // The holder and every worker after it in the scan have an entry.
                    let at = |step: usize| (thief + 1 + (start + step) % (workers - 1)) % workers;
                    let first = (0..workers - 1).find(|step| at(*step) == holder).unwrap();
                    let mut scheduler = fleet(workers);
                    for step in first..workers - 1 {
                        scheduler.enqueue(Source::Local(at(step)), ready(1), 5, false);
                    }
                    let mut oracle = Always(start, Vec::new());
                    let decision = scheduler.next(thief, Suggestion::default(), &mut oracle);
                    assert_eq!(decision.unwrap().source, Origin::Stolen(holder));
                    let point = (Point::StealStart(thief), workers - 1);
                    let asked = if workers == 2 { vec![] } else { vec![point] };
                    assert_eq!(oracle.1, asked);
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_steal_scans() {
    let victims = |seed| -> Vec<Origin> {
        let mut scheduler = fleet(4);
        for token in 0..30 {
            scheduler.enqueue(Source::Local(1 + token as usize % 3), ready(1), token, false);
        }
        let mut oracle = Seeded::new(seed, 4);
        std::iter::from_fn(|| scheduler.next(0, Suggestion::default(), &mut oracle))
            .map(|decision| decision.source)
            .collect()
    };
    assert_eq!(victims(3), victims(3));
    assert_ne!(victims(3), victims(4));
    assert_eq!(victims(3).len(), 30);
}

#[test]
fn stealing_takes_cancel_timed_ready_oldest_first_and_nothing_pinned() {
    let mut scheduler = fleet(2);
    let timed = |at| Place::timed(Time::from_nanos(at));
    let cancel = Place::cancel(Priority(1));
    let all = [(ready(1), 7), (ready(1), 8), (timed(9), 5), (timed(3), 3), (timed(3), 4)];
    for (place, token) in all.into_iter().chain([(cancel, 1), (cancel, 2), (ready(2), 6)]) {
        scheduler.enqueue(Source::Local(1), place, 100 + token, true);
        scheduler.enqueue(Source::Local(1), place, token, false);
    }
    assert_eq!([0, 1].map(|worker| scheduler.can_run(worker)), [true, true]);
    assert_eq!(drain(&mut scheduler, 0, Suggestion::default()), [1, 2, 3, 4, 5, 6, 7, 8]);
    let able = [0, 1].map(|worker| scheduler.can_run(worker));
    assert_eq!(able, [false, true], "only the owner may run a pinned entry");
    assert_eq!(scheduler.lanes(Source::Local(1)).total(), 8);
}

/// Returns a fleet in which worker 0 has only cancel work and is at its limit of 2.
fn at_the_limit() -> Scheduler<u64> {
    let mut scheduler = fleet(2);
    for token in 0..4 {
        scheduler.enqueue(Source::Local(0), Place::cancel(Priority(1)), token, false);
    }
    for token in 0..2 {
        let decision = scheduler.next(0, Suggestion::default(), &mut First).unwrap();
        assert_eq!(
            (decision.token, decision.streak, decision.fallback),
            (token, token as u32, false)
        );
    }
    scheduler
}

#[test]
fn at_the_limit_other_work_is_stolen_before_cancel_work_falls_back() {
    let mut scheduler = at_the_limit();
    scheduler.enqueue(Source::Local(1), Place::cancel(Priority(9)), 20, false);
    scheduler.enqueue(Source::Local(1), ready(1), 21, false);
    let decision = scheduler.next(0, Suggestion::default(), &mut First).unwrap();
    assert_eq!((decision.token, decision.source), (21, Origin::Stolen(1)));
    assert_eq!((decision.lane, decision.streak, decision.fallback), (Lane::Ready, 2, false));
    assert_eq!(scheduler.fairness(0).unwrap().streak(), 0);
    assert_eq!(scheduler.next(0, Suggestion::default(), &mut First).unwrap().token, 2);
}

#[test]
fn at_the_limit_own_cancel_work_falls_back_if_nothing_else_is_stealable() {
    let mut scheduler = at_the_limit();
    scheduler.enqueue(Source::Local(1), Place::cancel(Priority(9)), 20, false);
    scheduler.enqueue(Source::Local(1), ready(1), 21, true);
    let decision = scheduler.next(0, Suggestion::default(), &mut First).unwrap();
    assert_eq!((decision.token, decision.source), (2, Origin::Local));
    assert_eq!((decision.fallback, decision.streak), (true, 2));
    let certificate = scheduler.certificate(0);
    assert_eq!((certificate.cancel, certificate.fallback), (2, 1));
    assert_eq!((certificate.base_exceedances, certificate.effective_exceedances), (1, 0));
    assert_eq!(scheduler.fairness(0).unwrap().streak(), 0);
}

#[test]
fn at_the_limit_stolen_cancel_work_is_a_fallback() {
    let mut scheduler = at_the_limit();
    while scheduler.next(1, Suggestion::default(), &mut First).is_some() {}
    scheduler.enqueue(Source::Local(1), Place::cancel(Priority(9)), 20, false);
    let decision = scheduler.next(0, Suggestion::default(), &mut First).unwrap();
    assert_eq!((decision.token, decision.source), (20, Origin::Stolen(1)));
    assert_eq!((decision.lane, decision.fallback), (Lane::Cancel, true));
}

#[test]
fn a_stolen_cancel_entry_extends_the_streak_and_a_park_ends_it() {
    let mut scheduler = fleet(2);
    scheduler.enqueue(Source::Local(1), Place::cancel(Priority(9)), 20, false);
    let decision = scheduler.next(0, Suggestion::DrainRegions, &mut First).unwrap();
    assert_eq!((decision.fallback, decision.limit), (false, 4));
    assert_eq!(scheduler.fairness(0).unwrap().streak(), 1);
    assert_eq!(scheduler.certificate(0).cancel, 1);
    assert_eq!(scheduler.certificate(1), Certificate::default());
    scheduler.parked(0);
    assert_eq!(scheduler.fairness(0).unwrap().streak(), 0);
}

#[test]
fn a_suggestion_reorders_without_loss_or_duplication() {
    for suggestion in Suggestion::ALL {
        let mut rng = DetRng::new(5, 0);
        let mut scheduler = fleet(3);
        for token in 0..100 {
            let source = if rng.below(2) == 0 { Source::Global } else { Source::Local(1) };
            scheduler.enqueue(source, any_place(&mut rng), token, false);
        }
        let mut tokens = drain(&mut scheduler, 0, suggestion);
        tokens.sort_unstable();
        assert_eq!(tokens, (0..100).collect::<Vec<_>>());
        assert!(scheduler.is_empty() && (0..3).all(|worker| !scheduler.can_run(worker)));
    }
}

#[test]
fn equal_dispatches_and_only_these_give_equal_certificates_and_chains() {
    let run = |suggestion, ready_work: bool| {
        let mut scheduler = fleet(1);
        for token in 0..5 {
            scheduler.enqueue(Source::Global, Place::cancel(Priority(1)), token, false);
        }
        if ready_work {
            scheduler.enqueue(Source::Global, ready(1), 5, false);
        }
        drain(&mut scheduler, 0, suggestion);
        (scheduler.certificate(0).witness_hash(), scheduler.chain().hash)
    };
    let base = run(Suggestion::NoPreference, true);
    assert_eq!(base, run(Suggestion::NoPreference, true));
    for other in [run(Suggestion::DrainRegions, true), run(Suggestion::NoPreference, false)] {
        assert!(other.0 != base.0 && other.1 != base.1);
    }
    assert_eq!(run(Suggestion::DrainRegions, true), run(Suggestion::DrainObligations, true));
}

#[test]
fn ties_of_a_local_ready_lane_are_fifo_unless_exploring() {
    let run = |tie_break, source| {
        let config = SchedulerConfig { tie_break, ..Default::default() };
        let mut scheduler = Scheduler::new(config);
        for token in 0..3 {
            scheduler.enqueue(source, ready(1), token, false);
        }
        let mut oracle = Always(1, Vec::new());
        let next = || scheduler.next(0, Suggestion::default(), &mut oracle).map(|d| d.token);
        let tokens: Vec<u64> = std::iter::from_fn(next).collect();
        (tokens, oracle.1)
    };
    let asked = [3, 2].map(|count| (Point::ReadyTie(0), count)).to_vec();
    assert_eq!(run(TieBreak::Seeded, Source::Local(0)), (vec![1, 2, 0], asked));
    assert_eq!(run(TieBreak::Fifo, Source::Local(0)), (vec![0, 1, 2], vec![]));
    assert_eq!(run(TieBreak::Seeded, Source::Global), (vec![0, 1, 2], vec![]));
    assert_eq!(SchedulerConfig::default().cancel_streak_limit, 16);
}

#[test]
fn unknown_workers_have_no_work() {
    let mut scheduler = fleet(0);
    assert_eq!(scheduler.workers(), 1);
    let ticket = scheduler.enqueue(Source::Local(1), ready(1), 7, false);
    assert_eq!(ticket.source, Source::Global);
    assert_eq!(scheduler.lanes(Source::Local(9)).total(), 1);
    assert!(scheduler.pending(1).ready && !scheduler.can_run(1));
    assert_eq!(scheduler.next(1, Suggestion::default(), &mut First), None);
    scheduler.parked(9);
    assert_eq!((scheduler.certificate(9), scheduler.fairness(9)), (Certificate::default(), None));
    assert_eq!(scheduler.remove(Ticket { source: Source::Local(9), ..ticket }), Some(7));
    assert_eq!(scheduler.remove(ticket), None);
}

#[test]
fn tokens_are_identified_by_their_id() {
    use asx_kernel::{arena::Key, ids::TaskId};
    assert_eq!(TaskId(Key { generation: 9, index: 2 }).word(), 9);
    assert_eq!(8u64.word(), 8);
}
