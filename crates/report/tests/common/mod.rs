//! A lawful run of any length: regions with many tasks that send, wait and are cancelled.
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
use asx_report::notes::{LOCK_RELEASED, LOCK_TAKEN, TASK_GOES_ON, TASK_WAITS};
use asx_report::{Cause, Run, TEARDOWN};
use asx_trace::{Choice, Class, Codec, Header, HostEvent, Label, Mark, Reader, Value, Writer};

const WORKERS: u64 = 4;
const ROOT: u64 = 1;
const CAPACITY: u64 = 4;

/// Names that would break a page that treats them as markup or code.
pub(crate) const NASTY: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"quotes\" 'and' `ticks` ${x} {{data}}",
    "zero\u{0} line\nfeed \u{1b}[31m \u{7f}",
    "é 漢字 🎉 \u{202e}backwards \u{2028}",
    "&lt;&amp; \\u003c \\",
];

/// The contents of a trace file.
pub(crate) struct Made {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    pub(crate) labels: Vec<Label>,
    pub(crate) marks: Vec<Mark>,
    /// Host events, each with the number of the event that follows it.
    pub(crate) notes: Vec<(u64, HostEvent)>,
}

impl Made {
    pub(crate) fn bytes(&self, codec: Codec) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), codec, &self.header).expect("written");
        let mut write = |record| writer.write(&record).expect("written");
        self.labels.iter().cloned().for_each(|label| write(label.into()));
        let mut decisions = 0;
        for event in &self.events {
            if matches!(event.kind, Decision { .. }) {
                let (index, point) = (decisions, "worker".into());
                write(Choice { index, point, subject: None, count: 2, picked: index % 2 }.into());
                decisions += 1;
            }
            if event.seq % 1000 == 7 {
                let fields = vec![("turn".into(), Value::Number(event.seq))];
                write(HostEvent { seq: event.seq, kind: "burst".into(), fields }.into());
            }
            let notes = self.notes.iter().filter(|(before, _)| *before == event.seq);
            notes.for_each(|(_, note)| write(note.clone().into()));
            write((*event).into());
        }
        self.marks.iter().cloned().for_each(|mark| write(mark.into()));
        writer.finish().expect("written")
    }

    pub(crate) fn run(&self) -> Run {
        read(&self.bytes(Codec::Json))
    }
}

pub(crate) fn read(bytes: &[u8]) -> Run {
    Run::read(Reader::open(bytes).expect("a trace"), usize::MAX).expect("short enough")
}

/// Creates a run with the given numbers of regions, tasks per region, and polls per task.
pub(crate) fn busy(regions: u64, tasks: u64, rounds: u64) -> Made {
    let mut busy = Busy::default();
    busy.event(region(ROOT), RegionOpened { parent: None });
    for number in 2..2 + regions {
        busy.open(number, tasks);
    }
    for round in 0..rounds {
        for number in 2..2 + regions {
            busy.round(number, tasks, round);
        }
    }
    for number in 2..2 + regions {
        busy.cancel(number, tasks);
    }
    let moved = |from, to| RegionMoved { from, to };
    busy.event(region(ROOT), moved(RegionState::Open, RegionState::Closing));
    busy.event(region(ROOT), moved(RegionState::Closing, RegionState::Finalizing));
    busy.event(region(ROOT), moved(RegionState::Finalizing, RegionState::Closed));
    let outcome = if regions > 0 { Severity::Cancelled } else { Severity::Ok };
    busy.event(region(ROOT), RegionOutcome { outcome });
    let label = |class, number, text: &str| Label { class, number, text: text.into() };
    let mut labels = vec![label(Class::Region, ROOT, "root")];
    for (number, name) in (1..=regions * tasks).zip(NASTY) {
        labels.push(label(Class::Task, number, name));
    }
    let (severity, text) = ("failure".into(), "it <b>failed</b> here".into());
    let marks = vec![Mark { seq: busy.events.len() as u64 * 2 / 3, severity, text }];
    let meta = vec![("title".into(), "many tasks </title><script>".into())];
    let header =
        Header { workers: WORKERS, seed: u64::MAX, meta, ..Header::new(NASTY[0], "model") };
    Made { header, events: busy.events, labels, marks, notes: Vec::new() }
}

/// The first teardown event of the run of [`failed`].
pub(crate) const TORN: u64 = 60;

/// Creates a failed run of the lab: two tasks that wait for each other.
pub(crate) fn failed() -> Made {
    let made = busy(1, 4, 6);
    let named = |number: u64, text: &str| Label { class: Class::Task, number, text: text.into() };
    let labels = vec![named(1, "feed (main/1)"), named(2, "drain (main/2)")];
    let cause = Cause {
        kind: "deadlock".into(),
        message: "`feed (main/1)` and `drain (main/2)` wait for each other".into(),
        task: None,
        place: Some("src/shop.rs:3:5".into()),
        step: Some("9".into()),
        detail: vec![
            "`feed (main/1)` waits for what `drain (main/2)` took <b>".into(),
            "    last sent by `drain (main/2)` at src/shop.rs:4:5".into(),
            "    spawned at src/shop.rs:2:5".into(),
        ],
        changes: vec![
            "at step 3 run `drain (main/2)` instead of `feed (main/1)`".into(),
            "in step 7 (`drain (main/2)`) tie takes 1 of 0..2".into(),
            "in step 19, which only ended the run".into(),
        ],
        change_events: vec![11, 30, TORN + 5],
        replay: Some("ASX_REPLAY=AQCugbM cargo test shop".into()),
    };
    let mut meta = cause.meta();
    meta.extend([
        (String::from(TEARDOWN), TORN.to_string()),
        (String::from("strategy"), String::from("dpor")),
    ]);
    let header = Header { meta, ..Header::new("shop", "lab") };
    let header = Header { workers: WORKERS, ..header };
    let text = "deadlock: they wait".into();
    let marks = vec![Mark { seq: TORN - 1, severity: "failure".into(), text }];
    let note = |seq: u64, kind: &str, task: u64, lock: Option<u64>| {
        let mut fields = vec![("task", Value::Number(task))];
        fields.extend(lock.map(|lock| ("lock", Value::Number(lock))));
        if kind == TASK_WAITS {
            fields.push(("on", Value::Text("a message".into())));
        }
        if kind == TASK_WAITS || kind == LOCK_TAKEN {
            fields.push(("what", Value::Text("orders.recv".into())));
            fields.push(("at", Value::Text("src/shop.rs:3:5".into())));
        }
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
        (seq, HostEvent { seq, kind: kind.into(), fields })
    };
    let notes = vec![
        note(10, LOCK_TAKEN, 1, Some(1)),
        note(20, TASK_WAITS, 1, None),
        note(30, LOCK_RELEASED, 1, Some(1)),
        note(40, TASK_GOES_ON, 1, None),
        note(50, TASK_WAITS, 2, None),
        note(60, TASK_WAITS, 3, None),
    ];
    Made { header, labels, marks, notes, ..made }
}

#[derive(Default)]
struct Busy {
    events: Vec<Event>,
    now: u64,
    chain: DecisionChain,
    /// The number of messages in each region's channel.
    queued: Vec<u64>,
    permits: u64,
    obligations: u64,
    timers: u64,
}

fn region(number: u64) -> Subject {
    Subject { region: Some(number), ..Subject::default() }
}

impl Busy {
    fn event(&mut self, subject: Subject, kind: EventKind) {
        let (seq, time) = (self.events.len() as u64, Time::from_nanos(self.now));
        self.events.push(Event { seq, time, subject, kind });
    }

    fn decide(&mut self, task: Subject, lane: Lane) {
        let number = task.task.expect("a task");
        self.chain.extend(lane, number, 0, 16);
        let kind = Decision {
            worker: self.chain.seq % WORKERS,
            lane,
            decision_seq: self.chain.seq,
            decision_hash: self.chain.hash,
            cancel_streak: 0,
            limit: 16,
            fallback: false,
        };
        self.event(task, kind);
    }

    fn open(&mut self, number: u64, tasks: u64) {
        self.event(region(number), RegionOpened { parent: Some(ROOT) });
        let channel = Subject { channel: Some(number), ..region(number) };
        self.event(channel, ChannelOpened { capacity: CAPACITY });
        self.queued.push(0);
        for task in subjects(number, tasks) {
            self.event(task, TaskSpawned { priority: 128, finalizer: false });
        }
    }

    fn round(&mut self, number: u64, tasks: u64, round: u64) {
        for (at, task) in (0..).zip(subjects(number, tasks)) {
            self.decide(task, Lane::Ready);
            if round == 0 {
                let (from, to) = (TaskState::Created, TaskState::Running);
                self.event(task, TaskMoved { from, to });
            }
            self.talk(number, task, at % 2 == 0);
            if (at + round).is_multiple_of(5) {
                self.timers += 1;
                let timer = Subject { task: task.task, timer: Some(self.timers), ..region(number) };
                let deadline = self.now + 1_000_000;
                self.event(timer, TimerArmed { deadline });
                self.now = deadline;
                self.event(timer, TimerFired { deadline });
            }
            if (at + round).is_multiple_of(7) {
                self.obligations += 1;
                let obligation = self.obligations;
                self.event(region(number), ObligationReserved { obligation });
                let to = ObligationState::Committed;
                self.event(region(number), ObligationResolved { obligation, to });
            }
        }
    }

    fn talk(&mut self, number: u64, task: Subject, sends: bool) {
        let channel = Subject { channel: Some(number), ..task };
        let queued = self.queued[number as usize - 2];
        if sends && queued < CAPACITY {
            self.permits += 1;
            let permit = self.permits;
            self.event(channel, SendReserved { permit });
            self.event(channel, Sent { permit: Some(permit) });
            self.queued[number as usize - 2] += 1;
        } else if !sends && queued > 0 {
            self.event(channel, Received {});
            self.queued[number as usize - 2] -= 1;
        }
    }

    fn cancel(&mut self, number: u64, tasks: u64) {
        let here = region(number);
        let moved = |from, to| TaskMoved { from, to };
        let witness = |phase| CancelWitness {
            epoch: 1,
            phase,
            kind: Kind::ParentCancelled,
            polls: 200,
            strengthened: false,
        };
        let closing = |from, to| RegionMoved { from, to };
        self.event(here, RegionCancelled { kind: Kind::User, strengthened: false });
        self.event(here, closing(RegionState::Open, RegionState::Closing));
        for task in subjects(number, tasks) {
            self.event(task, moved(TaskState::Running, TaskState::CancelRequested));
            self.event(task, witness(Phase::Requested));
        }
        self.event(here, closing(RegionState::Closing, RegionState::Draining));
        for task in subjects(number, tasks) {
            self.now += 500;
            self.decide(task, Lane::Cancel);
            self.event(task, moved(TaskState::CancelRequested, TaskState::Cancelling));
            self.event(task, witness(Phase::Cancelling));
            self.event(task, moved(TaskState::Cancelling, TaskState::Finalizing));
            self.event(task, witness(Phase::Finalizing));
            self.event(task, moved(TaskState::Finalizing, TaskState::Completed));
            self.event(task, witness(Phase::Completed));
            self.event(task, TaskEnded { outcome: Severity::Cancelled });
        }
        self.event(here, closing(RegionState::Draining, RegionState::Finalizing));
        let channel = Subject { channel: Some(number), ..here };
        let dropped = self.queued[number as usize - 2];
        self.event(channel, ReceiverGone { dropped });
        self.event(channel, SendersGone {});
        self.event(here, closing(RegionState::Finalizing, RegionState::Closed));
        self.event(here, RegionOutcome { outcome: Severity::Cancelled });
    }
}

/// Returns the tasks of a region.
fn subjects(number: u64, tasks: u64) -> impl Iterator<Item = Subject> {
    let first = (number - 2) * tasks + 1;
    (first..first + tasks).map(move |task| Subject { task: Some(task), ..region(number) })
}
