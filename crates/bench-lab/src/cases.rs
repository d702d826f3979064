//! What is measured, of each program:
//!
//! | workload | figure | asx | peers |
//! |---|---|---|---|
//! | `P.random` | ns a schedule, no bug | the same strategy | shuttle, madsim |
//! | `P.pct`, `P.dfs` | ns a schedule, no bug | the same strategy | shuttle |
//! | `P.find` | ns until the bug is told | the settings as they are | all strategies of all |
//! | `P.proof` | ns until all were run, no bug | one of each class | shuttle's dfs, loom |
//! | `requests.random` | ns a schedule, over a network | random schedules | turmoil, madsim |
//!
//! All are nanoseconds of processor time. Ours, where a bug is looked for, includes making the
//! schedule small and recording its trace.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use asx_bench::harness::{Case, Flavour, Unit};
use asx_lab::{Grain, How, Report};

use crate::clock::timed;
use crate::programs::Program;
use crate::with_madsim::Madsim;
use crate::with_shuttle::How as Shuttle;
use crate::{ours, requests, with_loom, with_shuttle};

/// What was seen beside the times, by workload and peer.
#[derive(Clone, Default)]
pub(crate) struct Notes(Rc<RefCell<BTreeMap<(&'static str, &'static str), Note>>>);

/// What was seen of one case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Note {
    /// Schedules of each repetition.
    pub(crate) runs: Vec<u64>,
    /// Forced decisions of the witness.
    pub(crate) forced: Option<usize>,
    /// Classes that are all there are.
    pub(crate) classes: Option<u64>,
}

impl Note {
    /// The middle one of the repetitions.
    pub(crate) fn median_runs(&self) -> u64 {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        runs.get(runs.len() / 2).copied().unwrap_or(0)
    }
}

impl Notes {
    /// What was seen of a case.
    pub(crate) fn of(&self, workload: &'static str, peer: &'static str) -> Note {
        self.0.borrow().get(&(workload, peer)).cloned().unwrap_or_default()
    }
}

/// What a repetition gave: how long it took, and what was seen.
struct Seen {
    nanos: f64,
    runs: u64,
    forced: Option<usize>,
    classes: Option<u64>,
}

impl Seen {
    fn new(nanos: f64, runs: u64) -> Seen {
        Seen { nanos, runs, forced: None, classes: None }
    }

    fn of(report: &Report, nanos: f64) -> Seen {
        let forced = report.failure.as_ref().map(|found| found.schedule.deviations.len());
        let classes = report.proof.map(|proof| proof.classes);
        Seen { forced, classes, ..Seen::new(nanos, report.runs) }
    }
}

/// The cases of all programs.
pub(crate) struct Cases<'a> {
    pub(crate) notes: &'a Notes,
    pub(crate) madsim: Option<Madsim>,
    pub(crate) smoke: bool,
}

/// asx at either grain.
const GRAINS: [(&str, Grain); 2] = [("asx", Grain::Poll), ("asx_operations", Grain::Operation)];

/// Schedules within which a bug must be found, or that must be all.
const MOST: u64 = 200_000;
/// The same where only that it runs is of interest.
const MOST_SMOKE: u64 = 500;
/// As long as a search may take.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

impl Cases<'_> {
    pub(crate) fn all(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for program in Program::ALL {
            self.rates(program, &mut cases);
            if program.is_small() {
                self.finds(program, &mut cases);
                self.proofs(program, &mut cases);
            }
        }
        self.requests(&mut cases);
        cases
    }

    /// Schedules a second of the program that has a network.
    fn requests(&self, cases: &mut Vec<Case>) {
        let workload = "requests.random";
        let count = if self.smoke { 2 } else { 200 };
        let mut add = |peer, mut run: Box<dyn FnMut(u64) -> Option<(f64, u64)>>| {
            let run = move |seed| run(seed).map(|(took, runs)| Seen::new(took / runs as f64, runs));
            cases.push(self.case(workload, peer, run));
        };
        add("asx", Box::new(move |seed| Some(timed(|| requests::ours(seed, count)))));
        for (peer, short) in [("turmoil", false), ("turmoil_short", true)] {
            let run = move |seed| Some(timed(|| requests::turmoil(seed, count, short)));
            add(peer, Box::new(run));
        }
        if let Some(madsim) = self.madsim.clone() {
            add("madsim", Box::new(move |seed| madsim.rate(requests::NAME, seed, count)));
        }
    }

    /// Schedules a second, strategy by strategy.
    fn rates(&self, program: Program, cases: &mut Vec<Case>) {
        let count = program.schedules(self.smoke);
        let strategies = [
            ("random", How::Random, Shuttle::Random),
            ("pct", How::Pct(3), Shuttle::Pct),
            ("dfs", How::Dfs, Shuttle::Dfs),
        ];
        for (strategy, how, shuttle) in strategies {
            let workload = format!("{}.{strategy}", program.name()).leak();
            let each = |nanos: f64, runs: u64| Seen::new(nanos / runs as f64, runs);
            let mut add = |peer, mut run: Box<dyn FnMut(u64, u64) -> (f64, u64)>| {
                let run = move |seed| {
                    let mut nanos = 0.0;
                    let mut runs = 0;
                    // A space that is done before is begun again.
                    while runs < count {
                        let (took, done) = run(seed, count - runs);
                        (nanos, runs) = (nanos + took, runs + done);
                    }
                    Some(each(nanos, runs))
                };
                cases.push(self.case(workload, peer, run));
            };
            for (peer, grain) in GRAINS {
                add(
                    peer,
                    Box::new(move |seed, count| {
                        timed(|| ours::explore(program, how, grain, seed, count).runs)
                    }),
                );
            }
            add(
                "shuttle",
                Box::new(move |seed, count| {
                    timed(|| with_shuttle::explore(program, shuttle, seed, count))
                }),
            );
            if let (Some(madsim), "random") = (self.madsim.clone(), strategy) {
                let ask = move |seed, count| madsim.rate(program.name(), seed, count);
                // A process that is gone has no figure.
                add("madsim", Box::new(move |s, n| ask(s, n).unwrap_or((f64::NAN, n))));
            }
        }
    }

    /// How long it takes to find the bug.
    fn finds(&self, program: Program, cases: &mut Vec<Case>) {
        let workload = &*format!("{}.find", program.name()).leak();
        let most = self.most();
        let mut ours = |peer, how| {
            let find = move |seed| {
                let (nanos, report) = timed(|| ours::find(program, how, seed, most));
                report.failure.is_some().then(|| Seen::of(&report, nanos))
            };
            cases.push(self.case(workload, peer, find));
        };
        ours("asx", How::Mixed);
        ours("asx_random", How::Random);
        for (peer, how) in [
            ("shuttle_random", Shuttle::Random),
            ("shuttle_pct", Shuttle::Pct),
            ("shuttle_dfs", Shuttle::Dfs),
        ] {
            cases.push(self.case(workload, peer, move |seed| {
                let (nanos, run) = timed(|| with_shuttle::find(program, how, seed, most));
                Some(Seen::new(nanos, run?))
            }));
        }
        if with_loom::has(program) {
            let find = move |_| with_loom::find(program).map(|(nanos, run)| Seen::new(nanos, run));
            cases.push(self.case(workload, "loom", find));
        }
        if let Some(madsim) = self.madsim.clone() {
            cases.push(self.case(workload, "madsim", move |seed| {
                let (nanos, run) = madsim.find(program.name(), seed.wrapping_mul(MOST), most)?;
                Some(Seen::new(nanos, run))
            }));
        }
    }

    /// How long it takes to run all there is.
    fn proofs(&self, program: Program, cases: &mut Vec<Case>) {
        let workload = &*format!("{}.proof", program.name()).leak();
        let most = self.most();
        let longest = if self.smoke { LONGEST / 50 } else { LONGEST };
        for (peer, grain) in GRAINS {
            cases.push(self.case(workload, peer, move |seed| {
                let explore = || ours::explore(program, How::Dpor, grain, seed, most);
                let (nanos, report) = timed(explore);
                report.proof.is_some().then(|| Seen::of(&report, nanos))
            }));
        }
        cases.push(self.case(workload, "shuttle_dfs", move |_| {
            let (nanos, runs) = timed(|| with_shuttle::explore(program, Shuttle::Dfs, 0, most));
            (runs < most).then(|| Seen::new(nanos, runs))
        }));
        if with_loom::has(program) {
            cases.push(self.case(workload, "loom", move |_| {
                let (nanos, runs) = with_loom::prove(program, longest)?;
                Some(Seen::new(nanos, runs))
            }));
        }
    }

    /// A case whose repetitions have seeds of their own. One that has not done what it should is
    /// not tried again, and has no figure.
    fn case(
        &self,
        workload: &'static str,
        peer: &'static str,
        mut run: impl FnMut(u64) -> Option<Seen> + 'static,
    ) -> Case {
        let notes = self.notes.clone();
        let mut seed = 0;
        let mut is_out = false;
        let run = move || {
            seed += 1;
            let seen = if is_out { None } else { run(seed) };
            is_out = seen.is_none();
            let Some(seen) = seen else { return f64::NAN };
            let mut notes = notes.0.borrow_mut();
            let note = notes.entry((workload, peer)).or_default();
            note.runs.push(seen.runs);
            note.forced = note.forced.max(seen.forced);
            note.classes = seen.classes;
            seen.nanos
        };
        Case { workload, peer, unit: Unit::Cpu, flavour: Flavour::Bare, run: Box::new(run) }
    }

    fn most(&self) -> u64 {
        if self.smoke { MOST_SMOKE } else { MOST }
    }
}
