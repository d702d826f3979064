//! Limits on public operations.

use asx_kernel::journal::EventKind;
use asx_kernel::status::{Coded as _, Status};
use asx_native::Runtime;
use asx_runtime::{CancelError, Cancelled, Cx, Limits, Policy, Scope, Task};

use super::common::limited;

fn limited_runtime(workers: usize, name: &str) -> Runtime {
    Runtime::builder().workers(workers).limits(limited::limits_of(name)).build().unwrap()
}

// Forbidden behaviour FB-100 (ready and timed queue) and FB-103 (memory, channels).
#[test]
fn public_operations_beyond_a_limit_are_refused() {
    for workers in [1, 2, 4] {
        for name in limited::ANY_WORKERS {
            limited_runtime(workers, name).block_on(async |cx: Cx| limited::run(name, cx).await);
        }
    }
    // With several workers the lengths of queues change at any time.
    for name in limited::ONE_WORKER {
        limited_runtime(1, name).block_on(async |cx: Cx| limited::run(name, cx).await);
    }
}

// Forbidden behaviour FB-104: exceeded trace.
#[test]
fn full_journal_refuses_new_work_and_lets_the_program_end() {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).whole_journal(200).build().unwrap();
        runtime.block_on(async |cx: Cx| limited::full_journal(cx).await);
        let journal = runtime.journal().unwrap();
        assert_eq!((journal.events.len(), journal.lost), (200, journal.recorded - 200));
        assert!(journal.lost > 0);
    }
}

/// Spawns tasks that wait for their cancel.
fn waiting(s: &Scope<Cancelled>, count: usize) -> Vec<Task<(), Cancelled>> {
    let wait = |_| s.spawn(async |cx: Cx| Err(cx.cancelled().await));
    (0..count).map(wait).collect()
}

fn cancel_queue(limit: usize, workers: usize) -> Runtime {
    let limits = Limits { cancel_queue: limit, ..Limits::default() };
    Runtime::builder().workers(workers).limits(limits).journal(10_000).build().unwrap()
}

/// Returns the number of refusals in the journal.
fn refusals(runtime: &Runtime) -> usize {
    let recorded = runtime.journal().unwrap();
    let refused = EventKind::ResourceExhausted { what: "cancel_queue" };
    recorded.events.iter().filter(|event| event.kind == refused).count()
}

#[test]
fn cancel_by_handle_beyond_the_limit_is_refused_and_changes_nothing() {
    let runtime = cancel_queue(2, 1);
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
            let tasks = waiting(&s, 4);
            cx.yield_now().await;
            assert_eq!(tasks[0].try_cancel("one"), Ok(true));
            assert!(tasks[1].cancel("two"));
            let refused = tasks[2].try_cancel("three").unwrap_err();
            assert_eq!(refused, CancelError::LimitReached);
            assert_eq!(refused.status(), Status::ResourceExhausted);
            assert!(refused.to_string().contains("cancel_queue"), "{refused}");
            assert!(!tasks[3].cancel("four"));
            // A queued task takes no second place, and a refused one is unchanged.
            assert_eq!(tasks[0].try_cancel("again"), Ok(false));
            for _ in 0..10 {
                cx.yield_now().await;
            }
            let ended: Vec<_> = tasks.iter().map(Task::is_finished).collect();
            assert_eq!(ended, [true, true, false, false]);
            // There is room again, and a completed task takes no place.
            assert_eq!(tasks[0].try_cancel("over"), Ok(false));
            assert_eq!(tasks[2].try_cancel("now"), Ok(true));
            s.cancel("the end");
            Ok(())
        });
        let _ = scope.await;
    });
    assert_eq!((runtime.metrics().health.refused_cancels, refusals(&runtime)), (1, 2));
}

#[test]
fn cancel_of_a_scope_is_not_limited() {
    for workers in [1, 2] {
        let runtime = cancel_queue(0, workers);
        runtime.block_on(async |cx: Cx| {
            let scope = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
                let tasks = waiting(&s, 20);
                // With more workers the task may be inside a poll, and take no place.
                if workers == 1 {
                    assert_eq!(tasks[0].try_cancel("refused"), Err(CancelError::LimitReached));
                }
                s.cancel("enough");
                Ok(tasks)
            });
            let tasks = scope.await.unwrap();
            assert!(tasks.iter().all(Task::is_finished));
        });
        assert_eq!(runtime.metrics().health.refused_cancels, 0);
    }
}

/// Threads that cancel at the same time do not exceed the limit together.
#[test]
fn concurrent_cancels_do_not_exceed_the_limit() {
    const LIMIT: usize = 3;
    let runtime = cancel_queue(LIMIT, 1);
    for _ in 0..50 {
        runtime.block_on(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let tasks = waiting(&s, 8);
                cx.yield_now().await;
                // The only worker waits here, so queued entries stay queued.
                let cancelled: usize = std::thread::scope(|threads| {
                    let cancel = |task| threads.spawn(move || Task::try_cancel(task, "now"));
                    let all: Vec<_> = tasks.iter().map(cancel).collect();
                    let answers = all.into_iter().map(|thread| thread.join().unwrap());
                    answers.filter(Result::is_ok).count()
                });
                assert!((1..=LIMIT).contains(&cancelled), "{cancelled}");
                s.cancel("the end");
                Ok(())
            });
            let _ = scope.await;
        });
    }
}
