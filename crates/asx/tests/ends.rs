//! How programs end, and their reports on the error output. Each runs in a separate process.

#![cfg(not(feature = "tracing"))]

use std::future::pending;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use asx::prelude::*;
use asx::{BlockOnError, ENDED_BY_FORCE, Grace, Runtime, Why};

const CHILD: &str = "ASX_TEST_CHILD";

/// Returns true if this process was started by [`run`].
fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test of this file in a new process.
fn run(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap()
}

/// Returns the reports of asx on the error output.
fn reports(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.starts_with("asx: ")).map(String::from).collect()
}

const SHORT: Grace = Grace { soft: Duration::from_millis(1), hard: Duration::from_millis(1) };

#[asx::main(workers = 2)]
async fn deaf_main(cx: &Cx) {
    cx.handle().stop(SHORT);
    pending().await
}

#[test]
fn child_deaf_main() {
    if is_child() {
        deaf_main();
    }
}

#[test]
fn an_aborted_main_exits_with_a_status_and_a_report() {
    let output = run("child_deaf_main");
    assert_eq!(output.status.code(), Some(ENDED_BY_FORCE), "{output:?}");
    let [line] = &reports(&output)[..] else { panic!("{output:?}") };
    assert!(
        line.contains("(Shutdown): ended by force task t1 (the body of the program)"),
        "{line}"
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
}

#[asx::main(workers = 2)]
async fn gentle_main(cx: &Cx) -> Result<(), Cancelled> {
    cx.handle().stop(5.secs());
    cx.stopping().await
}

#[test]
fn child_gentle_main() {
    if is_child() {
        assert!(gentle_main().is_ok());
    }
}

#[test]
fn a_main_that_ends_when_notified_exits_normally() {
    let output = run("child_gentle_main");
    assert_eq!((output.status.code(), reports(&output).len()), (Some(0), 0), "{output:?}");
}

#[test]
fn aborted_tasks_are_named() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let ended = runtime.try_block_on(async |cx: Cx| {
        cx.scope(async |s| {
            s.task("deaf").spawn(async |_cx: Cx| {
                pending::<()>().await;
                Ok::<_, Cancelled>(())
            });
            cx.handle().stop(SHORT);
            pending::<Result<(), Cancelled>>().await
        })
        .await
    });
    let Err(BlockOnError::Ended(ended)) = ended else { panic!("{ended:?}") };
    let named = |what: &str| ended.forced().iter().any(|forced| forced.contains(what));
    assert!(named("\"deaf\"") && named("the body of the program"), "{ended}");
    assert_eq!(ended.cancelled().reason().chain().last().unwrap().kind.name(), "Shutdown");
}

/// Waits forever after its cancel.
async fn deaf(cx: Cx) -> Result<(), Cancelled> {
    cx.cancelled().await;
    pending().await
}

#[test]
fn child_reports() {
    if !is_child() {
        return;
    }
    /// Panics when it is dropped, outside of a panic.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a bomb");
        }
    }
    let runtime = Runtime::builder().workers(1).cancel_latency(Some(10)).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        for _ in 0..20 {
            let settings = cx.scope_with(asx::Policy::CollectAll);
            let ended = settings.run(async |s: Scope<Cancelled>| {
                let tasks = [s.spawn(deaf), s.task("named").spawn(deaf)];
                for task in tasks {
                    task.cancel(Why::from("enough").cleanup_time(1.millis()));
                    assert!(task.await.is_err());
                }
                let busy = s.task("busy").spawn(async |cx: Cx| {
                    for _ in 0..100 {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
                busy.cancel("enough");
                s.spawn(async |_cx: Cx| Ok(Bomb));
                Ok(())
            });
            assert!(ended.await.is_ok());
        }
        let health = cx.handle().health();
        assert_eq!((health.overruns, health.unheeded_cancels, health.lost_panics), (40, 20, 20));
    });
}

#[test]
fn failures_without_a_receiver_are_reported_once_per_cause() {
    let output = run("child_reports");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reports = reports(&output);
    let is_reported = |what: &str| reports.iter().any(|line| line.contains(what));
    assert!(is_reported("asx: a panic went to nobody"), "{reports:#?}");
    assert!(is_reported("of `ends::deaf`, which was asked to stop, took longer"), "{reports:#?}");
    assert!(is_reported("\"named\", which was asked to stop, took longer"), "{reports:#?}");
    assert!(
        is_reported("\"busy\" was asked to stop and has not looked in 11 polls"),
        "{reports:#?}"
    );
    assert_eq!(reports.len(), 4, "{reports:#?}");
}

#[test]
fn child_long_poll() {
    if !is_child() {
        return;
    }
    let runtime = Runtime::builder().workers(1).long_poll(Some(20.millis())).build().unwrap();
    let handle = runtime.handle();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let busy = s.task("busy").spawn(async move |cx: Cx| {
                cx.yield_now().await;
                let end = std::time::Instant::now() + 30.secs();
                while handle.metrics().health.long_polls == 0 && std::time::Instant::now() < end {
                    thread::yield_now();
                }
                // The process ends inside the poll, so the report came before its end.
                std::process::exit(0);
            });
            cx.yield_now().await;
            busy.cancel("enough");
            let _: Result<(), _> = busy.await;
            Ok(())
        });
        let _ = scope.await;
    });
}

// Forbidden behaviour FB-203: a long loop without a checkpoint after a cancel request.
#[test]
fn a_poll_that_does_not_return_after_a_cancel_is_reported_with_its_task_place_and_time() {
    let output = run("child_long_poll");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let [line] = &reports(&output)[..] else { panic!("{output:?}") };
    assert!(line.contains(" \"busy\" was cancelled and has been inside one poll for "), "{line}");
    assert!(line.contains("ms without observing it, and was spawned at "), "{line}");
    assert!(line.contains("tests/ends.rs:"), "{line}");
}

#[test]
fn child_leaks() {
    if !is_child() {
        return;
    }
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let settings = cx.scope_with(asx::Policy::CollectAll).name("orders");
        let ended = settings.run(async |s: Scope<Cancelled>| {
            for _ in 0..3 {
                let clerk = s.task("clerk").spawn(async |cx: Cx| {
                    drop(cx.obligation().expect("the scope is open"));
                    Ok(())
                });
                assert!(clerk.await.is_ok());
            }
            assert_eq!(cx.handle().health().leaked_obligations, 0, "the scope is open");
            Ok(())
        });
        assert!(ended.await.is_ok());
        assert_eq!(cx.handle().health().leaked_obligations, 3);
        let settings = cx.scope_with(asx::Policy::CollectAll);
        let ended = settings.run(async |s: Scope<Cancelled>| {
            let (tx, _rx) = channel::session::bounded::<u32>(4);
            let held = tx.clone();
            let panicking = s.task("careless").spawn(async move |cx: Cx| {
                let _permit = held.reserve(&cx).await;
                if cx.handle().dump().tasks() > 0 {
                    panic!("not today");
                }
                Ok(())
            });
            assert!(panicking.await.is_err());
            assert_eq!(cx.handle().health().leaked_obligations, 4);
            let forced = s.task("slow").spawn(async move |cx: Cx| {
                let _permit = tx.reserve(&cx).await;
                deaf(cx).await
            });
            while !cx.handle().dump().to_string().contains("send permit of task") {
                cx.yield_now().await;
            }
            forced.cancel(Why::from("enough").cleanup_time(1.millis()));
            assert!(forced.await.is_err());
            let (tx, _rx) = cx.channel::<u32>(4).expect("the scope is open");
            let tx = tx.tracked();
            let dropping = s.task("scoped").spawn(async move |cx: Cx| {
                drop(tx.reserve(&cx).await);
                Ok(())
            });
            assert!(dropping.await.is_err());
            Ok(())
        });
        assert!(ended.await.is_ok());
    });
    assert_eq!(runtime.metrics().health.leaked_obligations, 6);
}

#[test]
fn leaks_are_reported_once_for_each_place_with_owner_and_place() {
    let output = run("child_leaks");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reports = reports(&output);
    let count = |parts: &[&str]| {
        reports.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    };
    let file = concat!(" reserved it at ", file!(), ":");
    let closed = ", and region r3 \"orders\" closed before it was committed or aborted";
    assert_eq!(
        count(&["asx: obligation o1 leaked: task t2 \"clerk\"", file, closed]),
        1,
        "{reports:#?}"
    );
    assert_eq!(count(&["\"clerk\""]), 1, "{reports:#?}");
    let dropped = ", and it was dropped unresolved";
    let permit = "asx: a send permit leaked: task t";
    assert_eq!(count(&[permit, " \"careless\"", file, dropped]), 1, "{reports:#?}");
    assert_eq!(count(&["asx: obligation o4 leaked: task t", " \"scoped\"", file, dropped]), 1);
    assert_eq!(count(&[permit, " \"slow\"", file, dropped]), 1, "{reports:#?}");
}

#[test]
fn child_not_quiescent() {
    if !is_child() {
        return;
    }
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (begin, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    thread::scope(|threads| {
        let program = threads.spawn(|| {
            runtime.try_block_on(async move |cx: Cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    s.task("stuck").spawn(async move |_cx: Cx| {
                        begin.send(()).unwrap();
                        let _ = released.recv();
                        Ok(())
                    });
                    Ok(())
                })
                .await
            })
        });
        begun.recv().unwrap();
        let alive = runtime.shutdown(SHORT).unwrap_err();
        assert!(alive.to_string().contains("\"stuck\""), "{alive}");
        assert_eq!(runtime.quiescence().unwrap_err().first().name(), "TASKS_STILL_ACTIVE");
        release.send(()).unwrap();
        let _ = program.join().unwrap();
    });
    assert!(runtime.quiescence().is_ok());
}

#[test]
fn a_shutdown_with_live_tasks_reports_them_once() {
    let output = run("child_not_quiescent");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let line = "asx: the runtime was shut down and is not quiescent: TASKS_STILL_ACTIVE (";
    assert_eq!(text.matches(line).count(), 1, "{text}");
    assert!(text.contains("REGIONS_NOT_CLOSED (3)\nregion r1 "), "{text}");
    let is_task = |line: &&str| line.trim().starts_with("task t") && line.contains("\"stuck\"");
    assert_eq!(text.lines().filter(is_task).count(), 1, "{text}");
}

#[test]
fn a_handle_of_a_context_dumps_and_stops() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let result = runtime.block_on(async |cx: Cx| {
            let handle = cx.handle();
            assert_eq!(handle.dump().tasks(), 1);
            assert_eq!(handle.metrics().workers.len(), workers);
            let (tell, notified) = mpsc::channel();
            // A handle goes anywhere.
            thread::spawn(move || {
                notified.recv().unwrap();
                handle.stop(Grace { soft: 0.secs(), hard: 10.secs() });
            });
            tell.send(()).unwrap();
            cx.sleep(60.minutes()).await
        });
        let kinds: Vec<_> = result.unwrap_err().reason().chain().map(|r| r.kind.name()).collect();
        assert_eq!(kinds.last(), Some(&"Shutdown"), "{kinds:?}");
        let late = runtime.try_block_on(async |_cx: Cx| ());
        assert!(matches!(late, Err(BlockOnError::ShutDown)));
    }
}

#[test]
fn errors_can_be_shared_between_threads() {
    fn is_sync<T: Send + Sync>() {}
    is_sync::<TaskError<std::io::Error>>();
    is_sync::<BlockOnError>();
    is_sync::<asx::Panic>();
}

#[test]
fn block_on_panics_where_it_is_called() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.shutdown(Duration::ZERO).unwrap();
    let place = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let seen = place.clone();
    let me = thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match info.location() {
        Some(at) if thread::current().id() == me => *seen.lock().unwrap() = at.to_string(),
        _ => before(info),
    }));
    let line = line!() + 1;
    let call = || runtime.block_on(async |_cx: Cx| ());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    let place = place.lock().unwrap();
    assert!(place.starts_with(&format!("{}:{line}:", file!())), "{place}");
}

#[test]
fn a_second_await_of_a_handle_is_an_error() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let result: Result<(), Cancelled> = cx
            .scope(async |s| {
                let mut task = s.spawn(async |_cx: Cx| Ok(7));
                assert_eq!((&mut task).await.ok(), Some(7));
                let Err(TaskError::Cancelled(again)) = (&mut task).await else { panic!() };
                assert_eq!(again.kind().name(), "ResourceUnavailable");
                assert!(again.to_string().contains("a handle gives it once"), "{again}");
                assert!(task.outcome().is_none());
                Ok(())
            })
            .await;
        assert!(result.is_ok());
    });
}
