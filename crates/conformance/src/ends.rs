//! What a run comes to, in whatever order its tasks are dispatched.

use crate::events::Named;
use crate::host::Record;
use asx_kernel::journal::EventKind;
use std::collections::{BTreeMap, BTreeSet};

/// The part of a run that does not depend on the order of dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// How each named task has ended, if it has.
    pub outcomes: BTreeMap<String, Option<&'static str>>,
    /// The phases that the cancel of each named task went through.
    pub phases: BTreeMap<String, BTreeSet<&'static str>>,
    /// How many obligations were resolved in each way.
    pub obligations: BTreeMap<&'static str, usize>,
}

impl Ends {
    /// The ends of a run.
    pub fn of(record: &Record) -> Ends {
        let mut phases: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
        let mut obligations = BTreeMap::new();
        for event in &record.events {
            match event.kind {
                EventKind::CancelWitness { phase, .. } => {
                    let task = event.subject.task;
                    let name = task.and_then(|task| record.names.name(Named::Task, task));
                    let of_task = phases.entry(name.unwrap_or("?").to_owned()).or_default();
                    of_task.insert(phase.name());
                }
                EventKind::ObligationResolved { to, .. } => {
                    *obligations.entry(to.name()).or_insert(0) += 1;
                }
                _ => {}
            }
        }
        Ends { outcomes: record.outcomes.clone(), phases, obligations }
    }
}
