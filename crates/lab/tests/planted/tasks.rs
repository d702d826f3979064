//! Tasks, scopes, races and what they leave behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use asx_lab::check;
use asx_runtime::sync::{Mutex, Notify};
use asx_runtime::{Cancelled, Cx, Scope, Task, channel, race};

use super::planted;

type Handle = Task<(), Cancelled>;

/// Each of two waits for the other's end.
async fn join_circle<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (to_one, mut from_two) = channel::oneshot::<Handle>();
        let (to_two, mut from_one) = channel::oneshot::<Handle>();
        let one = s.task("one").spawn(async move |cx: Cx| {
            if let Ok(two) = from_two.recv(&cx).await {
                let _ = two.await;
            }
            Ok(())
        });
        let two = s.task("two").spawn(async move |cx: Cx| {
            let one = from_one.recv(&cx).await;
            if let Ok(one) = one
                && BUG
            {
                let _ = one.await;
            }
            Ok(())
        });
        let _ = to_one.send(two);
        let _ = to_two.send(one);
        Ok(())
    })
    .await
}
planted!(join_circle_is_found: join_circle, Deadlock, 0, Proved);

/// A task waits for what happens after the scope that waits for the task.
async fn after_the_scope<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let over = Arc::new(Notify::new());
    let told = over.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| told.notified(&cx).await);
        if !BUG {
            over.notify_one();
        }
        Ok(())
    })
    .await?;
    over.notify_one();
    Ok(())
}
planted!(after_the_scope_is_found: after_the_scope, Deadlock, 0, Proved);

/// Two ways to pay race, and the one that loses has paid too.
async fn loser_pays<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let paid = AtomicU32::new(0);
    let pay = async |cx: &Cx| {
        paid.fetch_add(1, Relaxed);
        cx.yield_now().await;
        if cx.checkpoint().is_err() && !BUG {
            paid.fetch_sub(1, Relaxed);
        }
    };
    race(&cx, pay, pay).await;
    assert_eq!(paid.load(Relaxed), 1, "paid twice");
    Ok(())
}
planted!(loser_pays_is_found: loser_pays, Panic, 0, Proved);

/// A loser is through with its cleanup when the race is over: there is no way to lose it.
#[test]
fn a_race_is_over_when_its_losers_are() {
    let report = check(async |cx: Cx| {
        let cleaned = AtomicBool::new(false);
        let winner = async |cx: &Cx| cx.yield_now().await;
        let loser = async |cx: &Cx| {
            cx.cancelled().await;
            for _ in 0..5 {
                cx.yield_now().await;
            }
            cleaned.store(true, Relaxed);
        };
        race(&cx, winner, loser).await;
        assert!(cleaned.load(Relaxed));
    })
    .run();
    assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
}

/// Tries again and again without letting anybody else do something.
async fn hot_retry<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        s.spawn(async move |cx: Cx| {
            let _guard = other.lock(&cx).await?;
            cx.yield_now().await;
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            if BUG {
                while lock.try_lock().is_err() {}
            } else {
                drop(lock.lock(&cx).await?);
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(hot_retry_is_found: hot_retry, Livelock, 1, Proved);

/// Looks for a flag and for a cancel, and never lets go of the thread in between.
async fn busy_wait<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let flag = Arc::new(AtomicBool::new(false));
        let told = flag.clone();
        s.spawn(async move |cx: Cx| {
            while !told.load(Relaxed) && !cx.is_cancelled() {
                if !BUG {
                    cx.yield_now().await;
                }
            }
            Ok(())
        });
        s.spawn(async move |_cx: Cx| {
            flag.store(true, Relaxed);
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(busy_wait_is_found: busy_wait, Livelock, 1, Passes);

/// Two who each wait politely until the other has gone first.
async fn after_you<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let wants = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        for me in 0..2_usize {
            let wants = wants.clone();
            s.spawn(async move |cx: Cx| {
                wants[me].store(true, Relaxed);
                cx.yield_now().await;
                while wants[1 - me].load(Relaxed) && (BUG || me == 1) {
                    cx.yield_now().await;
                    cx.checkpoint()?;
                }
                wants[me].store(false, Relaxed);
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(after_you_is_found: after_you, Livelock, 2, Passes);

/// A promise that is neither kept nor called off on one of the ways out.
async fn broken_promise<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        s.spawn(async move |cx: Cx| {
            cx.yield_now().await;
            let _ = tx.try_send(1);
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let promise = cx.obligation().expect("the scope is open");
            cx.yield_now().await;
            match rx.try_recv() {
                Ok(_) => promise.commit().expect("it is open"),
                Err(_) if BUG => {}
                Err(_) => promise.abort().expect("it is open"),
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(broken_promise_is_found: broken_promise, Leak, 1, Proved);

/// The first spawned is done first, or so it seems.
async fn spawn_order<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let done = Arc::new(AtomicBool::new(false));
        let first = done.clone();
        let task = s.task("first").priority(255).spawn(async move |_cx: Cx| {
            first.store(true, Relaxed);
            Ok(())
        });
        s.task("second").priority(1).spawn(async move |_cx: Cx| {
            if !BUG {
                let _ = task.await;
            }
            assert!(done.load(Relaxed), "the important one was not first");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(spawn_order_is_found: spawn_order, Panic, 1, Unseen);

/// Takes a job off the count of those to do before it has added what follows from it.
async fn over_too_early<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (jobs, open) = (Arc::new(Mutex::new(vec![2])), Arc::new(AtomicU32::new(1)));
        let done = Arc::new(AtomicU32::new(0));
        let (left, all) = (open.clone(), done.clone());
        s.task("worker").spawn(async move |cx: Cx| {
            while open.load(Relaxed) > 0 {
                let Some(job) = jobs.lock(&cx).await?.pop() else { break };
                done.fetch_add(1, Relaxed);
                if BUG {
                    open.fetch_sub(1, Relaxed);
                    cx.yield_now().await;
                }
                if job > 0 {
                    open.fetch_add(1, Relaxed);
                    jobs.lock(&cx).await?.push(job - 1);
                }
                if !BUG {
                    cx.yield_now().await;
                    open.fetch_sub(1, Relaxed);
                }
            }
            Ok(())
        });
        s.task("judge").spawn(async move |cx: Cx| {
            while left.load(Relaxed) > 0 {
                cx.yield_now().await;
            }
            assert_eq!(all.load(Relaxed), 3, "over too early");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(over_too_early_is_found: over_too_early, Panic, 1, Passes);

/// Keeps a lock while it goes round for what comes only from who needs the lock.
async fn polls_under_a_lock<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (lock, (tx, mut rx)) = (Arc::new(Mutex::new(0)), channel::bounded::<u32>(1));
        let other = lock.clone();
        s.task("poller").spawn(async move |cx: Cx| {
            let guard = lock.lock(&cx).await?;
            if !BUG {
                drop(guard);
            }
            while rx.try_recv().is_err() {
                cx.yield_now().await;
            }
            Ok(())
        });
        s.task("sender").spawn(async move |cx: Cx| {
            let _guard = other.lock(&cx).await?;
            let _ = tx.send(&cx, 1).await;
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(polls_under_a_lock_is_found: polls_under_a_lock, Livelock, 1, Passes);

#[test]
fn a_livelock_tells_who_goes_round_and_who_waits_for_whom() {
    let found = check(polls_under_a_lock::<true>).steps(500).run().failure.expect("a bug");
    assert_eq!(found.failure.finding.kind, asx_lab::Kind::Livelock, "{found}");
    let detail = &found.failure.finding.detail;
    let here = "at crates/lab/tests/planted/tasks.rs:";
    for line in [
        &format!("`sender (main/2)` waits for what `poller (main/1)` took {here}"),
        "`poller (main/1)` (Running) can run",
        &format!("`sender (main/2)` (Running) waits for a lock or permit {here}"),
    ] {
        assert!(detail.contains(line), "{found}");
    }
}
