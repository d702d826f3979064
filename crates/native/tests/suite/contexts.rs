//! Misuse of contexts: in another task, after their program, and after their runtime.

use crate::common;

use std::future::poll_fn;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::time::Time;
use asx_native::{BlockOnError, Runtime, wait};
use asx_runtime::channel::{self, RecvError};
use asx_runtime::sync::{Barrier, Mutex, Notify};
use asx_runtime::{Cancelled, Cx, join_all, race};
use common::{ends, on_each};

const LONG: Duration = Duration::from_secs(3600);

/// The closure of the body is called before there is a future to poll.
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

/// Every wait in a task with the context of another task fails with an error that says so.
#[test]
fn a_wait_with_the_context_of_another_task_fails() {
    ends(|| {
        on_each(|runtime| {
            let result: Result<(), Cancelled> = runtime.block_on(async |cx: Cx| {
                cx.scope(async |s| {
                    let other = cx.clone();
                    let task = s.spawn(async move |cx: Cx| {
                        wait_with(&other).await;
                        // Also in parts of the task, and with other wakers than that of the task.
                        let parts = [0, 1].map(|_| async |_: &Cx| wait_with(&other).await);
                        join_all(&cx, parts).await;
                        race(&cx, async |_| wait_with(&other).await, async |_| ()).await;
                        // A checkpoint is no wait, and none of this cancels the task.
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
fn a_thread_outside_tasks_may_wait_with_any_context() {
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

/// Returns the context of a program that has ended.
fn late(runtime: &Runtime) -> Cx {
    runtime.block_on(async |cx: Cx| cx)
}

fn assert_refused(result: Result<(), Cancelled>, kind: Kind, why: &str) {
    let cancelled = result.unwrap_err();
    assert_eq!((cancelled.kind(), cancelled.reason().message.as_deref()), (kind, Some(why)));
}

/// Waits on a new thread. Returns when the wait has begun.
fn wait_elsewhere(cx: Cx) -> thread::JoinHandle<Result<(), Cancelled>> {
    let (begun, begins) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut sleep = Box::pin(cx.sleep(LONG));
        let begin = poll_fn(|context| {
            let polled = sleep.as_mut().poll(context);
            let _ = begun.send(());
            polled
        });
        wait(begin)
    });
    begins.recv().unwrap();
    thread
}

const GONE: (Kind, &str) = (Kind::Shutdown, "the runtime is gone");
const IDLE: (Kind, &str) =
    (Kind::ResourceUnavailable, "nobody runs the timers: no program is running");

#[test]
fn a_timer_wait_fails_when_the_runtime_is_dropped() {
    ends(|| {
        for workers in [1, 2, 4] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let cx = late(&runtime);
            let waits = (workers > 1).then(|| wait_elsewhere(cx.clone()));
            drop(runtime);
            if let Some(thread) = waits {
                assert_refused(thread.join().unwrap(), GONE.0, GONE.1);
            }
            assert_refused(wait(cx.sleep(LONG)), GONE.0, GONE.1);
            let (_tx, mut rx) = channel::bounded::<u8>(1);
            assert_refused(wait(cx.interval(LONG).tick(&cx)).map(drop), GONE.0, GONE.1);
            let body = async |cx: &Cx| {
                let _ = rx.recv(cx).await;
                Ok(())
            };
            assert_refused(wait(cx.timeout(LONG, body)), GONE.0, GONE.1);
            assert_eq!(wait(cx.sleep_until(Time::ZERO)), Ok(()));
        }
    });
}

#[test]
fn a_timer_wait_fails_when_the_timers_are_not_driven() {
    ends(|| {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let cx = late(&runtime);
        assert_refused(wait(cx.sleep(Duration::from_millis(1))), IDLE.0, IDLE.1);
        // A running program drives the timers, until it ends.
        let waits = runtime.block_on(async |own: Cx| {
            let waits = wait_elsewhere(cx.clone());
            let short = cx.clone();
            let short = thread::spawn(move || wait(short.sleep(Duration::from_millis(1))));
            while !short.is_finished() {
                own.sleep(Duration::from_millis(1)).await.unwrap();
            }
            assert_eq!(short.join().unwrap(), Ok(()));
            waits
        });
        assert_refused(waits.join().unwrap(), IDLE.0, IDLE.1);
        assert_eq!(runtime.dump().timers, 0);
        assert_eq!(
            runtime.block_on(async |cx: Cx| cx.sleep(Duration::from_millis(1)).await),
            Ok(())
        );
    });
}

/// Other workers continue to run after the program has ended.
#[test]
fn a_timer_wait_completes_with_workers_left() {
    ends(|| {
        for armed in [false, true] {
            let runtime = Runtime::builder().workers(2).build().unwrap();
            let sleep = |cx: Cx| wait(cx.sleep(Duration::from_millis(30)));
            let thread = runtime.block_on(async |cx: Cx| {
                let own = cx.clone();
                let thread = thread::spawn(move || sleep(own));
                if armed {
                    cx.sleep(Duration::from_millis(10)).await.unwrap();
                }
                thread
            });
            assert_eq!(thread.join().unwrap(), Ok(()));
            assert_eq!(sleep(late(&runtime)), Ok(()));
        }
    });
}

/// A timeout ends an operation that does not observe cancels.
#[test]
fn a_timeout_on_a_thread_ends_a_foreign_future() {
    ends(|| {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let cx = late(&runtime);
        let (_tx, mut rx) = channel::bounded::<u8>(1);
        let body = async |cx: &Cx| {
            let _ = rx.recv(cx).await;
            Ok::<_, Cancelled>(())
        };
        let over = wait(cx.timeout(Duration::from_millis(1), body));
        assert_eq!(over.unwrap_err().kind(), Kind::Timeout);
    });
}

/// The name of the test below, and the variable that marks its child process.
const FORGOTTEN: &str = "contexts::a_program_that_cannot_close_reports_the_leaked_scope";
const CHILD: &str = "ASX_FORGOTTEN_SCOPE";

/// The future of a scope is leaked before it completes: the program waits for it, and reports that.
#[test]
#[cfg_attr(asx_no_reuse, ignore = "leaks a scope, which leak checkers report")]
fn a_program_that_cannot_close_reports_the_leaked_scope() {
    if std::env::var_os(CHILD).is_some() {
        return forget_a_scope();
    }
    ends(|| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", FORGOTTEN, "--nocapture"])
            .env(CHILD, "1")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let held: Vec<_> =
            told.filter(|line| line.contains("nothing runs in it")).take(1).collect();
        // Stopping the program ends it: that reaches the scope although it is not polled.
        assert!(held[0].contains("the future of its scope was forgotten"), "{held:?}");
        assert!(child.wait().unwrap().success());
    });
}

fn forget_a_scope() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let (handle, begin) = (runtime.handle(), std::time::Instant::now());
    thread::spawn(move || {
        // Later than the report.
        thread::sleep(Duration::from_secs(7));
        handle.stop(Duration::ZERO);
    });
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope(async |_s| cx.sleep(LONG).await);
        let mut scope: Pin<Box<dyn Future<Output = Result<(), Cancelled>>>> = Box::pin(scope);
        let mut context = Context::from_waker(Waker::noop());
        assert!(scope.as_mut().poll(&mut context).is_pending());
        // Its borrows must stay valid, so it is leaked.
        std::mem::forget(scope);
    });
    assert!(begin.elapsed() > Duration::from_secs(5));
}
