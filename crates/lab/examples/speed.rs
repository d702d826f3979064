//! Runs per second of each strategy on a program of 4 tasks and 12 steps, and what a run of the
//! program itself costs: `cargo run --release -p asx-lab --example speed`.

#[path = "../tests/program/mod.rs"]
mod program;

use asx_lab::explore::{
    Access, Bounded, Dfs, Dpor, Limits, Pct, Point, Pos, Progress, Random, Recorder, Strategy,
    TaskPath, Uniform, Verdict,
};
use program::{Machine, known};
use std::time::{Duration, Instant};

fn main() {
    println!("{:<22} {:>12} {:>10}", "strategy", "runs/s", "ns/run");
    measure("the program alone", || First(Progress::default()));
    measure("random", || Random::new(1));
    measure("random, recorded", || Recorder::new(Random::new(1)));
    measure("uniform", || Uniform::new(1));
    measure("pos", || Pos::new(1));
    measure("pct, depth 3", || Pct::new(1, 3));
    measure("dfs", Dfs::new);
    measure("bounded", || Bounded::new(Limits::NONE, u64::MAX));
    measure("dpor", Dpor::new);
    measure("dpor, recorded", || Recorder::new(Dpor::new()));
}

/// The best of several rounds: the machine has other work as well. An exploration that ends starts
/// again.
fn measure<S: Strategy>(name: &str, make: impl Fn() -> S) {
    let program = known::medium();
    let mut machine = Machine::new(&program);
    let mut strategy = make();
    let mut best = 0.0f64;
    for _ in 0..20 {
        let (start, mut runs) = (Instant::now(), 0u64);
        while start.elapsed() < Duration::from_millis(40) {
            for _ in 0..1_000 {
                if !strategy.begin() {
                    strategy = make();
                    strategy.begin();
                }
                machine.run(&mut strategy);
                runs += 1;
            }
        }
        best = best.max(runs as f64 / start.elapsed().as_secs_f64());
    }
    println!("{name:<22} {best:>12.0} {:>10.0}", 1e9 / best);
}

/// Decides nothing: what is left is the cost of the program.
struct First(Progress);

impl Strategy for First {
    fn begin(&mut self) -> bool {
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        std::hint::black_box(enabled.len()) / 2
    }

    fn pick(&mut self, _: Point, _: usize) -> usize {
        0
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, _: Verdict) {}

    fn progress(&self) -> Progress {
        self.0
    }
}
