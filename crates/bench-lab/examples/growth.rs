//! How a proof grows with its program: the runs and the time that it takes to try all orders, by
//! the lab, by loom and by a full search of shuttle, which has no reduction.
//!
//! ```text
//! cargo run --release -p asx-bench-lab --example growth
//! ```
//! Each has [`LONGEST`] for a program. Loom also tries what atomics may read, and does not know
//! more than four threads besides the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use asx_lab::{Grain, How, check};
use asx_runtime::sync::Mutex;
use asx_runtime::{Cancelled, Cx, channel};

/// How long a proof may take.
const LONGEST: Duration = Duration::from_secs(5);

/// Loom has room for so many threads besides the first.
const THREADS_OF_LOOM: usize = 4;

#[derive(Clone, Copy)]
enum Program {
    /// Tasks that each have something of their own, and nothing in common.
    Independent,
    /// Tasks that each sleep twice, for another time. The peers have no clock.
    Sleeping,
    /// Tasks that add one under one lock.
    Counter,
    /// Tasks that each take two of as many locks, in order.
    Philosophers,
    /// Tasks in a row, through which messages go: so many.
    Pipeline,
}

/// Messages through a pipeline.
const MESSAGES: usize = 2;

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Independent => "independent tasks",
            Program::Sleeping => "sleeping tasks",
            Program::Counter => "counter",
            Program::Philosophers => "philosophers",
            Program::Pipeline => "pipeline",
        }
    }

    fn sizes(self) -> &'static [usize] {
        match self {
            Program::Independent => &[2, 3, 4, 8],
            Program::Sleeping => &[2, 4, 6, 8],
            Program::Counter => &[2, 3, 4, 5, 6],
            Program::Philosophers => &[2, 3, 4, 6, 8],
            Program::Pipeline => &[2, 3, 4, 6],
        }
    }
}

/// The two locks of one of so many philosophers, the lower one first.
fn forks(at: usize, count: usize) -> (usize, usize) {
    let next = (at + 1) % count;
    (at.min(next), at.max(next))
}

async fn ours(cx: Cx, program: Program, count: usize) {
    let locks: Arc<Vec<_>> = Arc::new((0..count).map(|_| Mutex::new(0)).collect());
    cx.scope(async |s| {
        let mut from = None;
        for at in 0..count {
            let locks = locks.clone();
            let (to, next) = channel::bounded(1);
            let from = from.replace(next);
            s.spawn(async move |cx: Cx| {
                match program {
                    Program::Independent => {
                        let (tx, mut rx) = channel::bounded(1);
                        tx.send(&cx, at).await.expect("a receiver");
                        assert_eq!(rx.recv(&cx).await, Ok(at));
                    }
                    Program::Sleeping => {
                        let time = Duration::from_millis(at as u64 / 2);
                        cx.sleep(time).await?;
                        cx.sleep(time).await?;
                    }
                    Program::Counter => *locks[0].lock(&cx).await? += 1,
                    Program::Philosophers => {
                        let (low, high) = forks(at, count);
                        let _low = locks[low].lock(&cx).await?;
                        let _high = locks[high].lock(&cx).await?;
                    }
                    Program::Pipeline => {
                        let mut from = from;
                        for number in 0..MESSAGES {
                            let message = match &mut from {
                                Some(from) => from.recv(&cx).await.expect("a message"),
                                None => number,
                            };
                            assert_eq!(message, number);
                            if at + 1 < count {
                                to.send(&cx, message).await.expect("a receiver");
                            }
                        }
                    }
                }
                Ok::<_, Cancelled>(())
            });
        }
        Ok(())
    })
    .await
    .expect("no error");
}

/// The same program of threads, with the primitives of a peer.
macro_rules! threads {
    ($name:ident, $peer:ident) => {
        fn $name(program: Program, count: usize) {
            use $peer::sync::Mutex;
            let locks: Vec<_> = (0..count).map(|_| Arc::new(Mutex::new(0))).collect();
            let mut from = None;
            let threads: Vec<_> = (0..count)
                .map(|at| {
                    let locks = locks.clone();
                    let (to, next) = $peer::sync::mpsc::channel();
                    let from = from.replace(next);
                    $peer::thread::spawn(move || match program {
                        Program::Independent => *locks[at].lock().unwrap() += 1,
                        Program::Sleeping => {}
                        Program::Counter => *locks[0].lock().unwrap() += 1,
                        Program::Philosophers => {
                            let (low, high) = forks(at, count);
                            let _low = locks[low].lock().unwrap();
                            let _high = locks[high].lock().unwrap();
                        }
                        Program::Pipeline => {
                            for number in 0..MESSAGES {
                                let message = from.as_ref().map_or(number, |it| it.recv().unwrap());
                                assert_eq!(message, number);
                                if at + 1 < count {
                                    to.send(message).unwrap();
                                }
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
}

threads!(with_loom, loom);
threads!(with_shuttle, shuttle);

/// The runs of a proof, how long it took, and whether it came to its end.
struct Proof {
    runs: u64,
    took: Duration,
    is_whole: bool,
}

impl Proof {
    fn print(&self) -> String {
        let Proof { runs, took, is_whole } = self;
        match is_whole {
            true => format!("{runs} in {:.3} s", took.as_secs_f64()),
            false => format!("not after {runs}"),
        }
    }
}

/// By the lab, at operation grain: the proof, and its classes.
fn by_lab(program: Program, count: usize) -> (Proof, Option<u64>) {
    let start = Instant::now();
    let report = check(move |cx: Cx| ours(cx, program, count))
        // Without this promise nothing is proved of tasks that share no object of asx.
        .transparent()
        .how(How::Dpor)
        .grain(Grain::Operation)
        .runs(u64::MAX)
        .total(u64::MAX)
        .time(LONGEST)
        .run();
    assert!(report.failure.is_none(), "{report}");
    let is_whole = report.proof.is_some();
    (
        Proof { runs: report.runs, took: start.elapsed(), is_whole },
        report.proof.map(|it| it.classes),
    )
}

fn by_loom(program: Program, count: usize) -> Option<Proof> {
    if count > THREADS_OF_LOOM || matches!(program, Program::Sleeping) {
        return None;
    }
    let runs = Arc::new(AtomicU64::new(0));
    let counted = runs.clone();
    let start = Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.max_duration = Some(LONGEST);
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        with_loom(program, count);
    });
    let took = start.elapsed();
    Some(Proof { runs: runs.load(Relaxed), took, is_whole: took < LONGEST })
}

fn by_shuttle(program: Program, count: usize) -> Option<Proof> {
    if matches!(program, Program::Sleeping) {
        return None;
    }
    let start = Instant::now();
    let mut config = shuttle::Config::new();
    config.max_time = Some(LONGEST);
    let scheduler = shuttle::scheduler::DfsScheduler::new(None, false);
    let runs = shuttle::Runner::new(scheduler, config).run(move || with_shuttle(program, count));
    let took = start.elapsed();
    Some(Proof { runs: runs as u64, took, is_whole: took < LONGEST })
}

fn main() {
    let programs = [
        Program::Independent,
        Program::Sleeping,
        Program::Counter,
        Program::Philosophers,
        Program::Pipeline,
    ];
    let rows: Vec<_> =
        programs.iter().flat_map(|it| it.sizes().iter().map(|count| (*it, *count))).collect();
    // One after the other: each of them hears of the panics of those that were started before it.
    let lab: Vec<_> = rows.iter().map(|(program, count)| by_lab(*program, *count)).collect();
    let loom: Vec<_> = rows.iter().map(|(program, count)| by_loom(*program, *count)).collect();
    let shuttle = rows.iter().map(|(program, count)| by_shuttle(*program, *count));
    println!("| program | tasks | classes | runs: asx | runs: loom | runs: shuttle, all orders |");
    println!("|---|--:|--:|--:|--:|--:|");
    for ((((program, count), (lab, classes)), loom), shuttle) in
        rows.iter().zip(lab).zip(loom).zip(shuttle)
    {
        let classes = classes.map_or(String::new(), |classes| classes.to_string());
        let [loom, shuttle] =
            [loom, shuttle].map(|it| it.map_or(String::from("-"), |proof| proof.print()));
        let [name, lab] = [program.name().into(), lab.print()];
        println!("| {name} | {count} | {classes} | {lab} | {loom} | {shuttle} |");
    }
}
