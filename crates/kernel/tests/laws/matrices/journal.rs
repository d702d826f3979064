//! The journal: names and codes, text, the coverage of the digest, the contents of the ring.

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::digest::Digest;
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::{Event, EventKind, Journal, Subject, WhenFull};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use std::collections::BTreeSet;

const DECISION: EventKind = EventKind::Decision {
    worker: 1,
    lane: Lane::Timed,
    decision_seq: 2,
    decision_hash: 3,
    cancel_streak: 4,
    limit: 5,
    fallback: false,
};

const WITNESS: EventKind = EventKind::CancelWitness {
    epoch: 1,
    phase: Phase::Requested,
    kind: Kind::User,
    polls: 1000,
    strengthened: false,
};

/// One event of each kind, with its code, name and fields.
const KINDS: [(EventKind, u64, &str, &str); 40] = [
    (EventKind::RegionOpened { parent: None }, 1, "region_opened", " parent=null"),
    (
        EventKind::RegionMoved { from: RegionState::Open, to: RegionState::Closing },
        2,
        "region_moved",
        " from=Open to=Closing",
    ),
    (
        EventKind::RegionCancelled { kind: Kind::Shutdown, strengthened: true },
        3,
        "region_cancelled",
        " kind=Shutdown strengthened=true",
    ),
    (EventKind::RegionOutcome { outcome: Severity::Err }, 4, "region_outcome", " outcome=Err"),
    (EventKind::UnresolvedObligations { count: 2 }, 5, "unresolved_obligations", " count=2"),
    (
        EventKind::TaskSpawned { priority: 128, finalizer: false },
        10,
        "task_spawned",
        " priority=128 finalizer=false",
    ),
    (
        EventKind::TaskMoved { from: TaskState::Created, to: TaskState::Running },
        11,
        "task_moved",
        " from=Created to=Running",
    ),
    (
        WITNESS,
        12,
        "cancel_witness",
        " epoch=1 phase=Requested kind=User polls=1000 strengthened=false",
    ),
    (EventKind::TaskEnded { outcome: Severity::Panicked }, 13, "task_ended", " outcome=Panicked"),
    (EventKind::CleanupOverrun { polls: 50 }, 14, "cleanup_overrun", " polls=50"),
    (EventKind::CleanupError {}, 15, "cleanup_error", ""),
    (EventKind::StaleWake {}, 16, "stale_wake", ""),
    (
        EventKind::BudgetExhausted { kind: Kind::CostBudget },
        17,
        "budget_exhausted",
        " kind=CostBudget",
    ),
    (
        DECISION,
        18,
        "scheduler_step_decision",
        " worker=1 lane=timed decision_seq=2 decision_hash=3 cancel_streak=4 limit=5 \
         fallback=false",
    ),
    (EventKind::ObligationReserved { obligation: 3 }, 30, "obligation_reserved", " obligation=3"),
    (
        EventKind::ObligationResolved { obligation: 3, to: ObligationState::Leaked },
        31,
        "obligation_resolved",
        " obligation=3 to=Leaked",
    ),
    (EventKind::TimerArmed { deadline: 7 }, 40, "timer_armed", " deadline=7"),
    (EventKind::TimerFired { deadline: 7 }, 41, "timer_fired", " deadline=7"),
    (EventKind::TimerCancelled {}, 42, "timer_cancelled", ""),
    (EventKind::ChannelOpened { capacity: 8 }, 50, "channel_opened", " capacity=8"),
    (EventKind::SendReserved { permit: 4 }, 51, "send_reserved", " permit=4"),
    (EventKind::SendWaiting {}, 52, "send_waiting", ""),
    (EventKind::SendLeft {}, 53, "send_left", ""),
    (EventKind::Sent { permit: Some(4) }, 54, "sent", " permit=4"),
    (EventKind::SendRefused { permit: 4 }, 55, "send_refused", " permit=4"),
    (EventKind::SendAborted { permit: 4 }, 56, "send_aborted", " permit=4"),
    (EventKind::Evicted {}, 57, "evicted", ""),
    (EventKind::Received {}, 58, "received", ""),
    (EventKind::SendersGone {}, 59, "senders_gone", ""),
    (EventKind::ReceiverGone { dropped: 6 }, 60, "receiver_gone", " dropped=6"),
    (EventKind::ResourceExhausted { what: "timers" }, 70, "resource_exhausted", " what=timers"),
    (EventKind::SoftStop {}, 71, "soft_stop", ""),
    (EventKind::GraceExpired {}, 72, "grace_expired", ""),
    (
        EventKind::SocketOpened { socket: 2, how: Opening::Accept, of: Some(1) },
        80,
        "socket_opened",
        " socket=2 how=accept of=1",
    ),
    (EventKind::IoWaiting { socket: 2, way: Way::Read }, 81, "io_waiting", " socket=2 way=read"),
    (EventKind::IoLeft { socket: 2, way: Way::Read }, 82, "io_left", " socket=2 way=read"),
    (
        EventKind::IoDone { socket: 2, op: IoOp::Read, bytes: 64 },
        83,
        "io_done",
        " socket=2 op=read bytes=64",
    ),
    (
        EventKind::IoFailed { socket: 2, op: IoOp::Write, error: IoFailure::BrokenPipe },
        84,
        "io_failed",
        " socket=2 op=write error=broken_pipe",
    ),
    (
        EventKind::SocketEnded { socket: 2, way: Way::Write },
        85,
        "socket_ended",
        " socket=2 way=write",
    ),
    (EventKind::SocketClosed { socket: 2 }, 86, "socket_closed", " socket=2"),
];

const NOBODY: Subject = Subject { task: None, region: None, timer: None, channel: None };

fn event(kind: EventKind, subject: Subject) -> Event {
    Event { seq: 3, time: Time::from_nanos(9), subject, kind }
}

fn digest(event: &Event) -> u64 {
    let mut digest = Digest::new();
    event.absorb(&mut digest);
    digest.value()
}

#[test]
fn every_kind_has_a_distinct_name_and_code_in_order() {
    let names: Vec<_> = KINDS.iter().map(|(_, _, name, _)| *name).collect();
    assert_eq!(EventKind::NAMES, names);
    let others: Vec<_> = KINDS.iter().filter(|kind| kind.1 < 80).map(|kind| kind.2).collect();
    assert_eq!(EventKind::NAMES_WITHOUT_SOCKETS, others);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 40);
    assert!(KINDS.windows(2).all(|pair| pair[0].1 < pair[1].1));
    for (kind, code, name, _) in KINDS {
        assert_eq!((kind.code(), kind.name()), (code, name));
    }
}

#[test]
fn an_event_prints_its_subjects_and_fields() {
    assert_eq!(Subject::default(), NOBODY);
    for (kind, _, name, fields) in KINDS {
        assert_eq!(event(kind, NOBODY).to_string(), format!("3 9ns {name}{fields}"));
    }
    let all = Subject { task: Some(1), region: Some(2), timer: Some(3), channel: Some(4) };
    let text = "3 9ns timer_fired task=1 region=2 timer=3 channel=4 deadline=7";
    assert_eq!(event(EventKind::TimerFired { deadline: 7 }, all).to_string(), text);
    let some = Subject { task: Some(0), channel: Some(5), ..NOBODY };
    let text = "3 9ns sent task=0 channel=5 permit=null";
    assert_eq!(event(EventKind::Sent { permit: None }, some).to_string(), text);
}

/// A writer that fails on one piece of text, after `left` others, and accepts all the rest.
struct Hiccup {
    left: usize,
    refused: bool,
}

impl std::fmt::Write for Hiccup {
    fn write_str(&mut self, _: &str) -> std::fmt::Result {
        if self.left == 0 && !self.refused {
            self.refused = true;
            return Err(std::fmt::Error);
        }
        self.left = self.left.saturating_sub(1);
        Ok(())
    }
}

#[test]
fn a_failed_write_is_always_reported() {
    use std::fmt::Write;
    let subject = Subject { task: Some(1), region: Some(2), ..NOBODY };
    let event = event(EventKind::TaskSpawned { priority: 1, finalizer: true }, subject);
    let refused_at = |left| {
        let mut out = Hiccup { left, refused: false };
        let result = write!(out, "{event}");
        assert_eq!(result.is_err(), out.refused, "after {left} pieces");
        out.refused
    };
    assert!((0..10).all(refused_at));
    assert!(!refused_at(1000));
}

#[test]
fn the_canonical_encoding_is_frozen() {
    let subject = Subject { task: Some(7), region: None, timer: Some(0), channel: None };
    let encoded = |kind: EventKind, code: u64, fields: &dyn Fn(&mut Digest)| {
        let mut expected = Digest::new();
        for word in [3, 9, code, 1, 7, 0, 0, 1, 0, 0, 0] {
            expected.word(word);
        }
        fields(&mut expected);
        assert_eq!(digest(&event(kind, subject)), expected.value(), "{kind:?}");
    };
    encoded(EventKind::RegionOpened { parent: Some(5) }, 1, &|d| {
        d.word(1).word(5);
    });
    encoded(EventKind::RegionOpened { parent: None }, 1, &|d| {
        d.word(0).word(0);
    });
    encoded(EventKind::SoftStop {}, 71, &|_| {});
    encoded(EventKind::TaskSpawned { priority: 9, finalizer: true }, 10, &|d| {
        d.word(9).word(1);
    });
    encoded(DECISION, 18, &|d| {
        d.word(1).bytes(b"timed").word(2).word(3).word(4).word(5).word(0);
    });
    encoded(WITNESS, 12, &|d| {
        d.word(1).bytes(b"Requested").bytes(b"User").word(1000).word(0);
    });
}

/// Variations of one kind: each differs from the version in `KINDS` in one field.
fn variations() -> Vec<EventKind> {
    use EventKind::{
        CancelWitness, Decision, RegionCancelled, RegionMoved, RegionOpened, TaskMoved,
    };
    use EventKind::{ObligationResolved, TaskSpawned};
    let reserved = Phase::Requested;
    let user = Kind::User;
    let timed = Lane::Timed;
    let witness = |epoch, phase, kind, polls, strengthened| CancelWitness {
        epoch,
        phase,
        kind,
        polls,
        strengthened,
    };
    let decision = |worker, lane, seq, hash, streak, limit, fallback| Decision {
        worker,
        lane,
        decision_seq: seq,
        decision_hash: hash,
        cancel_streak: streak,
        limit,
        fallback,
    };
    vec![
        RegionOpened { parent: Some(0) },
        RegionOpened { parent: Some(1) },
        RegionMoved { from: RegionState::Closing, to: RegionState::Closing },
        RegionMoved { from: RegionState::Open, to: RegionState::Draining },
        RegionCancelled { kind: Kind::User, strengthened: true },
        RegionCancelled { kind: Kind::Shutdown, strengthened: false },
        TaskSpawned { priority: 127, finalizer: false },
        TaskSpawned { priority: 128, finalizer: true },
        TaskMoved { from: TaskState::Running, to: TaskState::Running },
        TaskMoved { from: TaskState::Created, to: TaskState::Completed },
        witness(2, reserved, user, 1000, false),
        witness(1, Phase::Completed, user, 1000, false),
        witness(1, reserved, Kind::Timeout, 1000, false),
        witness(1, reserved, user, 999, false),
        witness(1, reserved, user, 1000, true),
        decision(0, timed, 2, 3, 4, 5, false),
        decision(1, Lane::Ready, 2, 3, 4, 5, false),
        decision(1, timed, 9, 3, 4, 5, false),
        decision(1, timed, 2, 9, 4, 5, false),
        decision(1, timed, 2, 3, 9, 5, false),
        decision(1, timed, 2, 3, 4, 9, false),
        decision(1, timed, 2, 3, 4, 5, true),
        ObligationResolved { obligation: 4, to: ObligationState::Leaked },
        ObligationResolved { obligation: 3, to: ObligationState::Aborted },
        EventKind::ResourceExhausted { what: "timer" },
        EventKind::SocketOpened { socket: 2, how: Opening::Accept, of: None },
        EventKind::SocketOpened { socket: 2, how: Opening::Adopt, of: Some(1) },
        EventKind::IoWaiting { socket: 2, way: Way::Write },
        EventKind::IoDone { socket: 2, op: IoOp::Peek, bytes: 64 },
        EventKind::IoDone { socket: 2, op: IoOp::Read, bytes: 65 },
        EventKind::IoFailed { socket: 2, op: IoOp::Write, error: IoFailure::ConnectionReset },
    ]
}

#[test]
fn any_single_change_changes_the_digest() {
    let mut seen = BTreeSet::new();
    let kinds: Vec<_> = KINDS.iter().map(|(kind, ..)| *kind).chain(variations()).collect();
    for kind in &kinds {
        assert!(seen.insert(digest(&event(*kind, NOBODY))), "{kind:?}");
    }
    assert_eq!(seen.len(), 40 + 31);
    let base = event(EventKind::StaleWake {}, NOBODY);
    for id in [0, 1] {
        let id = Some(id);
        let subjects = [
            Subject { task: id, ..NOBODY },
            Subject { region: id, ..NOBODY },
            Subject { timer: id, ..NOBODY },
            Subject { channel: id, ..NOBODY },
        ];
        for subject in subjects {
            assert!(seen.insert(digest(&Event { subject, ..base })), "{subject:?}");
        }
    }
    assert!(seen.insert(digest(&Event { time: Time::from_nanos(10), ..base })));
    assert!(seen.insert(digest(&Event { seq: 4, ..base })));
}

fn record_all(journal: &mut Journal) {
    for (at, (kind, ..)) in KINDS.iter().enumerate() {
        journal.record(Time::from_nanos(at as u64), NOBODY, *kind);
    }
}

#[test]
fn the_digest_does_not_depend_on_what_is_retained() {
    let mut expected = Digest::new();
    for (at, (kind, ..)) in KINDS.iter().enumerate() {
        let seq = at as u64;
        let time = Time::from_nanos(at as u64);
        Event { seq, time, subject: NOBODY, kind: *kind }.absorb(&mut expected);
    }
    for capacity in [0, 1, 5, 39, 40, 41, 1000] {
        for when_full in [WhenFull::Overwrite, WhenFull::Refuse] {
            let mut journal = Journal::new(capacity, when_full);
            assert_eq!(journal.digest(), Digest::new().value());
            record_all(&mut journal);
            assert_eq!(journal.digest(), expected.value(), "{capacity} {when_full:?}");
            assert_eq!(journal.recorded(), 40);
            let kept = capacity.min(40) as u64;
            assert_eq!(journal.lost(), 40 - kept);
            let first = if when_full == WhenFull::Overwrite { 40 - kept } else { 0 };
            let seqs: Vec<_> = journal.events().map(|event| event.seq).collect();
            assert_eq!(seqs, (first..first + kept).collect::<Vec<_>>());
            for event in journal.events() {
                assert_eq!(event.kind, KINDS[event.seq as usize].0);
                assert_eq!(event.time, Time::from_nanos(event.seq));
            }
        }
    }
}

#[test]
fn a_refusing_journal_refuses_exactly_while_full() {
    let stale = |journal: &mut Journal| journal.record(Time::ZERO, NOBODY, EventKind::StaleWake {});
    let mut refuse = Journal::new(2, WhenFull::Refuse);
    let mut overwrite = Journal::new(2, WhenFull::Overwrite);
    for (refusing, lost) in [(false, 0), (true, 0), (true, 1)] {
        stale(&mut refuse);
        stale(&mut overwrite);
        assert_eq!((refuse.is_refusing(), refuse.lost()), (refusing, lost));
        assert_eq!((overwrite.is_refusing(), overwrite.lost()), (false, lost));
    }
    let digest = refuse.digest();
    let taken: Vec<_> = refuse.take().into_iter().map(|event| event.seq).collect();
    assert_eq!(taken, [0, 1]);
    assert_eq!((refuse.is_refusing(), refuse.digest(), refuse.recorded()), (false, digest, 3));
    stale(&mut refuse);
    assert_eq!(refuse.events().map(|event| event.seq).collect::<Vec<_>>(), [3]);
    assert!(Journal::new(0, WhenFull::Refuse).is_refusing());
}
