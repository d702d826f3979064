//! A run as a trace: its events, the decisions between them, who is who, and where it failed.

use asx_kernel::journal::{Event, EventKind};
use asx_kernel::outcome::Severity;
use asx_runtime::Recorded;
use asx_trace::{Choice, Class, End, Header, Label, Mark, Record};

use crate::explore::{Decision, Decisions};
use crate::failure::{Failure, Kind};
use crate::machine::Machine;

/// Events of a run that are kept: a program that is not over by then is not read either.
pub(crate) const MOST_EVENTS: usize = 200_000;

/// A run, written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What it says of itself.
    pub header: Header,
    /// Its records, the last one an end.
    pub records: Vec<Record>,
}

impl Trace {
    /// What all events of the run come to: runs with the same events have the same.
    pub fn digest(&self) -> u64 {
        match self.records.last() {
            Some(Record::End(end)) => end.digest,
            _ => 0,
        }
    }

    /// The last run of a machine; nothing if it does not record.
    pub(crate) fn of(
        machine: &Machine,
        header: Header,
        failure: Option<&Failure>,
    ) -> Option<Trace> {
        let (recorded, moments) = machine.recorded()?;
        let log = machine.log();
        let tasks = machine.tasks();
        let mark = failure.and_then(|failure| {
            let seq = moment(&recorded, moments, failure)?;
            let text = format!("{}: {}", failure.finding.kind.name(), failure.finding.message);
            Some(Mark { seq, severity: "failure".into(), text: short(text) })
        });
        let Recorded { events, digest, recorded, lost } = recorded;
        let is_there = |id: u64| events.iter().any(|event| event.subject.task == Some(id));
        let mut records: Vec<Record> = (tasks.iter().filter(|(id, ..)| is_there(*id)))
            .map(|(number, _, text)| {
                Label { class: Class::Task, number: *number, text: short(text.clone()) }.into()
            })
            .collect();
        let number = |path| tasks.iter().find(|task| task.1 == path).map(|task| task.0);
        let mut choices = choices(&log, moments, number).into_iter().peekable();
        let count = choices.len() as u64;
        for event in events {
            while let Some((_, choice)) = choices.next_if(|(before, _)| *before <= event.seq) {
                records.push(choice.into());
            }
            let mark = mark.as_ref().filter(|mark| mark.seq == event.seq).cloned();
            records.push(event.into());
            records.extend(mark.map(Record::from));
        }
        records.extend(choices.map(|(_, choice)| choice.into()));
        records.push(End { recorded, lost, digest, choices: count }.into());
        Some(Trace { header: Header { complete: lost == 0, ..header }, records })
    }
}

/// The decisions that were choices, each with the number of the event it came before.
fn choices(
    log: &Decisions,
    moments: &[(u64, u64)],
    number: impl Fn(crate::explore::TaskPath) -> Option<u64>,
) -> Vec<(u64, Choice)> {
    let mut found = Vec::new();
    let mut moment = (0, 0);
    let mut moments = moments.iter();
    for decision in log.list() {
        let (before, point, subject, picked, count) = match *decision {
            Decision::Task { path, picked, count } => {
                moment = moments.next().copied().unwrap_or(moment);
                (moment.0, "task", number(path), picked, count)
            }
            Decision::Pick { point, picked, count } => {
                (moment.1, point.name(), None, picked, count)
            }
        };
        if count >= 2 {
            let index = found.len() as u64;
            let count = count.into();
            let picked = picked.into();
            found.push((before, Choice { index, point: point.into(), subject, count, picked }));
        }
    }
    found
}

/// The event at which the run failed.
fn moment(recorded: &Recorded, moments: &[(u64, u64)], failure: &Failure) -> Option<u64> {
    let last = recorded.recorded.checked_sub(1)?;
    let step = failure.step.checked_sub(1).and_then(|step| moments.get(step as usize));
    let ended = |event: &&Event, how: Severity| match event.kind {
        EventKind::TaskEnded { outcome } => outcome == how,
        _ => false,
    };
    let kept = |seq: &u64| recorded.events.first().is_some_and(|first| *seq >= first.seq);
    let seq = match failure.finding.kind {
        Kind::Panic => {
            let (from, to) = step.copied().unwrap_or((0, recorded.recorded));
            let mut events = recorded.events.iter().filter(|event| (from..to).contains(&event.seq));
            let end = events.find(|event| ended(event, Severity::Panicked));
            end.map_or_else(|| to.saturating_sub(1), |event| event.seq)
        }
        // Nothing happened after that but that it was given up.
        Kind::Deadlock
        | Kind::LostWakeup
        | Kind::Futurelock
        | Kind::Livelock
        | Kind::Unheeded
        | Kind::Foreign => step.map_or(last, |step| step.1.saturating_sub(1)),
        Kind::Error => {
            let end = recorded.events.iter().find(|event| ended(event, Severity::Err));
            end.map_or(last, |event| event.seq)
        }
        Kind::Leak | Kind::Overrun | Kind::Ended | Kind::Nondeterminism => last,
    };
    Some(seq.min(last)).filter(kept)
}

/// Cut to what a text in a trace may have.
pub(crate) fn short(mut text: String) -> String {
    const MOST: usize = 1000;
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push_str("...");
    }
    text
}
