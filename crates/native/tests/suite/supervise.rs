//! Tasks that are started again, from the outside.

use crate::common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_runtime::{Cx, Policy, Restart, Scope, TaskError};
use common::{AppError, on_each};

const EVER: Duration = Duration::MAX;

#[test]
fn a_failed_task_is_started_again_until_it_ends_well() {
    on_each(|rt| {
        let lives = Arc::new(AtomicU32::new(0));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let lives = lives.clone();
                let task = s.supervise("worker", Restart::times(5, EVER), move || {
                    let lives = lives.clone();
                    async move |cx: Cx| {
                        cx.yield_now().await;
                        match lives.fetch_add(1, Ordering::Relaxed) {
                            0 | 1 => Err(AppError::Bad(1)),
                            2 => panic!("the third life"),
                            _ => Ok(()),
                        }
                    }
                });
                assert!(matches!(task.await, Ok(())));
                Ok(())
            })
            .await
        });
        assert_eq!((result, lives.load(Ordering::Relaxed)), (Ok(()), 4));
    });
}

#[test]
fn a_failure_too_many_fails_the_scope_with_the_last_cause() {
    on_each(|rt| {
        let lives = Arc::new(AtomicU32::new(0));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let lives = lives.clone();
                drop(s.supervise("worker", Restart::times(3, EVER), move || {
                    let lives = lives.clone();
                    async move |_cx: Cx| Err(AppError::Bad(lives.fetch_add(1, Ordering::Relaxed)))
                }));
                cx.cancelled().await;
                Ok(())
            })
            .await
        });
        assert_eq!((result, lives.load(Ordering::Relaxed)), (Err(AppError::Bad(3)), 4));
    });
}

#[test]
fn a_panic_too_many_is_the_scopes_panic() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let mut lives = 0;
                drop(s.supervise("worker", Restart::times(2, EVER), move || {
                    lives += 1;
                    // The third is not even made.
                    assert!(lives < 3, "life {lives}");
                    async move |_cx: Cx| panic!("life {lives}")
                }));
                Ok(())
            })
            .await
        });
        assert!(matches!(&result, Err(TaskError::Panicked(panic)) if panic.message() == "life 3"));
    });
}

#[test]
fn where_all_is_collected_the_handle_tells_the_last_cause() {
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
        let lives = Arc::new(AtomicU32::new(0));
        let kind = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let own = lives.clone();
                let task = s.supervise("worker", Restart::times(u32::MAX, EVER), move || {
                    own.fetch_add(1, Ordering::Relaxed);
                    async move |cx: Cx| {
                        let _ = cx.cancelled().await;
                        Err(AppError::Bad(1))
                    }
                });
                while lives.load(Ordering::Relaxed) == 0 {
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
        assert_eq!((kind.unwrap(), lives.load(Ordering::Relaxed)), (Kind::User, 1));
    });
}

#[test]
fn a_cancel_ends_the_wait_before_a_restart() {
    on_each(|rt| {
        let lives = Arc::new(AtomicU32::new(0));
        let handle = rt.handle();
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (own, hour) = (lives.clone(), Duration::from_secs(3600));
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
        assert_eq!((result, lives.load(Ordering::Relaxed)), (Ok(()), 1));
    });
}

#[test]
fn a_life_has_ended_with_all_it_started_before_the_next_begins() {
    on_each(|rt| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (log, mut life) = (log.clone(), 0);
                drop(s.supervise("worker", Restart::times(2, EVER), move || {
                    life += 1;
                    let (log, own) = (log.clone(), life);
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
        let lives = (1..=3).flat_map(|life| [(life, "begin"), (life, "job")]);
        assert_eq!(result, Ok(()));
        assert_eq!(*log.lock().unwrap(), Vec::from_iter(lives));
    });
}

#[test]
fn the_limit_counts_only_restarts_of_one_span() {
    on_each(|rt| {
        let lives = Arc::new(AtomicU32::new(0));
        // No span holds two restarts: each begins after the former's has passed.
        let restart = Restart::times(1, Duration::from_micros(10))
            .backoff(Duration::from_micros(50), Duration::from_micros(50));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let lives = lives.clone();
                drop(s.supervise("worker", restart, move || {
                    let life = lives.fetch_add(1, Ordering::Relaxed);
                    async move |_cx: Cx| if life < 9 { Err(AppError::Bad(life)) } else { Ok(()) }
                }));
                Ok(())
            })
            .await
        });
        assert_eq!((result, lives.load(Ordering::Relaxed)), (Ok(()), 10));
    });
}

#[test]
fn a_task_that_is_cancelled_by_its_budget_is_not_started_again() {
    on_each(|rt| {
        let lives = Arc::new(AtomicU32::new(0));
        let kind = rt.block_on(async |cx: Cx| {
            let budget = asx_kernel::budget::Budget {
                poll_quota: 50,
                ..asx_kernel::budget::Budget::INFINITE
            };
            cx.scope_with(Policy::FailFast)
                .budget(budget)
                .run(async |s: Scope<AppError>| {
                    let lives = lives.clone();
                    let task = s.supervise("worker", Restart::times(3, EVER), move || {
                        lives.fetch_add(1, Ordering::Relaxed);
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
        assert_eq!((kind.unwrap(), lives.load(Ordering::Relaxed)), (Kind::PollQuota, 1));
    });
}
