//! Stopping programs that do not want to.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use asx_native::{BlockOnError, Runtime};
use asx_runtime::{Cancelled, Cx, Grace, Scope, channel};

const SOON: Duration = Duration::from_millis(5);

/// Runs a program, stops it when `tasks` live, and wants all of it to end, and no alarm to be left.
fn stop<B: Future<Output = ()> + 'static>(body: fn(Cx) -> B, tasks: usize, patience: Duration) {
    stop_within(body, tasks, Grace { soft: SOON, hard: patience });
}

/// A worker may be about to take back an alarm that rang as the last region closed.
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
            move || runtime.block_on(body)
        });
        while runtime.dump().tasks() < tasks {
            thread::yield_now();
        }
        if let Err(left) = runtime.shutdown(grace) {
            panic!("{workers} workers leave:\n{left}");
        }
        program.join().unwrap();
        no_alarm_is_left(&runtime);
    }
}

/// The scope's own task passes its cancel on when it sees it: that asks the tasks a second time,
/// and they are as deaf as before, but not lost.
#[test]
fn tasks_that_were_asked_twice_can_be_ended_by_force() {
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

/// Its wakes come from timers, and it is in the cancel lane: neither takes it elsewhere.
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

/// Patience is for what lives: with nothing there, no time limit matters.
#[test]
fn nothing_is_waited_for_when_nothing_lives() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.shutdown(Duration::MAX).expect("nothing lives");
        let late = runtime.try_block_on(async |_cx: Cx| ());
        assert!(matches!(late, Err(BlockOnError::ShutDown)), "{late:?}");
    }
}

/// A program that goes when it is told ends the wait, however long that might have been.
#[test]
fn a_program_that_goes_when_told_ends_the_wait() {
    async fn program(cx: Cx) {
        cx.stopping().await.expect("nobody cancels it");
    }
    stop_within(program, 1, Grace { soft: Duration::MAX, hard: Duration::MAX });
}

/// However deep scopes are in each other, a cancel reaches the innermost, and the stack lasts.
#[test]
fn a_cancel_goes_as_deep_as_scopes_do() {
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
            all_live.recv(&cx).await.expect("the innermost lives");
            s.cancel("enough");
            Ok(())
        })
        .await
    }
    // A small stack: a call for each of the scopes would not fit.
    let small = thread::Builder::new().stack_size(256 * 1024);
    let run = || Runtime::builder().current_thread().build().unwrap().block_on(program);
    let ended = small.spawn(run).unwrap().join().unwrap();
    assert!(ended.is_ok(), "what it caused itself is not its result");
}

/// A thread that ends gives up what it keeps for itself in an order of its own; a cancel that comes
/// from there finds no list of regions any more, and reaches all of them.
#[test]
fn a_cancel_by_the_end_of_a_thread_reaches_inner_scopes() {
    struct Cancels(Scope<Cancelled>);
    impl Drop for Cancels {
        fn drop(&mut self) {
            self.0.cancel("the thread has ended");
        }
    }
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Cancels>> = const { std::cell::RefCell::new(None) };
    }
    /// A scope with another one inside, which is told of when that lives.
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
        assert!(ended.await.is_ok(), "what it caused itself is not its result");
    }
    let (tell, told) = std::sync::mpsc::channel();
    let ends = thread::spawn(move || {
        // Kept before the first cancel of this thread, so that it is given up after its list.
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
    ends.join().expect("its end panics nowhere");
}

/// Many threads stop a busy runtime at whatever moment, several times each, with and without
/// patience: it always ends, and no alarm is left.
#[test]
fn stops_from_many_threads_at_any_moment_come_to_an_end() {
    fn churn(cx: Cx, depth: u32) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            // Deaf, but for its scopes; in those it always begins something new.
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
