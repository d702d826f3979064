//! Locks that are made at different places are different things for a search; and still no order
//! that matters is left out.

mod observers;

use std::sync::Arc;

use asx_lab::{Grain, How, Kind, Report, check};
use asx_runtime::sync::{Mutex, Notify, OnceCell, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, channel};

/// What there is to find, with all that polls have in common known.
fn search<B: Future<Output = Result<(), Cancelled>>>(program: impl Fn(Cx) -> B) -> Report {
    check(program).how(How::Dpor).grain(Grain::Poll).transparent().run()
}

/// How many orders are told apart in a program that is right.
fn classes<B: Future<Output = Result<(), Cancelled>>>(program: impl Fn(Cx) -> B) -> u64 {
    let report = search(program);
    assert!(report.failure.is_none(), "{report}");
    report.proof.expect("few orders").classes
}

fn found<B: Future<Output = Result<(), Cancelled>>>(program: impl Fn(Cx) -> B) -> Kind {
    let report = search(program);
    report.failure.expect("a bug").failure.finding.kind
}

/// Two tasks that take a lock each, twice.
async fn lockers(cx: Cx, locks: [&'static Mutex<u32>; 2]) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        for lock in locks {
            s.spawn(async move |cx: Cx| {
                for _ in 0..2 {
                    let _guard = lock.lock(&cx).await?;
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

static ONE: Mutex<u32> = Mutex::const_new(0);
static OTHER: Mutex<u32> = Mutex::const_new(0);

#[test]
fn locks_in_statics_are_told_apart() {
    let same = classes(async |cx: Cx| lockers(cx, [&ONE, &ONE]).await);
    let apart = classes(async |cx: Cx| lockers(cx, [&ONE, &OTHER]).await);
    // What is left is in which order the two end.
    assert!(apart <= 2 && same > 4, "{apart} and {same}");
}

#[test]
fn channels_that_one_task_makes_in_two_polls_are_told_apart() {
    let program = async |cx: Cx, split: bool| {
        let (one, _first) = channel::bounded::<u32>(4);
        cx.yield_now().await;
        let (two, _second) = channel::bounded::<u32>(4);
        let (other, _spare) = if split { (two, one.clone()) } else { (one.clone(), two) };
        cx.scope(async |s: Scope<Cancelled>| {
            for tx in [one, other] {
                s.spawn(async move |cx: Cx| {
                    for number in 0..2 {
                        let _ = tx.try_send(number);
                        cx.yield_now().await;
                    }
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    };
    let same = classes(async |cx: Cx| program(cx, false).await);
    let apart = classes(async |cx: Cx| program(cx, true).await);
    assert!(apart <= 2 && same > 4, "{apart} and {same}");
}

#[test]
fn locks_of_a_run_are_told_apart_by_where_they_are_made() {
    let program = async |cx: Cx, split: bool| {
        let (one, other) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let other = if split { other } else { one.clone() };
        cx.scope(async |s: Scope<Cancelled>| {
            for lock in [one, other] {
                s.spawn(async move |cx: Cx| {
                    let _guard = lock.lock(&cx).await?;
                    cx.yield_now().await;
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    };
    let [same, apart] = [false, true].map(|split| classes(async |cx: Cx| program(cx, split).await));
    assert!(apart < same, "{apart} and {same}");
}

/// Two tasks that take two locks, each in its own order.
async fn crossed(cx: Cx, locks: [Arc<Mutex<u32>>; 2]) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        for order in [[0, 1], [1, 0]] {
            let [first, second] = order.map(|at: usize| locks[at].clone());
            s.spawn(async move |cx: Cx| {
                let one = first.lock(&cx).await?;
                cx.yield_now().await;
                let two = second.lock(&cx).await?;
                drop((one, two));
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

#[test]
fn crossed_locks_are_found_wherever_they_are_made() {
    let apart = async |cx: Cx| {
        let one = Arc::new(Mutex::new(0));
        let other = Arc::new(Mutex::new(0));
        crossed(cx, [one, other]).await
    };
    assert_eq!(found(apart), Kind::Deadlock);
    let at_one_place = async |cx: Cx| {
        let locks = [1, 2].map(|n| Arc::new(Mutex::new(n)));
        crossed(cx, locks).await
    };
    assert_eq!(found(at_one_place), Kind::Deadlock);
}

/// Whether one task acts before another looks, for which each order must be run.
async fn act_and_look<T: Send + Sync + 'static>(
    cx: Cx,
    thing: T,
    act: fn(&T),
    look: fn(&T) -> bool,
) -> Result<(), Cancelled> {
    let thing = Arc::new(thing);
    let other = thing.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |_cx: Cx| {
            assert!(!look(&other), "seen");
            Ok(())
        });
        s.spawn(async move |_cx: Cx| {
            act(&thing);
            Ok(())
        });
        Ok(())
    })
    .await
}

#[test]
fn what_is_only_looked_at_is_seen_in_both_orders() {
    let one = async |cx: Cx| {
        let close = |it: &Semaphore| it.close();
        act_and_look(cx, Semaphore::new(1), close, Semaphore::is_closed).await
    };
    assert_eq!(found(one), Kind::Panic);
    let one = async |cx: Cx| {
        let fill = |it: &OnceCell<u32>| it.set(1).unwrap();
        act_and_look(cx, OnceCell::new(), fill, |it| it.get().is_some()).await
    };
    assert_eq!(found(one), Kind::Panic);
    let one = async |cx: Cx| {
        let more = |it: &Semaphore| it.add_permits(1);
        act_and_look(cx, Semaphore::new(0), more, |it| it.available_permits() > 0).await
    };
    assert_eq!(found(one), Kind::Panic);
}

#[test]
fn a_notification_before_and_after_a_wait_was_made_are_two_orders() {
    // The wait is made in one poll and begun in another.
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let notify = Arc::new(Notify::new());
            let other = notify.clone();
            s.spawn(async move |cx: Cx| {
                let notified = other.notified(&cx);
                cx.yield_now().await;
                notified.await?;
                Ok(())
            });
            s.spawn(async move |_cx: Cx| {
                notify.notify_waiters();
                Ok(())
            });
            Ok(())
        })
        .await
    };
    assert_eq!(found(program), Kind::Deadlock);
}
