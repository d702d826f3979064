//! Tasks that say when they are ready, and all outcomes of several, from the outside.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_native::Runtime;
use asx_runtime::{Cx, NotReady, Policy, Ready, Scope, TaskError, channel};
use common::{AppError, on_each};

#[test]
fn whoever_starts_a_task_goes_on_when_it_is_ready() {
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
fn who_drops_what_it_would_say_so_with_is_asked_to_stop() {
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
fn what_was_said_is_heard_even_after_the_end() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let starting = s.start(async |_cx: Cx, ready: Ready<&str>| {
                    ready.set("said");
                    Ok("done")
                });
                // Ended, or about to: both orders are right.
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
fn an_end_before_it_is_ready_is_an_error_with_the_outcome() {
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

                    // Forgotten: waited for to the end, which is not an error of its own.
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
fn a_failure_before_it_is_ready_is_heard_where_it_was_started() {
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
fn in_a_closing_scope_nothing_is_ready() {
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

/// Starts a task in `s` that is never ready, and tells why it was cancelled.
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
fn a_cancel_of_who_waits_cancels_what_starts() {
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
                // Dropped half-way it is cancelled too.
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
fn where_all_is_collected_a_failure_cancels_nothing() {
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
fn a_cancel_of_who_collects_is_not_mistaken_for_an_outcome() {
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

/// A bound of no operation at all would let nothing happen.
#[test]
fn a_poll_may_do_one_operation_at_least() {
    let rt = Runtime::builder().workers(1).operations_per_poll(Some(0)).build().unwrap();
    let got = rt.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded(1);
        tx.send(&cx, 7).await.expect("there is room");
        rx.recv(&cx).await.expect("it was sent")
    });
    assert_eq!(got, 7);
}
