//! Tasks that are restarted, through the public interface.

use crate::common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_runtime::{Cx, Policy, Restart, Scope, TaskError};
use common::{AppError, on_each};

const EVER: Duration = Duration::MAX;

#[test]
fn a_failed_task_is_restarted_until_it_succeeds() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let attempts = attempts.clone();
                let task = s.supervise("worker", Restart::times(5, EVER), move || {
                    let attempts = attempts.clone();
                    async move |cx: Cx| {
                        cx.yield_now().await;
                        match attempts.fetch_add(1, Ordering::Relaxed) {
                            0 | 1 => Err(AppError::Bad(1)),
                            2 => panic!("the third attempt"),
                            _ => Ok(()),
                        }
                    }
                });
                assert!(matches!(task.await, Ok(())));
                Ok(())
            })
            .await
        });
        assert_eq!((result, attempts.load(Ordering::Relaxed)), (Ok(()), 4));
    });
}

#[test]
fn one_failure_too_many_fails_the_scope_with_the_last_cause() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let attempts = attempts.clone();
                drop(s.supervise("worker", Restart::times(3, EVER), move || {
                    let attempts = attempts.clone();
                    async move |_cx: Cx| {
                        Err(AppError::Bad(attempts.fetch_add(1, Ordering::Relaxed)))
                    }
                }));
                cx.cancelled().await;
                Ok(())
            })
            .await
        });
        assert_eq!((result, attempts.load(Ordering::Relaxed)), (Err(AppError::Bad(3)), 4));
    });
}

#[test]
fn one_panic_too_many_is_the_panic_of_the_scope() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let mut attempts = 0;
                drop(s.supervise("worker", Restart::times(2, EVER), move || {
                    attempts += 1;
                    // The third is not even created.
                    assert!(attempts < 3, "attempt {attempts}");
                    async move |_cx: Cx| panic!("attempt {attempts}")
                }));
                Ok(())
            })
            .await
        });
        assert!(
            matches!(&result, Err(TaskError::Panicked(panic)) if panic.message() == "attempt 3")
        );
    });
}

#[test]
fn with_collect_all_the_handle_returns_the_last_cause() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.scope_with(Policy::CollectAll)
                .run(async |s: Scope<AppError>| {
                    let task = s.supervise("worker", Restart::times(0, EVER), || {
                        async |_cx: Cx| Err(AppError::Bad(9))
                    });
                    Ok(task.await)
                })
                .await
        });
        assert!(matches!(result, Ok(Err(TaskError::Err(AppError::Bad(9))))), "{result:?}");
    });
}

#[test]
fn a_cancel_ends_the_task_and_the_restarts() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        let kind = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let own = attempts.clone();
                let task = s.supervise("worker", Restart::times(u32::MAX, EVER), move || {
                    own.fetch_add(1, Ordering::Relaxed);
                    async move |cx: Cx| {
                        let _ = cx.cancelled().await;
                        Err(AppError::Bad(1))
                    }
                });
                while attempts.load(Ordering::Relaxed) == 0 {
                    cx.yield_now().await;
                }
                task.cancel("done with");
                match task.await {
                    Err(TaskError::Cancelled(cancelled)) => Ok(cancelled.kind()),
                    other => panic!("{other:?}"),
                }
            })
            .await
        });
        assert_eq!((kind.unwrap(), attempts.load(Ordering::Relaxed)), (Kind::User, 1));
    });
}

#[test]
fn a_cancel_ends_the_wait_before_a_restart() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        let handle = rt.handle();
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (own, hour) = (attempts.clone(), Duration::from_secs(3600));
                let restart = Restart::times(3, EVER).backoff(hour, hour);
                drop(s.supervise("worker", restart, move || {
                    own.fetch_add(1, Ordering::Relaxed);
                    async |_cx: Cx| Err(AppError::Bad(1))
                }));
                let waits = || handle.dump().to_string().contains("Running, waits for a point");
                while !waits() {
                    cx.yield_now().await;
                }
                let dump = handle.dump().to_string();
                assert!(dump.contains("\"supervisor of worker\""), "{dump}");
                s.cancel("done with");
                Ok(())
            })
            .await
        });
        assert_eq!((result, attempts.load(Ordering::Relaxed)), (Ok(()), 1));
    });
}

#[test]
fn an_attempt_and_its_children_end_before_the_next_begins() {
    on_each(|rt| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (log, mut attempt) = (log.clone(), 0);
                drop(s.supervise("worker", Restart::times(2, EVER), move || {
                    attempt += 1;
                    let (log, own) = (log.clone(), attempt);
                    async move |cx: Cx| {
                        log.lock().unwrap().push((own, "begin"));
                        let late = log.clone();
                        cx.spawn_blocking(move || late.lock().unwrap().push((own, "job")));
                        if own < 3 { Err(AppError::Bad(own)) } else { Ok(()) }
                    }
                }));
                Ok(())
            })
            .await
        });
        let attempts = (1..=3).flat_map(|attempt| [(attempt, "begin"), (attempt, "job")]);
        assert_eq!(result, Ok(()));
        assert_eq!(*log.lock().unwrap(), Vec::from_iter(attempts));
    });
}

#[test]
fn the_limit_counts_restarts_within_one_span() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        // No span contains two restarts: each begins after that of the previous one has passed.
        let restart = Restart::times(1, Duration::from_micros(10))
            .backoff(Duration::from_micros(50), Duration::from_micros(50));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let attempts = attempts.clone();
                drop(s.supervise("worker", restart, move || {
                    let attempt = attempts.fetch_add(1, Ordering::Relaxed);
                    async move |_cx: Cx| {
                        if attempt < 9 { Err(AppError::Bad(attempt)) } else { Ok(()) }
                    }
                }));
                Ok(())
            })
            .await
        });
        assert_eq!((result, attempts.load(Ordering::Relaxed)), (Ok(()), 10));
    });
}

#[test]
fn a_task_cancelled_by_its_budget_is_not_restarted() {
    on_each(|rt| {
        let attempts = Arc::new(AtomicU32::new(0));
        let kind = rt.block_on(async |cx: Cx| {
            let budget = asx_kernel::budget::Budget {
                poll_quota: 50,
                ..asx_kernel::budget::Budget::INFINITE
            };
            cx.scope_with(Policy::FailFast)
                .budget(budget)
                .run(async |s: Scope<AppError>| {
                    let attempts = attempts.clone();
                    let task = s.supervise("worker", Restart::times(3, EVER), move || {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        async move |cx: Cx| loop {
                            cx.checkpoint()?;
                            cx.yield_now().await;
                        }
                    });
                    match task.await {
                        Err(TaskError::Cancelled(cancelled)) => Ok(cancelled.kind()),
                        other => panic!("{other:?}"),
                    }
                })
                .await
        });
        assert_eq!((kind.unwrap(), attempts.load(Ordering::Relaxed)), (Kind::PollQuota, 1));
    });
}
