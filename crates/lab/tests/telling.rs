//! What a report says: the right thing, of the right tasks, and no more than needs be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::{Found, How, Report, check};
use asx_runtime::sync::Mutex;
use asx_runtime::{Cancelled, Cx, Scope};

fn failure(report: Report) -> Found {
    report.failure.expect("a bug")
}

/// Two look again and again whether the work is over, which a third does: polled long enough, each
/// run ends, however the two take turns.
async fn two_go_round(cx: Cx) -> Result<(), Cancelled> {
    let left = Arc::new(AtomicU32::new(4));
    cx.scope(async |s: Scope<Cancelled>| {
        for name in ["one", "two"] {
            let left = left.clone();
            s.task(name).spawn(async move |cx: Cx| {
                while left.load(Relaxed) > 0 {
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        s.task("worker").spawn(async move |cx: Cx| {
            while left.fetch_sub(1, Relaxed) > 1 {
                cx.yield_now().await;
            }
            Ok(())
        });
        Ok(())
    })
    .await
}

#[test]
fn two_that_go_round_do_not_keep_a_third_from_what_they_wait_for() {
    let report = check(two_go_round).steps(5000).run();
    assert!(report.failure.is_none(), "{report}");
}

/// A worker goes round until it is told to stop, which is after a second.
async fn until_told(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.task("worker").spawn(async |cx: Cx| {
            while !cx.is_stopping() {
                cx.yield_now().await;
            }
            Ok(())
        });
        cx.sleep(Duration::from_secs(1)).await?;
        s.stop();
        Ok(())
    })
    .await
}

#[test]
fn a_loop_that_a_timer_ends_is_no_livelock() {
    let report = check(until_told).runs(50).steps(1000).run();
    assert!(report.failure.is_none() && report.proof.is_none(), "{report}");
}

#[test]
fn an_error_is_made_small_whatever_numbers_it_tells() {
    let counted = async |cx: Cx| {
        let sum = Arc::new(AtomicU32::new(0));
        let all = sum.clone();
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..6 {
                let sum = sum.clone();
                s.spawn(async move |cx: Cx| {
                    for _ in 0..3 {
                        let before = sum.load(Relaxed);
                        cx.yield_now().await;
                        sum.store(before + 1, Relaxed);
                    }
                    Ok(())
                });
            }
            Ok(())
        });
        scope.await.expect("nobody is cancelled");
        let sum = all.load(Relaxed);
        if sum == 18 { Ok(()) } else { Err(format!("{sum} of 18")) }
    };
    let found = failure(check(counted).how(How::Random).run());
    assert!(found.schedule.deviations.len() <= 2, "{found}");
}

#[test]
fn a_leaked_guard_says_who_took_it() {
    let found = failure(
        check(async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let lock = Arc::new(Mutex::new(()));
                s.task("careless").spawn(async move |cx: Cx| {
                    std::mem::forget(lock.lock_owned(&cx).await?);
                    Ok(())
                });
                Ok(())
            })
            .await
        })
        .run(),
    );
    let finding = &found.failure.finding;
    assert_eq!(finding.message, "a lock or permit was never released");
    let taken = "taken by `careless (main/1)` at crates/lab/tests/telling.rs:";
    assert!(finding.detail.starts_with(taken), "{found}");
}

/// Who is spawned last goes first, beside some who go round until another is done.
async fn last_comes_first(cx: Cx) -> Result<(), Cancelled> {
    let (first, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    cx.scope(async |s: Scope<Cancelled>| {
        for nth in 1..=4 {
            let (first, done) = (first.clone(), done.clone());
            s.spawn(async move |cx: Cx| {
                let _ = first.compare_exchange(0, nth, Relaxed, Relaxed);
                while done.load(Relaxed) == 0 && nth != 4 {
                    cx.yield_now().await;
                }
                cx.yield_now().await;
                done.store(1, Relaxed);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_ne!(first.load(Relaxed), 4, "the last was first");
    Ok(())
}

#[test]
fn who_goes_round_does_not_keep_the_search_from_other_orders() {
    let found = failure(check(last_comes_first).run());
    assert!(found.run < 100 && found.schedule.deviations.len() <= 1, "{found}");
}

#[test]
fn a_check_inside_a_check_is_named_as_that() {
    let inner = async |_cx: Cx| {};
    let found = failure(check(async |_cx: Cx| drop(check(inner).run())).run());
    let message = &found.failure.finding.message;
    assert!(message.starts_with("a check inside a program that is being checked"), "{found}");
    // And it is over with it: the next check is one like any other.
    assert!(check(inner).run().failure.is_none());
}

/// Panics, and again when it is dropped.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("the second one");
    }
}

/// The process ends, so it is another one.
#[test]
fn a_panic_while_panicking_tells_both() {
    const NAME: &str = "a_panic_while_panicking_tells_both";
    const INSIDE: &str = "ASX_LAB_TEST_PANICS_TWICE";
    if std::env::var_os(INSIDE).is_some() {
        let report = check(async |_cx: Cx| {
            let _again = PanicsAgain;
            assert!(std::env::var_os(INSIDE).is_none(), "the first one");
        })
        .run();
        unreachable!("{report}");
    }
    let program = std::env::current_exe().expect("this test");
    let mut test = std::process::Command::new(program);
    let output = test.args([NAME, "--exact"]).env(INSIDE, "1").output().expect("it runs");
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    let first = told.find(": the first one").unwrap_or_else(|| panic!("no first in {told}"));
    let second = told.find(": the second one").unwrap_or_else(|| panic!("no second in {told}"));
    assert!(first < second && told.contains("telling.rs:"), "{told}");
}
