//! Runs with one cancel or fault: the requested disturbances share the runs and the time.
//!
//! 1. Sweep: each disturbance alone, at every point of the usual order. The requested kinds take
//!    turns of [`TURN`] runs, so that none of them uses up the runs of another.
//! 2. Other orders: each kind has an equal part of the runs and of the time that are left.
//!
//! Both can be continued in a later round of the search.

use asx_runtime::Cx;

use super::{Boxed, Freedom, Search, Tried};
use crate::check::{Check, How, Judged};
use crate::explore::{Bounded, Limits, Schedule};
use crate::failure::{Failure, Finding, Kind};
use crate::fault_sweep::Everywhere;
use crate::found::{Found, Part, Stopped};

/// Runs that a sweep makes before the next one continues.
const TURN: u64 = 4;

/// Runs with a disturbance in other orders than the usual one, for each run without.
const OTHER_ORDERS: u64 = 100;

/// A kind of disturbance that a check can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    Cancels,
    Faults,
    Network,
}

impl Disturbance {
    /// Its place in [`Search::coverage`].
    fn index(self) -> usize {
        self as usize
    }

    fn part(self) -> Part {
        match self {
            Disturbance::Cancels => Part::Cancels,
            Disturbance::Faults => Part::Faults,
            Disturbance::Network => Part::Network,
        }
    }
}

/// The runs with one kind of disturbance.
pub(super) struct Sweep {
    kind: Disturbance,
    /// Every point of the usual order; none once all were tried.
    alone: Boxed,
    /// Other orders in which no task is preempted; none once all were run.
    orders: Boxed,
}

impl Sweep {
    fn new(kind: Disturbance, runs: u64) -> Sweep {
        let limits = Limits { preemptions: 0, yields: 0, cancels: 1 };
        let orders = Bounded::new(limits, runs.saturating_mul(OTHER_ORDERS));
        // With faults of the network there are too many orders: they are drawn at random.
        let orders: Boxed = match kind {
            Disturbance::Network => None,
            _ => Some(Box::new(orders)),
        };
        Sweep { kind, alone: Some(Box::new(Everywhere::default())), orders }
    }

    /// Whether there is nothing left to try.
    pub(super) fn is_complete(&self) -> bool {
        self.alone.is_none() && self.orders.is_none()
    }
}

/// One sweep for each kind of disturbance that a check requests.
pub(super) fn requested<F>(check: &Check<F>) -> Vec<Sweep> {
    let kinds = [
        (check.cancels, Disturbance::Cancels),
        (check.faults, Disturbance::Faults),
        (!check.network.is_none(), Disturbance::Network),
    ];
    let kinds = kinds.into_iter().filter(|(requested, _)| *requested);
    kinds.map(|(_, kind)| Sweep::new(kind, check.runs)).collect()
}

impl<F, B> Search<'_, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Makes the runs with one disturbance. `parts_left`: the parts of the search that follow.
    pub(super) fn disturb(&mut self, parts_left: u32) -> Option<Failure> {
        let mut sweeps = std::mem::take(&mut self.sweeps);
        let failure = self.sweep(&mut sweeps, parts_left);
        let count = sweeps.len();
        let failure = failure.or_else(|| {
            sweeps.iter_mut().enumerate().find_map(|(index, sweep)| {
                let left = (count - index) as u32;
                self.begin_part(sweep.kind.part(), 1, left + parts_left);
                self.cap = self.runs + self.runs_left() / u64::from(left);
                self.in_other_orders(sweep)
            })
        });
        self.sweeps = sweeps;
        failure
    }

    /// Each disturbance alone in the usual order; the kinds take turns.
    fn sweep(&mut self, sweeps: &mut [Sweep], parts_left: u32) -> Option<Failure> {
        let count = sweeps.len() as u32;
        let part = match sweeps {
            [sweep] => sweep.kind.part(),
            _ => Part::OneDisturbance,
        };
        self.begin_part(part, count, count + parts_left);
        let has_more = |sweep: &Sweep| sweep.alone.is_some();
        let mut is_cut = false;
        while !is_cut && sweeps.iter().any(has_more) {
            for sweep in sweeps.iter_mut().filter(|sweep| has_more(sweep)) {
                self.set_disturbance(sweep.kind);
                match self.try_some(&mut sweep.alone, TURN) {
                    Tried::Failed(failure) => return Some(*failure),
                    // The other kinds have their turn in this round, too.
                    Tried::Cut => is_cut = true,
                    Tried::More => {}
                    Tried::All => sweep.alone = None,
                }
                self.coverage[sweep.kind.index()] = Some(self.tried(sweep.kind));
            }
        }
        None
    }

    /// Disturbances of this kind in orders other than the usual one.
    fn in_other_orders(&mut self, sweep: &mut Sweep) -> Option<Failure> {
        let kind = sweep.kind;
        let proof = self.proof;
        self.set_disturbance(kind);
        let failure = match kind {
            Disturbance::Network => self.break_network(),
            Disturbance::Cancels | Disturbance::Faults => {
                let most = self.budget.saturating_mul(OTHER_ORDERS);
                match self.try_some(&mut sweep.orders, most) {
                    Tried::Failed(failure) => Some(*failure),
                    Tried::Cut | Tried::More => None,
                    Tried::All => {
                        sweep.orders = None;
                        None
                    }
                }
            }
        };
        let failure = failure.or_else(|| self.disturb_operations(self.budget.div_ceil(2)));
        // Other orders have other points, which count once all of them were tried.
        let all = self.tried(kind);
        if kind != Disturbance::Network && all.0 == all.1 {
            self.coverage[kind.index()] = Some(all);
        }
        if failure.is_none() {
            self.freedom = Freedom::NONE;
        }
        // The proof is of the runs without disturbances.
        self.proof = proof;
        failure
    }

    /// Several faults of the network in random orders.
    fn break_network(&mut self) -> Option<Failure> {
        let ways = match self.check.workers {
            0 => &[How::Random, How::Pct(3), How::Pos, How::Uniform][..],
            // Which worker goes is drawn at random by all of them.
            _ => &[How::Random; 4],
        };
        let share = self.budget.div_ceil(4);
        ways.iter().find_map(|how| self.with(*how, share))
    }

    /// The runs that follow have disturbances of this kind only.
    fn set_disturbance(&mut self, kind: Disturbance) {
        self.at_polls();
        self.how = How::Bounded;
        self.freedom = match kind {
            Disturbance::Cancels => Freedom { cancels: true, ..Freedom::NONE },
            Disturbance::Faults => Freedom { faults: true, ..Freedom::NONE },
            Disturbance::Network => Freedom { network: self.check.network, ..Freedom::NONE },
        };
    }

    /// How many disturbances of a kind were tried, of how many points for them.
    fn tried(&self, kind: Disturbance) -> (usize, usize) {
        match kind {
            Disturbance::Cancels => self.machine.cancels(),
            Disturbance::Faults => self.machine.faults(),
            Disturbance::Network => self.machine.network(),
        }
    }

    /// The requested disturbances of which none was made, as a failure of the check.
    pub(super) fn untried(&self) -> Option<Found> {
        let Check { cancels, faults, late_clocks, network, .. } = *self.check;
        let requested = [
            (cancels, Disturbance::Cancels, "cancel_at_every_await", self.machine.cancels()),
            (faults && !late_clocks, Disturbance::Faults, "faults", self.machine.faults()),
            (late_clocks, Disturbance::Faults, "late_clocks", self.machine.late_clocks()),
            (!network.is_none(), Disturbance::Network, "network", self.machine.network()),
        ];
        let missing =
            requested.into_iter().filter(|(requested, .., count)| *requested && count.0 == 0);
        let lines = missing.map(|(_, kind, setting, _)| {
            let reason = self.untried_because(kind, setting);
            format!("`{setting}` was requested and never tried: {reason}")
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            return None;
        }
        let failure = Failure::new(Finding::new(Kind::Untried, lines.join("\n")), 0);
        Some(Found {
            failure,
            name: self.check.name.clone(),
            run: self.runs,
            strategy: self.check.how.to_string(),
            seed: self.check.seed,
            token: Schedule::default().token_of(self.points),
            words: Vec::new(),
            schedule: Schedule::default(),
            shrunk_by: 0,
            trace: None,
        })
    }

    /// Why no disturbance was made, and what to change.
    fn untried_because(&self, kind: Disturbance, setting: &str) -> String {
        let is_swept = self.sweeps.iter().any(|sweep| sweep.kind == kind && sweep.alone.is_none());
        match self.stopped.filter(|_| !is_swept) {
            Some(Stopped::Runs(limit) | Stopped::ShareOfRuns { limit, .. }) => {
                format!("the limit of {limit} runs came first; raise `total`")
            }
            Some(Stopped::Time(limit) | Stopped::ShareOfTime { limit, .. }) => {
                format!("the limit of {limit:?} came first; raise `time`")
            }
            Some(Stopped::MinTime(limit)) => {
                format!("the search ended after {limit:?}; raise `min_time`")
            }
            None => {
                let reason = match setting {
                    "cancel_at_every_await" => "no task ever waits",
                    "faults" => "the program never calls `Cx::fault`, and no task ever waits",
                    "late_clocks" => "no timer ever fires",
                    _ => "the program uses no socket to which one of these faults applies",
                };
                format!("{reason}; remove the setting")
            }
        }
    }
}
