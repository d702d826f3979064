//! Tasks that report when they are ready, and outcomes of several tasks.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_native::Runtime;
use asx_runtime::{Cx, NotReady, Policy, Ready, Scope, TaskError, channel};
use common::{AppError, on_each};

#[test]
fn start_returns_when_the_task_is_ready() {
    on_each(|rt| {
        let result: Result<u32, AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                for n in 0..200 {
                    let starting = s.start(async move |cx: Cx, ready: Ready<u32>| {
                        if n % 2 == 0 {
                            cx.yield_now().await;
                        }
                        ready.set(n);
                        cx.cancelled().await;
                        Ok(())
                    });
                    let (said, task) = starting.await.unwrap();
                    assert_eq!((said, task.is_finished()), (n, false));
                    task.cancel("done with");
                    assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
                }
                Ok(1)
            })
            .await
        });
        assert_eq!(result, Ok(1));
    });
}

#[test]
fn dropping_ready_cancels_the_task() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let starting = s.start(async |cx: Cx, ready: Ready<()>| {
                    drop(ready);
                    cx.cancelled().await;
                    Ok(())
                });
                let Err(NotReady::Ended(Err(TaskError::Cancelled(why)))) = starting.await else {
                    panic!("it has not ended cancelled")
                };
                assert_eq!(why.reason().kind, Kind::LinkedExit);
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
    });
}

#[test]
fn a_ready_value_is_received_after_the_end_of_the_task() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let starting = s.start(async |_cx: Cx, ready: Ready<&str>| {
                    ready.set("said");
                    Ok("done")
                });
                // It has ended or is about to: both orders are valid.
                cx.yield_now().await;
                let (said, task) = starting.await.unwrap();
                assert_eq!((said, task.await.unwrap()), ("said", "done"));
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
    });
}

#[test]
fn ending_before_ready_is_an_error_with_the_outcome() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.scope_with(Policy::CollectAll)
                .run(async |s: Scope<AppError>| {
                    let starting = s.start(async |cx: Cx, _ready: Ready<()>| {
                        cx.yield_now().await;
                        Err::<(), _>(AppError::Bad(4))
                    });
                    let error = starting.await.unwrap_err();
                    assert_eq!(error.to_string(), "ended before it was ready: Bad(4)");
                    assert!(matches!(
                        error,
                        NotReady::Ended(Err(TaskError::Err(AppError::Bad(4))))
                    ));

                    // The handle is dropped: the scope waits for the task, whose end is no error.
                    let starting = s.start(async |cx: Cx, ready: Ready<()>| {
                        drop(ready);
                        cx.yield_now().await;
                        Ok(8)
                    });
                    assert!(matches!(starting.await, Err(NotReady::Ended(Ok(8)))));

                    let starting = s
                        .start(async |_cx: Cx, _ready: Ready<()>| -> Result<(), _> { panic!("x") });
                    let error = starting.await.unwrap_err();
                    assert!(matches!(error, NotReady::Ended(Err(TaskError::Panicked(_)))));
                    Ok(())
                })
                .await
        });
        assert!(result.is_ok(), "{result:?}");
    });
}

#[test]
fn a_failure_before_ready_is_returned_by_start() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let starting = s.start(async |cx: Cx, _ready: Ready<()>| {
                    cx.yield_now().await;
                    Err::<(), _>(AppError::Bad(4))
                });
                match starting.await {
                    Err(NotReady::Ended(Err(TaskError::Err(error)))) => Err(error),
                    other => panic!("{other:?}"),
                }
            })
            .await
        });
        assert_eq!(result, Err(AppError::Bad(4)));
    });
}

#[test]
fn start_fails_in_a_closing_scope() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let _: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    s.cancel("done with");
                    let starting = s.start(async |_cx: Cx, ready: Ready<()>| {
                        ready.set(());
                        Ok(())
                    });
                    let ended = cx.shield(async |_| starting.await).await;
                    assert!(matches!(ended, Err(NotReady::Ended(Err(TaskError::Cancelled(_))))));
                    Ok(())
                })
                .await;
        });
    });
}

/// Starts a task in `s` that is never ready; returns the reason why it was cancelled.
fn never_ready(
    s: &Scope<AppError>,
    kinds: std::sync::mpsc::Sender<Kind>,
) -> asx_runtime::Starting<(), (), AppError> {
    s.start(async move |cx: Cx, ready: Ready<()>| {
        let cancelled = cx.cancelled().await;
        kinds.send(cancelled.kind()).unwrap();
        drop(ready);
        Ok(())
    })
}

#[test]
fn cancelling_start_cancels_the_starting_task() {
    on_each(|rt| {
        let (kinds, kind) = std::sync::mpsc::channel();
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (own, more) = (s.clone(), kinds.clone());
                let waits = s.spawn(async move |_cx: Cx| match never_ready(&own, more).await {
                    Err(NotReady::Cancelled(cancelled)) => Ok(cancelled.kind()),
                    other => panic!("{other:?}"),
                });
                cx.yield_now().await;
                waits.cancel("done with");
                assert!(matches!(waits.await, Err(TaskError::Cancelled(_))));
                // Dropping the wait cancels the task too.
                drop(never_ready(&s, kinds));
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
        assert_eq!(kind.iter().collect::<Vec<_>>(), [Kind::LinkedExit; 2]);
    });
}

#[test]
fn with_collect_all_a_failure_cancels_no_sibling() {
    on_each(|rt| {
        let seen = Arc::new(AtomicBool::new(false));
        let result = rt.block_on(async |cx: Cx| {
            cx.scope_with(Policy::CollectAll)
                .run(async |s: Scope<AppError>| {
                    let tasks: Vec<_> = (0..30)
                        .map(|n| {
                            let seen = seen.clone();
                            s.spawn(async move |cx: Cx| {
                                cx.sleep(Duration::from_micros(10 * n)).await?;
                                seen.fetch_or(cx.is_cancelled(), Ordering::Relaxed);
                                match n % 3 {
                                    0 => Ok(n),
                                    1 => Err(AppError::Bad(n as u32)),
                                    _ => panic!("{n}"),
                                }
                            })
                        })
                        .collect();
                    Ok(cx.outcomes(tasks).await?)
                })
                .await
        });
        assert!(!seen.load(Ordering::Relaxed));
        let outcomes = result.unwrap();
        assert_eq!(outcomes.len(), 30);
        for (n, outcome) in (0..).zip(outcomes) {
            match (n % 3, outcome) {
                (0, Ok(value)) => assert_eq!(value, n),
                (1, Err(TaskError::Err(error))) => assert_eq!(error, AppError::Bad(n as u32)),
                (2, Err(TaskError::Panicked(panic))) => assert_eq!(panic.message(), n.to_string()),
                (_, other) => panic!("{n}: {other:?}"),
            }
        }
    });
}

#[test]
fn a_cancel_during_outcomes_is_not_an_outcome() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            cx.scope_with(Policy::CollectAll)
                .run(async |s: Scope<AppError>| {
                    let forever = s.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await.into()));
                    let collected: Result<_, asx_runtime::Cancelled> = cx
                        .timeout(Duration::from_millis(1), async |cx| cx.outcomes([forever]).await)
                        .await;
                    s.cancel("done with");
                    Ok(collected.unwrap_err().kind())
                })
                .await
        });
        assert_eq!(result.unwrap(), Kind::Timeout);
    });
}

/// With a budget of no operation at all, nothing would happen.
#[test]
fn a_poll_may_complete_at_least_one_operation() {
    let rt = Runtime::builder().workers(1).operations_per_poll(Some(0)).build().unwrap();
    let got = rt.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded(1);
        tx.send(&cx, 7).await.expect("there is room");
        rx.recv(&cx).await.expect("it was sent")
    });
    assert_eq!(got, 7);
}
