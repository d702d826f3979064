//! The programs on shuttle: threads, and futures where something is dropped half-way.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;

use shuttle::future;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

use crate::pipe::{Pipe, yield_now};
use crate::programs::{Program, STEPS, TASKS, TURNS};
use crate::threads::thread_programs;

thread_programs!(shuttle);

/// How schedules are chosen.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// At random.
    Random,
    /// Random priorities with two changes.
    Pct,
    /// One after another.
    Dfs,
}

/// Runs schedules of a program without its bug: answers how many there were.
pub(crate) fn explore(program: Program, how: How, seed: u64, runs: u64) -> u64 {
    run(body::<false>(program), how, seed, runs)
}

/// Runs schedules until one fails: answers which, if one did.
pub(crate) fn find(program: Program, how: How, seed: u64, runs: u64) -> Option<u64> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.store(0, Relaxed);
    let body = body::<true>(program);
    let counted = move || {
        RUNS.fetch_add(1, Relaxed);
        body();
    };
    let failed = catch_unwind(AssertUnwindSafe(|| run(counted, how, seed, runs))).is_err();
    failed.then(|| RUNS.load(Relaxed))
}

fn run(body: impl Fn() + Send + Sync + 'static, how: How, seed: u64, runs: u64) -> u64 {
    let most = runs as usize;
    let done = match how {
        How::Random => run_with(RandomScheduler::new_from_seed(seed, most), body),
        How::Pct => run_with(PctScheduler::new_from_seed(seed, 3, most), body),
        How::Dfs => run_with(DfsScheduler::new(Some(most), false), body),
    };
    done as u64
}

fn run_with(scheduler: impl Scheduler + 'static, body: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(body)
}

fn body<const BUG: bool>(program: Program) -> fn() {
    match program {
        Program::LostWakeup => lost_wakeup::<BUG>,
        Program::AbBa => ab_ba::<BUG>,
        Program::LossySelect => lossy_select::<BUG>,
        Program::CheckThenAct => check_then_act::<BUG>,
        Program::Needle => needle::<BUG>,
        Program::Crowd => crowd,
    }
}

fn crowd() {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    together(TASKS, move |_| {
        for _ in 0..STEPS {
            count.fetch_add(1, SeqCst);
        }
    });
    assert_eq!(counted.load(SeqCst), TASKS * STEPS);
}

fn lossy_select<const BUG: bool>() {
    future::block_on(async {
        let ((tx, rx), (tick, ticks)) = (Pipe::new(), Pipe::new());
        let producer = future::spawn(async move {
            (1..=2).for_each(|number| tx.send(number));
            tx.close();
        });
        let ticker = future::spawn(async move {
            tick.send(());
            tick.close();
        });
        let consumer = future::spawn(consume::<BUG>(rx, ticks));
        assert_eq!(consumer.await.unwrap(), 3, "a message was lost");
        producer.await.unwrap();
        ticker.await.unwrap();
    });
}

/// Takes messages and ticks, whichever comes; with the bug it drops the one half-way for the other.
async fn consume<const BUG: bool>(rx: Pipe<u32>, ticks: Pipe<()>) -> u32 {
    let mut sum = 0;
    let mut ticking = true;
    loop {
        let mut work = Box::pin(async {
            let number = rx.recv().await;
            if BUG {
                yield_now().await;
            }
            number
        });
        let mut tick = Box::pin(ticks.recv());
        let taken = poll_fn(|context| {
            if let Poll::Ready(number) = work.as_mut().poll(context) {
                return Poll::Ready(Some(number));
            }
            if ticking && let Poll::Ready(got) = tick.as_mut().poll(context) {
                ticking = got.is_some();
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await;
        match taken {
            Some(Some(number)) => {
                if !BUG {
                    yield_now().await;
                }
                sum += number;
            }
            Some(None) => return sum,
            None => {}
        }
    }
}
