//! Circles of waits while other tasks go on: told in the step in which they close, and only if
//! nobody breaks them.

use std::sync::Arc;
use std::time::Duration;

use asx_lab::{Found, Kind, check};
use asx_runtime::sync::{Mutex, OnceCell, RwLock, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, Task, channel, race};

const SECOND: Duration = Duration::from_secs(1);

/// Runs something beside a task that goes on for as long as it does.
async fn beside_a_ticker<B>(cx: &Cx, body: impl AsyncFnOnce(Cx) -> B) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let ticker = s.task("ticker").spawn(async |cx: Cx| {
            loop {
                cx.sleep(SECOND).await?;
            }
        });
        body(cx.clone()).await;
        ticker.cancel("enough");
        drop::<Task<(), Cancelled>>(ticker);
        Ok(())
    })
    .await
}

/// Takes two locks, in the order given.
async fn both(cx: &Cx, one: &Mutex<u32>, two: &Mutex<u32>) -> Result<(), Cancelled> {
    let mut one = one.lock(cx).await?;
    cx.yield_now().await;
    let mut two = two.lock(cx).await?;
    *one += 1;
    *two += 1;
    Ok(())
}

/// Two take two locks, each in its own order; `limit` may end the second's wait.
async fn crossed(cx: Cx, limit: Option<Duration>) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
        let other = locks.clone();
        s.task("left").spawn(async move |cx: Cx| both(&cx, &locks.0, &locks.1).await);
        s.task("right").spawn(async move |cx: Cx| {
            match limit {
                None => both(&cx, &other.1, &other.0).await?,
                Some(limit) => {
                    let _ = cx.timeout(limit, async |cx| both(cx, &other.1, &other.0).await).await;
                }
            }
            Ok(())
        });
        Ok(())
    })
    .await
}

/// The deadlock in a program, and that it is the same when it is run again.
fn deadlock<B: Future<Output = Result<(), Cancelled>>>(program: impl Fn(Cx) -> B) -> Found {
    let bug = check(program).steps(1000);
    let report = bug.run();
    println!("{report}");
    let found = report.failure.expect("a bug");
    assert_eq!(found.failure.finding.kind, Kind::Deadlock);
    // Far from the end of the run, which the ticker keeps going.
    assert!(found.failure.step < 20, "{found}");
    let again = bug.replay(&found.token).expect("a token").failure.expect("it fails again");
    assert_eq!(again.failure, found.failure);
    found
}

fn passes<B: Future<Output = Result<(), Cancelled>>>(program: impl Fn(Cx) -> B) {
    let report = check(program).runs(200).run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn crossed_locks_are_told_where_the_circle_closes_though_another_goes_on() {
    let found =
        deadlock(async |cx: Cx| beside_a_ticker(&cx, async |cx: Cx| crossed(cx, None).await).await);
    let finding = &found.failure.finding;
    assert_eq!(finding.message, "`left (main/2)` and `right (main/3)` wait for each other");
    for (wait, line) in [
        ("`left (main/2)` waits for what `right (main/3)` took", "31:23"),
        ("`right (main/3)` waits for what `left (main/2)` took", "31:23"),
        ("`left (main/2)` (Running) waits for a lock or permit", "33:"),
        ("`right (main/3)` (Running) waits for a lock or permit", "33:"),
    ] {
        let line = format!("{wait} at crates/lab/tests/suite/circles.rs:{line}");
        assert!(finding.detail.contains(&line), "{line}\n{finding:?}");
    }
    // What is on record ends there too: both locked, and then both in vain.
    let trace = found.trace.expect("a trace");
    assert!(trace.records.len() < 100, "{}", trace.records.len());
}

#[test]
fn the_step_is_the_one_in_which_the_last_wait_begins() {
    // The usual order: main, ticker, main's children as they come.
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            let lock = Mutex::new(0);
            let guard = lock.lock(&cx).await?;
            cx.sleep(3 * SECOND).await?;
            cx.sleep(SECOND).await?;
            let twice = lock.lock(&cx).await?;
            drop((guard, twice));
            Ok::<_, Cancelled>(())
        })
        .await
    });
    assert_eq!(found.failure.finding.message, "`main` waits for itself");
    let last = found.failure.step;
    // Main waits from the last poll on; the clock has moved four times by then, and not a fifth.
    let late = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            let lock = Mutex::new(0);
            let guard = lock.lock(&cx).await?;
            cx.sleep(3 * SECOND).await?;
            cx.sleep(SECOND).await?;
            cx.yield_now().await;
            let twice = lock.lock(&cx).await?;
            drop((guard, twice));
            Ok::<_, Cancelled>(())
        })
        .await
    });
    assert_eq!(late.failure.step, last + 1);
}

#[test]
fn a_join_under_the_lock_that_the_joined_wants_is_told() {
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let lock = Arc::new(Mutex::new(0));
                let held = lock.lock_owned(&cx).await?;
                let child = s.task("child").spawn(async move |cx: Cx| {
                    *lock.lock(&cx).await? += 1;
                    Ok(())
                });
                let _ = child.await;
                drop(held);
                Ok(())
            })
            .await
        })
        .await
    });
    let finding = found.failure.finding;
    assert_eq!(finding.message, "`main` and `child (main/2)` wait for each other");
    assert!(finding.detail.contains("`main` waits for the end of `child (main/2)`"), "{finding:?}");
}

#[test]
fn readers_that_want_to_write_are_told() {
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let lock = Arc::new(RwLock::new(0));
                for _ in 0..2 {
                    let lock = lock.clone();
                    s.spawn(async move |cx: Cx| {
                        let read = lock.read(&cx).await?;
                        cx.yield_now().await;
                        *lock.write(&cx).await? = *read + 1;
                        Ok(())
                    });
                }
                Ok(())
            })
            .await
        })
        .await
    });
    assert!(found.failure.finding.message.contains("wait"), "{found}");
}

#[test]
fn a_reader_behind_a_writer_that_waits_for_it_is_told() {
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let lock = Arc::new(RwLock::new(0));
                let other = lock.clone();
                s.task("writer").spawn(async move |cx: Cx| {
                    *other.write(&cx).await? += 1;
                    Ok(())
                });
                s.task("reader").spawn(async move |cx: Cx| {
                    let once = lock.read(&cx).await?;
                    cx.yield_now().await;
                    let twice = lock.read(&cx).await?;
                    assert_eq!(*once, *twice);
                    Ok(())
                });
                Ok(())
            })
            .await
        })
        .await
    });
    let finding = found.failure.finding;
    let message = "`writer (main/2)` and `reader (main/3)` wait for each other";
    assert_eq!(finding.message, message);
    let behind = "`reader (main/3)` waits in line behind `writer (main/2)`";
    assert!(finding.detail.contains(behind), "{finding:?}");
}

#[test]
fn the_one_permit_and_a_cell_that_needs_itself_are_told() {
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            let permits = Semaphore::new(1);
            let one = permits.acquire(&cx).await;
            let two = permits.acquire(&cx).await;
            drop((one, two));
        })
        .await
    });
    assert_eq!(found.failure.finding.message, "`main` waits for itself");
    let found = deadlock(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            let cell = OnceCell::new();
            let again = async || *cell.get_or_init(&cx, async || 1).await.unwrap_or(&0);
            cell.get_or_init(&cx, again).await.copied()
        })
        .await
    });
    assert_eq!(found.failure.finding.message, "`main` waits for itself");
}

#[test]
fn a_wait_with_a_time_limit_is_no_deadlock() {
    passes(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| crossed(cx, Some(5 * SECOND)).await).await
    });
}

#[test]
fn a_wait_that_races_with_another_is_no_deadlock() {
    passes(async |cx: Cx| {
        beside_a_ticker(&cx, async |cx: Cx| {
            let lock = Mutex::new(0);
            let guard = lock.lock(&cx).await?;
            let wait = async |cx| lock.lock(cx).await.map(|guard| *guard);
            let _ = race(&cx, wait, async |cx: &Cx| cx.sleep(SECOND).await.map(|()| 0)).await;
            drop(guard);
            Ok::<_, Cancelled>(())
        })
        .await
    });
}

#[test]
fn a_circle_that_somebody_breaks_is_no_deadlock() {
    // By a cancel of one of them, much later.
    passes(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let work = s.spawn(async |cx: Cx| crossed(cx, None).await);
            cx.sleep(100 * SECOND).await?;
            work.cancel("too long");
            Ok(())
        })
        .await
    });
    // By the task that the permit was given to.
    passes(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let one = Arc::new(Semaphore::new(1));
            for _ in 0..3 {
                let Ok(permit) = one.acquire_owned(&cx).await else { break };
                s.spawn(async move |cx: Cx| {
                    cx.sleep(SECOND).await?;
                    drop(permit);
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn one_of_several_permits_that_comes_back_ends_a_wait() {
    // Who has one of two and wants another waits for the other's, not for its own.
    passes(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let two = Arc::new(Semaphore::new(2));
            let other = two.clone();
            s.spawn(async move |cx: Cx| {
                let permit = other.acquire(&cx).await;
                cx.sleep(9 * SECOND).await?;
                drop(permit);
                Ok(())
            });
            cx.sleep(SECOND).await?;
            let one = two.acquire(&cx).await;
            let both = two.acquire(&cx).await;
            drop((one, both));
            Ok(())
        })
        .await
    });
}

#[test]
fn a_livelock_with_a_permit_in_hand_is_not_taken_for_a_circle() {
    let report = check(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let two = Arc::new(Semaphore::new(2));
            let other = two.clone();
            drop::<Task<(), Cancelled>>(s.spawn(async move |cx: Cx| {
                let _permit = other.acquire(&cx).await;
                loop {
                    cx.sleep(SECOND).await?;
                }
            }));
            cx.sleep(SECOND).await?;
            let one = two.acquire(&cx).await;
            let both = two.acquire(&cx).await;
            drop((one, both));
            Ok(())
        })
        .await
    })
    .steps(300)
    .run();
    let failure = report.failure.expect("no end").failure;
    assert_eq!(failure.finding.kind, Kind::Livelock, "{failure}");
}

#[test]
fn a_failure_of_another_kind_tells_the_circle_that_led_to_it() {
    let report = check(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<()>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| {
                crossed(cx.clone(), None).await?;
                let _ = tx.send(&cx, ()).await;
                Ok(())
            });
            let done = cx.timeout(9 * SECOND, async |cx| rx.recv(cx).await).await;
            assert!(done.is_ok(), "not done in time");
            Ok(())
        })
        .await
    })
    .run();
    let failure = report.failure.expect("a panic").failure;
    assert_eq!(failure.finding.kind, Kind::Panic);
    let detail = &failure.finding.detail;
    let told = "`left (main/1/1)` and `right (main/1/2)` wait for each other";
    assert!(detail.starts_with("from step ") && detail.contains(told), "{failure}");
}
