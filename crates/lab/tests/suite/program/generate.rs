//! Random programs, small enough for a full search.

use super::{Op, Program};
use asx_kernel::rng::DetRng;
use asx_lab::explore::Point;

/// Variables, then locks, then events, all by object number.
const VARIABLES: usize = 4;
const LOCKS: usize = 4;
const EVENTS: usize = 6;

/// The program of a seed: 2 to 4 tasks with up to 6 steps each.
pub(crate) fn generate(seed: u64) -> Program {
    let mut rng = DetRng::new(seed, 77);
    let count = 2 + rng.below(3);
    let first = if rng.below(3) == 0 { count - 1 } else { count };
    let mut room = [7, 9, 8][count - 2];
    let is_dense = rng.below(2) == 0;
    let mut tasks = Vec::new();
    for left in (1..=count).rev() {
        let most = (room - (left - 1)).min(6);
        let steps = 1 + rng.below(most);
        room -= steps;
        tasks.push(task(&mut rng, steps, count, is_dense));
    }
    if first < count {
        let at = rng.below(tasks[0].len() + 1);
        tasks[0].insert(at, Op::Spawn(first));
    }
    Program { tasks, first, stops: rng.below(4) == 0, ..Program::default() }
}

fn task(rng: &mut DetRng, steps: usize, count: usize, is_dense: bool) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut held = None;
    for step in 0..steps {
        if step > 0 {
            ops.push(Op::Yield);
        }
        for _ in 0..1 + rng.below(3) {
            ops.push(if is_dense { shifty(rng) } else { any(rng, &mut held, count) });
        }
    }
    ops.extend(held.map(Op::Unlock));
    ops
}

/// An operation whose footprint mostly depends on what was read.
fn shifty(rng: &mut DetRng) -> Op {
    let variable = rng.below(VARIABLES);
    let value = rng.below(2) as i64;
    match rng.below(20) {
        0..5 => Op::Read(variable),
        5..11 => Op::Branch { test: variable, value, then: rng.below(VARIABLES) },
        11..15 => Op::Indirect,
        15..17 => Op::Store(variable, value),
        17 => Op::Choose(Point::Entropy, 2),
        18 => Op::Write(variable, value),
        _ => Op::FailIf(variable, value + 1, 1),
    }
}

fn any(rng: &mut DetRng, held: &mut Option<usize>, count: usize) -> Op {
    let variable = rng.below(VARIABLES);
    let value = rng.below(3) as i64;
    match rng.below(40) {
        0..8 => Op::Read(variable),
        8..14 => Op::Write(variable, value),
        14..18 => Op::Store(variable, value),
        18..23 => Op::Branch { test: variable, value, then: rng.below(VARIABLES) },
        23..27 => Op::Indirect,
        27..31 => match held.take() {
            Some(lock) => Op::Unlock(lock),
            None => {
                *held = Some(LOCKS + rng.below(2));
                Op::Lock(held.unwrap_or(LOCKS))
            }
        },
        31 => Op::Wait(EVENTS),
        32 => Op::WaitUnless(EVENTS, variable, value),
        33..35 => Op::Notify(EVENTS),
        35 => Op::Choose(Point::ALL[rng.below(8)], 2 + rng.below(2)),
        36 => Op::Kill(rng.below(count)),
        37 => Op::ExitIf(value),
        _ => Op::FailIf(variable, value + 1, 1 + rng.below(4) as u64),
    }
}
