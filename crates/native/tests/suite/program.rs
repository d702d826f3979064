//! The body of a program in `block_on` is not delayed by other tasks.

use crate::common;

use std::sync::mpsc;
use std::time::Duration;

use asx_native::Runtime;
use asx_runtime::{Cx, Scope};
use common::AppError;

/// A limit that none of these tests reaches.
const LONG: Duration = Duration::from_secs(20);

/// Blocks `tasks` of two workers until the body of the program releases them. The body must wake
/// from `wait`.
fn body_is_released(tasks: usize, rounds: usize, wait: impl AsyncFn(&Cx, &Scope<AppError>)) {
    for _ in 0..rounds {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let all_blocked = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<AppError>| {
                let blocked = || {
                    let (go, until) = mpsc::channel();
                    let blocks = async move |_: Cx| Ok(until.recv_timeout(LONG).is_ok());
                    (go, s.spawn(blocks))
                };
                let blocked: Vec<_> = (0..tasks).map(|_| blocked()).collect();
                wait(&cx, &s).await;
                let mut released = Vec::new();
                for (go, task) in blocked {
                    go.send(()).unwrap();
                    released.push(task.await.unwrap());
                }
                Ok(released)
            })
            .await
        });
        assert_eq!(all_blocked, Ok(vec![true; tasks]), "the body did not release a task");
    }
}

#[test]
fn a_blocking_task_does_not_delay_a_sleep_of_the_body() {
    body_is_released(1, 50, async |cx, _| {
        cx.sleep(Duration::from_millis(1)).await.unwrap();
        cx.yield_now().await;
    });
}

#[test]
fn tasks_that_block_all_workers_do_not_delay_a_sleep_of_the_body() {
    body_is_released(2, 5, async |cx, _| {
        for _ in 0..2 {
            cx.sleep(Duration::from_millis(30)).await.unwrap();
        }
    });
}

#[test]
fn a_blocking_task_does_not_delay_a_join_in_the_body() {
    body_is_released(1, 50, async |_, s| {
        for _ in 0..20 {
            let task = s.spawn(async |cx: Cx| {
                cx.yield_now().await;
                Ok(())
            });
            task.await.unwrap();
        }
    });
}

#[test]
fn a_blocking_body_does_not_delay_the_tasks() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (tell, told) = mpsc::channel();
    let told = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<AppError>| {
            for _ in 0..4 {
                let tell = tell.clone();
                s.spawn(async move |cx: Cx| {
                    cx.sleep(Duration::from_millis(1)).await?;
                    tell.send(()).unwrap();
                    Ok(())
                });
            }
            Ok((0..4).all(|_| told.recv_timeout(LONG).is_ok()))
        })
        .await
    });
    assert_eq!(told, Ok(true));
}
