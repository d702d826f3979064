//! Programs that try to break the runtime from safe code, by dropping, leaking, cancelling and
//! waking at unusual times. Each takes a second or two; one that hangs is dumped and ends the
//! process.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use asx::prelude::*;
use asx::{Handle, Local, Policy, Runtime};

/// The duration of the races.
const WHILE: Duration = Duration::from_millis(700);

/// Ends the process with a dump if a test does not end.
struct Watchdog(#[expect(dead_code, reason = "dropped when the test has ended")] mpsc::Sender<()>);

impl Watchdog {
    /// Without a handle there is no dump, and nothing keeps the runtime's memory alive.
    fn over(what: &'static str, handle: impl Into<Option<Handle>>) -> Watchdog {
        let handle = handle.into();
        let (alive, gone) = mpsc::channel();
        thread::spawn(move || {
            if gone.recv_timeout(Duration::from_secs(90)) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{what} hangs");
                if let Some(handle) = handle {
                    eprintln!("{}", handle.dump());
                }
                std::process::abort();
            }
        });
        Watchdog(alive)
    }
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

fn until() -> impl Fn() -> bool {
    let end = Instant::now() + WHILE;
    move || Instant::now() < end
}

/// Yields without a context.
fn yield_by_hand() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A thread cancels a scope while a worker takes its tasks, to which only the scope has references:
/// there is no handle and no context.
#[test]
fn a_thread_cancels_tasks_known_only_to_their_scope() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let _watchdog = Watchdog::over("cancel from a thread", runtime.handle());
        let (scopes, to_cancel) = mpsc::channel::<Scope<Cancelled>>();
        let (spawned, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (spawned.clone(), ended.clone());
        let cancels = thread::spawn(move || {
            for (nth, scope) in to_cancel.into_iter().enumerate() {
                for _ in 0..3 {
                    counts.0.fetch_add(1, Relaxed);
                    let ended = Counted(counts.1.clone());
                    scope.spawn(move |_| async move {
                        let _ended = ended;
                        Ok(())
                    });
                }
                (0..nth * 37 % 400).for_each(|_| std::hint::spin_loop());
                scope.cancel("by a thread");
            }
        });
        let goes_on = until();
        runtime.block_on(async |cx: Cx| {
            while goes_on() {
                let _: Result<(), Cancelled> = cx
                    .scope(async |s| {
                        scopes.send(s.clone()).unwrap();
                        cx.cancelled().await;
                        Ok(())
                    })
                    .await;
            }
        });
        drop(scopes);
        cancels.join().unwrap();
        assert_eq!(spawned.load(Relaxed), ended.load(Relaxed));
        assert_eq!(runtime.dump().tasks(), 0);
    }
}

/// Runs scopes one after the other for a while, each with 16 tasks that only the scope refers to.
/// `task` creates the body of a task from its number in the scope and that of the round. `check`
/// receives the result of a round.
fn rounds_of_tasks<E: Send + 'static, B>(
    what: &'static str,
    task: impl Fn(&Scope<E>, usize, usize) -> B,
    check: impl Fn(usize, Outcome<(), E>),
) where
    B: Future<Output = Result<(), E>> + Send + 'static,
{
    let runtime = runtime(2);
    let _watchdog = Watchdog::over(what, runtime.handle());
    let (mut spawned, ended) = (0, Arc::new(AtomicUsize::new(0)));
    let goes_on = until();
    runtime.block_on(async |cx: Cx| {
        let mut round = 0;
        while goes_on() {
            round += 1;
            let outcome = cx.try_scope(async |s: Scope<E>| {
                for nth in 0..16 {
                    spawned += 1;
                    let (body, ended) = (task(&s, nth, round), Counted(ended.clone()));
                    s.spawn(move |_| async move {
                        let _ended = ended;
                        body.await
                    });
                }
                Ok(())
            });
            check(round, outcome.await);
        }
    });
    assert_eq!(spawned, ended.load(Relaxed));
    assert_eq!(runtime.dump().tasks(), 0);
}

/// The same by one of the tasks, while its siblings are in the queues of another worker.
#[test]
fn a_sibling_cancels_tasks_known_only_to_their_scope() {
    let task = |scope: &Scope<Cancelled>, nth, round| {
        let scope = scope.clone();
        async move {
            (0..(nth * 7 + round) % 40).for_each(|_| std::hint::spin_loop());
            if nth == round % 16 {
                scope.cancel("by a sibling");
            }
            yield_by_hand().await;
            yield_by_hand().await;
            Ok(())
        }
    };
    rounds_of_tasks("cancel by a sibling", task, |_, _| ());
}

/// The same by the first error of a scope.
#[test]
fn a_failure_cancels_tasks_known_only_to_their_scope() {
    let task = |_: &Scope<usize>, nth, round| async move {
        yield_by_hand().await;
        if nth == round % 16 { Err(nth) } else { Ok(()) }
    };
    let check = |round, outcome| {
        assert!(matches!(outcome, Err(TaskError::Err(nth)) if nth == round % 16));
    };
    rounds_of_tasks("fail fast", task, check);
}

/// Refers to memory that is never freed, so that the leak sanitizer does not report it.
static REACHABLE: Mutex<Option<Waker>> = Mutex::new(None);

/// Leaked wakers are references that are never released. The task must stay valid while it is
/// polled and when it ends, with any number of them.
#[test]
fn leaked_wakers_do_not_end_a_task() {
    let runtime = runtime(1);
    let _watchdog = Watchdog::over("forgotten wakers", runtime.handle());
    let text = runtime.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<Cx>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            let task = s.spawn(async move |cx: Cx| {
                let (text, extra) = (String::from("still here"), cx.clone());
                let mut polls = 0;
                poll_fn(|cx| {
                    (0..1000).for_each(|_| std::mem::forget(cx.waker().clone()));
                    polls += 1;
                    cx.waker().wake_by_ref();
                    if polls < 1000 {
                        return Poll::Pending;
                    }
                    *REACHABLE.lock().unwrap() = Some(cx.waker().clone());
                    Poll::Ready(())
                })
                .await;
                tx.try_send(extra).unwrap();
                cx.cancelled().await;
                // Its value is discarded because it was cancelled, but it can still be returned.
                drop(text);
                Ok(())
            });
            drop(rx.recv(&cx).await.unwrap());
            cx.yield_now().await;
            assert!(!task.is_finished());
            task.cancel("the end");
            Ok(task.await.is_err())
        })
        .await
    });
    assert!(text.unwrap());
}

/// A thread wakes a task by value. The task ends, and its runtime with it, while the thread is
/// still in the wake. A failure is unlikely to show, even under the address sanitizer. The unit
/// test `a_wake_by_value_keeps_the_host_while_the_host_is_called` of the runtime is deterministic.
#[test]
fn a_wake_by_value_outlives_the_runtime() {
    let _watchdog = Watchdog::over("a wake by value", None);
    for spawned in [false, true] {
        let slot = Arc::new((Mutex::new(None::<Waker>), AtomicBool::new(false)));
        let over = Arc::new(AtomicBool::new(false));
        let (wakes, ends) = (slot.clone(), over.clone());
        let thread = thread::spawn(move || {
            while !ends.load(Relaxed) {
                let waker = wakes.0.lock().unwrap().take();
                match waker {
                    Some(waker) => {
                        wakes.1.store(true, SeqCst);
                        waker.wake();
                    }
                    None => thread::yield_now(),
                }
            }
        });
        let goes_on = until();
        while goes_on() {
            let runtime = runtime(1);
            slot.1.store(false, SeqCst);
            let wait = {
                let (slot, mut told) = (slot.clone(), false);
                poll_fn(move |cx| {
                    if slot.1.load(SeqCst) {
                        return Poll::Ready(());
                    }
                    if !std::mem::replace(&mut told, true) {
                        *slot.0.lock().unwrap() = Some(cx.waker().clone());
                    }
                    Poll::Pending
                })
            };
            runtime.block_on(async move |cx: Cx| {
                let done = Arc::new(AtomicBool::new(false));
                let busy = done.clone();
                let _: Result<(), Cancelled> = cx
                    .scope(async |s: Scope<Cancelled>| {
                        // Keeps the thread awake, so that it takes the entry immediately.
                        s.spawn(async move |cx: Cx| {
                            while !busy.load(Relaxed) {
                                cx.yield_now().await;
                            }
                            Ok(())
                        });
                        if spawned {
                            s.spawn(async move |_cx: Cx| {
                                wait.await;
                                done.store(true, Relaxed);
                                Ok(())
                            });
                        } else {
                            wait.await;
                            done.store(true, Relaxed);
                        }
                        Ok(())
                    })
                    .await;
            });
            drop(runtime);
        }
        over.store(true, Relaxed);
        thread.join().unwrap();
    }
}

/// The same with a reply only.
#[test]
fn a_reply_outlives_its_runtime() {
    let _watchdog = Watchdog::over("a reply", None);
    let (jobs, line) = mpsc::channel::<channel::oneshot::Reply<u32>>();
    let thread = thread::spawn(move || {
        for reply in line {
            (0..200).for_each(|_| std::hint::spin_loop());
            let _ = reply.send(1);
        }
    });
    let goes_on = until();
    while goes_on() {
        let runtime = runtime(1);
        let answered: Result<u32, Cancelled> = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let done = Arc::new(AtomicBool::new(false));
                let busy = done.clone();
                s.spawn(async move |cx: Cx| {
                    while !busy.load(Relaxed) {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
                let (reply, mut answer) = channel::oneshot();
                jobs.send(reply).unwrap();
                let answered = answer.recv(&cx).await.unwrap();
                done.store(true, Relaxed);
                Ok(answered)
            })
            .await
        });
        assert_eq!(answered, Ok(1));
        drop(runtime);
    }
    drop(jobs);
    thread.join().unwrap();
}

type Kept = Task<u32, Cancelled>;

/// A local value that has the handle of a task of another region.
struct Holds(Mutex<Option<Kept>>);

impl Drop for Holds {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap().take());
    }
}

static HOLDS: Local<Holds> = Local::new();

/// Returns the handle of a task that has ended, outside its scope.
async fn ended(cx: &Cx) -> Kept {
    let ended = cx.scope(async |s: Scope<Cancelled>| {
        let task = s.spawn(async |_cx: Cx| Ok(7));
        while !task.is_finished() {
            cx.yield_now().await;
        }
        Ok::<_, Cancelled>(task)
    });
    ended.await.unwrap()
}

/// The last task of a region ends the region, whose local value ends the last task of another one,
/// in the middle of a poll that moves from one region to a third. The address sanitizer
/// (`cargo xtask asan`) reports any failure deterministically.
#[test]
fn the_end_of_a_local_value_ends_a_task_of_another_region() {
    let runtime = runtime(1);
    let _watchdog = Watchdog::over("a local value", runtime.handle());
    runtime.block_on(async |cx: Cx| {
        for _ in 0..200 {
            let other = ended(&cx).await;
            let value = Holds(Mutex::new(Some(other)));
            let holder = cx.with_local(&HOLDS, value, async |cx| ended(cx).await).await;
            cx.yield_now().await;
            let mut kept = cx
                .scope(async |s: Scope<Cancelled>| {
                    drop(holder);
                    let task = s.spawn(async |_cx: Cx| Ok(8));
                    while !task.is_finished() {
                        cx.yield_now().await;
                    }
                    Ok::<_, Cancelled>(task)
                })
                .await
                .unwrap();
            let mut more = Vec::new();
            for _ in 0..3 {
                more.push(ended(&cx).await);
            }
            cx.yield_now().await;
            // Memory that was reused would contain another number.
            assert!(more.iter().all(|task| task.id() != kept.id()));
            assert_eq!(kept.outcome().unwrap().unwrap(), 8);
            drop(kept);
            cx.yield_now().await;
            for task in &mut more {
                assert_eq!(task.outcome().unwrap().unwrap(), 7);
            }
        }
    });
    assert_eq!(runtime.dump().tasks(), 0);
}

static NOTED: Local<Counted> = Local::new();

/// A task that awaits its own handle registers its own waker with itself. When it gives up, that
/// waker must be removed: it would keep the task, its region and the runtime alive.
#[test]
fn a_task_that_gave_up_awaiting_itself_is_freed() {
    let (runtime, gone) = (runtime(1), Arc::new(AtomicUsize::new(0)));
    let watchdog = Watchdog::over("waiting for itself", runtime.handle());
    let ran: Result<(), Cancelled> = runtime.block_on(async |cx: Cx| {
        let noted = Counted(gone.clone());
        let body = async |cx: &Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let slot = Arc::new(Mutex::new(None::<Task<(), Cancelled>>));
                let own = slot.clone();
                let task = s.spawn(async move |cx: Cx| {
                    let mut own = loop {
                        if let Some(own) = own.lock().unwrap().take() {
                            break own;
                        }
                        cx.yield_now().await;
                    };
                    poll_fn(|cx| {
                        assert!(Pin::new(&mut own).poll(cx).is_pending());
                        Poll::Ready(())
                    })
                    .await;
                    drop(own);
                    Ok(())
                });
                *slot.lock().unwrap() = Some(task);
                Ok(())
            })
            .await
        };
        cx.with_local(&NOTED, noted, body).await
    });
    assert_eq!(ran, Ok(()));
    drop((runtime, watchdog));
    assert_eq!(gone.load(Relaxed), 1);
}

/// Nested scopes with different policies, all cancelled from threads at about the same time.
#[test]
fn several_threads_cancel_nested_scopes_concurrently() {
    let runtime = runtime(2);
    let _watchdog = Watchdog::over("nested cancels", runtime.handle());
    let (scopes, to_cancel) = mpsc::channel::<[Scope<Cancelled>; 2]>();
    let cancels = thread::spawn(move || {
        for [outer, inner] in to_cancel {
            thread::scope(|s| {
                s.spawn(|| outer.cancel("outer"));
                s.spawn(|| inner.cancel("inner"));
            });
        }
    });
    let goes_on = until();
    runtime.block_on(async |cx: Cx| {
        while goes_on() {
            let outcome = cx.scope_with(Policy::CollectAll).run(async |outer| {
                let inner = cx.scope(async |inner: Scope<Cancelled>| {
                    for _ in 0..4 {
                        inner.spawn(move |_| async move {
                            yield_by_hand().await;
                            Ok(())
                        });
                    }
                    scopes.send([Scope::clone(&outer), inner]).unwrap();
                    cx.cancelled().await;
                    Ok(())
                });
                inner.await
            });
            drop(outcome.await);
        }
    });
    drop(scopes);
    cancels.join().unwrap();
    assert_eq!(runtime.dump().tasks(), 0);
}

/// Counts its drop.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}
