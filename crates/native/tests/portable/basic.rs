//! Programs on threads, through the public interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_native::{Handle, Runtime};
use asx_runtime::channel::{ChannelError, ChannelExt};
use asx_runtime::{AdmissionError, BoxFuture, Cancelled, Cx, Limits, Scope, SpawnError, TaskError};

#[derive(Debug, PartialEq)]
enum AppError {
    Cancelled,
    Bad(u32),
}

impl From<Cancelled> for AppError {
    fn from(_: Cancelled) -> Self {
        AppError::Cancelled
    }
}

fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}

#[test]
fn block_on_returns_the_value_of_the_program() {
    on_each(|rt| {
        let local = String::from("borrowed");
        assert_eq!(rt.block_on(async |_cx| local.len()), 8);
        assert_eq!(rt.block_on(async |_cx| local.len() + 1), 9);
    });
}

#[test]
fn a_scope_waits_for_its_children() {
    on_each(|rt| {
        let count = Arc::new(AtomicUsize::new(0));
        let result: Result<u32, AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                for _ in 0..1000 {
                    let count = count.clone();
                    s.spawn(async move |cx: Cx| {
                        cx.yield_now().await;
                        count.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    });
                }
                Ok(7)
            })
            .await
        });
        assert_eq!((result, count.load(Ordering::Relaxed)), (Ok(7), 1000));
    });
}

#[test]
fn handles_return_outcomes() {
    on_each(|rt| {
        let sum: Result<u64, AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let tasks: Vec<_> =
                    (0..100_u64).map(|n| s.spawn(async move |_cx: Cx| Ok(n))).collect();
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                Ok(sum)
            })
            .await
        });
        assert_eq!(sum, Ok(4950));
    });
}

#[test]
fn the_first_error_cancels_the_rest_and_is_the_result() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                for _ in 0..10 {
                    s.spawn(async move |cx: Cx| {
                        cx.sleep(Duration::from_secs(3600)).await?;
                        Ok(())
                    });
                }
                s.spawn(async move |cx: Cx| {
                    cx.sleep(Duration::from_millis(1)).await?;
                    Err::<(), _>(AppError::Bad(3))
                });
                cx.cancelled().await;
                Ok(())
            })
            .await
        });
        assert_eq!(result, Err(AppError::Bad(3)));
    });
}

#[test]
fn a_panic_of_a_child_surfaces_at_the_scope() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s| {
                s.spawn(async |_cx: Cx| -> Result<(), AppError> { panic!("ouch") });
                Ok(())
            })
            .await
        });
        assert!(matches!(result, Err(TaskError::Panicked(panic)) if panic.message() == "ouch"));
    });
}

#[test]
fn a_timeout_around_a_scope_is_reported_when_its_children_ended_first() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let result = runtime.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_millis(2), async |cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    s.spawn(async |cx: Cx| cx.sleep(Duration::from_secs(3600)).await);
                    Ok(())
                })
                .await
            })
            .await
        });
        assert_eq!(result.unwrap_err().kind(), Kind::Timeout);
    }
}

#[test]
fn awaiting_a_child_in_a_timeout_reports_the_timeout() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_millis(2), async |cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    let child = s.spawn(async |cx: Cx| cx.sleep(Duration::from_secs(3600)).await);
                    match child.await {
                        Err(TaskError::Cancelled(cancelled)) => Err(cancelled),
                        other => panic!("{other:?}"),
                    }
                })
                .await
            })
            .await
        });
        let result: Result<(), _> = result;
        assert_eq!(result.unwrap_err().kind(), Kind::Timeout);
    });
}

#[test]
fn a_timeout_cancels_the_operation_inside() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_millis(2), async |cx| {
                cx.sleep(Duration::from_secs(3600)).await?;
                Ok(())
            })
            .await
        });
        assert_eq!(result, Err(AppError::Cancelled));
    });
}

#[test]
fn finalizers_run_last_in_reverse_order() {
    on_each(|rt| {
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                for n in 0..3 {
                    let log = log.clone();
                    s.defer(async move |cx: Cx| {
                        cx.sleep(Duration::from_millis(1)).await.unwrap();
                        log.lock().unwrap().push(n);
                    })
                    .unwrap();
                }
                s.cancel("done with");
                Ok(())
            })
            .await
        });
        assert_eq!((result, log.lock().unwrap().clone()), (Ok(()), vec![2, 1, 0]));
    });
}

#[test]
fn a_deadline_cancels_a_task() {
    on_each(|rt| {
        let kind = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let task = s.task("late").within(Duration::from_millis(2)).spawn(async |cx: Cx| {
                    cx.sleep(Duration::from_secs(3600)).await?;
                    Ok(())
                });
                match task.await {
                    Err(TaskError::Cancelled(cancelled)) => Ok::<_, AppError>(cancelled.kind()),
                    other => panic!("{other:?}"),
                }
            })
            .await
        });
        assert_eq!(kind, Ok(asx_kernel::cancel::Kind::Deadline));
    });
}

#[test]
fn a_task_without_polls_left_is_cancelled() {
    on_each(|rt| {
        let kind = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let task = s.task("busy").polls(10).spawn(async |cx: Cx| {
                    loop {
                        cx.checkpoint()?;
                        cx.yield_now().await;
                    }
                    #[allow(unreachable_code)]
                    Ok(())
                });
                match task.await {
                    Err(TaskError::Cancelled(cancelled)) => Ok::<_, AppError>(cancelled.kind()),
                    other => panic!("{other:?}"),
                }
            })
            .await
        });
        assert_eq!(kind, Ok(asx_kernel::cancel::Kind::PollQuota));
    });
}

#[test]
fn a_task_that_never_stops_cleaning_up_is_aborted() {
    on_each(|rt| {
        let kind = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let task = s.spawn(async |cx: Cx| {
                    let _ = cx.cancelled().await;
                    loop {
                        cx.yield_now().await;
                    }
                    #[allow(unreachable_code)]
                    Ok::<(), AppError>(())
                });
                cx.yield_now().await;
                task.cancel("done with");
                match task.await {
                    Err(TaskError::Cancelled(cancelled)) => Ok::<_, AppError>(cancelled.kind()),
                    other => panic!("{other:?}"),
                }
            })
            .await
        });
        assert_eq!(kind, Ok(asx_kernel::cancel::Kind::User));
    });
}

#[test]
fn a_shutdown_notifies_cancels_and_aborts() {
    on_each(|rt| {
        let handle = rt.handle();
        let seen = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s| {
                let polite = s.spawn(async |cx: Cx| {
                    cx.stopping().await?;
                    Ok::<_, AppError>("polite")
                });
                let stubborn = s.task("stubborn").spawn(async |_cx: Cx| {
                    std::future::pending::<()>().await;
                    Ok::<_, AppError>("never")
                });
                let firm = s.spawn(async |cx: Cx| {
                    cx.sleep(Duration::from_secs(3600)).await?;
                    Ok::<_, AppError>("never")
                });
                cx.yield_now().await;
                cx.sleep(Duration::from_millis(1)).await?;
                assert!(handle.dump().to_string().contains("task t"));
                // Long enough for the polite task, even on a busy machine.
                handle.stop(Duration::from_millis(1000));
                let polite = polite.await;
                cx.shield(async |_| {
                    assert!(matches!(polite, Ok("polite")), "{polite:?}");
                    assert!(matches!(stubborn.await, Err(TaskError::Cancelled(_))));
                    assert!(matches!(firm.await, Err(TaskError::Cancelled(_))));
                })
                .await;
                Ok("body")
            })
            .await
        });
        assert!(matches!(seen, Err(TaskError::Cancelled(_)) | Ok("body")), "{seen:?}");
        rt.shutdown(Duration::ZERO).expect("nothing lives");
        assert_eq!(rt.dump().tasks(), 0);
    });
}

#[test]
fn a_dump_of_a_deep_tree_has_short_lines() {
    fn nest(cx: Cx, depth: u32, handle: Handle) -> BoxFuture<'static, Result<String, Cancelled>> {
        Box::pin(async move {
            if depth == 0 {
                return Ok(handle.dump().to_string());
            }
            let inner = async |s: Scope<Cancelled>| {
                let task = s.task("two\nlines").spawn(move |cx| nest(cx, depth - 1, handle));
                match task.await {
                    Ok(dump) => Ok(dump),
                    stop => panic!("{stop:?}"),
                }
            };
            cx.scope(inner).await
        })
    }
    // On one worker, all other tasks wait while the innermost takes the dump.
    let rt = Runtime::builder().current_thread().build().unwrap();
    let dump = rt.block_on(async |cx: Cx| nest(cx, 100, rt.handle()).await).unwrap();
    assert!(dump.lines().all(|line| line.len() < 200), "{dump}");
    assert_eq!(dump.lines().filter(|line| line.contains(r#""two\nlines""#)).count(), 100);
    assert!(
        dump.lines().any(|line| line.trim_start().starts_with("region r102 Open in r101,")),
        "{dump}"
    );
    let here = format!("the end of a task at {}", file!());
    assert_eq!(dump.matches(&here).count(), 100, "{dump}");
}

#[test]
fn a_dump_names_the_operation_and_its_location() {
    on_each(|rt| {
        let handle = rt.handle();
        let (text, json) = rt.block_on(async |cx: Cx| {
            let result: Result<_, AppError> = cx
                .scope(async |s| {
                    s.task("sleeper").spawn(async |cx: Cx| {
                        cx.sleep(Duration::from_secs(3600)).await?;
                        Ok(())
                    });
                    // Another worker may have taken it, and may begin it late.
                    let mut dump = handle.dump();
                    for _ in 0..10_000 {
                        if dump.to_string().contains("waits for a point in time") {
                            break;
                        }
                        cx.sleep(Duration::from_millis(1)).await?;
                        dump = handle.dump();
                    }
                    s.cancel("done with");
                    Ok((dump.to_string(), dump.to_json()))
                })
                .await;
            result.unwrap()
        });
        let line = text.lines().find(|line| line.contains("sleeper")).unwrap();
        assert!(line.contains("Running, waits for a point in time at"), "{line}");
        assert!(line.contains("basic.rs"), "{line}");
        assert!(json.contains("\"name\":\"sleeper\",\"state\":\"Running\""), "{json}");
    });
}

#[test]
fn metrics_count_polls_by_lane_and_overruns() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let result: Result<(), AppError> = cx
                .scope(async |s| {
                    for _ in 0..10 {
                        s.spawn(async |cx: Cx| {
                            cx.cancelled().await;
                            loop {
                                cx.yield_now().await;
                            }
                            #[allow(unreachable_code)]
                            Ok(())
                        });
                    }
                    let timed = s.task("timed").within(Duration::from_secs(3600));
                    let timed = timed.spawn(async |cx: Cx| {
                        cx.yield_now().await;
                        Ok(())
                    });
                    timed.await.unwrap();
                    s.cancel("done with");
                    Ok(())
                })
                .await;
            assert_eq!(result, Ok(()));
        });
        let metrics = rt.metrics();
        let sum = |of: fn(&asx_native::WorkerMetrics) -> u64| metrics.workers.iter().map(of).sum();
        let timed: u64 = sum(|worker| worker.timed);
        let cancel: u64 = sum(|worker| worker.cancel + worker.fallbacks);
        assert_eq!(metrics.health.overruns, 10);
        assert_eq!(timed, 2);
        // Each is polled for cleanup 200 times, and once more to exceed that limit.
        assert!(cancel >= 2000, "{metrics:?}");
        // One of them is the body of the program.
        assert!(sum(|worker| worker.ready) + metrics.guests.ready >= 2, "{metrics:?}");
    });
}

#[test]
fn a_thread_name_with_a_zero_byte_is_refused() {
    let refused = Runtime::builder().workers(2).name("a\0b").build().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("zero byte"), "{refused}");
}

/// Returns how far a task that always finds a message gets before another one runs.
fn passed_before_another_runs(operations: Option<u32>) -> usize {
    let rt = Runtime::builder().current_thread().operations_per_poll(operations).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let result: Result<usize, AppError> = cx
            .scope(async |s| {
                let done = Arc::new(AtomicUsize::new(0));
                let count = done.clone();
                let busy = s.spawn(async move |cx: Cx| {
                    let (tx, mut rx) = asx_runtime::channel::bounded(1);
                    for n in 0..2000_usize {
                        tx.send(&cx, n).await.unwrap();
                        rx.recv(&cx).await.unwrap();
                        count.store(n + 1, Ordering::Relaxed);
                    }
                    Ok(())
                });
                let other = s.spawn(async move |_: Cx| Ok(done.load(Ordering::Relaxed)));
                let seen = other.await.unwrap();
                busy.await.unwrap();
                Ok(seen)
            })
            .await;
        result.unwrap()
    })
}

#[test]
fn a_task_that_is_always_ready_does_not_starve_others() {
    assert_eq!(passed_before_another_runs(Some(128)), 64);
    assert_eq!(passed_before_another_runs(Some(10)), 5);
    assert_eq!(passed_before_another_runs(None), 2000);
}

/// A poll does not return until another task has run, which must be taken from its worker's queue.
#[test]
fn work_behind_a_blocking_poll_is_run_by_another_worker() {
    let rt = Runtime::builder().workers(2).build().unwrap();
    let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            for _ in 0..20 {
                let (scope, ran) = (s.clone(), Arc::new(AtomicUsize::new(0)));
                let blocks = s.spawn(async move |_: Cx| {
                    let flag = ran.clone();
                    scope.spawn(async move |_: Cx| {
                        flag.store(1, Ordering::Release);
                        Ok(())
                    });
                    // A watcher needs much less: only a task that is never stolen takes longer.
                    let patience = std::time::Instant::now() + Duration::from_secs(30);
                    while ran.load(Ordering::Acquire) == 0 {
                        assert!(std::time::Instant::now() < patience, "the task was not stolen");
                        std::thread::yield_now();
                    }
                    Ok(())
                });
                blocks.await.unwrap();
                cx.yield_now().await;
            }
            Ok(())
        })
        .await
    });
    assert_eq!(result, Ok(()));
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = |seed| {
        let runtime = Runtime::builder().current_thread().seed(seed).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            let all: Vec<_> = (0..100).map(|_| (cx.random(), cx.random_below(6))).collect();
            assert!(all.iter().all(|(_, die)| *die < 6) && cx.random_below(0) == 0);
            all
        })
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let dice: std::collections::BTreeSet<_> = draw(7).into_iter().map(|(_, die)| die).collect();
    assert_eq!(dice.len(), 6);
}

#[test]
fn a_handle_keeps_the_outcome_of_a_task_that_was_cancelled() {
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let result: Result<(), Cancelled> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            let mut task = s.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await));
            cx.yield_now().await;
            task.cancel("enough");
            while !task.is_finished() {
                cx.yield_now().await;
            }
            let Some(Err(TaskError::Cancelled(cancelled))) = task.outcome() else {
                panic!("no cancel")
            };
            assert_eq!(cancelled.reason().message.as_deref(), Some("enough"));
            assert!(task.outcome().is_none(), "the outcome was returned twice");
            Ok(())
        })
        .await
    });
    result.unwrap();
}

/// The journal is off, and the scope has nothing else left.
#[test]
fn a_scope_that_ends_at_once_closes_its_channels() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let ends = runtime.block_on(async |cx: Cx| {
        let ends: Result<_, Cancelled> =
            cx.scope(async |_: Scope<Cancelled>| Ok(cx.channel::<u8>(1))).await;
        ends
    });
    let (tx, mut rx) = ends.unwrap().unwrap();
    assert!(tx.is_closed());
    assert_eq!(rx.try_recv(), Err(asx_runtime::channel::TryRecvError::Disconnected));
}

#[test]
fn refusals_by_a_limit_have_typed_errors() {
    let limits = Limits { tasks: 2, regions: 3, ..Limits::default() };
    let rt = Runtime::builder().limits(limits).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let full = async |s: Scope<Cancelled>| {
            let kept = s.spawn(async |cx: Cx| Ok(cx.cancelled().await));
            let Err(TaskError::Cancelled(refused)) = s.spawn(async |_cx: Cx| Ok(())).await else {
                panic!("there was room")
            };
            assert_eq!(refused.kind(), Kind::ResourceUnavailable);
            let inner = cx.scope(async |_: Scope<Cancelled>| Ok(())).await;
            assert_eq!(inner.unwrap_err().kind(), Kind::ResourceUnavailable);
            let job = cx.spawn_blocking(|| ()).await;
            assert!(job.unwrap_err().to_string().contains("limit"));
            kept.cancel("enough");
            Ok(())
        };
        cx.scope(full).await.unwrap();
    });
}

#[test]
fn the_memory_limit_bounds_live_objects() {
    // The program itself, and eight more tasks.
    let memory = 256 * 8 + 256 * 4;
    let limit = AdmissionError::LimitReached;
    for workers in [1, 2] {
        let limits = Limits { memory, ..Limits::default() };
        let rt = Runtime::builder().workers(workers).limits(limits).build().unwrap();
        rt.block_on(async |cx: Cx| {
            // Twice: completed tasks do not count.
            for _ in 0..2 {
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    let spawn =
                        |_| s.task("waits").try_spawn(async |cx: Cx| Ok(cx.cancelled().await));
                    let tasks: Vec<_> = (0..100).map(spawn).collect();
                    let admitted = tasks.iter().filter(|task| task.is_ok()).count();
                    for refused in tasks.iter().filter_map(|task| task.as_ref().err()) {
                        assert_eq!(*refused, SpawnError::Refused(limit));
                    }
                    let channel = cx.channel::<u8>(4);
                    assert_eq!(channel.err(), Some(ChannelError::Refused(limit)));
                    s.cancel("enough");
                    Ok(admitted)
                });
                assert_eq!(scope.await, Ok(8));
            }
        });
    }
}
