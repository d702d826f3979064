//! A task's lifecycle compared with a model that is a list of cases, for every sequence of
//! operations.

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Cleanup, Kind, Phase, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::status::Status;
use asx_kernel::task::{Lifecycle, TaskState};
use asx_kernel::time::Time;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Poll,
    /// A mild request with a medium allowance.
    Mild,
    /// A strong one with a tight allowance and the highest priority.
    Strong,
    /// A request of medium strength with a wide allowance.
    Wide,
    Acknowledge,
    BodyEnded,
    Complete,
    /// One poll of cleanup.
    Spend,
}

const OPS: [Op; 8] = [
    Op::Poll,
    Op::Mild,
    Op::Strong,
    Op::Wide,
    Op::Acknowledge,
    Op::BodyEnded,
    Op::Complete,
    Op::Spend,
];

/// Kind, severity, polls, priority.
const MILD: (Kind, u8, u64, u8) = (Kind::User, 0, 2, 210);
const STRONG: (Kind, u8, u64, u8) = (Kind::Shutdown, 5, 1, 255);
const WIDE: (Kind, u8, u64, u8) = (Kind::Timeout, 1, 9, 200);

fn request(op: Op) -> (Kind, u8, u64, u8) {
    match op {
        Op::Mild => MILD,
        Op::Strong => STRONG,
        _ => WIDE,
    }
}

fn reason(kind: Kind) -> Reason {
    let region = RegionId(Key { generation: 1, index: 0 });
    Reason::new(kind, region, Time::from_nanos(1))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Done,
    Refused,
    Yes,
    No,
    /// Acknowledged, or ended Cancelled, with this reason.
    By(Kind),
    /// Ended with the outcome of the body.
    Natural,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Model {
    state: &'static str,
    epoch: u64,
    cancel: Option<(Kind, u8, u64, u8)>,
}

impl Model {
    fn apply(&mut self, op: Op) -> Answer {
        let by = self.cancel.map(|(kind, ..)| Answer::By(kind));
        match (op, self.state) {
            (Op::Spend, "Cancelling" | "Finalizing") => match &mut self.cancel {
                Some((_, _, polls @ 1.., _)) => {
                    *polls -= 1;
                    Answer::Yes
                }
                _ => Answer::No,
            },
            (Op::Spend, _) => Answer::No,
            (Op::Mild | Op::Strong | Op::Wide, "Completed") => Answer::No,
            (Op::Mild | Op::Strong | Op::Wide, "Created" | "Running") => {
                *self = Model { state: "CancelRequested", epoch: 1, cancel: Some(request(op)) };
                Answer::Yes
            }
            (Op::Mild | Op::Strong | Op::Wide, _) => {
                let (kind, severity, polls, priority) = self.cancel.unwrap();
                let new = request(op);
                let (kind, severity) =
                    if new.1 > severity { (new.0, new.1) } else { (kind, severity) };
                self.cancel = Some((kind, severity, polls.min(new.2), priority.max(new.3)));
                Answer::No
            }
            (_, "Completed") => Answer::Refused,
            (Op::Poll, "Created") => self.go("Running", Answer::Done),
            (Op::Poll, _) => Answer::Done,
            (Op::Acknowledge, "CancelRequested") => self.go("Cancelling", by.unwrap()),
            (Op::Acknowledge, "Cancelling") => by.unwrap(),
            (Op::Acknowledge, _) => Answer::Refused,
            (Op::BodyEnded, "Cancelling") => self.go("Finalizing", Answer::Done),
            (Op::BodyEnded, _) => Answer::Done,
            (Op::Complete, "Cancelling" | "Finalizing") => self.go("Completed", by.unwrap()),
            (Op::Complete, _) => self.go("Completed", Answer::Natural),
        }
    }

    fn go(&mut self, to: &'static str, answer: Answer) -> Answer {
        self.state = to;
        answer
    }
}

fn done(result: Result<(), Status>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(status) => {
            assert_eq!(status, Status::InvalidTransition);
            Answer::Refused
        }
    }
}

fn yes_or_no(answer: bool) -> Answer {
    if answer { Answer::Yes } else { Answer::No }
}

fn apply(task: &mut Lifecycle, op: Op) -> Answer {
    match op {
        Op::Poll => done(task.poll()),
        Op::Mild | Op::Strong | Op::Wide => {
            let (kind, _, polls, priority) = request(op);
            yes_or_no(task.request_cancel(reason(kind), Cleanup { polls, priority }))
        }
        Op::Acknowledge => match task.acknowledge() {
            Ok(record) => Answer::By(record.reason.kind),
            Err(status) => done(Err(status)),
        },
        Op::BodyEnded => done(task.body_ended()),
        Op::Complete => match task.complete() {
            Ok(Some(reason)) => Answer::By(reason.kind),
            Ok(None) => Answer::Natural,
            Err(status) => done(Err(status)),
        },
        Op::Spend => yes_or_no(task.consume_cleanup_poll()),
    }
}

fn explore(task: &Lifecycle, model: Model, left: usize, seen: &mut usize) {
    for op in OPS {
        let mut task = task.clone();
        let mut model = model;
        assert_eq!(apply(&mut task, op), model.apply(op), "{op:?} gives {model:?}");
        let cancel = task.cancel().map(|record| {
            let Cleanup { polls, priority } = record.cleanup;
            (record.reason.kind, record.reason.kind.severity(), polls, priority)
        });
        assert_eq!(
            (task.state().name(), task.epoch(), cancel),
            (model.state, model.epoch, model.cancel)
        );
        *seen += 1;
        if left > 1 {
            explore(&task, model, left - 1, seen);
        }
    }
}

#[test]
fn every_sequence_of_six_operations_follows_the_model() {
    let start = Model { state: "Created", epoch: 0, cancel: None };
    let mut seen = 0;
    explore(&Lifecycle::default(), start, 6, &mut seen);
    assert_eq!(seen, 8 + 64 + 512 + 4096 + 32_768 + 262_144);
}

#[test]
fn a_later_request_never_widens_the_allowance() {
    let mut task = Lifecycle::default();
    let user = Cleanup { polls: 10, priority: 200 };
    assert!(task.request_cancel(reason(Kind::User), user));
    assert_eq!(task.acknowledge().map(|record| record.cleanup), Ok(user));
    for _ in 0..4 {
        assert!(task.consume_cleanup_poll());
    }
    assert!(!task.request_cancel(reason(Kind::Timeout), Cleanup { polls: 8, priority: 210 }));
    let cleanup = task.cancel().map(|record| record.cleanup);
    assert_eq!(cleanup, Some(Cleanup { polls: 6, priority: 210 }));
    assert!(!task.request_cancel(reason(Kind::User), Cleanup { polls: 5, priority: 1 }));
    let record = task.cancel().unwrap();
    assert_eq!(record.cleanup, Cleanup { polls: 5, priority: 210 });
    assert_eq!(record.reason, reason(Kind::Timeout));
    assert_eq!((task.epoch(), task.state()), (1, TaskState::Cancelling));
}

#[test]
fn only_an_observed_cancel_determines_the_outcome() {
    let allowance = Cleanup { polls: 1, priority: 1 };
    let mut unseen = Lifecycle::default();
    unseen.request_cancel(reason(Kind::Shutdown), allowance);
    assert_eq!(unseen.complete(), Ok(None));
    let before = unseen.clone();
    assert!(!unseen.request_cancel(reason(Kind::Shutdown), allowance));
    assert_eq!(unseen.complete(), Err(Status::InvalidTransition));
    assert_eq!(unseen, before);

    let mut seen = Lifecycle::default();
    seen.poll().unwrap();
    seen.request_cancel(reason(Kind::User), allowance);
    seen.acknowledge().unwrap();
    seen.body_ended().unwrap();
    seen.request_cancel(reason(Kind::Shutdown), allowance);
    assert_eq!(seen.complete(), Ok(Some(&reason(Kind::Shutdown))));
}

#[test]
fn states_have_a_lane_a_phase_and_an_acknowledgement() {
    let table = [
        (TaskState::Created, false, false, None),
        (TaskState::Running, false, false, None),
        (TaskState::CancelRequested, true, false, Some(Phase::Requested)),
        (TaskState::Cancelling, true, true, Some(Phase::Cancelling)),
        (TaskState::Finalizing, true, true, Some(Phase::Finalizing)),
        (TaskState::Completed, false, false, None),
    ];
    for (state, in_cancel_lane, acknowledged, phase) in table {
        assert_eq!(state.in_cancel_lane(), in_cancel_lane, "{state:?}");
        assert_eq!(state.acknowledged(), acknowledged, "{state:?}");
        assert_eq!(state.phase(), phase, "{state:?}");
    }
}
