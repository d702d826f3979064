//! The programs on asx, in its lab.
//!
//! A poll is atomic, so tasks yield where another may come in between.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use asx_lab::{Check, Grain, How, Report, check};
use asx_runtime::channel::{self, Receiver};
use asx_runtime::sync::{Mutex, Notify};
use asx_runtime::{Cancelled, Cx, Scope, select};

use crate::programs::{Program, STEPS, TASKS, TURNS};

type Ended = Result<(), Cancelled>;

/// The report of a program, with its bug or without.
macro_rules! report {
    ($program:expr, $bug:literal, $set:expr) => {
        match $program {
            Program::LostWakeup => $set(check(lost_wakeup::<$bug>)).run(),
            // These share nothing but what the lab sees.
            Program::AbBa => $set(check(ab_ba::<$bug>)).transparent().run(),
            Program::LossySelect => $set(check(lossy_select::<$bug>)).transparent().run(),
            Program::CheckThenAct => $set(check(check_then_act::<$bug>)).run(),
            Program::Needle => $set(check(needle::<$bug>)).run(),
            Program::Crowd => $set(check(crowd)).run(),
        }
    };
}

/// Schedules of a program without its bug.
pub(crate) fn explore(program: Program, how: How, grain: Grain, seed: u64, runs: u64) -> Report {
    let grain = Some(grain);
    let set = Settings { how, grain, seed, runs };
    report!(program, false, |it| set.on(it))
}

/// The search for its bug.
pub(crate) fn find(program: Program, how: How, seed: u64, runs: u64) -> Report {
    let set = Settings { how, grain: None, seed, runs };
    report!(program, true, |it| set.on(it))
}

struct Settings {
    how: How,
    /// As the check has it unless set.
    grain: Option<Grain>,
    seed: u64,
    runs: u64,
}

impl Settings {
    fn on<F>(&self, check: Check<F>) -> Check<F> {
        let check = check.how(self.how).seed(self.seed).runs(self.runs);
        match self.grain {
            Some(grain) => check.grain(grain),
            None => check,
        }
    }
}

async fn lost_wakeup<const BUG: bool>(cx: Cx) -> Ended {
    cx.scope(async |s: Scope<Cancelled>| {
        let ready = Arc::new((Notify::new(), AtomicBool::new(false)));
        for _ in 0..2 {
            let ready = ready.clone();
            s.spawn(async move |cx: Cx| {
                let early = ready.0.notified(&cx);
                if !ready.1.load(Relaxed) {
                    cx.yield_now().await;
                    if BUG { ready.0.notified(&cx).await? } else { early.await? }
                }
                Ok(())
            });
        }
        s.spawn(async move |_cx: Cx| {
            ready.1.store(true, Relaxed);
            ready.0.notify_waiters();
            Ok(())
        });
        Ok(())
    })
    .await
}

async fn ab_ba<const BUG: bool>(cx: Cx) -> Ended {
    cx.scope(async |s: Scope<Cancelled>| {
        let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
        for task in 0..3 {
            let locks = locks.clone();
            let (first, second) = if BUG && task == 2 { (1, 0) } else { (0, 1) };
            s.spawn(async move |cx: Cx| {
                let mut one = locks[first].lock(&cx).await?;
                cx.yield_now().await;
                let mut two = locks[second].lock(&cx).await?;
                *one += 1;
                *two += 1;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

async fn lossy_select<const BUG: bool>(cx: Cx) -> Ended {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, rx) = channel::bounded::<u32>(2);
        let (tick, ticks) = channel::bounded::<()>(1);
        s.spawn(async move |cx: Cx| {
            for number in 1..=2 {
                let _ = tx.send(&cx, number).await;
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let _ = tick.send(&cx, ()).await;
            Ok(())
        });
        let consumer = s.spawn(async move |cx: Cx| match BUG {
            true => Ok(drop_the_loser(&cx, rx, ticks).await),
            false => Ok(keep_the_loser(&cx, rx, ticks).await),
        });
        assert_eq!(consumer.await.ok(), Some(3), "a message was lost");
        Ok(())
    })
    .await
}

/// Receives, and then does something with it: not to be dropped half-way.
async fn handle(cx: &Cx, rx: &mut Receiver<u32>, sum: &mut u32) -> bool {
    let Ok(number) = rx.recv(cx).await else { return false };
    cx.yield_now().await;
    *sum += number;
    true
}

async fn drop_the_loser(cx: &Cx, mut rx: Receiver<u32>, mut ticks: Receiver<()>) -> u32 {
    let mut sum = 0;
    let mut more = true;
    while more {
        let mut work = Box::pin(handle(cx, &mut rx, &mut sum));
        let mut tick = Box::pin(ticks.recv(cx));
        more = poll_fn(|context| {
            if let Poll::Ready(more) = work.as_mut().poll(context) {
                return Poll::Ready(more);
            }
            match tick.as_mut().poll(context) {
                Poll::Ready(Ok(())) => Poll::Ready(true),
                _ => Poll::Pending,
            }
        })
        .await;
    }
    sum
}

async fn keep_the_loser(cx: &Cx, mut rx: Receiver<u32>, mut ticks: Receiver<()>) -> u32 {
    let mut sum = 0;
    let mut more = true;
    let mut ticking = true;
    while more {
        select! {
            number = rx.recv(cx) => match number {
                Ok(number) => {
                    cx.yield_now().await;
                    sum += number;
                }
                Err(_) => more = false,
            },
            tick = ticks.recv(cx), if ticking => ticking = tick.is_ok(),
        }
    }
    sum
}

async fn check_then_act<const BUG: bool>(cx: Cx) -> Ended {
    let count = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..3 {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                if BUG {
                    let before = count.load(Relaxed);
                    cx.yield_now().await;
                    count.store(before + 1, Relaxed);
                } else {
                    cx.yield_now().await;
                    count.fetch_add(1, Relaxed);
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(count.load(Relaxed), 3, "an increment was lost");
    Ok(())
}

async fn needle<const BUG: bool>(cx: Cx) -> Ended {
    let turn = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for task in 0..2 {
            let turn = turn.clone();
            s.spawn(async move |cx: Cx| {
                for mine in (task..TURNS).step_by(2) {
                    if turn.compare_exchange(mine, mine + 1, Relaxed, Relaxed).is_err() {
                        break;
                    }
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert!(!BUG || turn.load(Relaxed) < TURNS, "the needle");
    Ok(())
}

async fn crowd(cx: Cx) -> Ended {
    let count = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..TASKS {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                for _ in 0..STEPS {
                    count.fetch_add(1, Relaxed);
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(count.load(Relaxed), TASKS * STEPS);
    Ok(())
}
