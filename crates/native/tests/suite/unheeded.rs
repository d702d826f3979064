//! Cancels that are not observed are counted, and can fail a program.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use asx_native::{BlockOnError, Builder, Runtime};
use asx_runtime::{Cancelled, Cx, Policy, Scope};

/// Runs a task that is cancelled and then yields `yields` times before it observes that, and one
/// that observes its cancel at once.
fn runs(runtime: &Runtime, yields: u32) -> Result<(), BlockOnError> {
    runtime.try_block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            // Until its cancel it waits for a foreign future, which does not observe cancels.
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
fn a_task_that_ignores_its_cancel_is_counted_once_and_continues() {
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
fn the_default_cancel_latency_is_a_thousand_polls() {
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
fn deny_unheeded_cancels_fails_the_program() {
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
        // Reported once: later programs are judged separately.
        runs(runtime, 5).unwrap();
    });
}

/// Cleanup does not observe cancels and has a separate bound.
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

/// When a task that loops is cancelled.
#[derive(Clone, Copy, Debug)]
enum CancelAt {
    /// Before its first poll.
    Start,
    /// In the poll, by the task itself.
    ByItself,
    /// In the poll, by a thread that belongs to no runtime.
    ByThread,
}

/// Runs tasks that loop in one poll until `is_found`, each cancelled once. Returns whether all of
/// them ended because of that, and not because they had looped for 30 seconds.
fn loops(
    runtime: &Runtime,
    tasks: usize,
    cancel_at: CancelAt,
    is_found: impl Fn() -> bool + Clone + Send + 'static,
) -> Result<bool, BlockOnError> {
    runtime.try_block_on(async |cx: Cx| {
        let settings = cx.scope_with(Policy::CollectAll);
        let scope = settings.run(async |s: Scope<Cancelled>| {
            let (begun, has_begun) = std::sync::mpsc::channel();
            let all_spawned = Arc::new(AtomicBool::new(false));
            let spawn = |_| {
                let (is_found, begun, own) = (is_found.clone(), begun.clone(), s.clone());
                let all_spawned = all_spawned.clone();
                s.task("busy").spawn(async move |_cx: Cx| {
                    if let CancelAt::ByItself = cancel_at {
                        while !all_spawned.load(Ordering::Acquire) {
                            std::thread::yield_now();
                        }
                        own.cancel("enough");
                    }
                    begun.send(()).unwrap();
                    let end = Instant::now() + Duration::from_secs(30);
                    while !is_found() && Instant::now() < end {
                        std::thread::yield_now();
                    }
                    Ok(is_found())
                })
            };
            let busy: Vec<_> = (0..tasks).map(spawn).collect();
            all_spawned.store(true, Ordering::Release);
            match cancel_at {
                CancelAt::Start => busy.iter().for_each(|task| assert!(task.cancel("enough"))),
                CancelAt::ByItself => {}
                CancelAt::ByThread => {
                    let own = s.clone();
                    std::thread::spawn(move || {
                        (0..tasks).for_each(|_| has_begun.recv().unwrap());
                        own.cancel("enough");
                    });
                }
            }
            let mut all = true;
            cx.shield(async |_| {
                for task in busy {
                    all &= task.await.is_ok_and(|found| found);
                }
                Ok::<_, Cancelled>(())
            })
            .await?;
            Ok::<_, Cancelled>(all)
        });
        scope.await.unwrap_or(false)
    })
}

/// FB-203: a loop without a checkpoint after a cancel request, all in one poll. Every worker is
/// inside such a poll, so that only another thread can find them.
#[test]
fn polls_that_do_not_return_after_a_cancel_are_reported_while_they_run() {
    let limit = Duration::from_millis(5);
    for workers in [1, 2, 4] {
        for cancel_at in [CancelAt::Start, CancelAt::ByItself, CancelAt::ByThread] {
            let builder = Runtime::builder().workers(workers).long_poll(Some(limit));
            let runtime = builder.build().unwrap();
            let handle = runtime.handle();
            let found = move || handle.metrics().health.long_polls == workers as u64;
            let all_found = loops(&runtime, workers, cancel_at, found).unwrap();
            assert!(all_found, "{workers} workers, {cancel_at:?}: {:?}", runtime.metrics().health);
            let health = runtime.metrics().health;
            assert_eq!((health.long_polls, health.unheeded_cancels), (workers as u64, 0));
        }
    }
}

#[test]
fn poll_that_takes_too_long_after_a_cancel_fails_a_program_that_denies_it() {
    let limit = Duration::from_millis(5);
    let builder = Runtime::builder().workers(1).deny_unheeded_cancels();
    for cancel_at in [CancelAt::Start, CancelAt::ByItself] {
        let runtime = builder.clone().long_poll(Some(limit)).build().unwrap();
        let handle = runtime.handle();
        let found = move || handle.metrics().health.long_polls == 1;
        let Err(BlockOnError::Unheeded(found)) = loops(&runtime, 1, cancel_at, found) else {
            panic!("the program did not fail")
        };
        assert_eq!(found.name.as_deref(), Some("busy"));
        assert!(found.inside.is_some_and(|time| time >= limit), "{found:?}");
        assert!(found.at.is_some_and(|at| at.file() == file!()), "{found:?}");
        assert!(found.to_string().contains("`busy` was cancelled"), "{found}");
        assert_eq!(runtime.metrics().health.long_polls, 1);
    }
    // Without the setting no poll is too long, and a poll within the limit is not reported.
    for limit in [None, Some(Duration::from_secs(600)), Some(Duration::MAX)] {
        let runtime = builder.clone().long_poll(limit).build().unwrap();
        let end = Instant::now() + Duration::from_millis(50);
        loops(&runtime, 1, CancelAt::Start, move || end <= Instant::now()).unwrap();
        assert_eq!(runtime.metrics().health.long_polls, 0);
    }
}

/// Many short polls take longer together than one of them may.
#[test]
fn short_polls_after_a_cancel_are_not_one_long_poll() {
    let limit = Duration::from_millis(300);
    for (workers, by_itself) in [(1, false), (1, true), (2, false), (2, true)] {
        let builder = Runtime::builder().workers(workers).cancel_latency(None);
        let runtime = builder.long_poll(Some(limit)).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let own = s.clone();
                let busy = s.spawn(async move |cx: Cx| {
                    if by_itself {
                        own.cancel("enough");
                    }
                    let end = Instant::now() + 3 * limit;
                    while Instant::now() < end {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
                if !by_itself {
                    busy.cancel("enough");
                }
                cx.shield(async |_| busy.await.ok()).await;
                Ok(())
            });
            let _ = scope.await;
        });
        assert_eq!(runtime.metrics().health.long_polls, 0, "{workers} workers, {by_itself}");
    }
}

#[test]
fn poll_that_observes_its_cancel_may_take_any_time() {
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
            // A blocking job may take any time.
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
