//! How much cleanup a cancel allows: polls and time.

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

/// Where the cleanup is done.
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

/// Runs a task in a scope inside a scope, and stops it when it lives: how many polls its cleanup
/// got, and how many tasks were ended by force.
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
            lives.recv(&cx).await.expect("the task lives");
            stop(&handle, &s);
            Ok(())
        });
        let _ = program.await;
    });
    (count.load(Relaxed), runtime.metrics().health.overruns)
}

#[test]
fn a_stated_time_takes_the_place_of_polls() {
    for place in [Place::Task, Place::Finalizer] {
        let whole = (MANY, 0);
        let by_handle = run(Runtime::builder(), None, place, |handle, _| handle.stop(NEVER));
        assert_eq!(by_handle, whole, "{place:?}");
        let by_scope = run(Runtime::builder(), None, place, |_, scope| scope.stop_within(NEVER));
        assert_eq!(by_scope, whole, "{place:?}");
    }
}

#[test]
fn without_one_the_kind_of_the_cancel_says_how_many_polls_there_are() {
    for place in [Place::Task, Place::Finalizer] {
        let (polls, overruns) =
            run(Runtime::builder(), None, place, |_, scope| scope.cancel("enough"));
        // Some polls are for other things than the cleanup here.
        assert!((190..=200).contains(&polls), "{place:?}: {polls}");
        assert_eq!(overruns, 1);
    }
}

#[test]
fn the_number_of_polls_can_be_set() {
    for place in [Place::Task, Place::Finalizer] {
        let cancel = |_: &Handle, scope: &Scope<Cancelled>| scope.cancel("enough");
        let any = Runtime::builder().cleanup_polls(u32::MAX);
        assert_eq!(run(any.clone(), None, place, cancel), (MANY, 0), "{place:?}");
        // The scope's own count, for what is in scopes inside too.
        let (polls, overruns) = run(any, Some(20), place, cancel);
        assert!((10..=20).contains(&polls) && overruns == 1, "{place:?}: {polls}");
        let few = Runtime::builder().cleanup_polls(1);
        assert_eq!(run(few, Some(MANY + 10), place, cancel), (MANY, 0), "{place:?}");
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const SHORT: Duration = Duration::from_millis(10);

type Body = for<'a> fn(&'a Cx) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Waits that are shielded, and would take an hour.
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
    cx.sleep(HOUR).await.expect_err("the shield is open before that");
}

fn in_program<B: Future<Output = ()>>(limit: Duration, body: impl FnOnce(Cx) -> B) -> Runtime {
    let builder = Runtime::builder().workers(2).cleanup_time(Some(limit)).journal(1000);
    let runtime = builder.build().unwrap();
    runtime.block_on(body);
    runtime
}

/// The overruns, which are on record too.
fn overruns(runtime: &Runtime) -> u64 {
    let journal = runtime.journal().unwrap();
    let expired = journal.events.iter().filter(|event| event.kind.name() == "grace_expired");
    let expired = expired.filter(|event| event.subject.task.is_some()).count();
    let overruns = runtime.metrics().health.overruns;
    assert_eq!(overruns, expired as u64);
    overruns
}

#[test]
fn a_shield_holds_for_a_while_after_a_timeout() {
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
fn a_shield_holds_for_a_while_after_a_lost_race() {
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
fn a_shield_holds_for_a_while_after_a_cancel_of_its_task() {
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
                    lives.recv(&cx).await.expect("the task lives");
                    s.cancel("enough");
                    Ok(())
                });
                let _ = scope.await;
            });
            assert!(overruns(&runtime) > 0, "{name}");
        }
    });
}

/// Without a cancel there is nothing to hide, and with a time that was stated that one counts.
#[test]
fn a_shield_holds_as_long_as_nothing_is_asked_or_the_stated_time_lasts() {
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

/// Runs a program without a cleanup time of the runtime's: a scope, as `set` has it, with one task,
/// stopped as soon as that lives.
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
            lives.recv(&cx).await.expect("the task lives");
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

/// Never looks at its cancel.
const DEAF: Body = |_| Box::pin(pending());

/// Sees its cancel, and waits for something that never comes.
const STUCK: Body = |cx| {
    Box::pin(async move {
        cx.cancelled().await;
        pending().await
    })
};

/// Sees its cancel and ends.
const GOOD: Body = |cx| Box::pin(async move { drop(cx.cancelled().await) });

#[test]
fn cleanup_that_waits_for_ever_is_ended() {
    for cancel in [cancel_scope, cancel_task] {
        let runtime = in_scope(short, None, STUCK, cancel);
        assert_eq!(overruns(&runtime), 1);
    }
}

#[test]
fn a_shield_over_what_never_looks_is_ended_after_it_was_opened() {
    let shield: Body = |cx| Box::pin(async move { cx.shield(async |_| pending().await).await });
    for cancel in [cancel_scope, cancel_task] {
        let runtime = in_scope(short, None, shield, cancel);
        assert_eq!(overruns(&runtime), 2);
    }
}

#[test]
fn a_finalizer_that_waits_for_ever_is_ended() {
    for (task, cancel) in [(GOOD, cancel_scope as fn(&_, &_)), (STUCK, cancel_scope)] {
        let runtime = in_scope(short, Some(DEAF), task, cancel);
        assert_eq!(overruns(&runtime), if task as usize == GOOD as usize { 1 } else { 2 });
    }
    // Nobody cancels anything.
    let runtime = in_program(SHORT, async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            s.defer(async |_| ()).unwrap();
            s.defer(async |_| pending().await).unwrap();
            Ok(())
        });
        scope.await.expect("the end of a finalizer is none of the scope's");
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

/// The time that is stated with a cancel counts for the scopes inside of a task, too.
#[test]
fn the_time_of_a_cancel_is_passed_on() {
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
fn a_time_takes_the_place_of_polls_unless_there_are_both() {
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

/// Who waits for a scope inside goes on as long as that may.
#[test]
fn a_task_is_not_ended_for_the_cleanup_of_a_scope_inside() {
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

/// A task that does not return from its poll cannot be ended: that is reported, once.
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
            lives.recv(&cx).await.expect("the task lives");
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
