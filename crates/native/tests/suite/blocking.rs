//! Blocking jobs, through the public interface.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_native::Runtime;
use asx_runtime::{AdmissionError, Cx, Scope, SpawnError, TaskError};
use common::{AppError, on_each};

/// Runs a test on runtimes of several sizes with few threads for blocking jobs.
fn on_each_with(threads: usize, test: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        test(&Runtime::builder().workers(workers).blocking_threads(threads).build().unwrap());
    }
}

/// Returns a gate, a receiver that is notified when the job begins, and the job, which runs until
/// the gate is dropped.
fn gated() -> (mpsc::Sender<()>, mpsc::Receiver<()>, impl FnOnce() -> Result<u32, AppError>) {
    let (gate, closed) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let job = move || {
        begin.send(()).unwrap();
        assert!(closed.recv().is_err());
        Ok(7)
    };
    (gate, begun, job)
}

#[test]
fn a_job_returns_its_value_and_its_error() {
    on_each(|rt| {
        let result: Result<u32, AppError> = rt.block_on(async |cx: Cx| {
            let doubled = cx.spawn_blocking(|| 2 * 21).await.unwrap();
            cx.scope(async |s| {
                let sum = s.spawn_blocking(move || Ok(doubled + 1)).await.unwrap();
                assert_eq!(sum, 43);
                s.spawn_blocking(|| Err::<(), _>(AppError::Bad(5)));
                cx.cancelled().await;
                Ok(0)
            })
            .await
        });
        assert_eq!(result, Err(AppError::Bad(5)));
    });
}

#[test]
fn jobs_do_not_block_workers() {
    on_each(|rt| {
        let meet = Arc::new(Barrier::new(9));
        let met: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                for _ in 0..8 {
                    let meet = meet.clone();
                    s.spawn_blocking(move || Ok(meet.wait().is_leader()));
                }
                // Runs although eight jobs block, and releases them.
                let (meet, task) = (meet.clone(), s.spawn(async |_cx: Cx| Ok(())));
                task.await.unwrap();
                cx.spawn_blocking(move || meet.wait().is_leader()).await.unwrap();
                Ok(())
            })
            .await
        });
        assert_eq!(met, Ok(()));
    });
}

#[test]
fn a_cancel_before_the_start_completes_a_job_without_a_thread() {
    on_each_with(1, |rt| {
        let ran = Arc::new(AtomicUsize::new(0));
        let (gate, begun, job) = gated();
        let kinds = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let first = s.spawn_blocking(job);
                begun.recv().unwrap();
                let queued: Vec<_> = (0..20)
                    .map(|_| {
                        let ran = ran.clone();
                        s.spawn_blocking(move || Ok(ran.fetch_add(1, Ordering::Relaxed)))
                    })
                    .collect();
                let mut kinds = Vec::new();
                for task in queued {
                    assert!(task.cancel("done with"));
                    // It ends although the only thread is taken.
                    match task.await {
                        Err(TaskError::Cancelled(cancelled)) => kinds.push(cancelled.kind()),
                        other => panic!("{other:?}"),
                    }
                }
                drop(gate);
                assert_eq!(first.await.unwrap(), 7);
                Ok(kinds)
            })
            .await
        });
        assert_eq!(kinds.unwrap(), vec![Kind::User; 20]);
        assert_eq!(ran.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_scope_waits_for_a_running_job_which_keeps_its_outcome() {
    on_each_with(1, |rt| {
        let (gate, begun, job) = gated();
        let handle = rt.handle();
        let (outcome, dump) = rt.block_on(async |cx: Cx| {
            let mut task = None;
            let _: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    task = Some(s.task("job").spawn_blocking(job));
                    begun.recv().unwrap();
                    s.task("queued").spawn_blocking(|| Ok(()));
                    s.cancel("done with");
                    // The region is cancelled; the job keeps it open until the gate is dropped.
                    let now = handle.dump().to_string();
                    assert!(
                        now.contains("\"job\" CancelRequested, running a blocking job"),
                        "{now}"
                    );
                    drop(gate);
                    Ok(())
                })
                .await;
            (task.unwrap().outcome().unwrap(), handle.dump())
        });
        assert!(matches!(outcome, Ok(7)), "{outcome:?}");
        assert_eq!(dump.tasks(), 1, "{dump}");
    });
}

#[test]
fn a_dump_distinguishes_running_and_queued_jobs() {
    on_each_with(1, |rt| {
        let (gate, begun, job) = gated();
        let handle = rt.handle();
        let dump = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                s.task("first").spawn_blocking(job);
                begun.recv().unwrap();
                s.task("second").spawn_blocking(|| Ok(()));
                let dump = handle.dump();
                drop(gate);
                Ok::<_, AppError>(dump)
            })
            .await
        });
        let dump = dump.unwrap();
        let (text, json) = (dump.to_string(), dump.to_json());
        assert!(text.contains("\"first\" Running, running a blocking job"), "{text}");
        assert!(
            text.contains("\"second\" Created, waits for a thread for a blocking job"),
            "{text}"
        );
        assert_eq!(json.matches("\"blocking\":true").count(), 2, "{json}");
    });
}

#[test]
fn a_panic_of_a_job_surfaces_like_that_of_a_task() {
    on_each(|rt| {
        let (alone, scope) = rt.block_on(async |cx: Cx| {
            let alone = cx.spawn_blocking(|| -> u32 { panic!("alone") }).await;
            let scope: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    s.spawn_blocking(|| -> Result<(), _> { panic!("ouch") });
                    Ok(())
                })
                .await;
            (alone, scope)
        });
        assert!(matches!(alone, Err(TaskError::Panicked(panic)) if panic.message() == "alone"));
        assert!(matches!(scope, Err(TaskError::Panicked(panic)) if panic.message() == "ouch"));
    });
}

#[test]
fn the_scope_owns_a_job_whose_handle_is_dropped() {
    on_each(|rt| {
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..50 {
            let before = done.load(Ordering::SeqCst);
            let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
                let result = cx
                    .scope(async |_| {
                        let done = done.clone();
                        cx.spawn_blocking(move || done.fetch_add(1, Ordering::SeqCst));
                        Ok(())
                    })
                    .await;
                assert_eq!(done.load(Ordering::SeqCst), before + 1);
                result
            });
            assert_eq!(result, Ok(()));
        }
    });
}

#[test]
fn a_job_can_observe_its_cancel() {
    on_each(|rt| {
        let (begin, begun) = mpsc::channel();
        let result = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s| {
                let task = s.spawn_blocking(move || -> Result<(), AppError> {
                    begin.send(()).unwrap();
                    let cx = Cx::current().unwrap();
                    loop {
                        cx.checkpoint()?;
                        std::thread::yield_now();
                    }
                });
                begun.recv().unwrap();
                task.cancel("done with");
                Ok(task.await)
            })
            .await
        });
        assert!(matches!(result, Ok(Err(TaskError::Cancelled(_)))), "{result:?}");
    });
}

#[test]
fn a_closing_scope_refuses_jobs() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let _: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    s.cancel("done with");
                    let own = s.spawn_blocking(|| -> Result<(), _> { unreachable!() });
                    let any = cx.spawn_blocking(|| -> u32 { unreachable!() });
                    assert!(own.is_finished() && any.is_finished());
                    cx.shield(async |_| {
                        assert!(matches!(own.await, Err(TaskError::Cancelled(_))));
                        assert!(matches!(any.await, Err(TaskError::Cancelled(_))));
                    })
                    .await;
                    let refused = s.task("late").try_spawn_blocking(|| Ok(())).unwrap_err();
                    assert_eq!(refused, SpawnError::Refused(AdmissionError::Closing));
                    Ok(())
                })
                .await;
        });
    });
}

#[test]
fn a_deadline_ends_a_job_that_has_not_begun() {
    on_each_with(1, |rt| {
        let (gate, begun, job) = gated();
        let kind = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                s.spawn_blocking(job);
                begun.recv().unwrap();
                let late = s.task("late").within(Duration::from_millis(1));
                let late = late.spawn_blocking(|| -> Result<(), _> { unreachable!() });
                let kind = match late.await {
                    Err(TaskError::Cancelled(cancelled)) => cancelled.kind(),
                    other => panic!("{other:?}"),
                };
                drop(gate);
                Ok::<_, AppError>(kind)
            })
            .await
        });
        assert_eq!(kind, Ok(Kind::Deadline));
    });
}

#[test]
fn a_shutdown_that_cannot_end_a_job_reports_it() {
    let rt = Runtime::builder().workers(2).build().unwrap();
    let (gate, begun, job) = gated();
    std::thread::scope(|threads| {
        let program = threads.spawn(|| {
            rt.block_on(async |cx: Cx| {
                cx.try_scope(async |s: Scope<AppError>| Ok(s.task("job").spawn_blocking(job)))
                    .await
                    .map(|mut task| task.outcome())
            })
        });
        begun.recv().unwrap();
        let stuck = rt.shutdown(Duration::ZERO).unwrap_err();
        assert!(stuck.to_string().contains("running a blocking job"), "{stuck}");
        drop(gate);
        // The program's own task was aborted, or ended in time.
        let _ = program.join();
    });
    rt.shutdown(Duration::ZERO).expect("the job is still running");
}

#[test]
fn many_jobs_and_cancels_from_many_tasks_complete() {
    on_each_with(3, |rt| {
        let ran = Arc::new(AtomicUsize::new(0));
        let (ok, cancelled) = rt.block_on(async |cx: Cx| {
            let counted: Result<_, AppError> = cx
                .scope(async |s| {
                    let tasks: Vec<_> = (0..8)
                        .map(|_| {
                            let (s, ran) = (s.clone(), ran.clone());
                            s.clone().spawn(async move |cx: Cx| {
                                let (mut ok, mut cancelled) = (0, 0);
                                for n in 0..50 {
                                    let ran = ran.clone();
                                    let job = s.spawn_blocking(move || {
                                        Ok(ran.fetch_add(1, Ordering::Relaxed))
                                    });
                                    if n % 3 == 0 {
                                        job.cancel("done with");
                                    }
                                    match job.await {
                                        Ok(_) => ok += 1,
                                        Err(TaskError::Cancelled(_)) => cancelled += 1,
                                        Err(other) => panic!("{other:?}"),
                                    }
                                    cx.yield_now().await;
                                }
                                Ok((ok, cancelled))
                            })
                        })
                        .collect();
                    let (mut ok, mut cancelled) = (0, 0);
                    for task in tasks {
                        let (more_ok, more_cancelled) = task.await.unwrap();
                        ok += more_ok;
                        cancelled += more_cancelled;
                    }
                    Ok((ok, cancelled))
                })
                .await;
            counted.unwrap()
        });
        assert_eq!(ok + cancelled, 400);
        assert_eq!(ran.load(Ordering::Relaxed), ok);
        assert!(cancelled <= 8 * 17, "{cancelled}");
    });
}
