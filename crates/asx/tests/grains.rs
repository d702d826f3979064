//! Small random programs: outcomes of threads, of all orders at operation granularity in the lab,
//! and of one order in each equivalence class. The lab must have every outcome of the threads, and
//! a search that leaves out commuting orders must leave out no outcome.
//!
//! An outcome is everything that tasks saw, and the state at the end.

#![cfg(feature = "lab")]

mod common;

use std::sync::Arc;

use asx::channel::{bounded, watch};
use asx::lab::How;
use asx::sync::{Mutex, Notify, RwLock, Semaphore};
use asx::{Cancelled, Cx, Runtime};
use common::{draws, outcomes};

/// One step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Adds to a number under its lock.
    Add,
    /// Reads the number, and writes one more later: others may run in between.
    ReadThenWrite,
    TryLock,
    /// Reads and writes the value behind another lock.
    Read,
    Write,
    TrySend,
    TryRecv,
    Len,
    Close,
    Borrow,
    Set,
    /// Takes a permit until the end of the task.
    TryAcquire,
    Notify,
    Checkpoint,
    /// Has the scope run another task, which adds ten.
    Spawn,
}

const STEPS: [Step; 15] = [
    Step::Add,
    Step::ReadThenWrite,
    Step::TryLock,
    Step::Read,
    Step::Write,
    Step::TrySend,
    Step::TryRecv,
    Step::Len,
    Step::Close,
    Step::Borrow,
    Step::Set,
    Step::TryAcquire,
    Step::Notify,
    Step::Checkpoint,
    Step::Spawn,
];

/// The steps of each of two tasks.
type Program = [Vec<Step>; 2];

/// Returns the program of a seed.
fn program(seed: u64) -> Program {
    let mut below = draws(seed);
    // Few different steps, so that the tasks interact.
    let kinds: Vec<Step> = (0..3).map(|_| STEPS[below(STEPS.len())]).collect();
    [0, 1].map(|_| (0..1 + below(2)).map(|_| kinds[below(kinds.len())]).collect())
}

/// The observations, in the order of each task.
type Outcome = (Vec<Vec<i64>>, Vec<i64>);

async fn run(cx: Cx, program: Program) -> Outcome {
    let number = Arc::new(Mutex::new(0));
    let other = Arc::new(RwLock::new(0));
    let (tx, rx) = bounded::<i64>(1);
    let tx = Arc::new(tx);
    // Only one task at a time has the receiver, and records that.
    let rx = Arc::new(Mutex::new(Some(rx)));
    let (set, seen) = watch(0);
    let set = Arc::new(set);
    let permits = Arc::new(Semaphore::new(1));
    let notify = Arc::new(Notify::new());
    let logs = cx
        .scope(async |s| {
            let tasks: Vec<_> = program
                .into_iter()
                .enumerate()
                .map(|(who, steps)| {
                    let (number, other, tx, rx) =
                        (number.clone(), other.clone(), tx.clone(), rx.clone());
                    let (set, permits, notify) = (set.clone(), permits.clone(), notify.clone());
                    let scope = s.clone();
                    s.spawn(async move |cx: Cx| {
                        let mut log = Vec::new();
                        let mut held = Vec::new();
                        for step in steps {
                            log.push(match step {
                                Step::Add => {
                                    let mut number = number.lock(&cx).await?;
                                    *number += 1;
                                    *number
                                }
                                Step::ReadThenWrite => {
                                    let before = *number.lock(&cx).await?;
                                    *number.lock(&cx).await? = before + 1;
                                    before
                                }
                                Step::TryLock => number.try_lock().map_or(-1, |number| *number),
                                Step::Read => *other.read(&cx).await?,
                                Step::Write => {
                                    let mut other = other.write(&cx).await?;
                                    *other = *other * 2 + who as i64;
                                    *other
                                }
                                Step::TrySend => i64::from(tx.try_send(who as i64).is_ok()),
                                Step::TryRecv => match &mut *rx.lock(&cx).await? {
                                    Some(rx) => rx.try_recv().unwrap_or(-1),
                                    None => -2,
                                },
                                Step::Len => tx.len() as i64 * 2 + i64::from(tx.is_closed()),
                                Step::Close => i64::from(rx.lock(&cx).await?.take().is_some()),
                                Step::Borrow => *set.borrow(),
                                Step::Set => {
                                    let before = *set.borrow();
                                    set.send_replace(before * 2 + who as i64 + 1);
                                    before
                                }
                                Step::TryAcquire => match permits.clone().try_acquire_owned() {
                                    Ok(permit) => {
                                        held.push(permit);
                                        1
                                    }
                                    Err(_) => 0,
                                },
                                Step::Notify => {
                                    notify.notify_one();
                                    0
                                }
                                Step::Checkpoint => i64::from(cx.checkpoint().is_ok()),
                                Step::Spawn => {
                                    let number = number.clone();
                                    scope.spawn(async move |cx: Cx| {
                                        *number.lock(&cx).await? += 10;
                                        Ok::<Vec<i64>, Cancelled>(Vec::new())
                                    });
                                    number_of(&cx)
                                }
                            });
                        }
                        Ok::<_, Cancelled>(log)
                    })
                })
                .collect();
            let mut logs = Vec::new();
            for task in tasks {
                logs.push(task.await.expect("no task is cancelled"));
            }
            Ok::<_, Cancelled>(logs)
        })
        .await
        .expect("no task is cancelled");
    let left = vec![
        *number.try_lock().expect("free"),
        *other.try_read().expect("free"),
        tx.len() as i64,
        *seen.borrow(),
    ];
    (logs, left)
}

/// An observation of the context that never varies.
fn number_of(cx: &Cx) -> i64 {
    i64::from(cx.is_cancelled())
}

/// The number of programs in each of four tests, and the number of runs that must contain all
/// orders of a program. Both are small in debug, where a run takes thirty times as long.
const PROGRAMS: u64 = if cfg!(debug_assertions) { 25 } else { 250 };
const ORDERS: u64 = if cfg!(debug_assertions) { 1000 } else { 20_000 };

/// Compares the outcomes of the programs of a quarter of the seeds.
fn compare(quarter: u64) {
    let seeds = quarter * PROGRAMS..(quarter + 1) * PROGRAMS;
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let mut whole = 0;
    let mut reduced = 0;
    let mut differ = 0;
    for seed in seeds.clone() {
        let program = program(seed);
        let (classes, is_reduced) = outcomes(&program, run, How::Dpor, 3000);
        let (all, is_whole) = outcomes(&program, run, How::Dfs, ORDERS);
        if is_reduced {
            let missed: Vec<_> = all.difference(&classes).collect();
            assert!(missed.is_empty(), "seed {seed}: {program:?}: left out {missed:?}");
            for _ in 0..8 {
                let of_threads = program.clone();
                let outcome = runtime.block_on(async |cx: Cx| run(cx, of_threads).await);
                assert!(classes.contains(&outcome), "seed {seed}: {program:?}: {outcome:?}");
            }
        }
        if is_whole && is_reduced {
            assert_eq!(all, classes, "seed {seed}: {program:?}");
        }
        whole += usize::from(is_whole);
        reduced += usize::from(is_reduced);
        differ += usize::from(classes.len() > 1);
    }
    let count = seeds.count();
    println!("{count} programs: {reduced} proved, {whole} in all orders, {differ} vary");
    assert!(reduced * 10 > count * 9 && differ * 3 > count, "{reduced} proved, {differ} vary");
}

#[test]
fn first_quarter() {
    compare(0);
}

#[test]
fn second_quarter() {
    compare(1);
}

#[test]
fn third_quarter() {
    compare(2);
}

#[test]
fn last_quarter() {
    compare(3);
}
