//! The search for a run that fails, and what is done with it.
//!
//! ```text
//! strategy -> run -> fails? --> again, twice: the same? --> shrink --> once more, on record
//!    ^         |                        | no                              |
//!    +-- no ---+                        +--> not deterministic            +--> Found
//! ```

mod host_order;
mod sweeps;

use std::sync::Arc;
use std::time::Instant;

use asx_kernel::journal::WhenFull;
use asx_kernel::rng::{GOLDEN, mix64};
use asx_runtime::{Cx, Recording, Settings};
use asx_trace::Header;

use crate::check::{Check, Grain, How, IN_ALL, Judged, Sharing};
use crate::explore::{
    Bounded, Certificate, Confirmed, Decisions, Dfs, Dpor, Follow, Guided, Limits, Pct, Points,
    Pos, Random, Replay, Schedule, Strategy, Uniform, shrink,
};
use crate::failure::{Failure, Finding, Kind};
use crate::fault_pairs::Pairs;
use crate::fault_sweep::Everywhere;
use crate::fiber;
use crate::found::{Found, Part, Proof, Report, Stopped};
use crate::guard::{Difference, Seen};
use crate::host::Traits;
use crate::machine::{Machine, Plan};
use crate::net::Faults;
use crate::panic_hook;
use crate::recording::{MOST_EVENTS, Trace, short, with_first_error};
use crate::replay_choices::Again;
use crate::telling::Telling;
use crate::words::{namer, words};
use sweeps::Sweep;

/// Runs that shrinking may take.
const SHRINKING: u64 = 2000;

/// So many steps has a part of a search: of most programs more than a thousand runs.
const WORK: u64 = 500_000;

/// After so many runs a strategy is asked whether it has seen the program go another way than
/// before.
const LOOK: u64 = 64;

/// How often a run that went another way is repeated to see where.
const REPEATS: usize = 16;

/// So many runs in which somebody went round for too long are enough for a strategy that is there
/// to prove something: they are long, they differ in when it is that the others may go, and nothing
/// is ever proved of a program that has them. Random ones take a fraction of the time.
const ROUNDS: u64 = 50;

/// A check in progress.
pub(crate) struct Search<'a, F> {
    check: &'a Check<F>,
    machine: Machine,
    runs: u64,
    /// When the check began, when it ends at the latest, and when the present part does.
    began: Instant,
    deadline: Option<Instant>,
    end: Option<Instant>,
    /// The present part, and the number of runs and the time when it began.
    part: (Part, u64, Instant),
    /// The number of runs at which the present part ends.
    cap: u64,
    /// The rounds before this one, and the number of runs when this one began.
    round: u64,
    round_began: u64,
    /// Runs of each part of a round; the limits are multiples of it.
    budget: u64,
    /// The seed of the random choices of this round.
    seed: u64,
    /// Virtual workers of the runs that are made now, and of the host's order that failed.
    workers: usize,
    by_host: Option<usize>,
    /// The runs with one disturbance.
    sweeps: Vec<Sweep>,
    /// What was proved.
    proof: Option<Proof>,
    /// All classes were run, and no two tasks share anything that is visible here.
    nothing_shared: bool,
    /// All classes that the last strategy had to look at, if it has.
    exhausted: Option<Certificate>,
    /// What may happen in the runs that are made now.
    freedom: Freedom,
    /// How schedules are chosen now, and where polls can be left.
    how: How,
    points: Points,
    /// Whether tasks are taken to share nothing but things of asx; and whether they were seen to
    /// share more.
    transparent: bool,
    shares_more: bool,
    /// Traits of the program that the current strategy takes into account.
    traits: Traits,
    /// The first run, if it passed, and where its polls could be left.
    first: Option<Seen>,
    first_points: Points,
    first_freedom: Freedom,
    /// Where the runs that are made now end.
    until: Option<u64>,
    /// Whether they are written down just to be compared.
    brief: bool,
    /// What it is told where a person waits for it, and whether a limit has ended it.
    telling: Telling,
    stopped: Option<Stopped>,
    /// Steps of all runs, and how many there may be in this part of the search.
    work: (u64, Option<u64>),
    /// Steps of all runs when the clock was last looked at, and how many runs are kept for a later
    /// part of the search.
    looked: u64,
    reserve: u64,
    /// Cancels that were tried, of how many; faults; and faults of the network.
    coverage: [Option<(usize, usize)>; 3],
}

/// A strategy that the machine borrows for each run.
type Boxed = Option<Box<dyn Strategy + Send>>;

/// The result of a number of runs of one strategy.
enum Tried {
    /// A run failed.
    Failed(Box<Failure>),
    /// A limit of the check ended it.
    Cut,
    /// All of these runs were made, and the strategy has more.
    More,
    /// The strategy has no further run.
    All,
}

/// What may happen in a run besides one step after another.
#[derive(Clone, Copy, Debug)]
struct Freedom {
    /// Whether tasks are cancelled, and whether there are faults.
    cancels: bool,
    faults: bool,
    network: Faults,
    /// How many cancels and faults there may be.
    disturbances: usize,
    /// Whether time may pass while tasks can run.
    slow: bool,
    /// Whether the strategy says what the program draws at random.
    draws: bool,
}

impl Freedom {
    const NONE: Freedom = Freedom {
        cancels: false,
        faults: false,
        network: Faults::none(),
        disturbances: usize::MAX,
        slow: false,
        draws: false,
    };

    fn is_disturbed(&self) -> bool {
        self.cancels || self.faults || self.slow || !self.network.is_none()
    }
}

/// How many times the runs of a round each part of the next one has.
const GROWTH: u64 = 4;

/// One of so many runs is kept for those in which the machine is slow, and one for those with
/// several disturbances.
const RESERVE: u64 = 8;

/// So many steps are taken between two looks at the clock.
const STEPS_A_LOOK: u64 = 256;

impl<'a, F, B> Search<'a, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    pub(crate) fn new(check: &'a Check<F>) -> Self {
        let began = Instant::now();
        let deadline = began.checked_add(check.longest());
        let how = check.how;
        let first = None;
        let proof = None;
        let coverage = [None; 3];
        let points = Points::None;
        let transparent = check.sharing == Sharing::OfAsx;
        let exhausted = None;
        let machine = machine(check, None);
        let runs = 0;
        let until = None;
        let brief = false;
        Search {
            check,
            machine,
            runs,
            began,
            deadline,
            end: None,
            part: (Part::Orders, 0, began),
            cap: u64::MAX,
            round: 0,
            round_began: 0,
            budget: check.runs,
            seed: check.seed,
            workers: check.workers,
            by_host: None,
            sweeps: sweeps::requested(check),
            proof,
            nothing_shared: false,
            freedom: Freedom::NONE,
            how,
            points,
            exhausted,
            transparent,
            shares_more: false,
            traits: Traits::default(),
            first,
            first_points: points,
            first_freedom: Freedom::NONE,
            until,
            brief,
            telling: Telling::default(),
            stopped: None,
            work: (0, None),
            looked: 0,
            reserve: 0,
            coverage,
        }
    }

    /// The same for a person, who is told from time to time how far it is.
    pub(crate) fn telling(mut self) -> Self {
        self.telling = Telling::to_people(self.check.name.as_deref());
        self
    }

    /// The same with polls that can be left at these points.
    pub(crate) fn at(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// Searches as the check says.
    pub(crate) fn all(mut self) -> Report {
        let failure = self.host_order();
        let mut failure = failure.or_else(|| self.round());
        while failure.is_none() && self.begin_next_round() {
            failure = self.round();
        }
        let failure = failure.or_else(|| self.repeat_first());
        self.conclude_limits();
        let found = failure.map(|failure| self.describe(failure));
        let failure = found.or_else(|| self.untried());
        let Search { runs, proof, stopped, coverage: [cancels, faults, network], .. } = self;
        let nothing_shared = self.nothing_shared && failure.is_none();
        let report = Report { runs, failure, proof, nothing_shared, ..Report::default() };
        Report { cancels, faults, network, stopped, ..report }
    }

    /// All parts of the search, each with its share of the runs and of the time.
    fn round(&mut self) -> Option<Failure> {
        let disturbances = self.sweeps.len() as u32;
        let several = disturbances > 0 && self.check.disturbances > 1;
        let slows = self.is_slowed();
        let most = self.most_runs();
        let all = most - self.round_began;
        let each = all / RESERVE;
        // The first runs, in the host's order, have shown whether there are timers.
        let may_slow = slows && (self.machine.is_timed() || self.check.workers > 0);
        let after = u32::from(may_slow) + u32::from(several);
        self.begin_part(Part::Orders, 1, 1 + disturbances + after);
        self.reserve = 0;
        self.cap = self.round_began + all / u64::from(1 + disturbances);
        let mut failure = self.explore_again();
        self.work.1 = None;
        // Runs for the parts that follow those with one disturbance.
        self.reserve = each * (u64::from(slows && self.machine.is_timed()) + u64::from(several));
        if failure.is_none() && disturbances > 0 {
            self.cap = most;
            failure = self.disturb(after);
        }
        self.cap = most;
        if failure.is_none() && slows {
            self.begin_part(Part::SlowMachine, 1, after);
            self.reserve = each * u64::from(several);
            failure = self.slow_down();
            self.work.1 = None;
        }
        if failure.is_none() && several {
            self.begin_part(Part::Several, 1, 1);
            self.reserve = 0;
            failure = self.disturb_together();
        }
        failure
    }

    /// Explores the orders without disturbances, unless all of them were run in an earlier round.
    fn explore_again(&mut self) -> Option<Failure> {
        if self.round > 0 && self.has_all_orders() {
            return None;
        }
        let proof = self.proof;
        let failure = self.explore();
        self.proof = self.proof.or(proof);
        failure
    }

    /// Whether a further round is to be made, with more runs and other random numbers: the search
    /// is incomplete, the runs were not limited by the caller, and the time is not used up.
    fn begin_next_round(&mut self) -> bool {
        let Check { how, is_large, total, .. } = *self.check;
        let is_fixed = how != How::Mixed || is_large || total.is_some();
        let is_idle = self.runs == self.round_began;
        let least = self.check.least();
        if is_fixed || is_idle || self.is_complete() || self.began.elapsed() >= least {
            return false;
        }
        self.round += 1;
        self.round_began = self.runs;
        self.budget = self.budget.saturating_mul(GROWTH);
        self.seed = mix64(self.check.seed ^ GOLDEN.wrapping_mul(self.round));
        self.deadline = self.began.checked_add(least);
        self.stopped = None;
        true
    }

    /// Whether there is nothing left to try.
    fn is_complete(&self) -> bool {
        let is_sampled = self.is_slowed() && self.machine.is_timed();
        let is_swept = self.sweeps.iter().all(Sweep::is_complete);
        self.has_all_orders() && is_swept && !is_sampled && self.stopped.is_none()
    }

    /// Whether all orders without disturbances were run, at the finest grain of the check.
    fn has_all_orders(&self) -> bool {
        let is_fine = self.has_points() && self.check.grain != Some(Grain::Poll);
        let grain = if is_fine { Grain::Operation } else { Grain::Poll };
        self.proof.is_some_and(|proof| proof.grain == grain) && !self.machine.has_drawn()
    }

    /// Whether time may pass while tasks can run in some of the runs.
    fn is_slowed(&self) -> bool {
        self.check.how == How::Mixed && !self.check.exact_time
    }

    /// Begins a part of the search, which has `weight` of `left` shares of the time that is left.
    fn begin_part(&mut self, part: Part, weight: u32, left: u32) {
        let now = Instant::now();
        let rest = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        self.end = rest.and_then(|rest| now.checked_add(rest / left.max(weight) * weight));
        self.part = (part, self.runs, now);
    }

    /// How many runs there may be by the end of this round.
    fn most_runs(&self) -> u64 {
        match self.round {
            0 => self.check.most_runs(),
            _ => self.round_began.saturating_add(self.budget.saturating_mul(IN_ALL)),
        }
    }

    /// How many runs this part of the search may still make.
    fn runs_left(&self) -> u64 {
        (self.most_runs() - self.reserve).saturating_sub(self.runs)
    }

    /// Reports the limit of the whole check if that was reached, rather than the share of a part.
    fn conclude_limits(&mut self) {
        let most = self.most_runs();
        let time = self.check.longest();
        self.stopped = match self.stopped {
            _ if self.round > 0 => {
                (!self.is_complete()).then(|| Stopped::MinTime(self.check.least()))
            }
            Some(_) if self.runs >= most => Some(Stopped::Runs(most)),
            Some(_) if self.began.elapsed() >= time => Some(Stopped::Time(time)),
            stopped => stopped,
        };
    }

    /// Runs one schedule.
    pub(crate) fn replay(mut self, schedule: Schedule) -> Report {
        let Check { cancels, faults, network, exact_time, .. } = *self.check;
        self.freedom = Freedom { cancels, faults, network, ..Freedom::NONE };
        (self.freedom.slow, self.freedom.draws) = (!exact_time, true);
        let first = self.follow(&schedule);
        let log = self.machine.log();
        let made = log.schedule().deviations;
        let unused = schedule.deviations.iter().filter(|it| !made.contains(it)).count();
        let is_by_chance = first.as_ref().is_some_and(Failure::is_by_chance);
        let other = if is_by_chance { None } else { self.repeated(&log, first.as_ref()) };
        let failure = other.or(first);
        let failure = failure.map(|failure| {
            let strategy = String::from("replay");
            Found { run: 1, strategy, ..self.on_record(failure, schedule, 0) }
        });
        Report { runs: 1, failure, is_replay: true, unused, ..Report::default() }
    }

    /// A part of the search begins that is as short as the others if nobody said how many runs
    /// there are to be.
    fn limit_work(&mut self) {
        let most = WORK.saturating_mul(GROWTH.saturating_pow(self.round as u32));
        self.work.1 = (!self.check.is_large).then(|| self.work.0.saturating_add(most));
    }

    fn explore(&mut self) -> Option<Failure> {
        let Check { how, runs, .. } = *self.check;
        let grain = self.check.grain.unwrap_or(Grain::Operation);
        let at_operations = grain == Grain::Operation && self.has_points();
        if how == How::Mixed {
            let failure = match self.check.grain {
                Some(Grain::Operation) if at_operations => None,
                // All orders of polls were run in an earlier round.
                _ if self.proof.is_some() && !self.machine.has_drawn() => None,
                _ => self.explore_polls(),
            };
            let failure = match at_operations {
                true => failure.or_else(|| self.explore_operations()),
                false => failure,
            };
            return failure;
        }
        match at_operations {
            // What is chosen at random need not be little.
            true if is_random(how) => (self.points, self.transparent) = (Points::All, false),
            true => self.at_operations(),
            false => self.at_polls(),
        }
        // Whether there are timers is known from here on: with them less commutes.
        if self.transparent {
            self.follow(&Schedule::default());
        }
        let mut failure = self.with(how, runs);
        if self.shares_more {
            self.at_operations();
            failure = self.with(how, runs);
        }
        self.prove(if at_operations { Grain::Operation } else { Grain::Poll });
        self.withdraw_if_nothing_is_shared();
        failure
    }

    /// Withdraws a proof at operation grain if several tasks ran and no two of them used the same
    /// object of asx: whatever they share is not visible here, so the proof says nothing about it.
    /// It stands if the check says that they share nothing else.
    fn withdraw_if_nothing_is_shared(&mut self) {
        let is_promised = self.check.sharing == Sharing::OfAsx;
        let at_operations = self.proof.is_some_and(|proof| proof.grain == Grain::Operation);
        // Disturbances of an earlier round may have shown shared state; these orders did not.
        let shares_nothing = self.nothing_shared || self.machine.shares_nothing();
        if at_operations && !is_promised && shares_nothing {
            (self.proof, self.nothing_shared) = (None, true);
        }
    }

    /// Every class of orders of polls if there are few, else a mixture of random ones.
    fn explore_polls(&mut self) -> Option<Failure> {
        self.limit_work();
        let runs = self.budget;
        if self.transparent {
            self.follow(&Schedule::default());
        }
        let failure = self.with(How::Dpor, runs / 4);
        self.prove(Grain::Poll);
        // A proof is of one outcome of each draw.
        let is_proved = self.proof.is_some() && !self.machine.has_drawn();
        if failure.is_some() || is_proved {
            return failure;
        }
        let rest = runs.saturating_sub(self.runs - self.round_began);
        if self.check.workers > 0 {
            // Which worker goes is drawn at random by all of them.
            return self.with(How::Random, rest);
        }
        let random = [How::Random, How::Pos, How::Pct(3), How::Uniform];
        let failure = random.into_iter().find_map(|how| self.with(how, rest.div_ceil(6)));
        failure.or_else(|| self.with(How::Guided, rest / 3))
    }

    /// Polls are atomic, which on several threads they are not: two locks in a row are two things,
    /// and others may go in between. So runs follow in which they do, at every operation.
    fn explore_operations(&mut self) -> Option<Failure> {
        if !self.has_points() {
            return None;
        }
        self.limit_work();
        let runs = self.budget;
        let proof = self.proof.take();
        self.at_operations();
        if self.first.is_none() {
            self.follow(&Schedule::default());
        }
        let share = if self.check.grain.is_some() { runs / 2 } else { runs / 4 };
        let mut failure = self.with(How::Dpor, share);
        if self.shares_more {
            self.at_operations();
            failure = self.with(How::Dpor, share);
        }
        self.prove(Grain::Operation);
        self.withdraw_if_nothing_is_shared();
        if self.nothing_shared && self.transparent && failure.is_none() {
            // Other state may still be used next to operations: all orders of those are tried.
            (self.points, self.transparent) = (Points::All, false);
            failure = self.with(How::Dpor, share);
            self.exhausted = None;
        }
        let failure = failure.or_else(|| self.explore_unreduced(share));
        if !self.nothing_shared {
            self.proof = self.proof.or(proof);
        }
        if failure.is_none() {
            self.at_polls();
        }
        failure
    }

    /// Runs orders of operations in which no two steps are taken to commute: `share` of them at
    /// random, and others with few preemptions after a proof that rests on the assumption that
    /// tasks share nothing but objects of asx. The orders that such a proof has left out differ for
    /// tasks that share an atomic, for example.
    fn explore_unreduced(&mut self, share: u64) -> Option<Failure> {
        let runs_before = self.runs;
        let is_assumed = self.proof.is_some_and(|proof| !proof.shares_anything)
            && self.check.sharing == Sharing::ByGrain;
        let rest = self.budget.saturating_sub(self.runs - self.round_began);
        let bounded = if is_assumed { rest.saturating_sub(share) } else { 0 };
        let ways = [
            // Most bugs need few preemptions. There are fewer orders in which a task is preempted
            // right after its operations, so more of these are tried.
            (How::Bounded, Points::Used, bounded - bounded / 3),
            (How::Bounded, Points::All, bounded / 3),
            (How::Random, Points::All, share / 3),
            (How::Pct(3), Points::All, share / 3),
            (How::Guided, Points::All, share / 3),
        ];
        for (how, points, runs) in ways {
            if runs == 0 || self.is_late() {
                continue;
            }
            (self.points, self.transparent) = (points, false);
            let failure = self.with(how, runs);
            if failure.is_some() {
                return failure;
            }
        }
        self.exhausted = None;
        let unreduced = self.runs - runs_before;
        self.proof = self.proof.map(|proof| Proof { unreduced, ..proof });
        None
    }

    /// Runs in which the machine is slow, if there are timers that come due before their time is
    /// meant to: at every place in the usual order, then in others.
    fn slow_down(&mut self) -> Option<Failure> {
        if self.check.exact_time || !self.machine.is_timed() {
            return None;
        }
        self.limit_work();
        let proof = self.proof;
        self.at_polls();
        self.freedom = Freedom { slow: true, ..Freedom::NONE };
        self.how = How::Bounded;
        let share = self.budget.div_ceil(4);
        let failure = self.try_all(Everywhere::options_first(), share);
        let ways = [How::Random, if self.check.workers > 0 { How::Random } else { How::Pct(3) }];
        let at_polls = || ways.iter().find_map(|how| self.with(*how, share.div_ceil(2)));
        let failure = failure.or_else(at_polls);
        let failure = failure.or_else(|| self.disturb_operations(share.div_ceil(2)));
        if failure.is_none() {
            self.freedom = Freedom::NONE;
        }
        self.proof = proof;
        failure
    }

    /// Whether polls can be left: with workers the law says who goes on, and they cannot.
    fn has_points(&self) -> bool {
        fiber::EXISTS && self.check.workers == 0
    }

    /// From now on polls are not left.
    fn at_polls(&mut self) {
        self.points = Points::None;
        self.transparent = self.check.sharing == Sharing::OfAsx;
    }

    /// From now on polls are left at operations.
    fn at_operations(&mut self) {
        self.transparent = self.check.sharing != Sharing::Anything && !self.shares_more;
        self.points = if self.transparent { Points::Used } else { Points::All };
    }

    /// What was proved was so at this grain.
    fn prove(&mut self, grain: Grain) {
        let shares_anything = !self.transparent;
        let timers = self.machine.is_timed();
        let draws = self.machine.has_drawn();
        let proof = |Certificate { classes, hash }| Proof {
            grain,
            shares_anything,
            unreduced: 0,
            timers,
            draws,
            classes,
            hash,
        };
        self.proof = self.exhausted.take().map(proof);
    }

    /// Whether this part of the search has used up its time or its runs.
    fn is_late(&mut self) -> bool {
        let (part, runs_before, since) = self.part;
        self.telling.look(self.runs, part.name());
        if self.work.1.is_some_and(|most| self.work.0 >= most) {
            return true;
        }
        let limit = self.most_runs();
        let stopped = if self.runs >= self.cap.min(limit - self.reserve) {
            Stopped::ShareOfRuns { part, runs: self.runs - runs_before, limit }
        } else if self.is_time_over() {
            Stopped::ShareOfTime { part, time: since.elapsed(), limit: self.check.longest() }
        } else {
            return false;
        };
        self.stopped = self.stopped.or(Some(stopped));
        true
    }

    /// Whether this part of the search has taken as long as it may. Most runs are so short that the
    /// clock is not looked at after each of them.
    fn is_time_over(&mut self) -> bool {
        if self.runs > 0 && self.work.0 < self.looked + STEPS_A_LOOK {
            return false;
        }
        self.looked = self.work.0;
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Runs what a strategy chooses, so many times at most.
    fn with(&mut self, how: How, most: u64) -> Option<Failure> {
        self.add_points();
        let seed = self.seed;
        // With workers no two steps are known to commute.
        let by_law = self.check.workers > 0 && matches!(how, How::Mixed | How::Dpor);
        self.how = if by_law { How::Dfs } else { how };
        // All numbers that can be drawn are too many for who tries them all.
        self.freedom.draws = is_random(self.how);
        let times = match self.freedom.disturbances {
            usize::MAX => 1,
            times => times,
        };
        match self.how {
            How::Mixed | How::Dpor => self.reduced(most),
            How::Random => self.try_all(Random::new(seed).disturbing(times), most),
            How::Uniform => self.try_all(Uniform::new(seed), most),
            How::Pos => self.try_all(Pos::new(seed), most),
            How::Pct(depth) => self.try_all(Pct::new(seed, depth).disturbing(times), most),
            How::Guided => self.try_all(Guided::new(seed).disturbing(times), most),
            How::Dfs => self.try_all(Dfs::new(), most),
            How::Bounded => self.try_all(Bounded::new(Limits::NONE, most), most),
        }
    }

    /// Runs one schedule of each class, at most `most` of them. Which steps commute depends on the
    /// traits of the program (timers, for example). If a run shows a new one, the search begins
    /// again.
    fn reduced(&mut self, most: u64) -> Option<Failure> {
        loop {
            let failure = if self.is_assumed() {
                let (confirmed, most) = Confirmed::new(self.seed, most);
                self.try_all(confirmed, most)
            } else {
                self.try_all(Dpor::new(), most)
            };
            if failure.is_some() || !self.has_new_traits() {
                return failure;
            }
            self.exhausted = None;
            self.add_points();
        }
    }

    /// Whether runs have shown a trait that the search does not take into account. Timers make no
    /// difference if no two steps are taken to commute.
    fn has_new_traits(&self) -> bool {
        let new = self.machine.traits();
        let timed = new.timed != self.traits.timed && self.transparent;
        timed || new.inspected != self.traits.inspected
    }

    /// A program that reads the state of the runtime can tell a poll that has begun from one that
    /// has not: polls can then be left before they have touched anything.
    fn add_points(&mut self) {
        if self.points == Points::Used && self.machine.traits().inspected.state {
            self.points = Points::All;
        }
    }

    /// Cancels and faults of all kinds, several in a run: two in the usual order, then in others.
    fn disturb_together(&mut self) -> Option<Failure> {
        let Check { cancels, faults, network, disturbances, .. } = *self.check;
        let runs = self.budget;
        let seed = self.seed;
        let proof = self.proof;
        self.at_polls();
        self.freedom = Freedom { cancels, faults, network, disturbances, ..Freedom::NONE };
        self.how = How::Bounded;
        let pairs = runs.saturating_mul(2);
        let failure = self.try_all(Pairs::new(seed, pairs), pairs);
        let ways = [How::Random, if self.check.workers > 0 { How::Random } else { How::Pct(3) }];
        let share = runs.div_ceil(4);
        let others = || ways.iter().find_map(|how| self.with(*how, share));
        let failure = failure.or_else(others).or_else(|| self.disturb_operations(share));
        if failure.is_none() {
            self.freedom = Freedom::NONE;
        }
        self.proof = proof;
        failure
    }

    /// So many runs with disturbances between operations too, about one a run unless there
    /// may be several, in random orders.
    fn disturb_operations(&mut self, runs: u64) -> Option<Failure> {
        if !self.has_points() || self.check.grain == Some(Grain::Poll) {
            return None;
        }
        (self.points, self.transparent) = (Points::All, false);
        // Strategies that look at all orders of polls know how many there are to be; these do not.
        let disturbances = self.freedom.disturbances;
        if disturbances == usize::MAX {
            self.freedom.disturbances = 1;
        }
        let share = runs.div_ceil(2);
        let failure = [How::Random, How::Pct(3)].iter().find_map(|how| self.with(*how, share));
        if failure.is_none() {
            self.freedom.disturbances = disturbances;
            self.at_polls();
        }
        failure
    }

    fn try_all(&mut self, strategy: impl Strategy + Send + 'static, most: u64) -> Option<Failure> {
        let mut strategy: Boxed = Some(Box::new(strategy));
        match self.try_some(&mut strategy, most) {
            Tried::Failed(failure) => Some(*failure),
            Tried::Cut => None,
            Tried::More | Tried::All => {
                self.exhausted = strategy?.progress().exhausted;
                None
            }
        }
    }

    /// Makes the next `most` runs of a strategy, which can be continued later.
    fn try_some(&mut self, strategy: &mut Boxed, most: u64) -> Tried {
        let proves = self.check.how == How::Mixed && self.how == How::Dpor;
        let mut rounds = 0;
        let mut tried = Tried::More;
        self.traits = self.machine.traits();
        let is_reduced = matches!(self.how, How::Mixed | How::Dpor);
        for _ in 0..most {
            if self.is_late() {
                return Tried::Cut;
            }
            if !strategy.as_mut().is_some_and(|strategy| strategy.begin()) {
                tried = Tried::All;
                break;
            }
            let is_first = self.runs == 0 && !self.freedom.is_disturbed();
            self.brief = is_first;
            let failure = self.once(strategy, is_first);
            self.brief = false;
            self.runs += 1;
            self.work.0 += self.machine.taken();
            if let Some(failure) = failure {
                return Tried::Failed(Box::new(failure));
            }
            if is_first {
                self.first = Some(self.machine.seen(None));
                self.first_points = self.points;
                self.first_freedom = self.freedom;
                if let Some(failure) = self.repeat_first() {
                    return Tried::Failed(Box::new(failure));
                }
            }
            if is_reduced && self.has_new_traits() {
                return Tried::Cut;
            }
            rounds += u64::from(proves && self.machine.held_back());
            if rounds >= ROUNDS {
                return Tried::Cut;
            }
            if self.runs.is_multiple_of(LOOK) && self.is_astray(strategy) {
                return self.led_astray().map_or(Tried::Cut, |it| Tried::Failed(Box::new(it)));
            }
        }
        if self.is_astray(strategy) {
            return self.led_astray().map_or(Tried::Cut, |it| Tried::Failed(Box::new(it)));
        }
        tried
    }

    fn once(
        &mut self,
        strategy: &mut Option<Box<dyn Strategy + Send>>,
        trail: bool,
    ) -> Option<Failure> {
        let Check { tie_break, steps, grows, latency, late_clocks, .. } = *self.check;
        let workers = self.workers;
        let points = self.points;
        let transparent = self.transparent;
        let program = &self.check.program;
        let Freedom { cancels, faults, network, disturbances, slow, draws } = self.freedom;
        let until = self.until;
        let brief = self.brief;
        let with = Plan { workers, tie_break, steps, grows, latency, ..Plan::default() };
        let with = Plan { cancels, faults, disturbances, slow, draws, ..with };
        let traits = self.traits;
        let with = Plan { late_clocks, network, points, transparent, traits, ..with };
        let plan = Plan { trail, brief, until, ..with };
        let judge = |value: B::Output, is_disturbed| match is_disturbed {
            true => value.judge_disturbed(),
            false => value.judge(),
        };
        panic_hook::during(|| self.machine.run(strategy, plan, program, judge))
            .map(|failure| *failure)
    }

    /// What was decided in the last run, which is made again if it was not written down.
    fn log(&mut self) -> Arc<Decisions> {
        if let Some(picks) = self.machine.picks() {
            self.once(&mut Some(Box::new(Again::new(picks))), true);
        }
        self.machine.log()
    }

    fn follow(&mut self, schedule: &Schedule) -> Option<Failure> {
        let mut follow = Follow::new(schedule.clone());
        follow.begin();
        self.once(&mut Some(Box::new(follow)), true)
    }
}

/// Whether runs can be had again.
impl<F, B> Search<'_, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Makes the first run, which passed, again: a failure if it goes another way.
    fn repeat_first(&mut self) -> Option<Failure> {
        let first = self.first.take()?;
        let freedom = std::mem::replace(&mut self.freedom, self.first_freedom);
        let points = std::mem::replace(&mut self.points, self.first_points);
        let again = self.again(&first.log);
        self.points = points;
        self.freedom = freedom;
        let failure = self.compare(&first, &again).map(|it| self.not_deterministic(it, None));
        self.first = Some(first);
        failure
    }

    /// Makes a run again, twice: a failure if one of the three differs from another.
    fn repeated(&mut self, log: &Arc<Decisions>, failure: Option<&Failure>) -> Option<Failure> {
        let first = Seen { failure: failure.map(Failure::id), log: log.clone(), trail: Vec::new() };
        let second = self.again(log);
        let third = self.again(log);
        let differs = self.compare(&first, &second).or_else(|| self.compare(&second, &third));
        differs.map(|it| self.not_deterministic(it, failure))
    }

    /// A run with these decisions.
    fn again(&mut self, log: &Arc<Decisions>) -> Seen {
        let mut replay = Replay::new(log.clone());
        replay.begin();
        self.brief = true;
        let failure = self.once(&mut Some(Box::new(replay)), true);
        self.brief = false;
        self.machine.seen(failure.as_ref())
    }

    fn compare(&self, first: &Seen, second: &Seen) -> Option<Difference> {
        let name = namer(&self.machine);
        first.differs(second, name)
    }

    fn not_deterministic(&self, differs: Difference, failure: Option<&Failure>) -> Failure {
        let Difference { step, text } = differs;
        let message = format!("the same decisions do not lead to the same run: {text}");
        let detail = failure.map_or_else(String::new, |it| format!("it was found by a {it}"));
        Failure::new(Finding::nondeterminism(message, detail + ADVICE), step)
    }

    /// Whether a strategy has seen the program go another way than before.
    fn is_astray(&self, strategy: &Option<Box<dyn Strategy + Send>>) -> bool {
        let diverged = strategy.as_ref().is_some_and(|strategy| strategy.progress().diverged > 0);
        diverged && !self.machine.overrules()
    }

    /// The program went another way than before: a failure, unless it was taken for granted that
    /// its tasks share nothing but things of asx. Then it is known now that they do.
    fn led_astray(&mut self) -> Option<Failure> {
        if self.is_assumed() {
            self.shares_more = true;
            return None;
        }
        Some(self.astray())
    }

    /// Whether it is taken for granted that tasks share nothing but things of asx, though nobody
    /// has said so.
    fn is_assumed(&self) -> bool {
        self.transparent && self.check.sharing == Sharing::ByGrain
    }

    /// The program went another way than before: where, if that happens again.
    fn astray(&mut self) -> Failure {
        let log = self.log();
        for _ in 0..REPEATS {
            if let Some(failure) = self.repeated(&log, None) {
                return failure;
            }
        }
        let text = "a run did not go on as one before it that began with the same decisions";
        self.not_deterministic(Difference { step: 0, text: text.into() }, None)
    }
}

/// What to look for.
const ADVICE: &str = "what a program does must depend on nothing but the order of its polls: look \
                      for clocks, random numbers, hash maps that are iterated, addresses, statics \
                      that outlive a run, and other threads";

/// What was found, for people.
impl<F, B> Search<'_, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Makes the schedule of the last run small, and tells it.
    fn describe(&mut self, failure: Failure) -> Found {
        let log = self.log();
        let schedule = log.schedule();
        if failure.is_by_chance() {
            return self.on_record(failure, schedule, 0);
        }
        if let Some(other) = self.repeated(&log, Some(&failure)) {
            return self.on_record(other, schedule, 0);
        }
        let shrunk = shrink(&schedule, SHRINKING, |schedule, log| {
            let failure = self.follow(schedule);
            log.clone_from(&self.machine.log());
            failure.map(|failure| failure.kin())
        });
        let least = shrunk.map_or_else(|| schedule.clone(), |shrunk| shrunk.schedule);
        let shrunk_by = schedule.deviations.len().saturating_sub(least.deviations.len());
        self.on_record(failure, least, shrunk_by)
    }

    /// Runs a schedule once more, with its events recorded.
    fn on_record(&mut self, failure: Failure, schedule: Schedule, shrunk_by: usize) -> Found {
        let on_record = self.recording();
        let usual = std::mem::replace(&mut self.machine, on_record);
        let last = self.follow(&schedule);
        let failure = match last {
            Some(last) if last.kin() == failure.kin() => last,
            _ if failure.is_by_chance() => failure,
            _ => {
                let text = "it failed, and does not when its events are recorded".into();
                let difference = Difference { step: failure.step, text };
                self.not_deterministic(difference, Some(&failure))
            }
        };
        let log = self.machine.log();
        let token = schedule.token_of(self.points);
        let words = words(&log, namer(&self.machine), &self.machine.faults_made());
        let failure = self.up_to_the_circle(failure, &schedule);
        let failure = with_first_error(&self.machine, failure);
        let strategy = match (self.by_host, self.points) {
            (Some(workers), _) => host_order::describe(workers),
            (None, Points::None) => self.how.to_string(),
            (None, Points::All | Points::Used) => {
                format!("{} at {}", self.how, Grain::Operation)
            }
        };
        let seed = self.check.seed;
        let header = self.header(seed, &[("token", &token), ("strategy", &strategy)]);
        let trace = Trace::of(&self.machine, header, Some(&failure));
        self.machine = usual;
        let name = self.check.name.clone();
        let run = self.runs;
        Found { failure, name, run, strategy, seed, token, words, schedule, shrunk_by, trace }
    }

    /// One run in an order that is drawn from a seed, on record.
    pub(crate) fn recorded(mut self, seed: u64) -> Trace {
        self.machine = self.recording();
        let mut random = Random::new(seed);
        random.begin();
        self.freedom.draws = true;
        let failure = self.once(&mut Some(Box::new(random)), true);
        let header = self.header(seed, &[("strategy", "random")]);
        let trace = Trace::of(&self.machine, header, failure.as_ref());
        trace.expect("this machine records")
    }

    /// What a trace of a run says of itself.
    fn header(&self, seed: u64, meta: &[(&str, &str)]) -> Header {
        let mut header = Header { seed, ..Header::new("program", "lab") };
        header.program = short(self.check.name.clone().unwrap_or(header.program));
        let text = |(key, value): &(&str, &str)| (String::from(*key), short(String::from(*value)));
        header.meta = meta.iter().map(text).collect();
        header
    }

    /// If the last run stood still because of a circle of waits, which nobody broke while others
    /// went on: it is told in the step in which it closed, and the run on record ends there.
    fn up_to_the_circle(&mut self, failure: Failure, schedule: &Schedule) -> Failure {
        let closed = self.machine.closed().filter(|step| *step < failure.step);
        let (Some(step), Kind::Deadlock) = (closed, failure.finding.kind) else { return failure };
        // What it has on record is of one run.
        self.machine = self.recording();
        self.until = Some(step);
        let last = self.follow(schedule);
        self.until = None;
        last.unwrap_or(failure)
    }

    /// A machine that records the events of its one run.
    fn recording(&self) -> Machine {
        let settings = Some(Recording::new(MOST_EVENTS, WhenFull::Overwrite));
        machine(self.check, settings)
    }
}

/// Whether schedules are drawn, rather than tried one after another.
fn is_random(how: How) -> bool {
    !matches!(how, How::Mixed | How::Dfs | How::Dpor | How::Bounded)
}

fn machine<F>(check: &Check<F>, journal: Option<Recording>) -> Machine {
    // As on threads, a poll completes a limited number of operations: whoever does more than that
    // while it waits for others to go on does let them.
    let wheel = check.wheel.clone();
    let Check { chain, limits, .. } = *check;
    let settings = Settings { journal, wheel, chain, limits, ..Settings::default() };
    let machine = Machine::new(check.name.as_deref().unwrap_or("a check"), settings);
    machine.set_names(check.names.clone());
    machine
}
