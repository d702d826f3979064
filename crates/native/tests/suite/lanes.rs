//! The order of dispatches on one worker.

use crate::common;

use std::sync::{Arc, Mutex};

use asx_native::{Builder, Runtime};
use asx_runtime::{Cancelled, Cx, Scope, channel};
use common::AppError;

type Log = Arc<Mutex<Vec<String>>>;

/// Runs a program on one worker; returns its log.
fn logged(program: impl AsyncFnOnce(&Cx, &Scope<AppError>, &Log)) -> Vec<String> {
    let log = Log::default();
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let result: Result<(), AppError> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            program(&cx, &s, &log).await;
            Ok(())
        })
        .await
    });
    result.unwrap();
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn ready_work_is_ordered_by_priority_above_and_below_the_default() {
    let order = logged(async |_, s, log| {
        for priority in [10, 128, 200, 127, 128, 129, 10] {
            let log = log.clone();
            s.task("one").priority(priority).spawn(async move |_: Cx| {
                log.lock().unwrap().push(priority.to_string());
                Ok(())
            });
        }
    });
    assert_eq!(order, ["200", "129", "128", "128", "127", "10", "10"]);
}

/// A ready dispatch after a full cancel streak allows another streak.
#[test]
fn a_cancel_streak_ends_with_a_ready_dispatch() {
    let order = logged(async |cx, s, log| {
        let leaves = |name: &'static str| {
            let log = log.clone();
            s.spawn(async move |cx: Cx| {
                let cancelled = cx.cancelled().await;
                log.lock().unwrap().push(name.into());
                Err::<(), AppError>(cancelled.into())
            })
        };
        let first = [(); 16].map(|()| leaves("streak"));
        let second = leaves("cancel");
        cx.yield_now().await;
        assert!(first.iter().all(|task| task.cancel("first")));
        cx.yield_now().await; // resumed by a ready dispatch
        let log = log.clone();
        s.spawn(async move |_: Cx| {
            log.lock().unwrap().push("ready".into());
            Ok(())
        });
        second.cancel("second");
    });
    assert_eq!(order[16..], ["cancel", "ready"]);
}

/// Returns the order in which ten tasks run that one task made ready.
fn order(seed: Option<u64>) -> Vec<u32> {
    let builder = Runtime::builder().current_thread();
    let builder = match seed {
        Some(seed) => builder.seed(seed).seeded_order(),
        None => builder,
    };
    let runtime = builder.build().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let result: Result<(), AppError> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<AppError>| {
            for n in 0..10 {
                let log = log.clone();
                s.spawn(async move |_cx: Cx| {
                    log.lock().unwrap().push(n);
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    });
    result.unwrap();
    Arc::into_inner(log).unwrap().into_inner().unwrap()
}

#[test]
fn equal_tasks_run_in_fifo_order_or_by_the_seed() {
    let in_order: Vec<u32> = (0..10).collect();
    assert_eq!(order(None), in_order);
    let drawn: Vec<_> = (0..4).map(|seed| order(Some(seed))).collect();
    assert_eq!(drawn, (0..4).map(|seed| order(Some(seed))).collect::<Vec<_>>());
    assert!(drawn.iter().any(|order| *order != drawn[0]) && !drawn.contains(&in_order));
    for mut order in drawn {
        order.sort_unstable();
        assert_eq!(order, in_order);
    }
}

/// Returns the order in which tasks run that were woken in the reverse order of their ids.
fn order_of_wakes(builder: Builder) -> Vec<usize> {
    let runtime = builder.workers(1).build().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let mut wakes = Vec::new();
            for n in 0..4 {
                let (wake, mut woken) = channel::oneshot();
                wakes.push(wake);
                let log = log.clone();
                s.spawn(async move |cx: Cx| {
                    woken.recv(&cx).await.unwrap();
                    log.lock().unwrap().push(n);
                    Ok(())
                });
            }
            cx.yield_now().await;
            wakes.into_iter().rev().for_each(|wake| wake.send(()).unwrap());
            Ok(())
        });
        scope.await.unwrap();
    });
    log.lock().unwrap().clone()
}

#[test]
fn task_key_order_runs_equal_tasks_by_their_ids() {
    let builder = Runtime::builder;
    assert_eq!(order_of_wakes(builder()), [3, 2, 1, 0]);
    assert_eq!(order_of_wakes(builder().task_key_order()), [0, 1, 2, 3]);
}
