//! Strict verification detects and names every kind of change to a trace.

use crate::common;

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::EventKind::{self, *};
use asx_kernel::journal::{Event, Subject};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_trace::{
    Class, Codec, End, Header, HostEvent, Label, MANDATORY, Mark, Reader, Record, Report, Value,
    verify,
};
use common::*;
use std::collections::BTreeMap;

fn judge(bytes: &[u8], strict: bool) -> Report {
    verify(&mut Reader::open(bytes).expect("a header"), strict)
}

#[test]
fn the_unchanged_trace_is_valid() {
    for codec in [Codec::Json, Codec::Binary] {
        let bytes = write(codec, &header(), &records());
        assert_eq!(judge(&bytes, true).violations, []);
        let report = judge(&bytes, false);
        assert_eq!((report.events, report.choices, report.holds()), (45, 2, true));
        assert_eq!(report.end.map(|end| end.digest), Some(report.digest));
    }
}

type Harm = fn(&mut Header, &mut Vec<Record>);

/// Returns the index of the nth matching event.
fn find(records: &[Record], nth: usize, is: fn(&EventKind) -> bool) -> usize {
    let fits = |record: &Record| matches!(record, Record::Event(event) if is(&event.kind));
    let mut found = (0..records.len()).filter(|at| fits(&records[*at]));
    found.nth(nth).expect("no matching event")
}

fn event(record: &mut Record) -> &mut Event {
    match record {
        Record::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

/// Renumbers the events, so that only the laws can detect the change.
fn renumber(records: &mut [Record]) {
    let events = records.iter_mut().filter(|record| matches!(record, Record::Event(_)));
    (0..).zip(events).for_each(|(seq, record)| event(record).seq = seq);
}

macro_rules! at {
    ($records:expr, $kind:pat) => {
        at!($records, $kind, 0)
    };
    ($records:expr, $kind:pat, $nth:literal) => {
        find($records, $nth, |kind| matches!(kind, $kind))
    };
}

/// Removes an event.
macro_rules! without {
    ($kind:pat $(, $nth:literal)?) => {
        |_, records| {
            records.remove(at!(records, $kind $(, $nth)?));
        }
    };
}

/// Repeats an event.
macro_rules! twice {
    ($kind:pat $(, $nth:literal)?) => {
        |_, records| {
            let at = at!(records, $kind $(, $nth)?);
            records.insert(at + 1, records[at].clone());
        }
    };
}

/// Replaces an event's kind.
macro_rules! instead {
    ($kind:pat $(, $nth:literal)? => $other:expr) => {
        |_, records| {
            let at = at!(records, $kind $(, $nth)?);
            event(&mut records[at]).kind = $other;
        }
    };
}

/// Replaces an event's subject.
macro_rules! about {
    ($kind:pat $(, $nth:literal)? => $subject:expr) => {
        |_, records| {
            let at = at!(records, $kind $(, $nth)?);
            event(&mut records[at]).subject = $subject;
        }
    };
}

/// Adds an event after another.
macro_rules! after {
    ($kind:pat $(, $nth:literal)? => $subject:expr, $other:expr) => {
        |_, records| {
            let at = at!(records, $kind $(, $nth)?);
            let mut new = *event(&mut records[at]);
            (new.subject, new.kind) = ($subject, $other);
            records.insert(at + 1, new.into());
        }
    };
}

/// Moves an event before another.
macro_rules! moved {
    ($kind:pat $(, $nth:literal)? => $before:pat) => {
        |_, records| {
            let mut record = records.remove(at!(records, $kind $(, $nth)?));
            let to = at!(records, $before);
            event(&mut record).time = event(&mut records[to]).time;
            records.insert(to, record);
        }
    };
}

/// Changes that violate a law although every number, count and digest is right.
const UNLAWFUL: &[(&str, Harm)] = &[
    ("time_back", |_, records| {
        let at = at!(records, TimerFired { .. });
        event(&mut records[at]).time = Time::from_nanos(1);
    }),
    ("no_region", about!(RegionMoved { .. } => NOBODY)),
    ("unknown_region", about!(RegionMoved { .. } => Subject { region: Some(9), ..NOBODY })),
    ("region_twice", twice!(RegionOpened { .. })),
    (
        "region_parent",
        instead!(RegionOpened { parent: Some(_) } => RegionOpened { parent: Some(7) }),
    ),
    ("region_state", without!(RegionMoved { .. })),
    (
        "region_step",
        instead!(RegionMoved { .. } => RegionMoved {
        from: RegionState::Open, to: RegionState::Finalizing }),
    ),
    ("region_lives", moved!(RegionMoved { .. }, 2 => TaskMoved { to: TaskState::Completed, .. })),
    ("region_obliged", |_, records| {
        records.remove(at!(records, ObligationResolved { .. }));
        records.remove(at!(records, UnresolvedObligations { .. }));
    }),
    ("region_timed", without!(TimerFired { .. })),
    ("region_permits", |header, records| {
        records.remove(at!(records, SendersGone {}));
        let reserve: Harm = after!(TaskEnded { .. } => CHANNEL, SendReserved { permit: 9 });
        reserve(header, records);
    }),
    (
        "region_cancel",
        instead!(RegionCancelled { .. } => RegionCancelled {
        kind: Kind::User, strengthened: true }),
    ),
    (
        "region_closed",
        after!(RegionOutcome { .. } => INNER, RegionCancelled {
        kind: Kind::User, strengthened: true }),
    ),
    (
        "region_unclosed",
        after!(RegionCancelled { .. } => INNER, RegionOutcome {
        outcome: Severity::Ok }),
    ),
    ("region_told", twice!(RegionOutcome { .. })),
    ("region_fold", instead!(RegionOutcome { .. } => RegionOutcome { outcome: Severity::Ok })),
    ("region_leaks", instead!(UnresolvedObligations { .. } => UnresolvedObligations { count: 2 })),
    ("no_task", about!(TaskMoved { .. } => INNER)),
    ("unknown_task", about!(TaskMoved { .. } => Subject { task: Some(8), ..INNER })),
    ("task_region", about!(TaskMoved { .. } => Subject { task: Some(1), ..ROOT })),
    ("task_home", about!(TaskSpawned { .. } => Subject { task: Some(1), ..NOBODY })),
    ("task_twice", twice!(TaskSpawned { .. })),
    ("task_state", without!(TaskMoved { .. }, 1)),
    ("task_unbegun", without!(TaskMoved { .. })),
    ("unknown_task", about!(Received {} => Subject { task: Some(8), ..CHANNEL })),
    ("task_unended", |_, records| {
        records.remove(at!(records, TaskEnded { .. }));
        let at = at!(records, RegionOutcome { .. });
        event(&mut records[at]).kind = RegionOutcome { outcome: Severity::Ok };
    }),
    ("task_unseen", |_, records| {
        records.remove(at!(records, TaskMoved { to: TaskState::Cancelling, .. }));
        records.remove(at!(records, TaskMoved { to: TaskState::Finalizing, .. }));
        let at = at!(records, TaskMoved { to: TaskState::Completed, .. });
        event(&mut records[at]).kind =
            TaskMoved { from: TaskState::CancelRequested, to: TaskState::Completed };
    }),
    ("region_untold", without!(RegionOutcome { .. })),
    ("region_cancel_same", twice!(RegionCancelled { .. })),
    ("region_uncancelled", without!(RegionCancelled { .. })),
    ("channel_waits", |_, records| {
        records.remove(at!(records, SendLeft {}));
        records.remove(at!(records, ReceiverGone { .. }));
    }),
    ("task_forced", |_, records| {
        let at = at!(records, CleanupError {});
        event(&mut records[at]).kind = CleanupOverrun { polls: 0 };
        records.insert(at, records[at].clone());
    }),
    ("cancel_same", twice!(CancelWitness { .. })),
    ("cancel_untold", without!(CancelWitness { .. }, 1)),
    ("decision_late", moved!(TaskMoved { .. } => Decision { .. })),
    (
        "task_step",
        instead!(TaskMoved { .. }, 1 => TaskMoved {
        from: TaskState::Running, to: TaskState::Created }),
    ),
    ("task_alive", after!(CleanupError { .. } => TASK, TaskEnded { outcome: Severity::Ok })),
    ("task_ended", twice!(TaskEnded { .. })),
    ("task_uncancelled", |_, records| {
        records.retain(|record| {
            !matches!(record, Record::Event(Event { kind: CancelWitness { .. }, .. }))
        });
    }),
    ("task_over", moved!(Decision { .. }, 1 => TaskEnded { .. })),
    ("task_fresh", after!(CleanupError { .. } => TASK, StaleWake {})),
    ("budget_kind", after!(CleanupError { .. } => TASK, BudgetExhausted { kind: Kind::User })),
    (
        "cancel_epoch",
        instead!(CancelWitness { .. }, 1 => CancelWitness {
        epoch: 2, phase: Phase::Cancelling, kind: Kind::ParentCancelled, polls: 200,
        strengthened: false }),
    ),
    (
        "cancel_first",
        instead!(CancelWitness { .. } => witness(
        Phase::Requested, Kind::ParentCancelled, 200, true)),
    ),
    (
        "cancel_phase",
        instead!(CancelWitness { .. }, 2 => witness(
        Phase::Requested, Kind::ParentCancelled, 199, false)),
    ),
    (
        "cancel_weaker",
        instead!(CancelWitness { .. }, 2 => witness(
        Phase::Finalizing, Kind::User, 199, false)),
    ),
    (
        "cancel_wider",
        instead!(CancelWitness { .. }, 2 => witness(
        Phase::Finalizing, Kind::ParentCancelled, 201, false)),
    ),
    ("decision_seq", without!(Decision { .. })),
    ("decision_hash", |_, records| {
        let at = at!(records, Decision { .. });
        if let Decision { limit, .. } = &mut event(&mut records[at]).kind {
            *limit += 1;
        }
    }),
    ("decision_counts", |_, records| {
        let at = at!(records, Decision { .. });
        if let Decision { limit, .. } = &mut event(&mut records[at]).kind {
            *limit += 1 << 32;
        }
    }),
    ("decision_worker", |header, _| header.workers = 1),
    ("no_owner", about!(ObligationReserved { .. } => NOBODY)),
    ("unknown_owner", about!(ObligationReserved { .. } => Subject { region: Some(9), ..NOBODY })),
    ("obligation_late", moved!(ObligationReserved { .. } => TimerCancelled { .. })),
    ("obligation_twice", twice!(ObligationReserved { .. })),
    ("unknown_obligation", without!(ObligationReserved { .. })),
    ("obligation_owner", about!(ObligationResolved { .. } => ROOT)),
    ("obligation_resolved", twice!(ObligationResolved { .. })),
    (
        "obligation_resolved",
        instead!(ObligationResolved { .. } => ObligationResolved {
        obligation: 1, to: ObligationState::Reserved }),
    ),
    ("no_timer", about!(TimerFired { .. } => INNER)),
    ("timer_twice", twice!(TimerArmed { .. })),
    ("timer_unarmed", twice!(TimerFired { .. })),
    ("timer_region", about!(TimerFired { .. } => Subject { timer: Some(2), ..ROOT })),
    ("timer_deadline", instead!(TimerFired { .. } => TimerFired { deadline: 4 })),
    ("no_channel", about!(Received {} => TASK)),
    ("unknown_channel", without!(ChannelOpened { .. })),
    ("channel_capacity", instead!(ChannelOpened { .. } => ChannelOpened { capacity: 0 })),
    ("channel_twice", twice!(ChannelOpened { .. })),
    ("channel_region", about!(Received {} => Subject { region: Some(1), ..CHANNEL })),
    ("channel_full", instead!(ChannelOpened { .. } => ChannelOpened { capacity: 1 })),
    ("channel_reserve", after!(SendersGone {} => CHANNEL, SendReserved { permit: 9 })),
    ("channel_wait", after!(SendersGone {} => CHANNEL, SendWaiting {})),
    ("channel_left", without!(SendWaiting {})),
    ("channel_unheard", after!(ReceiverGone { .. } => CHANNEL, Sent { permit: None })),
    ("channel_unsent", moved!(SendersGone {} => Sent { permit: None })),
    ("channel_refused", instead!(SendAborted { .. } => SendRefused { permit: 2 })),
    ("channel_evicted", after!(ChannelOpened { .. } => CHANNEL, Evicted {})),
    ("channel_empty", after!(ChannelOpened { .. } => CHANNEL, Received {})),
    ("channel_received", after!(ReceiverGone { .. } => CHANNEL, Received {})),
    ("channel_dropped", instead!(ReceiverGone { .. } => ReceiverGone { dropped: 0 })),
    ("senders_twice", twice!(SendersGone {})),
    ("senders_permits", moved!(SendersGone {} => SendWaiting {})),
    ("receiver_twice", twice!(ReceiverGone { .. })),
    ("permit_twice", twice!(SendReserved { .. }, 1)),
    ("permit_unknown", twice!(SendAborted { .. })),
];

/// Changes that make the file itself inconsistent; the events are not renumbered.
const BROKEN: &[(&str, Harm)] = &[
    ("incomplete", |header, _| header.complete = false),
    ("no_workers", |header, _| header.workers = 0),
    ("no_program", |header, _| header.program.clear()),
    ("no_host", |header, _| header.host.clear()),
    ("seq_start", |_, records| {
        records.remove(0);
    }),
    ("seq_gap", without!(CleanupError {})),
    ("seq_back", |_, records| {
        let last = at!(records, SoftStop {});
        event(&mut records[last]).seq = 43;
    }),
    ("choice_index", |_, records| {
        let at = records.iter().position(|r| matches!(r, Record::Choice(_))).unwrap();
        let choice = records.remove(at);
        records.push(choice);
    }),
    ("choice_picked", |_, records| change_choice(records, 3, 3)),
    ("choice_count", |_, records| change_choice(records, 1, 0)),
    ("host_seq", |_, records| {
        for record in records {
            if let Record::Host(host) = record {
                host.seq = 3;
            }
        }
    }),
    ("host_kind", |_, records| push_host(records, "scheduler_decision", |_| ())),
    ("host_kind", |_, records| push_host(records, "scheduler_step_over", |_| ())),
    ("host_field", |_, records| {
        push_host(records, "scheduler_step_end", |fields| drop(fields.remove("host_turn_id")));
    }),
    ("host_field", |_, records| push_host(records, "scheduler_host_handoff", |_| ())),
    ("host_null", |_, records| {
        push_host(records, "scheduler_step_decision", |fields| {
            fields.insert("lane", Value::Null);
        });
    }),
    ("host_null", |_, records| {
        push_host(records, "scheduler_step_begin", |fields| {
            fields.insert("cancel_streak", Value::Null);
        });
    }),
    ("host_null", |_, records| push_host(records, "scheduler_reentrancy_deferred", |_| ())),
    ("host_null", |_, records| {
        push_host(records, "scheduler_step_begin", |fields| {
            fields.insert("decision_seq", Value::Null);
        });
    }),
    // Inside a step, all events must have its decision.
    ("host_null", |_, records| {
        push_host(records, "scheduler_step_decision", |_| ());
        push_host(records, "scheduler_reentrancy_deferred", |fields| {
            fields.insert("error_class", Value::Text("REENTRANT".into()));
            for field in &MANDATORY[..5] {
                fields.insert(field, Value::Null);
            }
        });
    }),
    ("label_unknown", |_, records| {
        records.push(Label { class: Class::Task, number: 2, text: "x".into() }.into());
    }),
    ("label_unknown", |_, records| {
        records.push(Label { class: Class::Channel, number: 2, text: "x".into() }.into());
    }),
    ("mark_seq", |_, records| {
        records.push(Mark { seq: 45, severity: "note".into(), text: "x".into() }.into());
    }),
    ("end_recorded", |_, records| end(records, |end| end.recorded += 1)),
    ("end_lost", |_, records| {
        end(records, |end| (end.recorded, end.lost) = (end.recorded + 1, 1));
    }),
    ("end_choices", |_, records| end(records, |end| end.choices += 1)),
    ("end_digest", |_, records| end(records, |end| end.digest ^= 1)),
];

type Fields = BTreeMap<&'static str, Value>;

/// Appends an event of the scheduler that is valid except for the change.
fn push_host(records: &mut Vec<Record>, kind: &str, change: fn(&mut Fields)) {
    let mut fields: Fields = MANDATORY.iter().map(|field| (*field, Value::Number(1))).collect();
    fields.insert("error_class", Value::Null);
    change(&mut fields);
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let seq = 100 + records.len() as u64;
    records.push(HostEvent { seq, kind: kind.to_owned(), fields }.into());
}

#[test]
fn complete_scheduler_events_are_valid() {
    let mut records = records();
    push_host(&mut records, "scheduler_step_begin", |fields| {
        for field in &MANDATORY[..5] {
            fields.insert(field, Value::Null);
        }
    });
    push_host(&mut records, "scheduler_step_decision", |_| ());
    push_host(&mut records, "scheduler_reentrancy_deferred", |fields| {
        fields.insert("error_class", Value::Text("REENTRANT".into()));
    });
    push_host(&mut records, "scheduler_step_end", |_| ());
    push_host(&mut records, "scheduler_host_handoff", |fields| {
        fields.insert("call", Value::Text("message".into()));
    });
    assert_eq!(judge(&write(Codec::Json, &header(), &records), true).violations, []);
}

#[test]
fn a_missing_host_field_is_reported_with_its_line_and_name() {
    let mut records = records();
    let line = records.len() + 2;
    push_host(&mut records, "scheduler_step_end", |fields| drop(fields.remove("lane")));
    let report = judge(&write(Codec::Json, &header(), &records), true);
    let text = "host event 154, scheduler_step_end: the field `lane` is missing";
    let expected = format!("line {line}, column 1 (record {}): host_field: {text}", line - 1);
    assert_eq!(report.violations[0].to_string(), expected);
    assert!(judge(&write(Codec::Json, &header(), &records), false).holds(), "only strictly");
}

fn change_choice(records: &mut [Record], count: u64, picked: u64) {
    let choices = records.iter_mut().filter_map(|record| match record {
        Record::Choice(choice) => Some(choice),
        _ => None,
    });
    choices.take(1).for_each(|choice| (choice.count, choice.picked) = (count, picked));
}

/// Appends the right end record after changing it.
fn end(records: &mut Vec<Record>, change: fn(&mut End)) {
    let (read, _) = read(&write(Codec::Json, &header(), records));
    let Some(Record::End(mut end)) = read.last().cloned() else { panic!("no end") };
    change(&mut end);
    records.push(end.into());
}

#[test]
fn every_violation_is_detected_with_a_distinct_message() {
    let mut codes: BTreeMap<String, &str> = BTreeMap::new();
    let harms = UNLAWFUL.iter().map(|harm| (harm, true));
    for ((code, harm), anew) in harms.chain(BROKEN.iter().map(|harm| (harm, false))) {
        let (mut header, mut records) = (header(), records());
        harm(&mut header, &mut records);
        if anew {
            renumber(&mut records);
        }
        for codec in [Codec::Json, Codec::Binary] {
            let report = judge(&write(codec, &header, &records), true);
            let first = report.violations.first().unwrap_or_else(|| panic!("{code} passes"));
            assert_eq!(first.code, *code, "{first}");
            // The text before the message is the event.
            let message = first.text.rsplit(": ").next().unwrap_or_default();
            let other = codes.insert(message.to_owned(), code).unwrap_or(code);
            assert_eq!(other, *code, "{message}");
        }
    }
    assert!(codes.len() > 80, "{}", codes.len());
}

/// Changes to the text of a trace, with the expected code, record and message.
const LINES: &[(&str, &str, &str, u64, &str)] = &[
    (
        "version",
        "\"version\":2",
        "\"version\":1",
        0,
        "format version 1 is not supported: this build reads version 2; record the run \
         again",
    ),
    (
        "missing_field",
        "\"contract\":\"asx-semantics-1\",",
        "",
        0,
        "the field `contract` is missing",
    ),
    (
        "contract",
        "asx-semantics-1",
        "asx-semantics-2",
        0,
        "the trace was recorded under the contract `asx-semantics-2`, but this build has \
         `asx-semantics-1`",
    ),
    ("missing_field", "\"seed\":4,", "", 0, "the field `seed` is missing"),
    ("duplicate_field", "\"note\":", "\"commit\":", 0, "duplicate field `commit`"),
    ("type", "\"commit\":\"abc\"", "\"commit\":1", 0, "`commit` must be a text"),
    (
        "syntax",
        "{\"record\":\"event\",\"seq\":0",
        "[\"record\":\"event\",\"seq\":0",
        1,
        "expected `{`",
    ),
    ("unknown_record", "\"record\":\"label\"", "\"record\":\"lable\"", 4, "unknown record `lable`"),
    ("unknown_kind", "\"task_spawned\"", "\"task_born\"", 3, "unknown kind of event `task_born`"),
    ("missing_field", ",\"timer\":null", "", 1, "the field `timer` is missing"),
    ("missing_field", ",\"priority\":128", "", 3, "the field `priority` is missing"),
    ("range", "\"priority\":128", "\"priority\":300", 3, "`priority` is out of range"),
    (
        "unknown_field",
        "\"priority\"",
        "\"colour\":1,\"priority\"",
        3,
        "this record has no field `colour`",
    ),
    (
        "duplicate_field",
        "\"priority\":128",
        "\"priority\":128,\"priority\":1",
        3,
        "duplicate field `priority`",
    ),
    ("type", "\"priority\":128", "\"priority\":true", 3, "`priority` must be a number"),
    ("type", "\"finalizer\":false", "\"finalizer\":0", 3, "`finalizer` must be true or false"),
    ("type", "\"region\":2", "\"region\":\"2\"", 2, "`region` must be a number or null"),
    ("type", "\"lane\":\"ready\"", "\"lane\":null", 8, "`lane` must be a text"),
    ("word", "\"lane\":\"ready\"", "\"lane\":\"Ready\"", 8, "`lane` cannot be `Ready`"),
    (
        "type",
        "\"decision_hash\":\"",
        "\"decision_hash\":\"0",
        8,
        "`decision_hash` must be 16 hex digits",
    ),
    (
        "syntax",
        "\"priority\":128",
        "\"priority\":-1",
        3,
        "expected a text, a whole number, true, false or null",
    ),
    (
        "syntax",
        "\"priority\":128",
        "\"priority\":1.5",
        3,
        "expected a whole number without leading zeros",
    ),
    (
        "syntax",
        "\"priority\":128",
        "\"priority\":99999999999999999999",
        3,
        "expected a number below 2^64",
    ),
    ("syntax", "\"finalizer\":false}", "\"finalizer\":false,}", 3, "expected `\"`"),
    ("syntax", "\"finalizer\":false}", "\"finalizer\":false} x", 3, "expected the end of the line"),
    ("syntax", "\"finalizer\":false}", "\"finalizer\":false", 3, "expected `,` or `}`"),
    (
        "syntax",
        "\"text\":\"feed\"",
        "\"text\":\"fe\\xed\"",
        4,
        "expected a known letter after `\\`",
    ),
    ("syntax", "\"text\":\"feed\"", "\"text\":\"\\ud800\"", 4, "expected a whole letter"),
    ("syntax", "\"text\":\"feed\"", "\"text\":\"\\u00g0\"", 4, "expected four hex digits"),
    ("type", "\"fields\":{", "\"fields\":null,\"more\":{", 9, "`fields` must be an object"),
    (
        "syntax",
        "\"turn\":0",
        "\"turn\":{}",
        9,
        "expected a text, a whole number, true, false or null",
    ),
    (
        "after_end",
        "\"choices\":2}\n",
        "\"choices\":2}\n\n",
        56,
        "there is data after the end record",
    ),
    (
        "truncated",
        "\"choices\":2}\n",
        "\"choices\":2}",
        55,
        "the trace ends early: no complete end record",
    ),
];

#[test]
fn every_change_of_a_line_is_reported_with_its_position() {
    let text = String::from_utf8(write(Codec::Json, &header(), &records())).unwrap();
    for (code, from, to, record, message) in LINES {
        assert!(text.contains(from), "{from}");
        let (_, error) = read(text.replacen(from, to, 1).as_bytes());
        let error = error.unwrap_or_else(|| panic!("{to} passes"));
        let got = (error.kind.code(), error.record, error.kind.to_string());
        assert_eq!(got, (*code, *record, (*message).to_owned()), "{error}");
        let line = format!("line {}, column ", record + 1);
        assert!(error.to_string().starts_with(&line), "{error}");
    }
}

#[test]
fn every_flipped_bit_is_detected_and_the_records_before_it_are_read() {
    let mut all = records();
    // More than one block.
    for seq in 0..300 {
        let text = format!("message number {seq}, to fill a block or two");
        all.push(Mark { seq: seq % 45, severity: "note".into(), text }.into());
    }
    let bytes = write(Codec::Binary, &header(), &all);
    assert!(bytes.len() > 10_000);
    for at in (0..bytes.len()).filter(|at| at % 7 == 0 || *at < 300) {
        let mut harmed = bytes.clone();
        harmed[at] ^= 1 << (at % 8);
        let (read, error) = read(&harmed);
        assert!(error.is_some(), "bit {} of byte {at}", at % 8);
        assert!(all.starts_with(&read), "byte {at}: {error:?}");
        assert!(at < 4500 || read.len() > 60, "the first block is intact");
    }
}

#[test]
fn removed_moved_and_repeated_blocks_are_detected() {
    let mut writer =
        asx_trace::Writer::new(Vec::new(), Codec::Binary, &header()).expect("a writer");
    let mut ends = Vec::new();
    for (index, record) in records().iter().enumerate() {
        writer.write(record).unwrap();
        if index % 20 == 0 {
            writer.flush().unwrap();
            ends.push(index);
        }
    }
    let bytes = writer.finish().unwrap();
    let blocks = blocks(&bytes);
    assert_eq!(blocks.len(), 4);
    let [head, a, b, c, d] = [&bytes[..5], blocks[0], blocks[1], blocks[2], blocks[3]];
    assert_eq!(read(&[head, a, b, c, d].concat()).1, None);
    for (broken, block) in [
        ([head, a, c, d, &[]].concat(), 1),
        ([head, a, c, b, d].concat(), 1),
        ([head, a, b, b, d].concat(), 2),
    ] {
        let error = read(&broken).1.expect("found");
        assert_eq!(error.kind, asx_trace::ErrorKind::Checksum { block }, "{error}");
    }
}

/// Splits a binary trace into its blocks. Their lengths must fit in two bytes.
fn blocks(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut at, mut blocks) = (5, Vec::new());
    while at < bytes.len() {
        let (first, second) = (usize::from(bytes[at]), usize::from(bytes[at + 1]));
        let (length, digits) =
            if first < 128 { (first, 1) } else { (first - 128 + second * 128, 2) };
        let end = at + digits + length + 8;
        blocks.push(&bytes[at..end]);
        at = end;
    }
    blocks
}

#[test]
fn a_wrapped_trace_is_refused_with_the_name_of_the_wrapping() {
    let bytes = write(Codec::Json, &header(), &records());
    for (before, what) in [
        (&b"\xef\xbb\xbf"[..], "a byte-order mark"),
        (b"\xff\xfe", "a byte-order mark of UTF-16"),
        (b"\x1f\x8b\x08", "gzip data; decompress it first"),
    ] {
        let wrapped = [before, &bytes].concat();
        let error = Reader::open(&wrapped[..]).expect_err("a wrapped trace was read");
        assert_eq!(error.kind.code(), "magic");
        assert!(error.to_string().ends_with(what), "{error}");
    }
}
