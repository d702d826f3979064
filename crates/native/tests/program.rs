//! The thread in `block_on`: no other task of the program can hold it up.

mod common;

use std::sync::mpsc;
use std::time::Duration;

use asx_native::Runtime;
use asx_runtime::{Cx, Scope};
use common::AppError;

/// Far longer than any of this takes.
const LONG: Duration = Duration::from_secs(20);

/// A task blocks its thread until the body of the program lets it go. Whatever wakes the body, that
/// comes: with two workers there is one for everything else.
fn body_goes_on(wait: impl AsyncFn(&Cx, &Scope<AppError>)) {
    for _ in 0..50 {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (go, until) = mpsc::channel();
        let blocked = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<AppError>| {
                let blocks = async move |_: Cx| Ok(until.recv_timeout(LONG).is_ok());
                let blocked = s.spawn(blocks);
                wait(&cx, &s).await;
                go.send(()).unwrap();
                Ok(blocked.await.unwrap())
            })
            .await
        });
        assert_eq!(blocked, Ok(true), "the body waited for a task that waits for it");
    }
}

#[test]
fn a_task_that_blocks_its_thread_does_not_hold_up_a_sleep_of_the_body() {
    body_goes_on(async |cx, _| {
        cx.sleep(Duration::from_millis(1)).await.unwrap();
        cx.yield_now().await;
    });
}

#[test]
fn a_task_that_blocks_its_thread_does_not_hold_up_a_join_in_the_body() {
    body_goes_on(async |_, s| {
        for _ in 0..20 {
            s.spawn(async |cx: Cx| Ok(cx.yield_now().await)).await.unwrap();
        }
    });
}

#[test]
fn a_body_that_blocks_its_thread_does_not_hold_up_the_tasks() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (tell, told) = mpsc::channel();
    let told = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<AppError>| {
            for _ in 0..4 {
                let tell = tell.clone();
                drop(s.spawn(async move |cx: Cx| {
                    cx.sleep(Duration::from_millis(1)).await?;
                    tell.send(()).unwrap();
                    Ok(())
                }));
            }
            Ok((0..4).all(|_| told.recv_timeout(LONG).is_ok()))
        })
        .await
    });
    assert_eq!(told, Ok(true));
}
