//! The waits and held locks of tasks, as noted by the host.

use super::polls::Poll;
use crate::notes::{LOCK_RELEASED, LOCK_TAKEN, Note, TASK_GOES_ON, TASK_WAITS};
use crate::run::Run;
use std::collections::BTreeMap;

/// A time span in which a task waits, or holds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The number of the task.
    pub(crate) task: u64,
    /// The first event after its beginning.
    pub(crate) from: usize,
    /// The first event after its end.
    pub(crate) to: usize,
    /// The short description, such as `waits for orders.recv`.
    pub(crate) brief: String,
    /// The full description, with the location.
    pub(crate) whole: String,
}

/// Returns the waits and the holds of a run. Polls split a wait into several.
pub(super) fn of(run: &Run, polls: &[Poll]) -> (Vec<Stretch>, Vec<Stretch>) {
    let mut waits = Vec::new();
    let mut holds = Vec::new();
    let mut waiting = BTreeMap::new();
    let mut holding = BTreeMap::new();
    let notes = run.hosts.iter().filter_map(|(at, host)| Some((*at, Note::of(host)?)));
    for (at, note) in notes {
        let Note { task, lock, .. } = note;
        let stretch = |note: Note<'_>| {
            let (brief, whole) = note.words();
            Stretch { task, from: at, to: run.events.len(), brief, whole }
        };
        let over = match note.kind {
            TASK_WAITS => waiting.insert(task, stretch(note)).map(|over| (&mut waits, over)),
            TASK_GOES_ON => waiting.remove(&task).map(|over| (&mut waits, over)),
            LOCK_TAKEN => {
                holding.insert((task, lock), stretch(note)).map(|over| (&mut holds, over))
            }
            LOCK_RELEASED => holding.remove(&(task, lock)).map(|over| (&mut holds, over)),
            _ => None,
        };
        if let Some((list, over)) = over {
            list.push(Stretch { to: at, ..over });
        }
    }
    waits.extend(waiting.into_values());
    holds.extend(holding.into_values());
    let mut waits: Vec<_> = waits.into_iter().flat_map(|wait| between_polls(wait, polls)).collect();
    waits.sort_by_key(|wait| (wait.task, wait.from));
    holds.sort_by_key(|hold| (hold.task, hold.from));
    (waits, holds)
}

/// Splits a wait at the polls of its task.
fn between_polls(wait: Stretch, polls: &[Poll]) -> Vec<Stretch> {
    let mut parts = Vec::new();
    let mut from = wait.from;
    let inside = polls.iter().filter(|poll| poll.task == Some(wait.task));
    for poll in inside.filter(|poll| poll.from >= wait.from && poll.from < wait.to) {
        parts.push(Stretch { from, to: poll.from, ..wait.clone() });
        from = poll.to;
    }
    parts.push(Stretch { from, ..wait });
    parts.retain(|part| part.from < part.to);
    parts
}
