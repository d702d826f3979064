//! Madsim's part of the benchmarks of the lab: it answers, line by line, what `asx-bench-lab` asks.
//!
//! `rate PROGRAM SEED RUNS` runs schedules of the program without its bug; `find PROGRAM SEED RUNS`
//! those with it, until one fails. The answer is nanoseconds of processor time and runs, or `none`.
//! A schedule is a new runtime with the next seed: that is how madsim runs a test again.

mod programs;

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use madsim::Config;
use madsim::runtime::Runtime;
use rustix::time::{ClockId, clock_gettime};

fn main() {
    // A run that fails is told by a panic, and there are many.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let answer = answer(&line).unwrap_or(String::from("none"));
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn answer(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [what, program, seed, runs] = words[..] else { return None };
    let (seed, most): (u64, u64) = (seed.parse().ok()?, runs.parse().ok()?);
    let buggy = what == "find";
    let start = now();
    let failed = (0..most).find(|nth| !passes(program, buggy, seed.wrapping_add(*nth)));
    let nanos = now() - start;
    match (buggy, failed) {
        (true, Some(nth)) => Some(format!("{nanos} {}", nth + 1)),
        (false, None) => Some(format!("{nanos} {most}")),
        _ => None,
    }
}

/// Whether one schedule passes. One that can't go on panics.
fn passes(program: &str, buggy: bool, seed: u64) -> bool {
    let run = || {
        let runtime = Runtime::with_seed_and_config(seed, Config::default());
        let Some(body) = programs::body(program, buggy) else { panic!("no such program") };
        runtime.block_on(body)
    };
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}

/// Nanoseconds that this thread was on a processor.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
