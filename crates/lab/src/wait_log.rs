//! What tasks wait for and hold, step by step, in a run on record.
//!
//! Events tell of tasks, scopes and timers, not of locks and waits. A run on record is looked at
//! after each step in any case; what has changed is noted, to be shown beside the events.

use std::collections::BTreeMap;
use std::panic::Location;

use asx_report::notes::{LOCK_RELEASED, LOCK_TAKEN, TASK_GOES_ON, TASK_WAITS};
use asx_runtime::Activity;
use asx_runtime::waits::{Hold, Waiter};
use asx_trace::{HostEvent, Value};

use crate::source::expression;

/// The notes of a run.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    waits: BTreeMap<u64, Waits>,
    /// What is held, each under the number it got when it was taken.
    holds: Vec<(u64, Hold)>,
    taken: u64,
    notes: Vec<(u64, HostEvent)>,
}

/// What a task waits for, and where; nothing if asx can't see it.
type Waits = Option<(String, &'static Location<'static>)>;

impl WaitLog {
    /// Looks at how things are after so many events.
    pub(crate) fn look(&mut self, events: u64, waiters: &[Waiter], held: Vec<Hold>) {
        let waiting = waiters.iter().filter(|waiter| waiter.task.activity == Activity::Waiting);
        let now: BTreeMap<u64, Waits> = waiting
            .map(|Waiter { task, .. }| {
                let waits = task.waits.filter(|_| !task.stale);
                let on = |on: &str| task.socket.clone().unwrap_or_else(|| on.to_owned());
                (task.id, waits.map(|(what, at)| (on(what), at)))
            })
            .collect();
        let before = std::mem::replace(&mut self.waits, now.clone());
        for task in before.keys().filter(|task| !now.contains_key(task)) {
            self.note(events, TASK_GOES_ON, *task, None, None);
        }
        for (task, waits) in now.iter().filter(|(task, waits)| before.get(task) != Some(waits)) {
            let on = waits.as_ref().map_or("what asx can't see", |(on, _)| on);
            let at = waits.as_ref().map(|(_, at)| *at);
            self.note(events, TASK_WAITS, *task, Some(("on", Value::Text(on.into()))), at);
        }
        self.hold(events, held);
    }

    fn hold(&mut self, events: u64, mut held: Vec<Hold>) {
        let mut kept = Vec::new();
        for (lock, hold) in std::mem::take(&mut self.holds) {
            match held.iter().position(|now| *now == hold) {
                Some(same) => {
                    held.remove(same);
                    kept.push((lock, hold));
                }
                None => {
                    let lock = Some(("lock", Value::Number(lock)));
                    self.note(events, LOCK_RELEASED, hold.task, lock, None);
                }
            }
        }
        self.holds = kept;
        for hold in held {
            self.taken += 1;
            let lock = Some(("lock", Value::Number(self.taken)));
            self.note(events, LOCK_TAKEN, hold.task, lock, hold.at);
            self.holds.push((self.taken, hold));
        }
    }

    fn note(
        &mut self,
        events: u64,
        kind: &str,
        task: u64,
        more: Option<(&str, Value)>,
        at: Option<&'static Location<'static>>,
    ) {
        let mut fields = vec![("task", Value::Number(task))];
        fields.extend(more);
        fields.extend(at.and_then(expression).map(|what| ("what", Value::Text(what))));
        fields.extend(at.map(|at| ("at", Value::Text(at.to_string()))));
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let seq = self.notes.len() as u64;
        self.notes.push((events, HostEvent { seq, kind: kind.to_owned(), fields }));
    }

    /// The notes, each with how many events there were before it.
    pub(crate) fn notes(&self) -> &[(u64, HostEvent)] {
        &self.notes
    }
}
