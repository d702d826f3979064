//! What comes between two operations of one poll: found at operation grain, by every strategy, and
//! told with a token that fails again; the programs put right are proved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use asx::channel::{bounded, unbounded, watch};
use asx::lab::{Check, Grain, How, Kind, check};
use asx::sync::Mutex;
use asx::{Cancelled, Cx};

/// All of it is to be run, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

/// Found by a check as it comes and by each strategy that is not just patient, and replayed;
/// without the bug proved.
fn finds<B: Future<Output = ()>, F: Future<Output = ()>>(
    wrong: impl Fn(Cx) -> B + Copy,
    right: impl Fn(Cx) -> F + Copy,
) {
    let by_default = check(wrong);
    let checks: Vec<Check<_>> = [How::Dpor, How::Random, How::Pct(3), How::Bounded]
        .map(|how| check(wrong).how(how))
        .into_iter()
        .chain([by_default])
        .collect();
    for check in checks {
        let report = check.run();
        let found = report.failure.as_ref().unwrap_or_else(|| panic!("missed: {report}"));
        let again = check.replay(&found.token).unwrap();
        let again = again.failure.unwrap_or_else(|| panic!("{found}\nnot again"));
        assert_eq!(again.failure.finding.message, found.failure.finding.message);
        println!("{report}\n");
    }
    let report = check(right).run();
    println!("{report}\n");
    let proof = report.proof.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(proof.grain, Grain::Operation, "{report}");
    assert!(report.failure.is_none(), "{report}");
}

/// Runs two tasks.
async fn both<A, B>(cx: &Cx, one: impl FnOnce(Cx) -> A, other: impl FnOnce(Cx) -> B)
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    cx.scope(async |s| {
        let one = s.spawn(|cx| well(one(cx)));
        let other = s.spawn(|cx| well(other(cx)));
        one.await.unwrap();
        other.await.unwrap();
        Ok(())
    })
    .await
    .unwrap();
}

async fn well(body: impl Future<Output = ()>) -> Result<(), Cancelled> {
    body.await;
    Ok(())
}

/// A child may lock what its parent is about to lock.
async fn child_first<const BUG: bool>(cx: Cx) {
    let order = Arc::new(Mutex::new(Vec::new()));
    cx.scope(async |s| {
        let guard = if BUG { None } else { Some(order.lock_owned(&cx).await.unwrap()) };
        let child = order.clone();
        s.spawn(async move |cx: Cx| {
            child.lock(&cx).await.unwrap().push("child");
            Ok::<_, Cancelled>(())
        });
        match guard {
            Some(mut guard) => guard.push("parent"),
            None => order.lock(&cx).await.unwrap().push("parent"),
        }
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(order.lock(&cx).await.unwrap()[0], "parent");
}

#[test]
fn a_child_may_be_first_at_the_lock() {
    finds(child_first::<true>, child_first::<false>);
}

/// Told before it is done.
async fn told_first<const BUG: bool>(cx: Cx) {
    let (tell, mut told) = unbounded::<()>();
    let done = Arc::new(Mutex::new(false));
    let is_done = done.clone();
    both(
        &cx,
        async move |cx: Cx| {
            if BUG {
                tell.send(()).unwrap();
            }
            *done.lock(&cx).await.unwrap() = true;
            if !BUG {
                tell.send(()).unwrap();
            }
        },
        async move |cx: Cx| {
            told.recv(&cx).await.unwrap();
            assert!(*is_done.lock(&cx).await.unwrap(), "told, and not done");
        },
    )
    .await;
}

#[test]
fn who_is_told_may_look_before_it_is_done() {
    finds(told_first::<true>, told_first::<false>);
}

/// A receiver may go between a look and a send.
async fn closed_between<const BUG: bool>(cx: Cx) {
    let (tx, rx) = bounded::<u32>(1);
    both(
        &cx,
        async move |_cx: Cx| {
            if BUG {
                if !tx.is_closed() {
                    tx.try_send(1).unwrap();
                }
            } else {
                let _ = tx.try_send(1);
            }
        },
        async move |_cx: Cx| drop(rx),
    )
    .await;
}

#[test]
fn a_receiver_may_go_between_a_look_and_a_send() {
    finds(closed_between::<true>, closed_between::<false>);
}

/// Two who add one to what they have read.
async fn lost_update<const BUG: bool>(cx: Cx) {
    let (set, seen) = watch(0);
    let set = Arc::new(set);
    let add = |set: Arc<asx::channel::watch::Setter<i32>>| {
        async move |_cx: Cx| {
            if BUG {
                let value = *set.borrow();
                set.send(value + 1).unwrap();
            } else {
                set.send_modify(|value| *value += 1);
            }
        }
    };
    both(&cx, add(set.clone()), add(set.clone())).await;
    assert_eq!(*seen.borrow(), 2, "an update is lost");
}

#[test]
fn an_update_may_be_lost_between_borrow_and_send() {
    finds(lost_update::<true>, lost_update::<false>);
}

/// Nothing of asx comes after the message, but an atomic.
async fn flag_after_message(cx: Cx) {
    let (tell, mut told) = unbounded::<()>();
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    both(
        &cx,
        async move |_cx: Cx| {
            tell.send(()).unwrap();
            done.store(true, Ordering::Relaxed);
        },
        async move |cx: Cx| {
            told.recv(&cx).await.unwrap();
            assert!(is_done.load(Ordering::Relaxed), "told, and not done");
        },
    )
    .await;
}

#[test]
fn what_is_not_of_asx_is_seen_by_others_after_an_operation() {
    let report = check(flag_after_message).run();
    assert!(report.failure.is_some(), "{report}");
    let report = check(flag_after_message).opaque().how(How::Dpor).runs(100_000).time(LONG).run();
    assert!(report.failure.is_some(), "{report}");
}

/// A lock of the standard library around operations that do not wait: others who want it wait
/// until its holder goes on, and nothing stands still.
#[test]
fn a_lock_of_the_standard_library_may_be_held_around_operations() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = unbounded::<u32>();
        let numbers = Arc::new(std::sync::Mutex::new(0));
        cx.scope(async |s| {
            for _ in 0..2 {
                let numbers = numbers.clone();
                let tx = tx.clone();
                s.spawn(async move |_cx: Cx| {
                    let mut number = numbers.lock().unwrap();
                    *number += 1;
                    tx.send(*number).unwrap();
                    Ok::<_, Cancelled>(())
                });
            }
            Ok(())
        })
        .await
        .unwrap();
        let first = rx.try_recv().unwrap();
        assert_eq!((first, rx.try_recv().unwrap()), (1, 2), "numbered in the order of sending");
    };
    for how in [How::Mixed, How::Random, How::Dpor] {
        let report = check(program).how(how).opaque().run();
        assert!(report.failure.is_none(), "{report}");
        assert_eq!(check(program).record(3), check(program).record(3));
    }
}

/// A program without visible sharing is not proved, and the report says so.
mod unseen {
    use std::sync::Mutex as StdMutex;
    use std::sync::atomic::AtomicUsize;

    use asx::Cx;
    use asx::channel::TrySendError;
    use asx::lab::{How, Report};
    use asx::sync::Semaphore;

    use super::*;

    fn assert_not_proved(report: &Report) {
        assert!(report.failure.is_none(), "{report}");
        assert!(report.proof.is_none() && report.nothing_shared, "{report}");
        let text = report.to_string();
        assert!(text.contains("nothing is proved") && text.contains("loom"), "{text}");
    }

    async fn add(counter: Arc<AtomicUsize>) {
        let seen = counter.load(Ordering::Relaxed);
        counter.store(seen + 1, Ordering::Relaxed);
    }

    /// On threads an update can be lost, but no operation of asx is between its two halves.
    async fn lost_update(cx: Cx) {
        let counter = Arc::new(AtomicUsize::new(0));
        let (one, two) = (counter.clone(), counter.clone());
        both(&cx, async move |_: Cx| add(one).await, async move |_: Cx| add(two).await).await;
        assert_eq!(counter.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn atomic_updates_are_not_proved() {
        assert_not_proved(&check(lost_update).run());
        assert_not_proved(&check(lost_update).grain(Grain::Operation).run());
        for how in [How::Dpor, How::Dfs] {
            assert_not_proved(&check(lost_update).how(how).runs(100_000).time(LONG).run());
        }
        // At poll grain the claim is for one worker, where it is true.
        let report = check(lost_update).grain(Grain::Poll).run();
        assert!(report.to_string().contains("for one worker"), "{report}");
    }

    /// Two locks of the standard library in opposite orders.
    async fn crossed_locks(cx: Cx) {
        let locks = Arc::new((StdMutex::new(0), StdMutex::new(0)));
        let other = locks.clone();
        let one = async move |_: Cx| {
            let _first = locks.0.lock().unwrap();
            let _second = locks.1.lock().unwrap();
        };
        let two = async move |_: Cx| {
            let _second = other.1.lock().unwrap();
            let _first = other.0.lock().unwrap();
        };
        both(&cx, one, two).await;
    }

    #[test]
    fn crossed_std_locks_are_not_proved() {
        assert_not_proved(&check(crossed_locks).run());
    }

    static SHARED: AtomicUsize = AtomicUsize::new(0);

    async fn in_a_static(cx: Cx) {
        SHARED.store(0, Ordering::Relaxed);
        let add = async |_: Cx| {
            let seen = SHARED.load(Ordering::Relaxed);
            SHARED.store(seen + 1, Ordering::Relaxed);
        };
        both(&cx, add, add).await;
    }

    #[test]
    fn updates_of_a_static_are_not_proved() {
        assert_not_proved(&check(in_a_static).run());
    }

    /// With a yield or an operation between the halves the update is lost, and that is found.
    #[test]
    fn atomic_updates_around_an_await_or_an_operation_are_found() {
        let program = async |cx: Cx, is_operation: bool| {
            let counter = Arc::new(AtomicUsize::new(0));
            let add = |counter: Arc<AtomicUsize>| {
                async move |cx: Cx| {
                    let (own, _rx) = unbounded();
                    let seen = counter.load(Ordering::Relaxed);
                    match is_operation {
                        true => own.send(()).unwrap(),
                        false => cx.yield_now().await,
                    }
                    counter.store(seen + 1, Ordering::Relaxed);
                }
            };
            both(&cx, add(counter.clone()), add(counter.clone())).await;
            assert_eq!(counter.load(Ordering::Relaxed), 2, "an update is lost");
        };
        for is_operation in [false, true] {
            let report = check(async |cx: Cx| program(cx, is_operation).await).run();
            assert!(report.failure.is_some(), "{report}");
        }
    }

    /// Reads of the same object and private objects are not shared state.
    #[test]
    fn programs_that_only_seem_to_share_are_not_proved() {
        let read = async |cx: Cx| {
            let gate = Arc::new(Semaphore::new(1));
            let other = gate.clone();
            let one = async move |_: Cx| assert!(!gate.is_closed());
            both(&cx, one, async move |_: Cx| assert!(!other.is_closed())).await;
        };
        assert_not_proved(&check(read).run());
        let watched = async |cx: Cx| {
            let own = async |_: Cx| {
                let (set, seen) = asx::channel::watch(0);
                set.send_replace(1);
                drop(seen.borrow());
            };
            both(&cx, own, own).await;
        };
        assert_not_proved(&check(watched).run());
    }

    /// A proof names its condition, and stands if the check has promised that it holds.
    #[test]
    fn proofs_name_what_they_do_not_cover() {
        let report = check(super::lost_update::<false>).run();
        assert!(report.proof.is_some() && !report.nothing_shared, "{report}");
        assert!(report.to_string().contains("std locks and atomics were only tried"), "{report}");
        let report = check(in_a_static).transparent().run();
        assert!(report.proof.is_some(), "{report}");
    }

    /// A channel that the body makes before it returns its future is shared state.
    #[test]
    fn a_channel_made_outside_of_polls_is_seen() {
        let program = |cx: Cx| {
            let (tx, mut rx) = asx::channel::bounded::<u32>(1);
            async move {
                let send = async move |_: Cx| {
                    assert_ne!(tx.try_send(1).err(), Some(TrySendError::Full(1)))
                };
                let receive = async move |_: Cx| assert_ne!(rx.try_recv().ok(), Some(2));
                both(&cx, send, receive).await;
            }
        };
        let report = check(program).run();
        assert!(report.proof.is_some() && !report.nothing_shared, "{report}");
    }

    /// A task that runs alone shares nothing with others.
    #[test]
    fn a_single_task_is_proved() {
        let report = check(async |cx: Cx| cx.yield_now().await).run();
        assert!(report.proof.is_some() && !report.nothing_shared, "{report}");
    }
}

/// Tasks that have nothing in common but their scope: who ends when does not matter, nor which of
/// them is the last.
#[test]
fn independent_tasks_add_no_class() {
    for tasks in 1..=8 {
        let program = async |cx: Cx| {
            cx.scope(async |s| {
                // Begun by whichever is the last.
                s.defer(async |_cx: Cx| ()).unwrap();
                s.defer(async |cx: Cx| cx.yield_now().await).unwrap();
                for _ in 0..tasks {
                    s.spawn(async |_cx: Cx| {
                        let (tx, mut rx) = unbounded();
                        tx.send(1).unwrap();
                        Ok::<_, Cancelled>(rx.try_recv().unwrap())
                    });
                }
                Ok(())
            })
            .await
            .unwrap();
        };
        let report = check(program).transparent().run();
        let proof = report.proof.unwrap_or_else(|| panic!("{report}"));
        assert_eq!((proof.grain, proof.classes), (Grain::Operation, 1), "{tasks} tasks: {report}");
        assert!(check(program).run().nothing_shared, "{tasks} tasks");
    }
}

/// Timers of tasks that share nothing add no class, whether they are due at the same time or not.
#[test]
fn sleeping_tasks_add_no_class() {
    for same in [false, true] {
        for tasks in 1..=6 {
            let program = async |cx: Cx| {
                cx.scope(async |s| {
                    for task in 0..tasks {
                        let time = Duration::from_millis(if same { 1 } else { task });
                        s.spawn(async move |cx: Cx| {
                            cx.sleep(time).await?;
                            cx.sleep(time).await?;
                            Ok::<_, Cancelled>(cx.now())
                        });
                    }
                    Ok(())
                })
                .await
                .unwrap();
            };
            let report = check(program).transparent().exact_time().run();
            let proof = report.proof.unwrap_or_else(|| panic!("{report}"));
            assert_eq!(proof.classes, 1, "{tasks} tasks: {report}");
        }
    }
}

/// Opens `depth` nested scopes, and yields `yields` times in each.
async fn nested(cx: &Cx, depth: usize, yields: usize) -> Result<(), Cancelled> {
    if depth == 0 {
        return Ok(());
    }
    cx.scope(async |_| {
        for _ in 0..yields {
            cx.yield_now().await;
        }
        Box::pin(nested(cx, depth - 1, yields)).await
    })
    .await
}

#[test]
fn nested_scopes_may_take_more_polls() {
    let deep = async |cx: Cx| nested(&cx, 100, 120).await;
    let one_after_another = async |cx: Cx| {
        for _ in 0..100 {
            nested(&cx, 1, 120).await.unwrap();
        }
    };
    let checks = move || {
        let report = check(deep).grain(Grain::Poll).runs(2).run();
        assert!(report.failure.is_none(), "{report}");
        let report = check(one_after_another).grain(Grain::Poll).runs(2).run();
        let found = report.failure.expect("more polls than one task may take");
        assert_eq!(found.failure.finding.kind, Kind::Livelock, "{found}");
    };
    // A poll has a frame for each scope around it.
    let thread = std::thread::Builder::new().stack_size(1 << 26).spawn(checks).unwrap();
    thread.join().unwrap();
}

/// Who is handed a lock finds it at its place in line, whoever joins the line meanwhile: those do
/// not depend on each other.
#[test]
fn who_was_handed_a_lock_does_not_mind_who_comes_next() {
    let program = async |cx: Cx| {
        let lock = Arc::new(Mutex::new(0));
        cx.scope(async |s| {
            for _ in 0..3 {
                let lock = lock.clone();
                s.spawn(async move |cx: Cx| {
                    *lock.lock(&cx).await? += 1;
                    Ok::<_, Cancelled>(())
                });
            }
            Ok(())
        })
        .await
        .unwrap();
        assert_eq!(lock.try_lock().map(|count| *count), Ok(3));
    };
    let report = check(program).runs(10_000).run();
    let proof = report.proof.unwrap_or_else(|| panic!("{report}"));
    assert_eq!((proof.grain, proof.classes), (Grain::Operation, 30), "{report}");
}

/// All orders of a small program, one by one and one of each class: the same classes.
#[test]
fn classes_are_those_of_all_orders() {
    async fn locked(cx: Cx) {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        let one = async move |cx: Cx| *lock.lock(&cx).await.unwrap() += 1;
        let two = async move |_cx: Cx| drop(other.try_lock());
        both(&cx, one, two).await;
    }
    async fn sent(cx: Cx) {
        let (tx, mut rx) = bounded(1);
        let one = async move |cx: Cx| drop(rx.recv(&cx).await);
        let two = async move |_cx: Cx| tx.try_send(1).unwrap_or_default();
        both(&cx, one, two).await;
    }
    async fn waited(cx: Cx) {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        let one = async move |cx: Cx| *lock.lock(&cx).await.unwrap() += 1;
        let two = async move |cx: Cx| *other.lock(&cx).await.unwrap() += 1;
        both(&cx, one, two).await;
    }
    fn compare<B: Future<Output = ()>>(program: impl Fn(Cx) -> B + Copy) {
        let [all, classes] = [How::Dfs, How::Dpor].map(|how| {
            let report = check(program).how(how).runs(2_000_000).time(LONG).run();
            println!("{how}: {report}");
            report
        });
        assert!(all.failure.is_none() && all.proof.is_some(), "{all}");
        assert_eq!(all.proof, classes.proof, "{all}\n{classes}");
    }
    compare(locked);
    compare(sent);
    compare(waited);
}

/// A cancel may come between two operations that need not wait, in the middle of a poll.
#[test]
fn a_cancel_may_come_between_two_operations_that_are_ready() {
    async fn pair_of_writes(cx: Cx) -> Result<(), Cancelled> {
        let one = Arc::new(Mutex::new(0));
        let two = Arc::new(Mutex::new(0));
        let both = (one.clone(), two.clone());
        cx.scope(async |s| {
            s.spawn(async move |cx: Cx| {
                *both.0.lock(&cx).await? += 1;
                *both.1.lock(&cx).await? += 1;
                Ok(())
            });
            Ok::<_, Cancelled>(())
        })
        .await
        .ok();
        let values = (*one.try_lock().expect("free"), *two.try_lock().expect("free"));
        assert_eq!(values.0, values.1, "half of it was done");
        Ok(())
    }
    let checked = check(pair_of_writes).cancel_at_every_await();
    let report = checked.run();
    let found = report.failure.as_ref().unwrap_or_else(|| panic!("missed: {report}"));
    assert!(found.words.iter().any(|it| it.contains("cancel")), "{found}");
    assert!(checked.replay(&found.token).unwrap().failure.is_some(), "{found}");
    let report = check(pair_of_writes).cancel_at_every_await().grain(Grain::Poll).run();
    assert!(report.failure.is_none(), "{report}");
}

/// A run is over in which polls were left in the middle: each of them ends, and by nobody's choice
/// others after it.
#[test]
fn polls_that_were_left_end_with_a_run_that_is_over() {
    async fn never_done(cx: Cx) -> Result<(), Cancelled> {
        let lock = Arc::new(Mutex::new(0));
        cx.scope(async |s| {
            for _ in 0..3 {
                let lock = lock.clone();
                s.spawn(async move |cx: Cx| {
                    while *lock.lock(&cx).await? < 1 {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
            }
            Ok::<_, Cancelled>(())
        })
        .await
    }
    for how in [How::Random, How::Pct(3), How::Dpor] {
        for seed in 0..4 {
            let checked = check(never_done).how(how).grain(Grain::Operation).steps(40).seed(seed);
            let report = checked.run();
            let found = report.failure.as_ref().unwrap_or_else(|| panic!("missed: {report}"));
            assert_eq!(found.failure.finding.kind, Kind::Livelock, "{found}");
            let again = checked.replay(&found.token).unwrap();
            assert!(again.failure.is_some(), "{found}");
        }
    }
}
