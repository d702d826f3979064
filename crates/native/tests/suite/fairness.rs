//! Cancel work delays other work for at most a streak, whatever was queued before.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use asx_native::{Metrics, Runtime};
use asx_runtime::{Cx, Policy, Scope, Task};
use common::AppError;

/// The number of cancelled tasks.
const CROWD: usize = 2000;
/// Twice the default limit of cancel streaks: the default governor prefers cancels in this case.
const BOUND: usize = 32;

/// How the cancelled tasks are spawned.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Deadline,
    Priority,
    Pinned,
}

/// How they are cancelled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Handles,
    Scope,
}

/// The threads the cancelled tasks ran on.
type Ran = Arc<Mutex<Vec<ThreadId>>>;

fn crowd(s: &Scope<AppError>, kind: Kind, ran: &Ran) -> Vec<Task<(), AppError>> {
    let one = |_| {
        let ran = ran.clone();
        let body = async move |cx: Cx| {
            cx.cancelled().await;
            ran.lock().unwrap().push(thread::current().id());
            Ok(())
        };
        let task = s.task("one of many");
        match kind {
            Kind::Plain => task.spawn(body),
            Kind::Deadline => task.within(Duration::from_secs(3600)).spawn(body),
            Kind::Priority => task.priority(200).spawn(body),
            Kind::Pinned => task.spawn_local(body),
        }
    };
    (0..CROWD).map(one).collect()
}

/// Cancels tasks that wait in a queue, then starts another one. Returns the number of cancelled
/// tasks that ran before that on the same thread.
fn went_before(rt: &Runtime, kind: Kind, by: By) -> usize {
    let ran = Ran::default();
    let before = Arc::new(AtomicUsize::new(usize::MAX));
    let result = rt.block_on(async |cx: Cx| {
        cx.scope(async |outer: Scope<AppError>| {
            let inner = cx.scope_with(Policy::CollectAll);
            let _ = inner
                .run(async |s: Scope<AppError>| {
                    let tasks = crowd(&s, kind, &ran);
                    match by {
                        By::Handles => tasks.iter().for_each(|task| _ = task.cancel("go")),
                        By::Scope => s.cancel("go"),
                    }
                    let (ran, before) = (ran.clone(), before.clone());
                    // Pinned, so that its own worker has to run it.
                    let last = outer.spawn_local(async move |_cx: Cx| {
                        let me = thread::current().id();
                        let ran = ran.lock().unwrap();
                        before.store(ran.iter().filter(|id| **id == me).count(), SeqCst);
                        Ok(())
                    });
                    drop((tasks, last));
                    Ok(())
                })
                .await;
            Ok(())
        })
        .await
    });
    assert_eq!(result, Ok(()));
    // Some tasks are cancelled before their first poll, and never run.
    before.load(SeqCst)
}

fn check(metrics: &Metrics) {
    for worker in &metrics.workers {
        let certificate = worker.certificate;
        assert_eq!(certificate.effective_exceedances, 0, "{metrics:?}");
        let others = certificate.cancel + certificate.timed + certificate.fallback;
        // A poll is counted after it returns: the program may end before its last one is counted.
        let open = (certificate.ready + others).checked_sub(worker.polls);
        assert!(matches!(open, Some(0 | 1)), "{metrics:?}");
    }
}

#[test]
fn dead_entries_of_cancelled_tasks_take_no_turn() {
    for workers in [1, 4] {
        for journal in [false, true] {
            for kind in [Kind::Plain, Kind::Deadline, Kind::Priority, Kind::Pinned] {
                for by in [By::Handles, By::Scope] {
                    let mut rt = Runtime::builder().workers(workers);
                    if journal {
                        rt = rt.journal(1000);
                    }
                    let rt = rt.build().unwrap();
                    let before = went_before(&rt, kind, by);
                    let what = format!("{workers} workers, {kind:?} by {by:?}, journal {journal}");
                    assert!(before <= BOUND, "{what}: after {before} of {CROWD}");
                    check(&rt.metrics());
                }
            }
        }
    }
}

/// The certificate counts dispatches: no dead entry of a cancelled task, and all ready work.
#[test]
fn the_certificate_counts_each_poll_once() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    rt.block_on(async |cx: Cx| {
        let before = rt.metrics().workers[0].certificate;
        let scope = cx.scope(async |s: Scope<AppError>| {
            for _ in 0..100 {
                let polls = polls.clone();
                s.spawn(async move |cx: Cx| {
                    polls.fetch_add(1, SeqCst);
                    cx.yield_now().await;
                    polls.fetch_add(1, SeqCst);
                    Ok(())
                });
            }
            for _ in 0..100 {
                let polls = polls.clone();
                let task = s.spawn(async move |cx: Cx| {
                    polls.fetch_add(1, SeqCst);
                    cx.cancelled().await;
                    Ok(())
                });
                task.cancel("at once");
            }
            Ok(())
        });
        assert_eq!(scope.await, Ok(()));
        // Read from within: the body was polled once more, when the scope had closed.
        let after = rt.metrics().workers[0].certificate;
        assert_eq!(after.ready - before.ready, 200 + 1, "{before:?} {after:?}");
        assert_eq!(after.cancel + after.fallback, 100, "{after:?}");
        assert_eq!(after.effective_exceedances, 0);
    });
    assert_eq!(polls.load(SeqCst), 300);
}
