//! Runs per second of each strategy on a small and a large program, and what a run of the program
//! itself costs: `cargo run --release -p asx-lab --example speed`.

#[path = "../tests/suite/program/mod.rs"]
mod program;

use asx_lab::explore::{
    Access, Bounded, Dfs, Dpor, Limits, Pct, Point, Pos, Progress, Random, Recorder, Strategy,
    TaskPath, Uniform, Verdict,
};
use program::{Machine, Program, known};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

fn main() {
    for (name, program) in
        [("4 tasks, 12 steps", known::medium()), ("50 tasks x 20", known::large())]
    {
        println!("{name:<22} {:>12} {:>12}", "runs/s", "ns/run");
        measure("  the program alone", &program, || First(Progress::default()));
        measure("  random", &program, || Random::new(1));
        measure("  random, recorded", &program, || Recorder::new(Random::new(1)));
        measure("  uniform", &program, || Uniform::new(1));
        measure("  pos", &program, || Pos::new(1));
        measure("  pct, depth 3", &program, || Pct::new(1, 3));
        measure("  dfs", &program, Dfs::new);
        measure("  bounded", &program, || Bounded::new(Limits::NONE, u64::MAX));
        measure("  dpor", &program, Dpor::new);
        measure("  dpor, recorded", &program, || Recorder::new(Dpor::new()));
    }
}

/// The best of several rounds: the machine has other work as well. An exploration that ends starts
/// again.
fn measure<S: Strategy>(name: &str, program: &Program, make: impl Fn() -> S) {
    let mut machine = Machine::new(program);
    let mut strategy = make();
    let mut best = 0.0f64;
    for _ in 0..20 {
        let (start, mut runs) = (cpu_time(), 0u64);
        while cpu_time() - start < Duration::from_millis(40) {
            for _ in 0..100 {
                if !strategy.begin() {
                    strategy = make();
                    strategy.begin();
                }
                machine.run(&mut strategy);
                runs += 1;
            }
        }
        best = best.max(runs as f64 / (cpu_time() - start).as_secs_f64());
    }
    println!("{name:<22} {best:>12.0} {:>12.0}", 1e9 / best);
}

/// How long this thread has been on a processor, where the system tells; else the time of day.
fn cpu_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

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
