//! Programs whose bug is known, and what makes them right.

use super::{Op, Program};
use asx_lab::explore::Point;

/// What `check_then_act` and `needle` fail with.
pub(crate) const CLAIMED_TWICE: u64 = 7;
pub(crate) const NEEDLE: u64 = 8;
pub(crate) const CANCELLED: u64 = 9;

const A: usize = 4;
const B: usize = 5;
const EVENT: usize = 6;

fn of(tasks: Vec<Vec<Op>>) -> Program {
    Program { first: tasks.len(), tasks, stops: false, ..Program::default() }
}

/// Looks at a flag, and waits in a later step: the notification may come between.
pub(crate) fn lost_wakeup(is_fixed: bool) -> Program {
    let waiter = match is_fixed {
        true => vec![Op::WaitUnless(EVENT, 0, 1)],
        false => vec![Op::Read(0), Op::ExitIf(1), Op::Yield, Op::Wait(EVENT)],
    };
    of(vec![waiter, vec![Op::Write(0, 1), Op::Notify(EVENT)]])
}

/// Two locks taken in two orders.
pub(crate) fn deadlock(is_fixed: bool) -> Program {
    let task = |a, b| {
        vec![
            Op::Lock(a),
            Op::Yield,
            Op::Lock(b),
            Op::Yield,
            Op::Unlock(b),
            Op::Yield,
            Op::Unlock(a),
        ]
    };
    of(vec![task(A, B), if is_fixed { task(A, B) } else { task(B, A) }])
}

/// Looks whether a place is free, and takes it in a later step.
pub(crate) fn check_then_act(is_fixed: bool) -> Program {
    let task = match is_fixed {
        true => vec![Op::Branch { test: 0, value: 0, then: 0 }, Op::FailIf(0, 2, CLAIMED_TWICE)],
        false => vec![
            Op::Read(0),
            Op::ExitIf(1),
            Op::Yield,
            Op::Read(0),
            Op::Store(0, 1),
            Op::FailIf(0, 2, CLAIMED_TWICE),
        ],
    };
    of(vec![task; 3])
}

/// Fails only if two tasks take turns exactly, `turns` times in all.
pub(crate) fn needle(turns: usize, is_fixed: bool) -> Program {
    let mut tasks = vec![Vec::new(); 2];
    for turn in 0..turns {
        let task: &mut Vec<Op> = &mut tasks[turn % 2];
        if !task.is_empty() {
            task.push(Op::Yield);
        }
        task.push(Op::Advance(0, turn as i64));
    }
    let never = turns as i64 + 1;
    tasks[(turns - 1) % 2].push(Op::FailIf(0, if is_fixed { never } else { never - 1 }, NEEDLE));
    of(tasks)
}

/// Two tasks that may be cancelled in each step; wrong after `cancels` of those.
pub(crate) fn cancelled(cancels: i64) -> Program {
    let count = [Op::Choose(Point::Cancel, 2), Op::AddTo(0)];
    let task =
        [&count[..], &[Op::Yield], &count[..], &[Op::FailIf(0, cancels, CANCELLED)]].concat();
    of(vec![task; 2])
}

/// Four tasks, twelve steps, two locks: for measuring.
pub(crate) fn medium() -> Program {
    let task = |a: usize, own: usize| {
        vec![
            Op::Lock(A),
            Op::Write(a, 1),
            Op::Unlock(A),
            Op::Yield,
            Op::Write(own, 1),
            Op::Yield,
            Op::Read(a),
        ]
    };
    of(vec![task(0, 8), task(0, 9), task(1, 10), task(1, 11)])
}

/// Fifty tasks of twenty steps: each takes a lock in turn and uses a variable of its own.
pub(crate) fn large() -> Program {
    let step = |own: usize| [Op::Lock(A), Op::Unlock(A), Op::Yield, Op::Write(own, 1), Op::Yield];
    of((0..50).map(|task| step(7 + task % 9).repeat(10)).collect())
}
