//! Operations that a page adds (promises, events) keep the rules of all operations. Those of
//! JavaScript are made of [`Operation`], as these are.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use asx_kernel::cancel::Kind;
use asx_runtime::{Cancelled, Cx, Operation, Scope, join};
use asx_web::page::Page;
use asx_web::{Config, Ended};

/// More operations than any poll may complete.
const MANY: u32 = 10_000;

/// Runs a program to its end, in which a poll may complete so many operations.
fn run<T: 'static, B: Future<Output = T> + 'static>(
    operations: u32,
    body: impl FnOnce(Cx) -> B,
) -> T {
    let mut config = Config::default();
    config.settings.operations = operations;
    let (page, runtime) = Page::open(config);
    let program = runtime.start(body).unwrap();
    page.run(&runtime);
    match program.ended() {
        Some(Ended::Value(value)) => value,
        _ => panic!("the program gave no value"),
    }
}

/// How many operations a task completes one after the other before another task has its turn, each
/// of them `Ok`, or each ended by a cancel.
fn completed_before_another(cancel: bool) -> u32 {
    run(128, async move |cx: Cx| {
        let counted = cx.try_scope(async |s: Scope<Cancelled>| {
            let (turn, count) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
            let (other, counts) = (turn.clone(), count.clone());
            let task = s.spawn_local(async move |cx: Cx| {
                if cancel {
                    cx.cancelled().await;
                }
                while !turn.load(SeqCst) && *counts.lock().unwrap() < MANY {
                    let answer = Operation::run(&cx, |_| Poll::Ready(())).await;
                    assert_eq!(answer.is_err(), cancel);
                    *counts.lock().unwrap() += 1;
                }
                Ok(())
            });
            cx.yield_now().await;
            if cancel {
                task.cancel("enough");
            }
            s.spawn(async move |_cx: Cx| {
                other.store(true, SeqCst);
                Ok(())
            });
            let _ = task.await;
            let counted = *count.lock().unwrap();
            Ok(counted)
        });
        counted.await.expect("the scope itself is not cancelled")
    })
}

#[test]
fn operations_that_complete_at_once_let_others_run() {
    let count = completed_before_another(false);
    // The body has turns before it spawns the other one.
    assert!((1..=4 * 128).contains(&count), "{count}");
}

#[test]
fn so_do_those_that_a_cancel_ends() {
    // Cancelled work goes before other work so often in a row.
    let count = completed_before_another(true);
    assert!((1..=128 * 17).contains(&count), "{count}");
}

#[test]
fn an_operation_that_waits_is_not_charged() {
    let polls = run(1, async |cx: Cx| {
        let polls = Rc::new(Cell::new(0));
        let counted = polls.clone();
        let waits = async |cx: &Cx| {
            let mut waited = false;
            let wait = Operation::run(cx, |context| {
                if std::mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            });
            wait.await
        };
        // It waits in the poll in which the other one completes.
        let at_once = async |cx: &Cx| {
            let done = Operation::run(cx, |_| Poll::Ready(())).await;
            counted.set(counted.get() + 1);
            done
        };
        let mut both = Box::pin(join(&cx, waits, at_once));
        let first = std::future::poll_fn(|context| Poll::Ready(both.as_mut().poll(context)));
        assert!(first.await.is_pending());
        let seen = polls.get();
        drop(both);
        seen
    });
    assert_eq!(polls, 1);
}

#[test]
fn the_context_of_another_task_is_refused_and_nothing_is_begun() {
    run(128, async |cx: Cx| {
        let other = cx.clone();
        let refused = cx.scope(async |s: Scope<Cancelled>| {
            let task = s.spawn_local(async move |_cx: Cx| {
                let begun = Cell::new(false);
                let answer = Operation::run(&other, |_| {
                    begun.set(true);
                    Poll::Ready(())
                });
                let refused = answer.await.expect_err("it is another task's");
                assert_eq!(refused.kind(), Kind::ResourceUnavailable);
                assert!(!begun.get());
                Ok(())
            });
            assert!(task.await.is_ok());
            Ok(())
        });
        assert_eq!(refused.await, Ok(()));
    });
}

/// A waker of a combinator that polls its future only if that was woken.
struct Own(AtomicBool, Waker);

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
        self.1.wake_by_ref();
    }
}

#[test]
fn a_cancel_wakes_what_waits_behind_another_waker() {
    let kind = run(128, async |cx: Cx| {
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            let kind = Rc::new(Cell::new(None));
            let seen = kind.clone();
            let task = s.spawn_local(async move |cx: Cx| {
                let mut wait = Box::pin(Operation::run(&cx, |_| Poll::<()>::Pending));
                let mut own: Option<Arc<Own>> = None;
                let ended = std::future::poll_fn(move |context| {
                    let own = own.get_or_insert_with(|| {
                        Arc::new(Own(AtomicBool::new(true), context.waker().clone()))
                    });
                    if !own.0.swap(false, SeqCst) {
                        return Poll::Pending;
                    }
                    let waker = Waker::from(own.clone());
                    wait.as_mut().poll(&mut Context::from_waker(&waker))
                });
                let cancelled = ended.await.expect_err("nobody else ends it");
                seen.set(Some(cancelled.kind()));
                Ok(())
            });
            cx.yield_now().await;
            task.cancel("enough");
            let _ = task.await;
            Ok(kind.get())
        });
        scope.await.expect("the scope itself is not cancelled")
    });
    assert_eq!(kind, Some(Kind::User));
}
