//! The polls and the time that a cancel allows for cleanup.

use crate::common;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use asx_native::{Builder, Handle, Runtime};
use asx_runtime::{
    Cancelled, Cx, Grace, Policy, Scope, ScopeBuilder, Task, Why, channel, join_all, race,
};

const NEVER: Grace = Grace { soft: Duration::ZERO, hard: Duration::from_secs(24 * 60 * 60) };

/// More polls than any kind of cancel allows.
const MANY: u32 = 3000;

/// The part of a scope that does the cleanup.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Task,
    Finalizer,
}

async fn clean(cx: &Cx, done: &AtomicU32) {
    for _ in 0..MANY {
        cx.yield_now().await;
        done.fetch_add(1, Relaxed);
    }
}

/// Runs a task in a nested scope, and stops it when it is alive. Returns the number of polls of its
/// cleanup, and the number of aborted tasks.
fn run(
    builder: Builder,
    own: Option<u32>,
    place: Place,
    stop: fn(&Handle, &Scope<Cancelled>),
) -> (u32, u64) {
    let runtime = builder.workers(2).build().unwrap();
    let (handle, done) = (runtime.handle(), Arc::new(AtomicU32::new(0)));
    let count = done.clone();
    let _ = runtime.try_block_on(async |cx: Cx| {
        let outer = cx.scope_with(Policy::FailFast);
        let outer = own.map_or(cx.scope_with(Policy::FailFast), |own| outer.cleanup_polls(own));
        let program = outer.run(async |s: Scope<Cancelled>| {
            let (live, mut lives) = channel::oneshot();
            s.spawn(async move |cx: Cx| {
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    if place == Place::Finalizer {
                        let done = done.clone();
                        s.defer(async move |cx: Cx| clean(&cx, &done).await).unwrap();
                    }
                    s.spawn(async move |cx: Cx| {
                        let _ = live.send(());
                        cx.cancelled().await;
                        if place == Place::Task {
                            clean(&cx, &done).await;
                        }
                        Ok(())
                    });
                    Ok(())
                });
                scope.await
            });
            lives.recv(&cx).await.expect("the task is alive");
            stop(&handle, &s);
            Ok(())
        });
        let _ = program.await;
    });
    (count.load(Relaxed), runtime.metrics().health.overruns)
}

#[test]
fn a_stated_time_replaces_the_limit_of_polls() {
    for place in [Place::Task, Place::Finalizer] {
        let whole = (MANY, 0);
        let by_handle = run(Runtime::builder(), None, place, |handle, _| handle.stop(NEVER));
        assert_eq!(by_handle, whole, "{place:?}");
        let by_scope = run(Runtime::builder(), None, place, |_, scope| scope.stop_within(NEVER));
        assert_eq!(by_scope, whole, "{place:?}");
    }
}

#[test]
fn the_default_number_of_cleanup_polls_depends_on_the_kind() {
    for place in [Place::Task, Place::Finalizer] {
        let (polls, overruns) =
            run(Runtime::builder(), None, place, |_, scope| scope.cancel("enough"));
        // Some polls are not part of the cleanup here.
        assert!((190..=200).contains(&polls), "{place:?}: {polls}");
        assert_eq!(overruns, 1);
    }
}

#[test]
fn the_number_of_cleanup_polls_can_be_set() {
    for place in [Place::Task, Place::Finalizer] {
        let cancel = |_: &Handle, scope: &Scope<Cancelled>| scope.cancel("enough");
        let any = Runtime::builder().cleanup_polls(u32::MAX);
        assert_eq!(run(any.clone(), None, place, cancel), (MANY, 0), "{place:?}");
        // The limit of the outer scope, which also applies to nested scopes.
        let (polls, overruns) = run(any, Some(20), place, cancel);
        assert!((10..=20).contains(&polls) && overruns == 1, "{place:?}: {polls}");
        let few = Runtime::builder().cleanup_polls(1);
        assert_eq!(run(few, Some(MANY + 10), place, cancel), (MANY, 0), "{place:?}");
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const SHORT: Duration = Duration::from_millis(10);

type Body = for<'a> fn(&'a Cx) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Shielded waits that would take an hour.
const SHIELDED: [(&str, Body); 4] = [
    ("alone", |cx| Box::pin(async move { cx.shield(hour).await })),
    ("one in another", |cx| {
        Box::pin(async move { cx.shield(async |cx| cx.shield(hour).await).await })
    }),
    ("several inside one", |cx| {
        Box::pin(async move {
            cx.shield(async |cx| {
                join_all(cx, [(); 3].map(|()| async |cx: &Cx| hour(cx).await)).await;
            })
            .await;
        })
    }),
    ("several, each alone", |cx| {
        Box::pin(async move {
            join_all(cx, [(); 3].map(|()| async |cx: &Cx| cx.shield(hour).await)).await;
        })
    }),
];

async fn hour(cx: &Cx) {
    cx.sleep(HOUR).await.expect_err("the shield ends before that");
}

fn in_program<B: Future<Output = ()>>(limit: Duration, body: impl FnOnce(Cx) -> B) -> Runtime {
    let builder = Runtime::builder().workers(2).cleanup_time(Some(limit)).journal(1000);
    let runtime = builder.build().unwrap();
    runtime.block_on(body);
    runtime
}

/// Returns the number of overruns, which must be in the journal too.
fn overruns(runtime: &Runtime) -> u64 {
    let journal = runtime.journal().unwrap();
    let expired = journal.events.iter().filter(|event| event.kind.name() == "grace_expired");
    let expired = expired.filter(|event| event.subject.task.is_some()).count();
    let overruns = runtime.metrics().health.overruns;
    assert_eq!(overruns, expired as u64);
    overruns
}

#[test]
fn a_shield_is_limited_after_a_timeout() {
    common::ends(|| {
        for (name, body) in SHIELDED {
            let runtime = in_program(SHORT, async |cx: Cx| {
                let limited = cx.timeout(Duration::from_millis(1), async |cx| {
                    body(cx).await;
                    Ok::<(), Cancelled>(())
                });
                let ended = limited.await.map_err(|cancelled| cancelled.kind());
                assert_eq!(ended, Err(asx_kernel::cancel::Kind::Timeout), "{name}");
            });
            assert!(overruns(&runtime) > 0, "{name}");
        }
    });
}

#[test]
fn a_shield_is_limited_after_a_lost_race() {
    common::ends(|| {
        for (name, body) in SHIELDED {
            let runtime = in_program(SHORT, async |cx: Cx| {
                race(&cx, async |cx| cx.yield_now().await, async |cx| body(cx).await).await;
            });
            assert!(overruns(&runtime) > 0, "{name}");
        }
    });
}

#[test]
fn a_shield_is_limited_after_a_cancel_of_its_task() {
    common::ends(|| {
        for (name, body) in SHIELDED {
            let runtime = in_program(SHORT, async |cx: Cx| {
                let scope = cx.try_scope(async |s: Scope<Cancelled>| {
                    let (live, mut lives) = channel::oneshot();
                    s.spawn(async move |cx: Cx| {
                        let _ = live.send(());
                        body(&cx).await;
                        Ok(())
                    });
                    lives.recv(&cx).await.expect("the task is alive");
                    s.cancel("enough");
                    Ok(())
                });
                let _ = scope.await;
            });
            assert!(overruns(&runtime) > 0, "{name}");
        }
    });
}

/// Without a cancel the limit does not apply, and the time stated by a cancel replaces it.
#[test]
fn a_shield_is_unlimited_without_a_cancel_or_within_the_stated_time() {
    common::ends(|| {
        let sleeps = async |cx: &Cx| cx.sleep(5 * SHORT).await.expect("no cancel is seen");
        let runtime = in_program(SHORT / 10, async |cx: Cx| cx.shield(sleeps).await);
        assert_eq!(overruns(&runtime), 0);
        let runtime = in_program(SHORT / 10, async |cx: Cx| {
            let scope = cx.try_scope(async |s: Scope<Cancelled>| {
                s.spawn(async move |cx: Cx| {
                    cx.cancelled().await;
                    cx.shield(sleeps).await;
                    Ok(())
                });
                s.stop_within(NEVER);
                Ok(())
            });
            let _ = scope.await;
        });
        assert_eq!(overruns(&runtime), 0);
    });
}

type Set = for<'a> fn(ScopeBuilder<'a>) -> ScopeBuilder<'a>;

/// Runs a scope configured by `set` with one task in a runtime without a cleanup time, and stops it
/// as soon as the task is alive.
fn in_scope(
    set: Set,
    finalizer: Option<Body>,
    task: Body,
    stop: fn(&Scope<Cancelled>, &Task<(), Cancelled>),
) -> Runtime {
    let builder = Runtime::builder().workers(2).cleanup_time(None).journal(1000);
    let runtime = builder.build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let scope = set(cx.scope_with(Policy::CollectAll)).run(async |s: Scope<Cancelled>| {
            if let Some(finalizer) = finalizer {
                s.defer(async move |cx: Cx| finalizer(&cx).await).unwrap();
            }
            let (live, mut lives) = channel::oneshot();
            let task = s.spawn(async move |cx: Cx| {
                let _ = live.send(());
                task(&cx).await;
                Ok(())
            });
            lives.recv(&cx).await.expect("the task is alive");
            stop(&s, &task);
            Ok(())
        });
        let _ = scope.await;
    });
    runtime
}

fn short(scope: ScopeBuilder<'_>) -> ScopeBuilder<'_> {
    scope.cleanup_time(Some(SHORT))
}

fn as_is(scope: ScopeBuilder<'_>) -> ScopeBuilder<'_> {
    scope
}

fn cancel_scope(scope: &Scope<Cancelled>, _: &Task<(), Cancelled>) {
    scope.cancel("enough");
}

fn cancel_task(_: &Scope<Cancelled>, task: &Task<(), Cancelled>) {
    task.cancel("enough");
}

/// Never observes its cancel.
const DEAF: Body = |_| Box::pin(pending());

/// Observes its cancel, and waits forever.
const STUCK: Body = |cx| {
    Box::pin(async move {
        cx.cancelled().await;
        pending().await
    })
};

/// Observes its cancel and ends.
const GOOD: Body = |cx| Box::pin(async move { drop(cx.cancelled().await) });

#[test]
fn cleanup_that_waits_forever_is_aborted() {
    for cancel in [cancel_scope, cancel_task] {
        let runtime = in_scope(short, None, STUCK, cancel);
        assert_eq!(overruns(&runtime), 1);
    }
}

#[test]
fn a_shielded_task_that_ignores_its_cancel_is_aborted_after_the_shield_ended() {
    let shield: Body = |cx| Box::pin(async move { cx.shield(async |_| pending().await).await });
    for cancel in [cancel_scope, cancel_task] {
        let runtime = in_scope(short, None, shield, cancel);
        assert_eq!(overruns(&runtime), 2);
    }
}

#[test]
fn a_finalizer_that_waits_forever_is_aborted() {
    for (task, cancel) in [(GOOD, cancel_scope as fn(&_, &_)), (STUCK, cancel_scope)] {
        let runtime = in_scope(short, Some(DEAF), task, cancel);
        assert_eq!(overruns(&runtime), if task as usize == GOOD as usize { 1 } else { 2 });
    }
    // Without a cancel.
    let runtime = in_program(SHORT, async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            s.defer(async |_| ()).unwrap();
            s.defer(async |_| pending().await).unwrap();
            Ok(())
        });
        scope.await.expect("aborting a finalizer does not fail the scope");
    });
    assert_eq!(overruns(&runtime), 1);
}

#[test]
fn a_cancel_can_state_its_time() {
    let scope = |s: &Scope<_>, _: &Task<_, _>| s.cancel(Why::from("enough").cleanup_time(SHORT));
    let task = |_: &Scope<_>, t: &Task<_, _>| {
        t.cancel(Why::from("enough").cleanup_time(SHORT));
    };
    for body in [STUCK, DEAF] {
        for cancel in [scope as fn(&_, &_), task] {
            let runtime = in_scope(as_is, None, body, cancel);
            assert_eq!(runtime.metrics().health.overruns, 1);
        }
    }
    let runtime = in_scope(as_is, Some(DEAF), STUCK, scope);
    assert_eq!(runtime.metrics().health.overruns, 2);
}

/// The time stated by a cancel also applies to nested scopes of its task.
#[test]
fn the_time_of_a_cancel_applies_to_nested_scopes() {
    const INSIDE: Body = |cx| {
        Box::pin(async move {
            let scope = cx.try_scope(async |s: Scope<Cancelled>| {
                s.spawn(async |_: Cx| pending::<Result<(), _>>().await);
                Ok(())
            });
            let _ = scope.await;
        })
    };
    let task = |_: &Scope<_>, t: &Task<_, _>| {
        t.cancel(Why::from("enough").cleanup_time(SHORT));
    };
    let runtime = in_scope(as_is, None, INSIDE, task);
    assert!(runtime.metrics().health.overruns >= 1);
}

static DONE: AtomicU32 = AtomicU32::new(0);

/// Counts its polls.
const BUSY: Body = |cx| {
    Box::pin(async move {
        cx.cancelled().await;
        DONE.store(0, Relaxed);
        clean(cx, &DONE).await;
    })
};

#[test]
fn a_cleanup_time_replaces_polls_unless_both_are_set() {
    type Cancel = fn(&Scope<Cancelled>, &Task<(), Cancelled>);
    const POLLS: Cancel = |s, _| s.cancel(Why::from("enough").cleanup_polls(20));
    const BOTH: Cancel = |s, _| s.cancel(Why::from("x").cleanup_polls(20).cleanup_time(HOUR));
    const TASK: Cancel = |_, t| _ = t.cancel(Why::from("enough").cleanup_polls(20));
    const TASK_BOTH: Cancel = |_, t| {
        t.cancel(Why::from("enough").cleanup_polls(20).cleanup_time(HOUR));
    };
    const TIME: Cancel = |s, _| s.cancel(Why::from("enough").cleanup_time(HOUR));
    const TASK_TIME: Cancel = |_, t| _ = t.cancel(Why::from("x").cleanup_time(HOUR));
    let hour: Set = |scope| scope.cleanup_time(Some(HOUR));
    let both: Set = |scope| scope.cleanup_time(Some(HOUR)).cleanup_polls(20);
    let polls: Set = |scope| scope.cleanup_polls(20);
    let check = |runtime: Runtime, whole: bool, name: &str| {
        let (done, overruns) = (DONE.load(Relaxed), runtime.metrics().health.overruns);
        match whole {
            true => assert_eq!((done, overruns), (MANY, 0), "{name}"),
            false => assert!((10..=20).contains(&done) && overruns == 1, "{name}: {done}"),
        }
    };
    check(in_scope(hour, None, BUSY, cancel_scope), true, "time of a scope");
    check(in_scope(both, None, BUSY, cancel_scope), false, "both of a scope");
    check(in_scope(as_is, None, BUSY, POLLS), false, "polls of a cancel");
    check(in_scope(hour, None, BUSY, POLLS), false, "polls of a cancel, time of a scope");
    check(in_scope(as_is, None, BUSY, BOTH), false, "both of a cancel");
    check(in_scope(polls, None, BUSY, TIME), true, "time of a cancel, polls of a scope");
    check(in_scope(as_is, None, BUSY, TASK), false, "polls of a cancel of a task");
    check(in_scope(hour, None, BUSY, TASK), false, "the same, time of a scope");
    check(in_scope(as_is, None, BUSY, TASK_BOTH), false, "both of a cancel of a task");
    check(in_scope(polls, None, BUSY, TASK_TIME), true, "time of a cancel of a task");
}

#[test]
fn a_shield_can_state_its_time() {
    let shield: Body =
        |cx| Box::pin(async move { cx.shield_for(SHORT, async |cx| hour(cx).await).await });
    let runtime = in_scope(as_is, None, shield, cancel_scope);
    assert_eq!(overruns(&runtime), 1);
    let shield: Body = |cx| {
        let flush = async |cx: &Cx| cx.sleep(5 * SHORT).await.expect("no cancel is seen");
        Box::pin(async move { cx.shield_for(HOUR, flush).await })
    };
    let runtime = in_scope(short, None, shield, cancel_scope);
    assert_eq!(overruns(&runtime), 0);
}

/// A task that waits for a nested scope continues for as long as that may take.
#[test]
fn a_task_is_not_aborted_for_the_cleanup_of_a_nested_scope() {
    const OUTER: Body = |cx| {
        Box::pin(async move {
            let inner = cx.scope_with(Policy::FailFast).cleanup_time(Some(HOUR));
            let inner = inner.run(async |s: Scope<Cancelled>| {
                s.defer(async |cx: Cx| cx.sleep(5 * SHORT).await.unwrap()).unwrap();
                Ok(())
            });
            cx.cancelled().await;
            inner.await.expect_err("a cancel");
        })
    };
    let runtime = in_scope(short, None, OUTER, cancel_scope);
    assert_eq!(overruns(&runtime), 0);
}

/// A task inside a poll that does not return cannot be aborted: that is reported, once.
#[test]
fn cleanup_that_never_suspends_is_reported() {
    let runtime = Runtime::builder().workers(2).cleanup_time(Some(SHORT)).journal(1000);
    let runtime = runtime.build().unwrap();
    let handle = runtime.handle();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            let (live, mut lives) = channel::oneshot();
            s.task("busy").spawn(async move |cx: Cx| {
                let _ = live.send(());
                cx.cancelled().await;
                let told = |dump: String| {
                    let line = dump.lines().find(|line| line.contains("busy")).unwrap().to_owned();
                    line.ends_with("running, its cleanup took too long")
                };
                while !told(handle.dump().to_string()) {
                    thread::sleep(Duration::from_millis(1));
                }
                assert!(handle.dump().to_json().contains("\"overrun\":true"));
                pending::<Result<(), Cancelled>>().await
            });
            lives.recv(&cx).await.expect("the task is alive");
            s.cancel("enough");
            Ok(())
        });
        let _ = scope.await;
    });
    assert_eq!(overruns(&runtime), 1);
    let journal = runtime.journal().unwrap();
    let ended = journal.events.iter().filter(|event| event.kind.name() == "cleanup_overrun");
    assert_eq!(ended.count(), 1);
}
