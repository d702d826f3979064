//! Small random programs that wait for each other: outcomes of threads, of all orders, and of one
//! order in each equivalence class, as in `grains.rs`. A reduction leaves out most orders of wakes,
//! abandoned polls, ends and cancels.

#![cfg(feature = "lab")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use asx::channel::{Receiver, bounded};
use asx::lab::How;
use asx::sync::{Mutex, Semaphore};
use asx::{Cancelled, Cx, Runtime, join, race};
use common::{draws, outcomes};

/// One step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Waits for the next message to this task.
    Recv,
    /// Waits for a permit, which it keeps permanently.
    Acquire,
    /// Sends to the program, which receives everything.
    Send,
    /// Waits for a message or a permit, whichever is first.
    Race,
    /// Waits for both.
    Both,
    /// Holds a lock while it waits for a message.
    LockAndRecv,
    Lock,
    Yield,
    /// Adds a permit for others.
    Release,
    /// Sleeps for the given number of milliseconds, and reads the time.
    Sleep(u64),
    /// Waits for a permit for at most a millisecond.
    Timeout,
}

const STEPS: [Step; 9] = [
    Step::Recv,
    Step::Acquire,
    Step::Send,
    Step::Race,
    Step::Both,
    Step::LockAndRecv,
    Step::Lock,
    Step::Yield,
    Step::Release,
];

/// The steps of programs with timers: more of them depend on time.
const TIMED: [Step; 9] = [
    Step::Sleep(1),
    Step::Sleep(1),
    Step::Sleep(2),
    Step::Timeout,
    Step::Recv,
    Step::Send,
    Step::Race,
    Step::Lock,
    Step::Release,
];

/// The steps of each of two tasks, and whether the second is cancelled.
#[derive(Clone, Debug)]
struct Program {
    tasks: [Vec<Step>; 2],
    cancels: bool,
}

/// Returns the program of a seed.
fn program(seed: u64, steps: &[Step]) -> Program {
    let mut below = draws(seed);
    let kinds: Vec<Step> = (0..2).map(|_| steps[below(steps.len())]).collect();
    let tasks = [0, 1].map(|_| (0..1 + below(2)).map(|_| kinds[below(kinds.len())]).collect());
    Program { tasks, cancels: below(3) == 0 }
}

/// The objects that tasks share.
struct Shared {
    gate: Semaphore,
    number: Mutex<i64>,
}

/// The observations of each task and of the program in their order, and the state at the end.
type Outcome = (Vec<Vec<i64>>, Vec<i64>, i64);

async fn wait(cx: &Cx, gate: &Semaphore) -> Result<(), Cancelled> {
    // The semaphore is never closed.
    gate.acquire(cx).await.map_err(|_| cx.checkpoint().unwrap_err())?.forget();
    Ok(())
}

async fn take(
    cx: &Cx,
    step: Step,
    shared: &Shared,
    from: &mut Receiver<i64>,
) -> Result<i64, Cancelled> {
    let Shared { gate, number } = shared;
    Ok(match step {
        Step::Recv => from.recv(cx).await.unwrap_or(-1),
        Step::Acquire => {
            wait(cx, gate).await?;
            1
        }
        Step::Race => {
            let message = async |cx: &Cx| Ok(from.recv(cx).await.unwrap_or(-1));
            let permit = async |cx: &Cx| wait(cx, gate).await.map(|()| -2);
            race(cx, message, permit).await?
        }
        Step::Both => {
            let message = async |cx: &Cx| Ok::<_, Cancelled>(from.recv(cx).await.unwrap_or(-1));
            let permit = async |cx: &Cx| wait(cx, gate).await;
            let (message, permit) = join(cx, message, permit).await;
            permit?;
            message?
        }
        Step::LockAndRecv => {
            let mut number = number.lock(cx).await?;
            *number = *number * 2 + from.recv(cx).await.unwrap_or(-1);
            *number
        }
        Step::Lock => {
            let mut number = number.lock(cx).await?;
            *number += 1;
            *number
        }
        Step::Yield => {
            cx.yield_now().await;
            0
        }
        Step::Release => {
            gate.add_permits(1);
            0
        }
        Step::Sleep(millis) => {
            cx.sleep(Duration::from_millis(millis)).await?;
            cx.now().as_nanos() as i64 / 1_000_000
        }
        Step::Timeout => {
            let limit = Duration::from_millis(1);
            let waited = cx.timeout(limit, async |cx: &Cx| wait(cx, gate).await).await;
            i64::from(waited.is_ok())
        }
        Step::Send => unreachable!("that needs a sender"),
    })
}

async fn run(cx: Cx, program: Program) -> Outcome {
    let shared = Arc::new(Shared { gate: Semaphore::new(0), number: Mutex::new(0) });
    let (back, mut answers) = bounded::<i64>(1);
    let Program { tasks, cancels } = program;
    let count = |wanted: fn(&Step) -> bool| tasks.iter().flatten().filter(|it| wanted(it)).count();
    let permits = count(|it| matches!(it, Step::Acquire | Step::Race | Step::Both));
    let (logs, seen) = cx
        .scope(async |s| {
            let mut feeds = Vec::new();
            let tasks: Vec<_> = (tasks.into_iter().enumerate())
                .map(|(who, steps)| {
                    let (feed, mut from) = bounded(8);
                    feeds.push(feed);
                    let shared = shared.clone();
                    let back = back.clone();
                    s.spawn(async move |cx: Cx| {
                        let mut log = Vec::new();
                        for step in steps {
                            log.push(match step {
                                Step::Send => i64::from(back.send(&cx, who as i64).await.is_ok()),
                                step => take(&cx, step, &shared, &mut from).await?,
                            });
                        }
                        Ok::<_, Cancelled>(log)
                    })
                })
                .collect();
            drop(back);
            // Enough for all waiting tasks, in any order.
            for (message, feed) in feeds.iter().enumerate() {
                // Fails if the task has ended.
                let _ = feed.try_send(message as i64 + 10);
            }
            shared.gate.add_permits(permits);
            if cancels {
                tasks[1].cancel("enough");
            }
            drop(feeds);
            let mut seen = Vec::new();
            while let Ok(answer) = answers.recv(&cx).await {
                seen.push(answer);
            }
            let mut logs = Vec::new();
            for task in tasks {
                logs.push(task.await.unwrap_or_else(|_| vec![-9]));
            }
            Ok::<_, Cancelled>((logs, seen))
        })
        .await
        .expect("the program is not cancelled");
    let number = *shared.number.try_lock().expect("free");
    (logs, seen, number * 100 + shared.gate.available_permits() as i64)
}

/// The number of programs in each of two tests, of orders tried for each, and of classes that one
/// may have. They are small in debug, where a run takes thirty times as long.
const PROGRAMS: u64 = if cfg!(debug_assertions) { 15 } else { 80 };
const ORDERS: u64 = if cfg!(debug_assertions) { 200 } else { 4_000 };
const CLASSES: u64 = if cfg!(debug_assertions) { 1_000 } else { 5_000 };

/// Compares the outcomes of the programs of half of the seeds.
fn compare(half: u64) {
    let seeds = half * PROGRAMS..(half + 1) * PROGRAMS;
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let mut reduced = 0;
    let mut differ = 0;
    for seed in seeds.clone() {
        let program = program(seed, &STEPS);
        let (classes, is_reduced) = outcomes(&program, run, How::Dpor, CLASSES);
        differ += usize::from(classes.len() > 1);
        reduced += usize::from(is_reduced);
        if !is_reduced {
            continue;
        }
        for how in [How::Dfs, How::Random, How::Pct(3)] {
            let (seen, _) = outcomes(&program, run, how, ORDERS);
            let missed: Vec<_> = seen.difference(&classes).collect();
            assert!(missed.is_empty(), "seed {seed}: {program:?}: {how} has also {missed:?}");
        }
        for _ in 0..8 {
            let of_threads = program.clone();
            let outcome = runtime.block_on(async |cx: Cx| run(cx, of_threads).await);
            assert!(classes.contains(&outcome), "seed {seed}: {program:?}: {outcome:?}");
        }
    }
    let count = seeds.count();
    println!("{count} programs: {reduced} proved, {differ} vary");
    let tenths = if cfg!(debug_assertions) { 5 } else { 8 };
    assert!(reduced * 10 > count * tenths && differ * 4 > count, "{reduced} proved, {differ} vary");
}

/// Programs with timers have the same outcomes in a reduced search as in all orders, if time stands
/// still while tasks can run.
#[test]
fn programs_with_timers_lose_no_outcome() {
    let mut reduced = 0;
    let mut differ = 0;
    for seed in 0..PROGRAMS {
        let program = program(seed, &TIMED);
        let (classes, is_reduced) = outcomes(&program, run, How::Dpor, CLASSES);
        differ += usize::from(classes.len() > 1);
        reduced += usize::from(is_reduced);
        if !is_reduced {
            continue;
        }
        for how in [How::Dfs, How::Random, How::Pct(3)] {
            let (seen, _) = outcomes(&program, run, how, ORDERS);
            let missed: Vec<_> = seen.difference(&classes).collect();
            assert!(missed.is_empty(), "seed {seed}: {program:?}: {how} has also {missed:?}");
        }
    }
    println!("{PROGRAMS} programs with timers: {reduced} proved, {differ} vary");
    let count = PROGRAMS as usize;
    assert!(reduced * 10 > count * 5 && differ * 5 > count, "{reduced} proved, {differ} vary");
}

#[test]
fn first_half() {
    compare(0);
}

#[test]
fn second_half() {
    compare(1);
}
