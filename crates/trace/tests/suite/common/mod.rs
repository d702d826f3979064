//! A small lawful run with a record of each kind.
#![allow(dead_code, reason = "each test uses a part")]

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::EventKind::*;
use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::{DecisionChain, Lane};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_trace::{
    Choice, Class, Codec, Header, HostEvent, Label, Mark, Reader, Record, Value, Writer,
};

pub(crate) const NOBODY: Subject = Subject { task: None, region: None, timer: None, channel: None };
pub(crate) const ROOT: Subject = Subject { region: Some(1), ..NOBODY };
pub(crate) const INNER: Subject = Subject { region: Some(2), ..NOBODY };
pub(crate) const TASK: Subject = Subject { task: Some(1), region: Some(2), ..NOBODY };
pub(crate) const TIMER: Subject = Subject { task: Some(1), timer: Some(1), ..NOBODY };
pub(crate) const OWN_TIMER: Subject = Subject { region: Some(2), timer: Some(2), ..NOBODY };
pub(crate) const CHANNEL: Subject =
    Subject { task: Some(1), region: Some(2), channel: Some(1), ..NOBODY };

pub(crate) fn witness(phase: Phase, kind: Kind, polls: u64, strengthened: bool) -> EventKind {
    CancelWitness { epoch: 1, phase, kind, polls, strengthened }
}

fn decision(chain: &mut DecisionChain, task: u64, lane: Lane) -> EventKind {
    chain.extend(lane, task, 0, 16);
    let (decision_seq, decision_hash) = (chain.seq, chain.hash);
    let worker = chain.seq % 2;
    Decision {
        worker,
        lane,
        decision_seq,
        decision_hash,
        cancel_streak: 0,
        limit: 16,
        fallback: false,
    }
}

/// Returns the events of a run: a task sends and receives, is cancelled and cleans up; its region
/// closes.
pub(crate) fn example_run() -> Vec<Event> {
    let moved = |from, to| TaskMoved { from, to };
    let region = |from, to| RegionMoved { from, to };
    let mut chain = DecisionChain::default();
    let first = decision(&mut chain, 1, Lane::Ready);
    let second = decision(&mut chain, 1, Lane::Cancel);
    let example_run = [
        (0, ROOT, RegionOpened { parent: None }),
        (0, INNER, RegionOpened { parent: Some(1) }),
        (0, TASK, TaskSpawned { priority: 128, finalizer: false }),
        (0, CHANNEL, ChannelOpened { capacity: 2 }),
        (0, TASK, first),
        (0, TASK, moved(TaskState::Created, TaskState::Running)),
        (1, TIMER, TimerArmed { deadline: 9 }),
        (1, OWN_TIMER, TimerArmed { deadline: 5 }),
        (1, INNER, ObligationReserved { obligation: 1 }),
        (2, CHANNEL, SendReserved { permit: 1 }),
        (2, CHANNEL, Sent { permit: Some(1) }),
        (2, CHANNEL, SendReserved { permit: 2 }),
        (2, CHANNEL, SendWaiting {}),
        (3, CHANNEL, Received {}),
        (3, CHANNEL, SendLeft {}),
        (3, CHANNEL, SendAborted { permit: 2 }),
        (3, CHANNEL, Sent { permit: None }),
        (3, CHANNEL, Sent { permit: None }),
        (3, CHANNEL, Evicted {}),
        (5, OWN_TIMER, TimerFired { deadline: 5 }),
        (6, INNER, RegionCancelled { kind: Kind::User, strengthened: false }),
        (6, INNER, region(RegionState::Open, RegionState::Closing)),
        (6, TASK, moved(TaskState::Running, TaskState::CancelRequested)),
        (6, TASK, witness(Phase::Requested, Kind::ParentCancelled, 200, false)),
        (6, INNER, region(RegionState::Closing, RegionState::Draining)),
        (6, TASK, second),
        (6, TASK, moved(TaskState::CancelRequested, TaskState::Cancelling)),
        (6, TASK, witness(Phase::Cancelling, Kind::ParentCancelled, 200, false)),
        (7, TIMER, TimerCancelled {}),
        (7, TASK, moved(TaskState::Cancelling, TaskState::Finalizing)),
        (7, TASK, witness(Phase::Finalizing, Kind::ParentCancelled, 199, false)),
        (7, TASK, CleanupError {}),
        (7, TASK, moved(TaskState::Finalizing, TaskState::Completed)),
        (7, TASK, witness(Phase::Completed, Kind::ParentCancelled, 199, false)),
        (7, TASK, TaskEnded { outcome: Severity::Cancelled }),
        (7, TASK, StaleWake {}),
        (8, INNER, region(RegionState::Draining, RegionState::Finalizing)),
        (8, CHANNEL, ReceiverGone { dropped: 1 }),
        (8, CHANNEL, SendersGone {}),
        (8, INNER, ObligationResolved { obligation: 1, to: ObligationState::Leaked }),
        (8, INNER, UnresolvedObligations { count: 1 }),
        (8, INNER, region(RegionState::Finalizing, RegionState::Closed)),
        (8, INNER, RegionOutcome { outcome: Severity::Cancelled }),
        (9, NOBODY, ResourceExhausted { what: "tasks" }),
        (9, NOBODY, SoftStop {}),
    ];
    (0..)
        .zip(example_run)
        .map(|(seq, (time, subject, kind))| Event {
            seq,
            time: Time::from_nanos(time),
            subject,
            kind,
        })
        .collect()
}

pub(crate) fn header() -> Header {
    let meta = vec![("commit".into(), "abc".into()), ("note".into(), "a \"b\"\n\u{1}é".into())];
    Header { seed: 4, workers: 2, meta, ..Header::new("demo", "model") }
}

/// Returns all records except the end record.
pub(crate) fn records() -> Vec<Record> {
    let label = |class, number, text: &str| Label { class, number, text: text.into() }.into();
    let choice = |index| Choice {
        index,
        point: "worker".into(),
        subject: Some(index).filter(|index| index % 2 == 1),
        count: 3,
        picked: 2,
    };
    let host = |seq| HostEvent {
        seq,
        kind: "burst".into(),
        fields: vec![
            ("turn".into(), Value::Number(seq)),
            ("batch".into(), Value::Null),
            ("late".into(), Value::Flag(seq == 0)),
            ("why".into(), Value::Text("b".into())),
        ],
    };
    let mut records: Vec<Record> = example_run().into_iter().map(Record::from).collect();
    records.insert(4, choice(0).into());
    records.insert(9, choice(1).into());
    records.insert(6, host(0).into());
    records.insert(12, host(5).into());
    records.insert(3, label(Class::Task, 1, "feed"));
    records.insert(5, label(Class::Region, 2, "inner"));
    records.insert(15, label(Class::Channel, 1, "orders"));
    records.insert(16, label(Class::Timer, 2, "tick"));
    let mark = Mark { seq: 31, severity: "error".into(), text: "the cleanup failed".into() };
    records.push(mark.into());
    records
}

/// Writes records, followed by the matching end record unless they have one.
pub(crate) fn write(codec: Codec, header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), codec, header).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap()
}

/// Reads records up to the first error, which is returned too.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Record>, Option<asx_trace::Error>) {
    let reader = match Reader::open(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut records = Vec::new();
    for record in reader {
        match record {
            Ok(record) => records.push(record),
            Err(error) => return (records, Some(error)),
        }
    }
    (records, None)
}
