//! A strategy as the oracle of a run, and the log of its decisions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use asx_conformance::events::Named;
use asx_conformance::{Failure, Native, Record, Scenario, run_once};
use asx_kernel::choose::{self, Choose};
use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind};
use asx_lab::explore::{Decision, Decisions, Point, Schedule, Strategy, Verdict};

use super::Setup;

/// A strategy as the oracle of a run, and the log of its decisions.
#[derive(Clone)]
pub(super) struct Tape(Arc<Mutex<Asked>>);

pub(super) struct Asked {
    pub(super) strategy: Box<dyn Strategy + Send>,
    pub(super) log: Decisions,
    /// The steps that the run has taken so far.
    steps: Arc<AtomicU64>,
    /// For each decision of the log, the steps that were taken before it.
    steps_before: Vec<u64>,
}

/// How a failure of the laws begins, as opposed to one of the scenario's expectations.
const LAW: &str = "invariants";

/// Whether the message of a failure is about a law.
pub(super) fn is_law(message: &str) -> bool {
    message.split(": ").nth(1).is_some_and(|what| what.starts_with(LAW))
}

/// A choice that was made otherwise than by default.
pub(super) struct Change {
    pub(super) text: String,
    /// The number of the event that it led to.
    pub(super) event: u64,
}

impl Tape {
    pub(super) fn new(strategy: Box<dyn Strategy + Send>) -> Tape {
        Tape(Arc::new(Mutex::new(Asked {
            strategy,
            log: Decisions::default(),
            steps: Arc::default(),
            steps_before: Vec::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Begins a run; false if there is none left.
    pub(super) fn begin(&self) -> bool {
        self.lock().strategy.begin()
    }

    /// Makes the run that was begun. Returns the first failure, if any, and the record.
    pub(super) fn run(&self, scenario: &Arc<Scenario>, setup: Setup) -> (Option<String>, Record) {
        let oracle = self.clone();
        let mut host = Native::asking(setup.workers.into(), move || Box::new(oracle.clone()));
        let mut asked = self.lock();
        asked.log.clear();
        asked.steps_before.clear();
        asked.steps = host.steps();
        drop(asked);
        let (failures, record) = run_once(&mut host, scenario, 0);
        drop(host);
        let counts = |failure: &&Failure| setup.expect || failure.what.starts_with(LAW);
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

    /// The changed choices of the run that has this record, each with the step it belongs to.
    pub(super) fn changes(&self, record: &Record) -> Vec<Change> {
        let asked = self.lock();
        let is_decision = |event: &&Event| matches!(event.kind, EventKind::Decision { .. });
        let decisions: Vec<_> = record.events.iter().filter(is_decision).collect();
        let change = |index: usize| {
            let step = *asked.steps_before.get(index)?;
            let decision = asked.log.list().get(index)?;
            let Decision::Pick { point, picked, count } = *decision else { return None };
            // A choice among workers with nothing to run leads to no decision.
            let event = decisions.get(usize::try_from(step).ok()?)?;
            let task = event.subject.task?;
            let name = record.names.name(Named::Task, task);
            let name = name.map_or_else(|| format!("task {task}"), str::to_owned);
            let step = step + 1;
            let point = point.name();
            let text = format!("at step {step} run `{name}`: {point} takes {picked} of 0..{count}");
            Some(Change { text, event: event.seq })
        };
        asked.log.changed().into_iter().filter_map(change).collect()
    }
}

impl Choose for Tape {
    fn choose(&mut self, point: choose::Point, count: usize) -> usize {
        let point = match point {
            choose::Point::Worker => Point::Worker,
            choose::Point::ReadyTie(_) => Point::Tie,
            choose::Point::StealStart(_) => Point::Steal,
        };
        let Asked { strategy, log, steps, steps_before } = &mut *self.lock();
        let picked = strategy.pick(point, count).min(count - 1);
        log.push_pick(point, count, picked);
        steps_before.push(steps.load(Relaxed));
        picked
    }
}
