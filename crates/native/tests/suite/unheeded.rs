//! Cancels that nobody looks at are counted, and can fail a program.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use asx_native::{BlockOnError, Builder, Runtime};
use asx_runtime::{Cancelled, Cx, Scope};

/// Runs a task that is asked to stop and then yields so often before it looks, and one that looks
/// at once.
fn runs(runtime: &Runtime, yields: u32) -> Result<(), BlockOnError> {
    runtime.try_block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            // Until it was asked, it waits for something that is not ours, and so does not look.
            let asked = Arc::new(Mutex::new((false, Waker::noop().clone())));
            let is_asked = asked.clone();
            let deaf = s.task("deaf").spawn(async move |cx: Cx| {
                poll_fn(|context| {
                    let mut asked = is_asked.lock().unwrap();
                    asked.1 = context.waker().clone();
                    if asked.0 { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                for _ in 0..yields {
                    cx.yield_now().await;
                }
                cx.checkpoint()
            });
            let good = s.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await));
            cx.yield_now().await;
            deaf.cancel("now");
            let waker = {
                let mut asked = asked.lock().unwrap();
                asked.0 = true;
                asked.1.clone()
            };
            waker.wake();
            good.cancel("now");
            let _ = (deaf.await, good.await);
            Ok::<_, Cancelled>(())
        });
        let _ = scope.await;
    })
}

fn on_each(builder: Builder, test: impl Fn(&Runtime)) {
    for (workers, journal) in [(1, 0), (1, 10_000), (2, 0), (4, 10_000)] {
        let builder = builder.clone().workers(workers);
        let builder = if journal > 0 { builder.journal(journal) } else { builder };
        test(&builder.build().unwrap());
    }
}

fn unheeded(runtime: &Runtime) -> u64 {
    runtime.metrics().health.unheeded_cancels
}

// Forbidden behaviour FB-203: a long loop without a checkpoint after a cancel request.
#[test]
fn a_task_that_does_not_look_is_counted_once_and_goes_on() {
    on_each(Runtime::builder().cancel_latency(Some(10)), |runtime| {
        runs(runtime, 5).unwrap();
        assert_eq!(unheeded(runtime), 0);
        runs(runtime, 1000).unwrap();
        assert_eq!(unheeded(runtime), 1);
        runs(runtime, 1000).unwrap();
        assert_eq!(unheeded(runtime), 2);
    });
}

#[test]
fn a_thousand_polls_are_not_too_many_unless_set() {
    on_each(Runtime::builder(), |runtime| {
        runs(runtime, 900).unwrap();
        assert_eq!(unheeded(runtime), 0);
        runs(runtime, 5000).unwrap();
        assert_eq!(unheeded(runtime), 1);
    });
    on_each(Runtime::builder().cancel_latency(None), |runtime| {
        runs(runtime, 70_000).unwrap();
        assert_eq!(unheeded(runtime), 0);
    });
}

#[test]
fn a_program_can_be_told_to_fail_on_it() {
    on_each(Runtime::builder().cancel_latency(Some(10)).deny_unheeded_cancels(), |runtime| {
        runs(runtime, 5).unwrap();
        let Err(BlockOnError::Unheeded(found)) = runs(runtime, 1000) else {
            panic!("it does not fail")
        };
        assert_eq!((found.name.as_deref(), found.polls), (Some("deaf"), 11));
        let words = BlockOnError::Unheeded(found).to_string();
        assert!(
            words.contains("`deaf` was asked to stop and has not looked in 11 polls"),
            "{words}"
        );
        // Told once: the next program is judged by itself.
        runs(runtime, 5).unwrap();
    });
}

/// Cleanup does not look, and has a bound of its own.
#[test]
fn cleanup_is_not_counted() {
    on_each(Runtime::builder().cancel_latency(Some(10)).cleanup_polls(u32::MAX), |runtime| {
        let many = async |cx: &Cx| {
            for _ in 0..100 {
                cx.yield_now().await;
            }
        };
        runtime.block_on(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let sees = s.spawn(async move |cx: Cx| {
                    let cancelled = cx.cancelled().await;
                    many(&cx).await;
                    Err::<(), _>(cancelled)
                });
                cx.yield_now().await;
                sees.cancel("now");
                let _ = sees.await;
                s.defer(async move |cx: Cx| many(&cx).await).unwrap();
                s.cancel("all");
                Ok::<_, Cancelled>(())
            });
            let _ = scope.await;
        });
        assert_eq!(unheeded(runtime), 0);
    });
}

/// A task that loops in one poll until `is_found`, and is cancelled meanwhile or before.
fn loops(
    runtime: &Runtime,
    cancel_first: bool,
    is_found: impl Fn() -> bool + Send + 'static,
) -> Result<(), BlockOnError> {
    runtime.try_block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let (begun, has_begun) = std::sync::mpsc::channel();
            let busy = s.task("busy").spawn(async move |_cx: Cx| {
                begun.send(()).unwrap();
                // Far beyond what it takes to find it.
                let end = Instant::now() + Duration::from_secs(30);
                while !is_found() && Instant::now() < end {
                    std::thread::yield_now();
                }
                Ok(())
            });
            if !cancel_first {
                has_begun.recv().unwrap();
            }
            busy.cancel("enough");
            let _ = busy.await;
            Ok::<_, Cancelled>(())
        });
        let _ = scope.await;
    })
}

/// FB-203: a loop without a checkpoint after a cancel request, all in one poll.
#[test]
fn poll_that_goes_on_after_a_cancel_is_found_by_another_thread() {
    let limit = Duration::from_millis(5);
    for (workers, cancel_first) in [(2, false), (2, true), (4, false), (4, true)] {
        let runtime = Runtime::builder().workers(workers).long_poll(Some(limit)).build().unwrap();
        let handle = runtime.handle();
        let found = move || handle.metrics().health.long_polls == 1;
        loops(&runtime, cancel_first, found).unwrap();
        let health = runtime.metrics().health;
        assert_eq!((health.long_polls, health.unheeded_cancels), (1, 0), "{workers} workers");
    }
}

#[test]
fn poll_that_took_too_long_after_a_cancel_is_found_at_its_end() {
    let limit = Duration::from_millis(5);
    let builder = Runtime::builder().workers(1).deny_unheeded_cancels();
    let late = || {
        let end = Instant::now() + 2 * limit;
        move || end <= Instant::now()
    };
    let runtime = builder.clone().long_poll(Some(limit)).build().unwrap();
    let Err(BlockOnError::Unheeded(found)) = loops(&runtime, true, late()) else {
        panic!("it does not fail")
    };
    assert_eq!(found.name.as_deref(), Some("busy"));
    assert!(found.inside.is_some_and(|time| time >= limit), "{found:?}");
    assert!(found.to_string().contains("`busy` was asked to stop"), "{found}");
    // A short poll is none, and without the setting none is too long.
    loops(&runtime, true, || true).unwrap();
    assert_eq!(runtime.metrics().health.long_polls, 1);
    let runtime = builder.long_poll(None).build().unwrap();
    loops(&runtime, true, late()).unwrap();
    assert_eq!(runtime.metrics().health.long_polls, 0);
}

#[test]
fn poll_that_looks_at_its_cancel_may_take_any_time() {
    let limit = Duration::from_millis(5);
    let runtime = Runtime::builder().workers(2).long_poll(Some(limit)).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let sees = s.spawn(async move |cx: Cx| {
                let cancelled = cx.cancelled().await;
                std::thread::sleep(4 * limit);
                Err::<(), _>(cancelled)
            });
            cx.yield_now().await;
            sees.cancel("now");
            let _ = sees.await;
            // A blocking job may take as long as it likes.
            let (begun, has_begun) = std::sync::mpsc::channel();
            let job = s.spawn_blocking(move || {
                begun.send(()).unwrap();
                std::thread::sleep(4 * limit);
                Ok(())
            });
            has_begun.recv().unwrap();
            job.cancel("now");
            let _ = job.await;
            Ok::<_, Cancelled>(())
        });
        let _ = scope.await;
    });
    assert_eq!(runtime.metrics().health.long_polls, 0);
}
