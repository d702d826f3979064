//! Contexts where they do not belong: in another task, after their program, after their runtime.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::thread;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_native::{BlockOnError, wait};
use asx_runtime::channel::{self, RecvError};
use asx_runtime::sync::{Barrier, Mutex, Notify};
use asx_runtime::{Cancelled, Cx, join_all, race};
use common::{ends, on_each};

const LONG: Duration = Duration::from_secs(3600);

/// The body's closure is called before there is anything to poll.
#[test]
fn a_program_inside_the_closure_of_a_body_is_refused() {
    ends(|| {
        on_each(|runtime| {
            let body = |_cx| {
                let inner = runtime.try_block_on(async |_cx: Cx| 1);
                assert!(matches!(inner, Err(BlockOnError::InsideTask)));
                assert!(catch_unwind(|| wait(async { 1 })).is_err());
                async { 2 }
            };
            assert_eq!(runtime.block_on(body), 2);
            assert_eq!(runtime.block_on(async |_cx: Cx| 3), 3);
            let panics = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(|_cx| -> std::future::Ready<u8> { panic!("no body") })
            }));
            assert!(panics.is_err());
            assert_eq!(runtime.block_on(async |_cx: Cx| 4), 4);
        });
    });
}

/// Every wait in a task with the context of another is an error that says so.
#[test]
fn a_wait_with_the_context_of_another_task_says_so() {
    ends(|| {
        on_each(|runtime| {
            let result: Result<(), Cancelled> = runtime.block_on(async |cx: Cx| {
                cx.scope(async |s| {
                    let other = cx.clone();
                    let task = s.spawn(async move |cx: Cx| {
                        wait_with(&other).await;
                        // In parts of the task too, and under wakers that are not the task's.
                        let parts = [0, 1].map(|_| async |_: &Cx| wait_with(&other).await);
                        join_all(&cx, parts).await;
                        race(&cx, async |_| wait_with(&other).await, async |_| ()).await;
                        // To look is no wait, and nothing of this is a cancel of the task.
                        other.checkpoint()?;
                        cx.checkpoint()
                    });
                    assert!(task.await.is_ok());
                    Ok(())
                })
                .await
            });
            assert_eq!(result, Ok(()));
        });
    });
}

async fn wait_with(cx: &Cx) {
    let (tx, mut rx) = channel::bounded(1);
    let says_so = |cancelled: Cancelled| {
        assert_eq!(cancelled.kind(), Kind::ResourceUnavailable);
        let (task, message) = (cancelled.reason().origin_task, &cancelled.reason().message);
        assert_eq!(
            (task, message.as_deref()),
            (Some(cx.id()), Some("the context of another task"))
        );
    };
    says_so(cx.sleep(LONG).await.unwrap_err());
    says_so(cx.sleep(Duration::ZERO).await.unwrap_err());
    says_so(cx.cancelled().await);
    says_so(cx.stopping().await.unwrap_err());
    says_so(cx.interval(LONG).tick(cx).await.unwrap_err());
    says_so(cx.timeout(LONG, async |_| Ok::<_, Cancelled>(())).await.unwrap_err());
    says_so(cx.scope(async |_s| Ok::<_, Cancelled>(())).await.unwrap_err());
    says_so(Mutex::new(1).lock(cx).await.map(drop).unwrap_err());
    says_so(Notify::new().notified(cx).await.unwrap_err());
    says_so(Barrier::new(1).wait(cx).await.unwrap_err());
    match tx.send(cx, 1).await {
        Err(channel::SendError::Cancelled(1, cancelled)) => says_so(cancelled),
        other => panic!("{other:?}"),
    }
    match rx.recv(cx).await {
        Err(RecvError::Cancelled(cancelled)) => says_so(cancelled),
        other => panic!("{other:?}"),
    }
}

/// Threads that poll no task may wait with any context, and blocking jobs with that of a task.
#[test]
fn a_wait_outside_of_tasks_is_anybody_s() {
    ends(|| {
        on_each(|runtime| {
            let result: Result<u32, Cancelled> = runtime.block_on(async |cx: Cx| {
                cx.scope(async |s| {
                    let (tx, mut rx) = channel::bounded(1);
                    let (lent, own) = (cx.clone(), cx.clone());
                    let job = s.spawn_blocking(move || Ok(wait(tx.send(&lent, 3)).is_ok()));
                    let thread = thread::spawn(move || wait(own.sleep(Duration::from_millis(1))));
                    let number = rx.recv(&cx).await.unwrap_or(0);
                    assert!(job.await.unwrap_or(false));
                    while !thread.is_finished() {
                        cx.sleep(Duration::from_millis(1)).await?;
                    }
                    assert_eq!(thread.join().unwrap(), Ok(()));
                    Ok(number)
                })
                .await
            });
            assert_eq!(result, Ok(3));
        });
    });
}
