//! A strategy that a run asks, and what it was asked.

use std::sync::{Arc, Mutex, MutexGuard};

use asx_conformance::{Failure, Native, Record, Scenario, run_once};
use asx_kernel::choose::{self, Choose};
use asx_kernel::digest::Digest;
use asx_lab::explore::{Decisions, Point, Schedule, Strategy, Verdict};

use super::Setup;

/// A strategy as the oracle of a run, and what it was asked.
#[derive(Clone)]
pub(super) struct Tape(Arc<Mutex<Asked>>);

pub(super) struct Asked {
    pub(super) strategy: Box<dyn Strategy + Send>,
    pub(super) log: Decisions,
}

impl Tape {
    pub(super) fn new(strategy: Box<dyn Strategy + Send>) -> Tape {
        Tape(Arc::new(Mutex::new(Asked { strategy, log: Decisions::default() })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether there is a run to come.
    pub(super) fn begin(&self) -> bool {
        self.lock().strategy.begin()
    }

    /// A run that has begun: what did not hold, and the record.
    pub(super) fn run(&self, scenario: &Arc<Scenario>, setup: Setup) -> (Option<String>, Record) {
        self.lock().log.clear();
        let oracle = self.clone();
        let mut host = Native::asking(setup.workers.into(), move || Box::new(oracle.clone()));
        let (failures, record) = run_once(&mut host, scenario, 0);
        drop(host);
        let counts = |failure: &&Failure| setup.expect || failure.what.starts_with("invariants");
        let failure = failures.iter().find(counts).map(|failure| {
            format!(
                "line {}: {}: expected {}, got {}",
                failure.line, failure.what, failure.expected, failure.got
            )
        });
        let id = failure.as_ref().map(|text| Digest::new().bytes(text.as_bytes()).value());
        self.lock().strategy.end(id.map_or(Verdict::Passed, Verdict::Failed));
        (failure, record)
    }

    pub(super) fn schedule(&self) -> Schedule {
        self.lock().log.schedule()
    }
}

impl Choose for Tape {
    fn choose(&mut self, point: choose::Point, count: usize) -> usize {
        let point = match point {
            choose::Point::Worker => Point::Worker,
            choose::Point::ReadyTie(_) => Point::Tie,
            choose::Point::StealStart(_) => Point::Steal,
        };
        let Asked { strategy, log } = &mut *self.lock();
        let picked = strategy.pick(point, count).min(count - 1);
        log.push_pick(point, count, picked);
        picked
    }
}
