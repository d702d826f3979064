//! How much cleanup a cancel allows: polls, unless a time was stated.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_native::{Builder, Handle, Runtime};
use asx_runtime::{Cancelled, Cx, Grace, Policy, Scope, channel, join_all, race};

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
            drop(s.spawn(async move |cx: Cx| {
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    if place == Place::Finalizer {
                        let done = done.clone();
                        s.defer(async move |cx: Cx| clean(&cx, &done).await).unwrap();
                    }
                    drop(s.spawn(async move |cx: Cx| {
                        let _ = live.send(());
                        cx.cancelled().await;
                        if place == Place::Task {
                            clean(&cx, &done).await;
                        }
                        Ok(())
                    }));
                    Ok(())
                });
                scope.await
            }));
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
                    drop(s.spawn(async move |cx: Cx| {
                        let _ = live.send(());
                        body(&cx).await;
                        Ok(())
                    }));
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
                drop(s.spawn(async move |cx: Cx| {
                    cx.cancelled().await;
                    cx.shield(sleeps).await;
                    Ok(())
                }));
                s.stop_within(NEVER);
                Ok(())
            });
            let _ = scope.await;
        });
        assert_eq!(overruns(&runtime), 0);
    });
}
