//! A run as a trace: its events, the decisions between them, who is who, and where it failed.

use asx_kernel::journal::{Event, EventKind};
use asx_kernel::outcome::Severity;
use asx_report::{Cause, TEARDOWN};
use asx_runtime::Recorded;
use asx_trace::{Choice, Class, End, Header, Label, Mark, Record};

use crate::explore::{Decision, Decisions, Point};
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
            let name = failure.task.as_ref();
            let task = tasks.iter().find(|(_, _, called)| Some(called) == name).map(|task| task.0);
            let seq = moment(&recorded, moments, failure, task)?;
            let text = format!("{}: {}", failure.finding.kind.name(), failure.finding.message);
            Some(Mark { seq, severity: "failure".into(), text: short(text) })
        });
        let teardown = failure.and_then(|failure| teardown(&recorded, moments, failure));
        let changes = change_events(&log, moments);
        let mut marks = faults(machine, &log, moments, &recorded);
        marks.extend(mark);
        let Recorded { events, digest, recorded, lost, sockets } = recorded;
        let is_there = |id: u64| events.iter().any(|event| event.subject.task == Some(id));
        let mut records: Vec<Record> = (tasks.iter().filter(|(id, ..)| is_there(*id)))
            .map(|(number, _, text)| {
                Label { class: Class::Task, number: *number, text: short(text.clone()) }.into()
            })
            .collect();
        records.extend(sockets.into_iter().map(|(number, text)| {
            Record::from(Label { class: Class::Socket, number, text: short(text) })
        }));
        records.extend(scopes(&events, &tasks).into_iter().map(Record::from));
        let mut notes = machine.wait_log().notes().iter().peekable();
        let number = |path| tasks.iter().find(|task| task.1 == path).map(|task| task.0);
        let mut choices = choices(&log, moments, number).into_iter().peekable();
        let count = choices.len() as u64;
        for event in events {
            while let Some((_, note)) = notes.next_if(|(before, _)| *before <= event.seq) {
                records.push(note.clone().into());
            }
            while let Some((_, choice)) = choices.next_if(|(before, _)| *before <= event.seq) {
                records.push(choice.into());
            }
            let here = marks.iter().filter(|mark| mark.seq == event.seq).cloned();
            records.push(event.into());
            records.extend(here.map(Record::from));
        }
        records.extend(notes.map(|(_, note)| note.clone().into()));
        records.extend(choices.map(|(_, choice)| choice.into()));
        records.push(End { recorded, lost, digest, choices: count }.into());
        let mut header = Header { complete: lost == 0, ..header };
        header.meta.extend(teardown.map(|seq| (TEARDOWN.into(), seq.to_string())));
        header.meta.extend(failure.and_then(|_| Cause::change_events_meta(&changes)));
        Some(Trace { header, records })
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

/// The number of the first event of the step to which each changed decision belongs.
fn change_events(log: &Decisions, moments: &[(u64, u64)]) -> Vec<u64> {
    let mut events = Vec::new();
    let mut changed = log.changed().into_iter().peekable();
    let mut first = 0;
    let mut moments = moments.iter();
    for (index, decision) in log.list().iter().enumerate() {
        if let Decision::Task { .. } = decision {
            first = moments.next().map_or(first, |moment| moment.0);
        }
        events.extend(changed.next_if_eq(&index).map(|_| first));
    }
    events
}

/// What went wrong in the network, each at the last event before it.
fn faults(
    machine: &Machine,
    log: &Decisions,
    moments: &[(u64, u64)],
    recorded: &Recorded,
) -> Vec<Mark> {
    let made = machine.faults_made().into_iter().filter(|made| made.point == Point::Network);
    let mut made = made.map(|made| made.text);
    let mut found = Vec::new();
    let mut steps = moments.iter();
    let mut end = 0;
    for decision in log.list() {
        match *decision {
            Decision::Task { .. } => end = steps.next().map_or(end, |step| step.1),
            Decision::Pick { point: Point::Network, picked: 1.., .. } => {
                let Some(text) = made.next() else { continue };
                let seq = end.saturating_sub(1);
                if recorded.events.iter().any(|event| event.seq == seq) {
                    let severity = "network".into();
                    found.push(Mark { seq, severity, text: short(text.into_owned()) });
                }
            }
            Decision::Pick { .. } => {}
        }
    }
    found
}

/// What the regions are: the program's own, and the scopes of its tasks.
fn scopes(events: &[Event], tasks: &[(u64, crate::explore::TaskPath, String)]) -> Vec<Label> {
    let mut labels = Vec::new();
    let mut polled = None;
    for event in events {
        match event.kind {
            EventKind::Decision { .. } => polled = event.subject.task,
            EventKind::RegionOpened { parent } => {
                let Some(number) = event.subject.region else { continue };
                let by = tasks.iter().find(|(id, ..)| Some(*id) == polled);
                let text = match (by, parent) {
                    (Some((_, _, name)), _) => format!("scope of {name}"),
                    (None, None) => String::from("runtime"),
                    (None, Some(_)) => String::from("program"),
                };
                labels.push(Label { class: Class::Region, number, text: short(text) });
            }
            _ => {}
        }
    }
    labels
}

/// Whether the lab ends what is left of a run that failed like this: else it ends by itself.
fn is_given_up(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Deadlock
            | Kind::LostWakeup
            | Kind::Futurelock
            | Kind::Livelock
            | Kind::Unheeded
            | Kind::Foreign
    )
}

/// The first event of what the lab did to end a run that had failed.
fn teardown(recorded: &Recorded, moments: &[(u64, u64)], failure: &Failure) -> Option<u64> {
    let step = failure.step.checked_sub(1).and_then(|step| moments.get(step as usize))?;
    let is_there = |seq: &u64| recorded.events.iter().any(|event| event.seq == *seq);
    Some(step.1).filter(|_| is_given_up(failure.finding.kind)).filter(is_there)
}

/// The event at which the run failed. `task`: whose it was, if that is known.
fn moment(
    recorded: &Recorded,
    moments: &[(u64, u64)],
    failure: &Failure,
    task: Option<u64>,
) -> Option<u64> {
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
            let events = || recorded.events.iter().filter(|event| (from..to).contains(&event.seq));
            let is_its = |event: &&Event| task.is_none_or(|task| event.subject.task == Some(task));
            let end = events().filter(is_its).find(|event| ended(event, Severity::Panicked));
            // The task may go on after a panic in a part of it, a scope for one: then it is where
            // it was polled, and not what that did to others.
            let polled = || events().filter(is_its).find(|event| is_decision(event));
            let event = end.or_else(polled);
            event.map_or_else(|| to.saturating_sub(1), |event| event.seq)
        }
        // Nothing happened after that but that it was given up.
        kind if is_given_up(kind) => step.map_or(last, |step| step.1.saturating_sub(1)),
        Kind::Error => {
            let end = recorded.events.iter().find(|event| ended(event, Severity::Err));
            end.map_or(last, |event| event.seq)
        }
        _ => last,
    };
    Some(seq.min(last)).filter(kept)
}

/// Says of a program that answered an error which task ended with one first, in the run on record.
/// If no other did but those around it, which pass it on, and no scope was opened since, as by a
/// program that goes on, it is the task that failed.
pub(crate) fn with_first_error(machine: &Machine, mut failure: Failure) -> Failure {
    let (Kind::Error, Some((recorded, _))) = (failure.finding.kind, machine.recorded()) else {
        return failure;
    };
    let tasks = machine.tasks();
    let called = |id: u64| tasks.iter().find(|task| task.0 == id).map(|task| task.2.as_str());
    let is_error = |event: &&Event| match event.kind {
        EventKind::TaskEnded { outcome } => outcome == Severity::Err,
        _ => false,
    };
    let events = &recorded.events;
    let errors = events.iter().filter(is_error).filter_map(|event| event.subject.task);
    let errors: Vec<_> = errors.filter_map(called).collect();
    let is_opened = |event: &Event| matches!(event.kind, EventKind::RegionOpened { .. });
    let goes_on = events.iter().skip_while(|event| !is_error(event)).any(is_opened);
    let Some(first) = errors.first() else { return failure };
    let line = format!("`{first}` was the first task that ended with an error\n");
    failure.finding = failure.finding.with_detail(&line);
    let spawned = spawn_path(first);
    if !goes_on && errors.iter().all(|other| is_around(spawn_path(other), spawned)) {
        failure.task = Some(String::from(*first));
    }
    failure
}

/// Of what a task is called: `main/2` of `feed (main/2)`.
fn spawn_path(called: &str) -> &str {
    let inside = called.rsplit_once(" (").and_then(|(_, path)| path.strip_suffix(')'));
    inside.unwrap_or(called)
}

/// Whether a task is another, or one that it was spawned by, by others or itself.
fn is_around(path: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_decision(event: &Event) -> bool {
    matches!(event.kind, EventKind::Decision { .. })
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
