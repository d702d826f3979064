//! The programs on loom: threads. It has no tasks that can be dropped half-way, and no room for a
//! crowd.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::clock::{now, timed};
use crate::programs::{Program, TURNS};
use crate::threads::thread_programs;

thread_programs!(loom);

/// Schedules of this process.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs all schedules of a program without its bug: how long that took, and how many there were, if
/// there was the time.
pub(crate) fn prove(program: Program, most: Duration) -> Option<(f64, u64)> {
    RUNS.store(0, Relaxed);
    let body = body::<false>(program)?;
    let start = Instant::now();
    let (nanos, ()) = timed(|| check(body, most));
    (start.elapsed() < most).then(|| (nanos, RUNS.load(Relaxed)))
}

/// How long it took until a schedule failed, and which it was, if one did.
///
/// A deadlock that loom has found ends the process: what it then unwinds panics again. So the
/// search is made by another one.
pub(crate) fn find(program: Program) -> Option<(f64, u64)> {
    let mut other = Command::new(std::env::current_exe().ok()?);
    let output = other.args([FIND, program.name()]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (nanos, run) = text.trim().split_once(' ')?;
    Some((nanos.parse().ok()?, run.parse().ok()?))
}

/// Asks for one search in this process; not for people.
pub(crate) const FIND: &str = "--loom-find";

/// The other process: it says what [`find`] answers, and ends.
pub(crate) fn find_here(name: &str, most: Duration) {
    let program = Program::ALL.into_iter().find(|program| program.name() == name);
    let Some(body) = program.and_then(body::<true>) else { return };
    let start = now();
    std::panic::set_hook(Box::new(move |_| {
        println!("{} {}", now() - start, RUNS.load(Relaxed));
        std::process::exit(0);
    }));
    check(body, most);
}

fn check(body: fn(), most: Duration) {
    let mut builder = loom::model::Builder::new();
    builder.max_duration = Some(most);
    // Looks at the clock after so many runs.
    builder.checkpoint_interval = 1000;
    builder.check(move || {
        RUNS.fetch_add(1, Relaxed);
        body();
    });
}

/// Whether it has the program.
pub(crate) fn has(program: Program) -> bool {
    body::<false>(program).is_some()
}

fn body<const BUG: bool>(program: Program) -> Option<fn()> {
    Some(match program {
        Program::LostWakeup => lost_wakeup::<BUG>,
        Program::AbBa => ab_ba::<BUG>,
        Program::CheckThenAct => check_then_act::<BUG>,
        Program::Needle => needle::<BUG>,
        Program::LossySelect | Program::Crowd => return None,
    })
}
