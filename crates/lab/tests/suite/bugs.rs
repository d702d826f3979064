//! Small programs with one bug each, and the same without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use asx_lab::{How, Kind, check};
use asx_runtime::sync::{Mutex, Notify};
use asx_runtime::{Cancelled, Cx, Outcome, Scope, TaskError};

async fn lost_wakeup(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let ready = Arc::new((Notify::new(), AtomicBool::new(false)));
        let other = ready.clone();
        s.spawn(async move |_cx: Cx| {
            other.1.store(true, Relaxed);
            other.0.notify_waiters();
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            if !ready.1.load(Relaxed) {
                cx.yield_now().await;
                ready.0.notified(&cx).await?;
            }
            Ok(())
        });
        Ok(())
    })
    .await
}

#[test]
fn a_lost_wakeup_is_found() {
    let report = check(lost_wakeup).run();
    let found = report.failure.as_ref().expect("a bug");
    println!("{report}");
    assert_eq!(found.failure.finding.kind, Kind::Deadlock);
    assert!(found.schedule.deviations.len() <= 2 && found.token.len() <= 64);
    let again = check(lost_wakeup).replay(&found.token).unwrap();
    assert_eq!(again.failure.expect("the same").failure, found.failure);
}

async fn crossed(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
        for swap in [false, true] {
            let locks = locks.clone();
            s.spawn(async move |cx: Cx| {
                let (first, second) =
                    if swap { (&locks.1, &locks.0) } else { (&locks.0, &locks.1) };
                let mut first = first.lock(&cx).await?;
                cx.yield_now().await;
                let mut second = second.lock(&cx).await?;
                *first += 1;
                *second += 1;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

#[test]
fn crossed_locks_are_found() {
    let report = check(crossed).run();
    println!("{report}");
    let found = report.failure.expect("a bug");
    assert_eq!(found.failure.finding.kind, Kind::Deadlock);
}

async fn check_then_act(cx: Cx) -> Result<(), Cancelled> {
    let count = Arc::new(AtomicU32::new(0));
    let seen = count.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                let before = count.load(Relaxed);
                cx.yield_now().await;
                count.store(before + 1, Relaxed);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(seen.load(Relaxed), 2);
    Ok(())
}

#[test]
fn check_then_act_is_found() {
    let report = check(check_then_act).run();
    println!("{report}");
    assert_eq!(report.failure.expect("a bug").failure.finding.kind, Kind::Panic);
}

#[test]
fn cancels_are_tried_everywhere() {
    let report = check(crossed).cancel_at_every_await().run();
    println!("{report}");
}

async fn bad_finalizer(cx: &Cx) -> Outcome<(), Cancelled> {
    let scope = cx.try_scope(async |s: Scope<Cancelled>| {
        let _ = s.defer(async |_cx: Cx| panic!("in the last thing it does"));
        s.spawn(async |cx: Cx| cx.checkpoint());
        Ok(())
    });
    scope.await
}

#[test]
fn a_panic_of_a_finalizer_reaches_the_root() {
    let report = check(async |cx: Cx| match bad_finalizer(&cx).await {
        Err(TaskError::Panicked(panic)) => panic.resume(),
        _ => Ok::<(), Cancelled>(()),
    });
    let found = report.run().failure.expect("a panic").failure.finding;
    assert_eq!((found.kind, &*found.message), (Kind::Panic, "in the last thing it does"));
}

#[test]
fn a_panic_of_a_finalizer_that_is_expected_is_no_finding() {
    let expected = check(async |cx: Cx| {
        let outcome = bad_finalizer(&cx).await;
        assert!(matches!(outcome, Err(TaskError::Panicked(_))), "{outcome:?}");
    });
    assert!(expected.run().failure.is_none());
}

#[test]
fn a_second_panic_of_finalizers_is_found() {
    let report = check(async |cx: Cx| {
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                let _ = s.defer(async |_cx: Cx| panic!("again"));
            }
            Ok(())
        });
        assert!(scope.await.is_err());
    });
    let found = report.run().failure.expect("a panic").failure.finding;
    assert_eq!((found.kind, &*found.message), (Kind::Panic, "a panic reached nobody"));
    assert!(
        found.detail.contains("panicked at crates/lab/tests/suite/bugs.rs:"),
        "{}",
        found.detail
    );
    assert!(found.detail.contains(": again\n"), "{}", found.detail);
}

/// Goes round in one poll, asking whether there is room.
#[test]
fn a_poll_that_tries_for_ever_is_stopped() {
    let report = check(async |_cx: Cx| {
        let (tx, _rx) = asx_runtime::channel::bounded::<u32>(1);
        while tx.try_send(1).is_ok() {}
        while tx.try_reserve().is_err() {}
    })
    .run();
    let found = report.failure.expect("a bug");
    assert_eq!(found.failure.finding.kind, Kind::Livelock, "{found}");
    let report = check(async |_cx: Cx| {
        let (_tx, mut rx) = asx_runtime::channel::bounded::<u32>(1);
        while rx.try_recv().is_err() {}
    })
    .run();
    assert_eq!(report.failure.expect("a bug").failure.finding.kind, Kind::Livelock);
}

/// The thread is over before the poll is, so that the wake needs no entry in any queue.
#[test]
fn a_wake_by_another_thread_counts_while_the_task_is_polled() {
    let report = check(async |_cx: Cx| {
        let mut polls = 0;
        std::future::poll_fn(|task| {
            polls += 1;
            if polls > 1 {
                return std::task::Poll::Ready(());
            }
            let waker = task.waker().clone();
            std::thread::spawn(move || waker.wake()).join().expect("it only wakes");
            std::task::Poll::Pending
        })
        .await;
    })
    .run();
    assert_eq!(report.failure.expect("a bug").failure.finding.kind, Kind::Foreign);
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Those that can run are put elsewhere in the list when they are asked to stop, of which a
/// strategy that remembers the list must hear.
#[test]
fn who_goes_after_a_cancel_is_one_who_can() {
    for seed in 0..20 {
        let report = check(async |cx: Cx| {
            let failed: Result<(), Failed> = cx
                .scope(async |s: Scope<Failed>| {
                    for task in 0..6 {
                        s.spawn(async move |cx: Cx| {
                            for step in 0..4 {
                                cx.yield_now().await;
                                if task == 3 && step == 2 {
                                    return Err("enough".into());
                                }
                                cx.checkpoint()?;
                            }
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await;
            assert!(failed.is_err());
        })
        .how(How::Pct(4))
        .seed(seed)
        .runs(40)
        .run();
        assert!(report.failure.is_none(), "{report}");
    }
}
