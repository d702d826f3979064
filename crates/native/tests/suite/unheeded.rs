//! Cancels that nobody looks at are counted, and can fail a program.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

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
