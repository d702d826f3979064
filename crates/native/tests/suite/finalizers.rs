//! Finalizers that panic, and finalizers that spawn finalizers.

use crate::common;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_kernel::status::{Coded as _, Status};
use asx_native::Runtime;
use asx_runtime::{Cx, FinalizerError, Outcome, Policy, Scope, TaskError};
use common::{AppError, on_each};

/// Runs a scope whose second of three finalizers panics. Returns its outcome and the finalizers
/// that ran.
fn second_panics<T: Send>(
    rt: &Runtime,
    policy: Policy,
    body: impl AsyncFnOnce(&Cx, &Scope<AppError>) -> Result<T, AppError>,
) -> (Outcome<T, AppError>, Vec<u32>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let outcome = rt.block_on(async |cx: Cx| {
        cx.scope_with(policy)
            .run(async |s: Scope<AppError>| {
                for n in 0..3 {
                    let log = log.clone();
                    s.defer(async move |cx: Cx| {
                        cx.yield_now().await;
                        log.lock().unwrap().push(n);
                        assert!(n != 1, "finalizer {n}");
                    })
                    .unwrap();
                }
                body(&cx, &s).await
            })
            .await
    });
    let log = log.lock().unwrap().clone();
    (outcome, log)
}

fn panic_of<T>(outcome: Outcome<T, AppError>) -> String {
    match outcome {
        Err(TaskError::Panicked(panic)) => panic.message().into(),
        Err(stop) => panic!("{stop}"),
        Ok(_) => panic!("no panic"),
    }
}

#[test]
fn a_panic_of_a_finalizer_is_the_outcome_and_the_others_still_run() {
    on_each(|rt| {
        for policy in [Policy::FailFast, Policy::CollectAll] {
            let (outcome, ran) = second_panics(rt, policy, async |_, _| Ok(7));
            assert_eq!((panic_of(outcome).as_str(), ran), ("finalizer 1", vec![2, 1, 0]));
        }
    });
}

#[test]
fn a_panic_of_a_finalizer_precedes_an_error() {
    on_each(|rt| {
        let bad = async |_: &Cx, _: &Scope<AppError>| Err::<(), _>(AppError::Bad(1));
        assert_eq!(panic_of(second_panics(rt, Policy::FailFast, bad).0), "finalizer 1");
        let child = async |_: &Cx, s: &Scope<AppError>| {
            s.spawn(async |_cx: Cx| Err::<(), _>(AppError::Bad(2)));
            Ok(())
        };
        assert_eq!(panic_of(second_panics(rt, Policy::FailFast, child).0), "finalizer 1");
    });
}

#[test]
fn of_two_panics_the_first_is_the_outcome() {
    on_each(|rt| {
        let child = async |_: &Cx, s: &Scope<AppError>| {
            s.spawn(async |_cx: Cx| -> Result<(), _> { panic!("child") });
            Ok(())
        };
        let (outcome, ran) = second_panics(rt, Policy::FailFast, child);
        assert_eq!((panic_of(outcome).as_str(), ran), ("child", vec![2, 1, 0]));
        let body = async |_: &Cx, _: &Scope<AppError>| -> Result<(), _> { panic!("body") };
        assert_eq!(panic_of(second_panics(rt, Policy::FailFast, body).0), "body");
        // A panic that was awaited has been handled, that of the finalizer has not.
        let awaited = async |_: &Cx, s: &Scope<AppError>| {
            let task = s.spawn(async |_cx: Cx| -> Result<(), _> { panic!("child") });
            assert!(matches!(task.await, Err(TaskError::Panicked(_))));
            Ok(())
        };
        assert_eq!(panic_of(second_panics(rt, Policy::CollectAll, awaited).0), "finalizer 1");
    });
}

#[test]
fn a_panic_of_a_finalizer_resumes_at_the_scope() {
    on_each(|rt| {
        let outcome = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |outer: Scope<AppError>| {
                let sibling = outer.spawn(async |cx: Cx| {
                    cx.sleep(Duration::from_secs(3600)).await?;
                    Ok(())
                });
                outer.spawn(async |cx: Cx| {
                    cx.scope(async |s: Scope<AppError>| {
                        s.defer(async |_cx: Cx| panic!("finalizer")).unwrap();
                        Ok(())
                    })
                    .await
                });
                let _ = sibling.await;
                Ok(())
            })
            .await
        });
        assert_eq!(panic_of(outcome), "finalizer");
    });
}

/// Polls a future once and drops it.
async fn poll_once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn a_panic_without_a_receiver_is_counted() {
    on_each(|rt| {
        let before = rt.metrics().health.lost_panics;
        rt.block_on(async |cx: Cx| {
            poll_once(cx.try_scope(async |s: Scope<AppError>| {
                s.defer(async |_cx: Cx| panic!("of a scope that was dropped")).unwrap();
                std::future::pending::<Result<(), AppError>>().await
            }))
            .await;
        });
        assert_eq!(rt.metrics().health.lost_panics, before + 1);
    });
}

#[test]
fn finalizer_spawned_by_a_finalizer_runs_before_the_next_registered_one() {
    on_each(|rt| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let outcome = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let first = log.clone();
                s.defer(async move |_cx: Cx| first.lock().unwrap().push("registered first"))
                    .unwrap();
                let scope = s.clone();
                let inside = log.clone();
                s.defer(async move |cx: Cx| {
                    let direct = inside.clone();
                    let body = async move |cx: Cx| {
                        cx.sleep(Duration::from_millis(2)).await.unwrap();
                        direct.lock().unwrap().push("spawned");
                    };
                    scope.spawn_finalizer(body).unwrap();
                    cx.yield_now().await;
                    inside.lock().unwrap().push("registered last");
                })
                .unwrap();
                let early = s.spawn_finalizer(async |_cx: Cx| panic!("it was started"));
                assert_eq!(early, Err(FinalizerError::NotFinalizing));
                assert_eq!(early.unwrap_err().status(), Status::InvalidTransition);
                Ok(s.clone())
            })
            .await
        });
        let scope = outcome.unwrap();
        let mut log = log.lock().unwrap();
        assert_eq!(log.pop(), Some("registered first"));
        log.sort_unstable();
        assert_eq!(*log, ["registered last", "spawned"]);
        let late = scope.spawn_finalizer(async |_cx: Cx| panic!("it was started"));
        assert_eq!(late.map_err(|error| error.status()), Err(Status::RegionClosed));
    });
}

#[test]
fn cancel_does_not_reach_a_finalizer_spawned_by_a_finalizer() {
    on_each(|rt| {
        let (done, ended) = std::sync::mpsc::channel();
        let outcome = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let scope = s.clone();
                s.defer(async move |_cx: Cx| {
                    let body = async move |cx: Cx| {
                        for _ in 0..3 {
                            cx.sleep(Duration::from_millis(1)).await.unwrap();
                        }
                        done.send(cx.checkpoint().is_ok()).unwrap();
                    };
                    scope.spawn_finalizer(body).unwrap();
                    scope.cancel("once more");
                })
                .unwrap();
                s.cancel("enough");
                Ok(())
            })
            .await
        });
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(ended.recv(), Ok(true));
    });
}

#[test]
fn panic_of_a_spawned_finalizer_is_the_outcome() {
    on_each(|rt| {
        let outcome = rt.block_on(async |cx: Cx| {
            cx.try_scope(async |s: Scope<AppError>| {
                let scope = s.clone();
                s.defer(async move |_cx: Cx| {
                    scope.spawn_finalizer(async |_cx: Cx| panic!("spawned")).unwrap();
                })
                .unwrap();
                Ok(())
            })
            .await
        });
        assert_eq!(panic_of(outcome), "spawned");
    });
}
