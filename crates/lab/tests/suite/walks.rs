//! How even the random strategies are.

use crate::program;

use asx_lab::explore::{Pct, Pos, Random, Strategy, Uniform};
use program::{Machine, Op, Program};
use std::collections::BTreeMap;

fn of(tasks: Vec<Vec<Op>>) -> Program {
    Program { first: tasks.len(), tasks, ..Program::default() }
}

/// A task of so many steps, each writing the variable.
fn writer(steps: usize, variable: usize) -> Vec<Op> {
    let step = [Op::Write(variable, 1), Op::Yield];
    let mut ops = step.repeat(steps);
    ops.pop();
    ops
}

/// The share of each order of steps, after some runs to learn from.
fn shares(program: &Program, strategy: &mut dyn Strategy, runs: u32) -> BTreeMap<Vec<usize>, f64> {
    let mut machine = Machine::new(program);
    let mut shares = BTreeMap::new();
    for run in 0..runs + 100 {
        assert!(strategy.begin());
        machine.run(strategy);
        if run >= 100 {
            *shares.entry(machine.order.clone()).or_default() += 1.0 / f64::from(runs);
        }
    }
    shares
}

#[test]
fn uniform_gives_each_order_the_same_chance() {
    let program = of(vec![writer(5, 0), writer(2, 1)]);
    let shares = shares(&program, &mut Uniform::new(1), 20_000);
    assert_eq!(shares.len(), 21);
    for (order, share) in shares {
        assert!((share * 21.0 - 1.0).abs() < 0.2, "{order:?}: {share}");
    }
}

#[test]
fn uniform_counts_the_steps_of_tasks_to_be_spawned() {
    // The first task spawns another at once; together they have six steps beside the third's one.
    let mut parent = writer(2, 0);
    parent.insert(0, Op::Spawn(2));
    let mut program = of(vec![parent, writer(1, 1), writer(4, 2)]);
    program.first = 2;
    let shares = shares(&program, &mut Uniform::new(1), 20_000);
    let last: f64 = shares.iter().filter(|(order, _)| order[0] == 1).map(|(_, share)| share).sum();
    assert!((last - 1.0 / 7.0).abs() < 0.02, "{last}");
}

#[test]
fn sampling_of_partial_orders_lets_a_step_wait_for_many_others() {
    // Ten steps that nobody minds, then a race with the only step of the other task.
    let mut long = writer(10, 0);
    long.extend([Op::Yield, Op::Write(1, 1)]);
    let program = of(vec![long, writer(1, 1)]);
    let late = |strategy: &mut dyn Strategy| -> f64 {
        let shares = shares(&program, strategy, 10_000);
        shares.iter().filter(|(order, _)| order.last() == Some(&1)).map(|(_, share)| share).sum()
    };
    let (sampled, random) = (late(&mut Pos::new(1)), late(&mut Random::new(1)));
    assert!((sampled * 12.0 - 1.0).abs() < 0.2, "{sampled}");
    assert!(random < 0.002, "{random}");
}

#[test]
fn priorities_change_less_often_than_the_depth() {
    let program = of(vec![writer(4, 0), writer(4, 0), writer(4, 0)]);
    for depth in 1..4 {
        let orders = shares(&program, &mut Pct::new(1, depth), 2_000);
        let switches = |order: &Vec<usize>| order.windows(2).filter(|w| w[0] != w[1]).count();
        // Two switches come of tasks that end; each change adds one.
        assert_eq!(orders.keys().map(switches).max(), Some(2 + depth - 1), "{depth}");
        assert!(orders.len() >= 6);
    }
}

#[test]
fn a_seed_decides_everything() {
    let program = of(vec![writer(4, 0), writer(4, 0), writer(4, 0)]);
    let make: [fn(u64) -> Box<dyn Strategy>; 4] = [
        |seed| Box::new(Random::new(seed)),
        |seed| Box::new(Uniform::new(seed)),
        |seed| Box::new(Pos::new(seed)),
        |seed| Box::new(Pct::new(seed, 3)),
    ];
    for make in make {
        let of = |seed| shares(&program, &mut *make(seed), 200);
        assert_eq!(of(4), of(4));
        assert_ne!(of(4), of(5));
    }
}
