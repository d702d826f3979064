//! Joins of outcomes, and folds of children that end in any order.

use super::{reason, task};
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::outcome::{Fold, Lattice, NoValue, Outcome, Severity};
use std::sync::Arc;

type Ended = Outcome<usize, usize>;

fn panicked(who: usize) -> Ended {
    Err(NoValue::Panicked(Arc::from(["p0", "p1", "p2", "p3"][who])))
}

fn cancelled(reason: Reason, who: usize) -> Ended {
    Err(NoValue::Cancelled(reason.with_task(task(who as u64))))
}

/// Returns one outcome of each severity, with the given payload.
fn each(who: usize) -> [Ended; 4] {
    [Ok(who), Err(NoValue::Err(who)), cancelled(reason(Kind::User, 5), who), panicked(who)]
}

#[test]
fn all_sixteen_joins_keep_the_more_severe_or_the_left_outcome() {
    // The side that is kept: rows are the left severity, columns the right one.
    let table = ["LRRR", "LLRR", "LLLR", "LLLL"];
    for (i, row) in table.into_iter().enumerate() {
        for (j, side) in row.chars().enumerate() {
            let left = each(0)[i].clone();
            let right = each(1)[j].clone();
            let expected = if side == 'L' { &left } else { &right };
            assert_eq!(&left.clone().join(right.clone()), expected, "{left:?} join {right:?}");
        }
    }
}

#[test]
fn severity_is_a_lattice() {
    use Severity::{Cancelled, Err, Ok, Panicked};
    let all = [Ok, Err, Cancelled, Panicked];
    assert_eq!(Severity::ALL, all);
    assert_eq!(all.map(|severity| severity as u8), [0, 1, 2, 3]);
    assert_eq!(each(0).map(|outcome| outcome.severity()), all);
    for a in all {
        assert_eq!((a.join(a), Ok.join(a), a.join(Ok)), (a, a, a));
        assert_eq!((Panicked.join(a), a.join(Panicked)), (Panicked, Panicked));
        for b in all {
            let more = if (a as u8) < (b as u8) { b } else { a };
            assert_eq!((a.join(b), b.join(a)), (more, more));
            let left = each(0)[a as usize].clone();
            let right = each(1)[b as usize].clone();
            assert_eq!(left.join(right).severity(), more);
            for c in all {
                assert_eq!(a.join(b).join(c), a.join(b.join(c)));
                let [x, y, z] =
                    [(a, 0), (b, 1), (c, 2)].map(|(s, who)| each(who)[s as usize].clone());
                assert_eq!(x.clone().join(y.clone()).join(z.clone()), x.join(y.join(z)));
            }
        }
    }
}

#[test]
fn joining_two_cancels_keeps_the_left_reason() {
    let weak = cancelled(reason(Kind::User, 1), 0);
    let strong = cancelled(reason(Kind::Shutdown, 9), 1);
    assert_eq!(weak.clone().join(strong.clone()), weak);
    assert_eq!(strong.clone().join(weak), strong);
    let earlier = cancelled(reason(Kind::Shutdown, 8), 2);
    assert_eq!(strong.clone().join(earlier), strong);
}

/// Returns an outcome of each severity, three of them cancels of different strength.
fn shape(number: usize, who: usize) -> Ended {
    match number {
        0 => Ok(who),
        1 => Err(NoValue::Err(who)),
        2 => cancelled(reason(Kind::User, 5), who),
        3 => cancelled(reason(Kind::User, 3), who),
        4 => cancelled(reason(Kind::Shutdown, 9), who),
        _ => panicked(who),
    }
}

/// Returns every order of `0..n`.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for at in 0..n {
            let mut order = shorter.clone();
            order.insert(at, n - 1);
            all.push(order);
        }
    }
    all
}

/// Returns the first of the most severe outcomes, which a fold in creation order must keep.
fn survivor(children: &[Ended]) -> usize {
    let worst = children.iter().map(Lattice::severity).max();
    children.iter().position(|child| Some(child.severity()) == worst).unwrap()
}

#[test]
fn a_fold_does_not_depend_on_the_order_of_ends() {
    // Creation numbers need not be contiguous, nor start at 0.
    const CREATED: [u64; 4] = [3, 4, 10, u64::MAX];
    for n in 1..=4 {
        let orders = permutations(n);
        for code in 0..6_usize.pow(n as u32) {
            let shapes: Vec<_> = (0..n as u32).map(|digit| code / 6_usize.pow(digit) % 6).collect();
            let children: Vec<_> = (0..n).map(|who| shape(shapes[who], who)).collect();
            let in_order = children.iter().cloned().reduce(Lattice::join).unwrap();
            assert_eq!(in_order, children[survivor(&children)]);
            for order in &orders {
                let mut fold = Fold::default();
                for &who in order {
                    fold.add(CREATED[who], children[who].clone());
                }
                assert_eq!(fold.outcome(), Some(&in_order), "{children:?} ended as {order:?}");
                assert_eq!(fold.severity(), in_order.severity());
            }
        }
    }
}

#[test]
fn an_empty_fold_is_ok_and_equal_numbers_keep_the_first() {
    let mut fold: Fold<usize, usize> = Fold::default();
    assert_eq!((fold.outcome(), fold.severity()), (None, Severity::Ok));
    fold.add(7, Err(NoValue::Err(1)));
    fold.add(7, Err(NoValue::Err(2)));
    assert_eq!(fold.outcome(), Some(&Err(NoValue::Err(1))));
}
