//! Strengthening, compared with a second implementation of the rule.

use super::{reason, task};
use asx_kernel::cancel::{Cleanup, Kind, Reason};

/// Kind, severity, cleanup polls, cleanup priority.
const ROWS: [(Kind, u8, u64, u8); 11] = [
    (Kind::User, 0, 1000, 200),
    (Kind::Timeout, 1, 500, 210),
    (Kind::Deadline, 1, 500, 210),
    (Kind::PollQuota, 2, 300, 215),
    (Kind::CostBudget, 2, 300, 215),
    (Kind::FailFast, 3, 200, 220),
    (Kind::RaceLost, 3, 200, 220),
    (Kind::LinkedExit, 3, 200, 220),
    (Kind::ParentCancelled, 4, 200, 220),
    (Kind::ResourceUnavailable, 4, 200, 220),
    (Kind::Shutdown, 5, 50, 255),
];

const MESSAGES: [Option<&str>; 3] = [None, Some("a"), Some("b")];

fn build(kind: Kind, nanos: u64, message: Option<&str>, who: u64) -> Reason {
    let reason = reason(kind, nanos).with_task(task(who));
    match message {
        Some(message) => reason.with_message(message),
        None => reason,
    }
}

/// Whether the new reason replaces the existing one. Each side is (severity, time, message).
fn replaces(old: (u8, u64, Option<&str>), new: (u8, u64, Option<&str>)) -> bool {
    if new.0 != old.0 {
        return new.0 > old.0;
    }
    if new.1 != old.1 {
        return new.1 < old.1;
    }
    match (old.2, new.2) {
        (None, Some(_)) => true,
        (Some("b"), Some("a")) => true,
        (None, None) | (Some(_), None) | (Some(_), Some(_)) => false,
    }
}

#[test]
fn every_pair_of_reasons_keeps_the_one_that_the_rule_selects() {
    for (old_kind, old_severity, ..) in ROWS {
        for (new_kind, new_severity, ..) in ROWS {
            for new_time in [4, 5, 6] {
                for old_message in MESSAGES {
                    for new_message in MESSAGES {
                        let old = build(old_kind, 5, old_message, 1);
                        let new = build(new_kind, new_time, new_message, 2);
                        let replaced = replaces(
                            (old_severity, 5, old_message),
                            (new_severity, new_time, new_message),
                        );
                        assert_eq!(old.weaker_than(&new), replaced, "{old} then {new}");
                        let kept = old.clone().strengthen(new.clone());
                        assert_eq!(&kept, if replaced { &new } else { &old });
                        assert!(kept.kind.severity() >= old_severity.max(new_severity));
                    }
                }
            }
        }
    }
}

#[test]
fn equal_reasons_keep_the_existing_one() {
    for message in MESSAGES {
        let old = build(Kind::Timeout, 5, message, 1);
        let new = build(Kind::Deadline, 5, message, 2);
        assert_eq!(old.clone().strengthen(new), old);
    }
    assert!(!build(Kind::User, 1, Some("ab"), 1).weaker_than(&build(Kind::User, 1, Some("b"), 2)));
    assert!(build(Kind::User, 1, Some("ab"), 1).weaker_than(&build(Kind::User, 1, Some("a"), 2)));
}

#[test]
fn strengthening_is_associative() {
    let mut all = Vec::new();
    for kind in [Kind::User, Kind::Timeout, Kind::Deadline, Kind::Shutdown] {
        for nanos in [4, 5] {
            all.extend(MESSAGES.map(|message| (kind, nanos, message)));
        }
    }
    let of = |who: u64| -> Vec<Reason> {
        all.iter().map(|&(kind, nanos, message)| build(kind, nanos, message, who)).collect()
    };
    let first = of(1);
    let second = of(2);
    let third = of(3);
    for a in &first {
        for b in &second {
            let ab = a.clone().strengthen(b.clone());
            for c in &third {
                let bc = b.clone().strengthen(c.clone());
                assert_eq!(ab.clone().strengthen(c.clone()), a.clone().strengthen(bc));
            }
        }
    }
}

#[test]
fn cleanup_of_two_kinds_is_the_tighter_of_both() {
    assert_eq!(Kind::ALL, ROWS.map(|(kind, ..)| kind));
    for (a, _, a_polls, a_priority) in ROWS {
        assert_eq!(a.cleanup(), Cleanup { polls: a_polls, priority: a_priority });
        for (b, _, b_polls, b_priority) in ROWS {
            let tight = Cleanup {
                polls: if a_polls < b_polls { a_polls } else { b_polls },
                priority: if a_priority > b_priority { a_priority } else { b_priority },
            };
            assert_eq!(a.cleanup().combine(b.cleanup()), tight, "{a:?} with {b:?}");
        }
    }
    let shutdown_from_above = Kind::ParentCancelled.cleanup().combine(Kind::Shutdown.cleanup());
    assert_eq!(shutdown_from_above, Cleanup { polls: 50, priority: 255 });
}
