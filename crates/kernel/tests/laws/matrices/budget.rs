//! The budget's lattice and its consumption, over a grid.

use asx_kernel::budget::{Budget, Exhausted};
use asx_kernel::lanes::Priority;
use asx_kernel::time::Time;
use core::time::Duration;

fn grid(
    deadlines: &[Option<u64>],
    polls: &[u64],
    costs: &[Option<u64>],
    prio: &[u8],
) -> Vec<Budget> {
    let mut all = Vec::new();
    for deadline in deadlines {
        for &poll_quota in polls {
            for &cost_quota in costs {
                for &priority in prio {
                    all.push(Budget {
                        deadline: deadline.map(Time::from_nanos),
                        poll_quota,
                        cost_quota,
                        priority: Priority(priority),
                    });
                }
            }
        }
    }
    all
}

fn wide() -> Vec<Budget> {
    let max = u64::MAX;
    grid(
        &[None, Some(0), Some(5), Some(max)],
        &[0, 1, 7, max],
        &[None, Some(0), Some(3), Some(max)],
        &[0, 128, 255],
    )
}

#[test]
fn infinite_is_the_identity_and_zero_absorbs() {
    let infinite =
        Budget { deadline: None, poll_quota: u64::MAX, cost_quota: None, priority: Priority(0) };
    let zero = Budget {
        deadline: Some(Time::ZERO),
        poll_quota: 0,
        cost_quota: Some(0),
        priority: Priority(255),
    };
    assert_eq!((Budget::INFINITE, Budget::ZERO), (infinite, zero));
    assert_eq!(Budget::default(), infinite);
    for budget in wide() {
        assert_eq!((budget.meet(infinite), infinite.meet(budget)), (budget, budget));
        assert_eq!((budget.meet(zero), zero.meet(budget)), (zero, zero));
        assert_eq!(budget.meet(budget), budget);
    }
}

#[test]
fn meet_is_commutative_and_takes_the_tighter_parts() {
    fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
        match (a, b) {
            (None, None) => None,
            (Some(limit), None) | (None, Some(limit)) => Some(limit),
            (Some(a), Some(b)) => Some(if a < b { a } else { b }),
        }
    }
    let nanos = |budget: Budget| budget.deadline.map(Time::as_nanos);
    let all = wide();
    for &a in &all {
        for &b in &all {
            let met = a.meet(b);
            assert_eq!(nanos(met), least(nanos(a), nanos(b)));
            assert_eq!(met.cost_quota, least(a.cost_quota, b.cost_quota));
            assert_eq!(
                met.poll_quota,
                if a.poll_quota < b.poll_quota { a.poll_quota } else { b.poll_quota }
            );
            assert_eq!(
                met.priority.0,
                if a.priority.0 > b.priority.0 { a.priority.0 } else { b.priority.0 }
            );
            assert_eq!(met, b.meet(a));
        }
    }
}

#[test]
fn meet_is_associative() {
    let all = grid(&[None, Some(3), Some(5)], &[1, u64::MAX], &[None, Some(2)], &[0, 9]);
    for &a in &all {
        for &b in &all {
            for &c in &all {
                assert_eq!(a.meet(b).meet(c), a.meet(b.meet(c)));
            }
        }
    }
}

#[test]
fn consuming_takes_all_or_nothing() {
    for budget in wide() {
        let mut after = budget;
        let (answer, left) = match budget.poll_quota {
            0 => (Err(Exhausted::Polls), 0),
            1 => (Ok(()), 0),
            7 => (Ok(()), 6),
            endless => (Ok(()), endless),
        };
        assert_eq!(after.consume_poll(), answer);
        assert_eq!(after, Budget { poll_quota: left, ..budget });

        for (cost, results) in [
            (0, [(Ok(()), Some(0)), (Ok(()), Some(3))]),
            (1, [(Err(Exhausted::Cost), Some(0)), (Ok(()), Some(2))]),
            (3, [(Err(Exhausted::Cost), Some(0)), (Ok(()), Some(0))]),
            (4, [(Err(Exhausted::Cost), Some(0)), (Err(Exhausted::Cost), Some(3))]),
        ] {
            let mut after = budget;
            let (answer, left) = match budget.cost_quota {
                None => (Ok(()), None),
                Some(0) => results[0],
                Some(3) => results[1],
                Some(left) => (Ok(()), Some(left - cost)),
            };
            assert_eq!(after.consume_cost(cost), answer);
            assert_eq!(after, Budget { cost_quota: left, ..budget });
        }
    }
}

#[test]
fn a_quota_of_n_pays_for_exactly_n_polls() {
    let mut budget = Budget { poll_quota: 3, ..Budget::INFINITE };
    let paid = (0..5).map(|_| budget.consume_poll().is_ok()).collect::<Vec<_>>();
    assert_eq!(paid, [true, true, true, false, false]);
    let mut almost = Budget { poll_quota: u64::MAX - 1, ..Budget::INFINITE };
    assert_eq!((almost.consume_poll(), almost.poll_quota), (Ok(()), u64::MAX - 2));
}

#[test]
fn a_deadline_has_passed_at_its_instant_and_bounds_waits() {
    let at = Time::from_nanos;
    let budget = Budget { deadline: Some(at(10)), ..Budget::INFINITE };
    let passed = Err(Exhausted::Deadline);
    let checks = [(9, Ok(())), (10, passed), (11, passed)];
    for (now, expected) in checks {
        assert_eq!(budget.check_deadline(at(now)), expected);
        assert_eq!(Budget::INFINITE.check_deadline(at(now)), Ok(()));
    }
    let wait = |budget: Budget, now, span| {
        budget.wait_until(at(now), Duration::from_nanos(span)).map(Time::as_nanos)
    };
    assert_eq!(wait(budget, 4, 5), Ok(9));
    assert_eq!(wait(budget, 4, 6), Ok(10));
    assert_eq!(wait(budget, 4, 7), Ok(10));
    assert_eq!(wait(budget, 9, 0), Ok(9));
    assert_eq!(wait(budget, 10, 0), Err(Exhausted::Deadline));
    assert_eq!(wait(budget, 11, 5), Err(Exhausted::Deadline));
    assert_eq!(wait(Budget::INFINITE, 4, 7), Ok(11));
    assert_eq!(Budget::INFINITE.wait_until(at(4), Duration::MAX), Ok(Time::MAX));
    assert_eq!(wait(Budget::ZERO, 0, 1), Err(Exhausted::Deadline));
}
