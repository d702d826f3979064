//! Stopping programs whose tasks do not cooperate.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use asx_native::{BlockOnError, Runtime};
use asx_runtime::{Cancelled, Cx, Grace, Scope, channel};

const SOON: Duration = Duration::from_millis(5);

/// Stops a program when `tasks` tasks are alive. All must complete, and leave no alarm.
fn stop<B: Future<Output = ()> + 'static>(body: fn(Cx) -> B, tasks: usize, patience: Duration) {
    stop_within(body, tasks, Grace { soft: SOON, hard: patience });
}

/// Waits, since a worker may still be disarming an alarm that fired as the last region closed.
fn no_alarm_is_left(runtime: &Runtime) {
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while runtime.dump().timers > 0 {
        assert!(std::time::Instant::now() < patience, "{}", runtime.dump());
        thread::sleep(Duration::from_millis(1));
    }
}

fn stop_within<B: Future<Output = ()> + 'static>(body: fn(Cx) -> B, tasks: usize, grace: Grace) {
    for workers in [1, 2, 4] {
        let runtime = Arc::new(Runtime::builder().workers(workers).build().unwrap());
        let program = thread::spawn({
            let runtime = runtime.clone();
            move || match runtime.try_block_on(body) {
                Ok(()) => {}
                // A slow machine may need more than this for the body after its tasks.
                Err(BlockOnError::Ended(_)) if grace.hard == SOON => {}
                Err(error) => panic!("{workers} workers: {error}"),
            }
        });
        while runtime.dump().tasks() < tasks {
            thread::yield_now();
        }
        if let Err(left) = runtime.shutdown(grace) {
            panic!("{workers} workers: still alive:\n{left}");
        }
        program.join().unwrap();
        no_alarm_is_left(&runtime);
    }
}

/// The task of the scope forwards its cancel when it observes it, which cancels the tasks a second
/// time. They still do not observe it, and can be aborted.
#[test]
fn tasks_that_were_cancelled_twice_can_be_aborted() {
    async fn program(cx: Cx) {
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            for _ in 0..4 {
                s.spawn(async |_| std::future::pending::<Result<(), _>>().await);
            }
            Ok(())
        });
        let _ = scope.await;
    }
    stop(program, 5, SOON);
}

/// Its wakeups come from timers, and it is in the cancel lane: neither moves it to another thread.
#[test]
fn a_program_stays_on_its_thread_when_it_is_cancelled() {
    async fn program(cx: Cx) {
        let here = thread::current().id();
        cx.cancelled().await;
        cx.shield(async |cx| {
            for _ in 0..30 {
                cx.sleep(Duration::from_micros(500)).await.unwrap();
                assert_eq!(thread::current().id(), here);
            }
        })
        .await;
    }
    stop(program, 1, Duration::from_secs(600));
}

/// The grace period is for live tasks: without any, the shutdown returns at once.
#[test]
fn shutdown_of_an_empty_runtime_returns_at_once() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.shutdown(Duration::MAX).expect("a task is alive");
        let late = runtime.try_block_on(async |_cx: Cx| ());
        assert!(matches!(late, Err(BlockOnError::ShutDown)), "{late:?}");
    }
}

/// A program that ends when notified ends the shutdown, however long the grace period is.
#[test]
fn a_program_that_ends_when_notified_ends_the_shutdown() {
    async fn program(cx: Cx) {
        cx.stopping().await.expect("it was cancelled");
    }
    stop_within(program, 1, Grace { soft: Duration::MAX, hard: Duration::MAX });
}

/// A cancel reaches the innermost of deeply nested scopes, without a stack overflow.
#[test]
fn a_cancel_reaches_deeply_nested_scopes() {
    type Boxed = std::pin::Pin<Box<dyn Future<Output = Result<(), Cancelled>> + Send>>;
    type Told = channel::oneshot::Reply<()>;
    fn nest(cx: Cx, depth: u32, told: Told) -> Boxed {
        Box::pin(async move {
            let Some(below) = depth.checked_sub(1) else {
                let _ = told.send(());
                cx.cancelled().await;
                return Ok(());
            };
            cx.scope(async |s: Scope<Cancelled>| {
                s.spawn(async move |cx: Cx| nest(cx, below, told).await);
                Ok(())
            })
            .await
        })
    }
    async fn program(cx: Cx) -> Result<(), Cancelled> {
        cx.scope(async |s: Scope<Cancelled>| {
            let (told, mut all_live) = channel::oneshot();
            s.spawn(async |cx: Cx| nest(cx, 300, told).await);
            all_live.recv(&cx).await.expect("the innermost task is alive");
            s.cancel("enough");
            Ok(())
        })
        .await
    }
    // The stack is too small for a recursion over the scopes.
    let small = thread::Builder::new().stack_size(256 * 1024);
    let run = || Runtime::builder().current_thread().build().unwrap().block_on(program);
    let ended = small.spawn(run).unwrap().join().unwrap();
    assert!(ended.is_ok(), "a cancel by the scope itself became its result");
}

/// The thread-local values of a thread are dropped in an unspecified order. A cancel from such a
/// destructor may find the list of regions dropped, and still reaches all of them.
#[test]
fn a_cancel_in_a_thread_local_destructor_reaches_inner_scopes() {
    struct Cancels(Scope<Cancelled>);
    impl Drop for Cancels {
        fn drop(&mut self) {
            self.0.cancel("the thread has ended");
        }
    }
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Cancels>> = const { std::cell::RefCell::new(None) };
    }
    /// Runs a scope with another one inside. Sends the outer one when the inner one is open.
    async fn nested(cx: Cx, tell: std::sync::mpsc::Sender<Scope<Cancelled>>) {
        let ended = cx.scope(async |outer: Scope<Cancelled>| {
            let told = outer.clone();
            outer.spawn(async move |cx: Cx| {
                cx.scope(async |_: Scope<Cancelled>| {
                    let _ = tell.send(told);
                    cx.cancelled().await;
                    Ok(())
                })
                .await
            });
            Ok(())
        });
        assert!(ended.await.is_ok(), "a cancel by the scope itself became its result");
    }
    let (tell, told) = std::sync::mpsc::channel();
    let ends = thread::spawn(move || {
        // Stored before the first cancel of this thread, so that it is dropped after the list.
        let (first, last) = (told.recv().unwrap(), told.recv().unwrap());
        KEPT.with_borrow_mut(|kept| *kept = Some(Cancels(last)));
        first.cancel("the first");
    });
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let both = cx.scope(async |s: Scope<Cancelled>| {
            for tell in [tell.clone(), tell] {
                s.spawn(async move |cx: Cx| {
                    nested(cx, tell).await;
                    Ok(())
                });
            }
            Ok(())
        });
        assert!(both.await.is_ok());
    });
    ends.join().expect("the thread panicked");
}

/// Many threads stop a busy runtime at arbitrary times, several times each, with and without a
/// grace period. It always ends, and leaves no alarm.
#[test]
fn concurrent_stops_at_any_time_complete() {
    fn churn(cx: Cx, depth: u32) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            // Observes no cancel except through its scopes, in which it always starts new tasks.
            for _ in 0..200 {
                let _ = cx
                    .try_scope(async |s: Scope<Cancelled>| {
                        for _ in 0..2 {
                            let below = depth.checked_sub(1);
                            s.spawn(async move |cx: Cx| {
                                if let Some(below) = below {
                                    churn(cx, below).await;
                                }
                                Ok(())
                            });
                        }
                        s.defer(async |cx: Cx| cx.yield_now().await).ok();
                        Ok(())
                    })
                    .await;
                cx.yield_now().await;
            }
            std::future::pending().await
        })
    }
    for round in 0..40_u64 {
        let runtime = Arc::new(Runtime::builder().workers(2).build().unwrap());
        let program = thread::spawn({
            let runtime = runtime.clone();
            move || runtime.try_block_on(async |cx: Cx| churn(cx, 2).await).is_ok()
        });
        let stoppers = (0..4_u64).map(|own| {
            let handle = runtime.handle();
            let pause =
                move |n: u64| Duration::from_micros((round * 7 + own * 13 + n * 5) % 40 * 25);
            thread::spawn(move || {
                for n in 0..20 {
                    thread::sleep(pause(n));
                    handle.stop(Grace { soft: pause(n + 1), hard: pause(n + 2) });
                    handle.stop(Duration::ZERO);
                }
            })
        });
        let stoppers: Vec<_> = stoppers.collect();
        let patience = std::time::Instant::now() + Duration::from_secs(60);
        while !program.is_finished() {
            assert!(std::time::Instant::now() < patience, "round {round}:\n{}", runtime.dump());
            thread::sleep(Duration::from_millis(1));
        }
        program.join().unwrap();
        stoppers.into_iter().for_each(|stopper| stopper.join().unwrap());
        no_alarm_is_left(&runtime);
    }
}
