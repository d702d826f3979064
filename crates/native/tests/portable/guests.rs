//! Several programs on one runtime at a time, through the public interface.

use crate::common;

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use asx_native::{BlockOnError, Runtime};
use asx_runtime::channel::bounded;
use asx_runtime::sync::Notify;
use asx_runtime::{Cx, Grace, Scope, TaskError};
use common::{AppError, ends, on_each};

/// Records an error if it is dropped on another thread than it was created on.
struct AtHome(ThreadId, Rc<()>);

impl AtHome {
    fn new() -> AtHome {
        AtHome(thread::current().id(), Rc::new(()))
    }

    fn check(&self) {
        assert_eq!(self.0, thread::current().id());
        drop(self.1.clone());
    }
}

impl Drop for AtHome {
    fn drop(&mut self) {
        // A panic here would be caught with that of the task.
        if self.0 != thread::current().id() {
            eprintln!("a local future was dropped on another thread");
            std::process::abort();
        }
    }
}

/// Runs `first` as the first program, then `second` beside it, once the first has signalled.
fn beside<A: Send, B: Send>(
    rt: &Runtime,
    first: impl AsyncFnOnce(Cx, mpsc::Sender<()>) -> A + Send,
    second: impl AsyncFnOnce(Cx) -> B + Send,
) -> (A, B) {
    let (entered, enter) = mpsc::channel();
    thread::scope(|s| {
        let first = s.spawn(move || rt.block_on(async |cx: Cx| first(cx, entered).await));
        enter.recv().unwrap();
        let second = s.spawn(move || rt.block_on(async |cx: Cx| second(cx).await));
        (first.join().unwrap(), second.join().unwrap())
    })
}

#[test]
fn programs_that_wait_for_each_other_complete() {
    ends(|| {
        on_each(|rt| {
            let (to_second, mut from_first) = bounded(1);
            let (to_first, mut from_second) = bounded(1);
            let sums = beside(
                rt,
                async |cx, entered| {
                    entered.send(()).unwrap();
                    let mut sum = 0;
                    for n in 0..200_u64 {
                        to_second.send(&cx, n).await.unwrap();
                        sum += from_second.recv(&cx).await.unwrap();
                    }
                    sum
                },
                async |cx| {
                    let mut sum = 0;
                    for n in 0..200_u64 {
                        sum += from_first.recv(&cx).await.unwrap();
                        to_first.send(&cx, 2 * n).await.unwrap();
                    }
                    sum
                },
            );
            assert_eq!(sums, (2 * 19900, 19900));
        });
    });
}

/// Messages travel through programs on several threads, by pinned and unpinned tasks.
#[test]
fn messages_travel_through_programs() {
    ends(|| {
        on_each(|rt| {
            let ring: Vec<_> = (0..5).map(|_| bounded::<u32>(2)).collect();
            let (senders, receivers): (Vec<_>, Vec<_>) = ring.into_iter().unzip();
            thread::scope(|threads| {
                for (at, mut inbox) in receivers.into_iter().enumerate() {
                    let next = senders[(at + 1) % senders.len()].clone();
                    threads.spawn(move || {
                        rt.block_on(async |cx: Cx| {
                            let result: Result<(), AppError> = cx
                                .scope(async |s| {
                                    if at == 0 {
                                        next.send(&cx, 0).await.unwrap();
                                    }
                                    let body = async move |cx: Cx| {
                                        for _ in 0..100 {
                                            let n = inbox.recv(&cx).await.unwrap();
                                            // The last one has no successor.
                                            let _ = next.send(&cx, n + 1).await;
                                        }
                                        Ok(())
                                    };
                                    let task = match at % 2 {
                                        0 => s.spawn_local(body),
                                        _ => s.spawn(body),
                                    };
                                    task.await.unwrap();
                                    Ok(())
                                })
                                .await;
                            result.unwrap();
                        });
                    });
                }
            });
        });
    });
}

/// A program that uses many features.
async fn short_program(cx: &Cx, n: u64) -> u64 {
    let result: Result<u64, AppError> = cx
        .scope(async |s| {
            let home = AtHome::new();
            let local = s.spawn_local(async move |cx: Cx| {
                home.check();
                cx.yield_now().await;
                home.check();
                if n.is_multiple_of(3) {
                    cx.sleep(Duration::from_micros(100)).await?;
                }
                home.check();
                Ok(1)
            });
            let own = s.clone();
            let free = s.spawn(async move |cx: Cx| {
                cx.yield_now().await;
                // The local task stays on the thread where this one runs.
                let home = AtHome::new();
                let stays = own.spawn_local(async move |cx: Cx| {
                    for _ in 0..3 {
                        home.check();
                        cx.yield_now().await;
                    }
                    Ok(2)
                });
                if n.is_multiple_of(4) {
                    cx.sleep(Duration::from_micros(300)).await?;
                }
                Ok(stays.await.unwrap())
            });
            let job = n.is_multiple_of(8).then(|| s.spawn_blocking(|| Ok(4)));
            let mut sum = free.await.unwrap() + local.await.unwrap();
            if let Some(job) = job {
                sum += job.await.unwrap();
            }
            Ok(sum)
        })
        .await;
    result.unwrap()
}

#[test]
fn many_short_programs_on_many_threads_complete() {
    ends(|| {
        on_each(|rt| {
            thread::scope(|threads| {
                for thread in 0..8 {
                    threads.spawn(move || {
                        for n in 0..100 {
                            let n = n + 7 * thread;
                            let sum = rt.block_on(async |cx: Cx| short_program(&cx, n).await);
                            assert_eq!(sum, if n.is_multiple_of(8) { 7 } else { 3 });
                        }
                    });
                }
            });
            assert_eq!(rt.dump().tasks(), 0);
        });
    });
}

/// The first program ends while the second has work for any worker.
#[test]
fn a_guest_becomes_the_worker_when_the_first_program_ends() {
    ends(|| {
        on_each(|rt| {
            for busy in [false, true] {
                let (leave, go_on) = (Notify::new(), AtomicBool::new(false));
                let (tx, mut rx) = bounded(1);
                thread::scope(|threads| {
                    let (entered, enter) = mpsc::channel();
                    let leave = &leave;
                    let first = threads.spawn(move || {
                        rt.block_on(async |cx: Cx| {
                            entered.send(()).unwrap();
                            leave.notified(&cx).await.unwrap();
                        });
                    });
                    enter.recv().unwrap();
                    let (seated, sit) = mpsc::channel();
                    let go_on = &go_on;
                    let second = threads.spawn(move || {
                        rt.block_on(async |cx: Cx| {
                            let result: Result<u32, AppError> = cx
                                .scope(async |s| {
                                    let child = s.spawn(async move |cx: Cx| {
                                        let value: u32 = rx.recv(&cx).await.unwrap();
                                        // And a timer, which no other thread checks.
                                        cx.sleep(Duration::from_millis(1)).await?;
                                        Ok(value)
                                    });
                                    seated.send(()).unwrap();
                                    while busy && !go_on.load(Ordering::SeqCst) {
                                        cx.yield_now().await;
                                    }
                                    Ok(child.await.unwrap())
                                })
                                .await;
                            result.unwrap()
                        })
                    });
                    sit.recv().unwrap();
                    leave.notify_one();
                    first.join().unwrap();
                    // The child now runs on another thread than the first.
                    tx.try_send(7).unwrap();
                    go_on.store(true, Ordering::SeqCst);
                    assert_eq!(second.join().unwrap(), 7);
                });
            }
        });
    });
}

/// Of two guests, one is inside a long poll: the other one becomes the worker.
#[test]
fn a_guest_in_a_long_poll_does_not_delay_others() {
    ends(|| {
        let rt = &Runtime::builder().current_thread().build().unwrap();
        for _ in 0..20 {
            let leave = &Notify::new();
            thread::scope(|threads| {
                let (entered, enter) = mpsc::channel();
                let first = threads.spawn(move || {
                    rt.block_on(async |cx: Cx| {
                        entered.send(()).unwrap();
                        leave.notified(&cx).await.unwrap();
                    });
                });
                enter.recv().unwrap();
                let (blocks, blocked) = mpsc::channel();
                let (unblock, unblocked) = mpsc::channel::<()>();
                let held_up = threads.spawn(move || {
                    rt.block_on(async |_cx: Cx| {
                        blocks.send(()).unwrap();
                        unblocked.recv().unwrap();
                    });
                });
                blocked.recv().unwrap();
                let (seated, sit) = mpsc::channel();
                let other = threads.spawn(move || {
                    rt.block_on(async |cx: Cx| {
                        let result: Result<(), AppError> = cx
                            .scope(async |s| {
                                let child = s.spawn(async |cx: Cx| {
                                    cx.sleep(Duration::from_millis(1)).await?;
                                    Ok(())
                                });
                                seated.send(()).unwrap();
                                child.await.unwrap();
                                Ok(())
                            })
                            .await;
                        result.unwrap();
                    });
                });
                sit.recv().unwrap();
                leave.notify_one();
                first.join().unwrap();
                other.join().unwrap();
                unblock.send(()).unwrap();
                held_up.join().unwrap();
            });
        }
    });
}

#[test]
fn a_guest_sleeps_while_others_enter_and_leave() {
    ends(|| {
        on_each(|rt| {
            let over = AtomicUsize::new(0);
            thread::scope(|threads| {
                for _ in 0..2 {
                    threads.spawn(|| {
                        rt.block_on(async |cx: Cx| {
                            for _ in 0..30 {
                                cx.sleep(Duration::from_micros(500)).await.unwrap();
                            }
                        });
                        over.fetch_add(1, Ordering::SeqCst);
                    });
                }
                for n in 0..2 {
                    let over = &over;
                    threads.spawn(move || {
                        while over.load(Ordering::SeqCst) < 2 {
                            rt.block_on(async |cx: Cx| {
                                if n == 0 {
                                    cx.yield_now().await;
                                } else {
                                    cx.sleep(Duration::from_micros(50)).await.unwrap();
                                }
                            });
                        }
                    });
                }
            });
        });
    });
}

/// A task of the second program runs on the thread of the first, and starts a local task there.
#[test]
fn a_thread_stays_until_its_pinned_tasks_have_completed() {
    ends(|| {
        let rt = &Runtime::builder().current_thread().build().unwrap();
        let (leave, go_on, ended) =
            (&Notify::new(), &Arc::new(Notify::new()), &AtomicBool::new(false));
        thread::scope(|threads| {
            let (entered, enter) = mpsc::channel();
            let (body_over, is_over) = mpsc::channel();
            let first = threads.spawn(move || {
                let here = thread::current().id();
                rt.block_on(async |cx: Cx| {
                    entered.send(here).unwrap();
                    leave.notified(&cx).await.unwrap();
                    body_over.send(()).unwrap();
                });
                assert!(ended.load(Ordering::SeqCst), "it left before its local task completed");
            });
            let home = enter.recv().unwrap();
            let (pinned, pin) = mpsc::channel();
            let second = threads.spawn(move || {
                rt.block_on(async |cx: Cx| {
                    let result: Result<(), AppError> = cx
                        .scope(async |s: Scope<AppError>| {
                            let (own, go_on) = (s.clone(), go_on.clone());
                            let free = s.spawn(async move |_cx: Cx| {
                                assert_eq!(thread::current().id(), home);
                                let at_home = AtHome::new();
                                let local = own.spawn_local(async move |cx: Cx| {
                                    pinned.send(()).unwrap();
                                    go_on.notified(&cx).await.unwrap();
                                    at_home.check();
                                    Ok(())
                                });
                                Ok(local)
                            });
                            let local = free.await.unwrap();
                            local.await.unwrap();
                            ended.store(true, Ordering::SeqCst);
                            Ok(())
                        })
                        .await;
                    result.unwrap();
                });
            });
            pin.recv().unwrap();
            leave.notify_one();
            is_over.recv().unwrap();
            // Time for a thread that would not wait.
            thread::sleep(Duration::from_millis(5));
            ended.store(true, Ordering::SeqCst);
            go_on.notify_one();
            first.join().unwrap();
            second.join().unwrap();
        });
    });
}

#[test]
fn a_guest_has_local_tasks_in_the_scope_of_another_program() {
    ends(|| {
        on_each(|rt| {
            let (tx, rx) = mpsc::channel::<Scope<AppError>>();
            let done = &Arc::new(Notify::new());
            let count = &Arc::new(AtomicUsize::new(0));
            let rx = std::sync::Mutex::new(rx);
            beside(
                rt,
                async |cx, entered| {
                    let result: Result<(), AppError> = cx
                        .scope(async |s: Scope<AppError>| {
                            tx.send(s.clone()).unwrap();
                            entered.send(()).unwrap();
                            done.notified(&cx).await.unwrap();
                            Ok(())
                        })
                        .await;
                    result.unwrap();
                },
                async |_cx| {
                    let scope = rx.lock().unwrap().recv().unwrap();
                    for _ in 0..10 {
                        let (home, count) = (AtHome::new(), count.clone());
                        scope.spawn_local(async move |cx: Cx| {
                            for _ in 0..10 {
                                cx.yield_now().await;
                                home.check();
                            }
                            count.fetch_add(1, Ordering::SeqCst);
                            Ok(())
                        });
                    }
                    done.notify_one();
                },
            );
            assert_eq!(count.load(Ordering::SeqCst), 10);
        });
    });
}

#[test]
fn a_panic_of_a_guest_affects_only_its_program() {
    ends(|| {
        on_each(|rt| {
            let done = &Notify::new();
            let (value, panic) = beside(
                rt,
                async |cx, entered| {
                    entered.send(()).unwrap();
                    done.notified(&cx).await.unwrap();
                    7
                },
                async |_cx| {
                    let guest = |text: &'static str| {
                        let program = move || rt.try_block_on(async |_cx| panic!("{text}"));
                        thread::scope(|s| s.spawn(program).join().unwrap())
                    };
                    let ended: Result<(), _> = guest("ouch");
                    let resumed = thread::scope(|s| {
                        s.spawn(|| rt.block_on(async |_cx| -> () { panic!("again") })).join()
                    });
                    done.notify_one();
                    (ended, resumed.unwrap_err().downcast_ref::<&str>().copied())
                },
            );
            assert_eq!(value, 7);
            match panic {
                (Err(BlockOnError::Panicked(panic)), Some("again")) => {
                    assert_eq!(panic.message(), "ouch");
                }
                other => panic!("{other:?}"),
            }
        });
    });
}

/// Shuts a runtime down while programs run on several threads. They wait until they are cancelled,
/// or forever. Returns how each ended.
fn shut_down(rt: &Runtime, grace: Grace, for_ever: bool) -> Vec<Result<(), BlockOnError>> {
    let (entered, enter) = mpsc::channel();
    let program = move |entered: mpsc::Sender<()>| {
        rt.try_block_on(async |cx: Cx| {
            let ended: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    let home = AtHome::new();
                    s.spawn_local(async move |cx: Cx| {
                        cx.cancelled().await;
                        home.check();
                        Ok(())
                    });
                    s.spawn(async |cx: Cx| {
                        cx.sleep(Duration::from_secs(3600)).await?;
                        Ok(())
                    });
                    entered.send(()).unwrap();
                    if for_ever {
                        std::future::pending::<()>().await;
                    }
                    cx.cancelled().await;
                    Ok(())
                })
                .await;
            drop(ended);
        })
    };
    thread::scope(|threads| {
        let start = |_| threads.spawn(|| program(entered.clone()));
        let programs: Vec<_> = (0..6).map(start).collect();
        (0..6).for_each(|_| enter.recv().unwrap());
        rt.shutdown(grace).expect("a task is alive");
        let late = rt.try_block_on(async |_cx| unreachable!("not called"));
        assert!(matches!(late, Err::<(), _>(BlockOnError::ShutDown)), "{late:?}");
        programs.into_iter().map(|program| program.join().unwrap()).collect()
    })
}

#[test]
fn a_shutdown_ends_programs_on_all_threads() {
    let grace = Grace { soft: Duration::from_millis(1), hard: Duration::from_secs(100) };
    ends(move || {
        on_each(|rt| {
            let ended = shut_down(rt, grace, false);
            assert!(ended.iter().all(|ended| ended.is_ok()), "{ended:?}");
        });
    });
}

#[test]
fn a_shutdown_aborts_programs_on_all_threads() {
    ends(|| {
        on_each(|rt| {
            let by_force = |ended: &_| matches!(ended, Err(BlockOnError::Ended(_)));
            let ended = shut_down(rt, Duration::from_millis(1).into(), true);
            assert!(ended.iter().all(by_force), "{ended:?}");
        });
    });
}

#[test]
fn inside_a_task_of_a_guest_a_program_is_refused() {
    ends(|| {
        let rt = &Runtime::builder().current_thread().build().unwrap();
        let other = &Runtime::builder().current_thread().build().unwrap();
        let done = &Notify::new();
        let ((), refused) = beside(
            rt,
            async |cx, entered| {
                entered.send(()).unwrap();
                done.notified(&cx).await.unwrap();
            },
            async |_cx| {
                let nested = [rt, other].map(|rt| rt.try_block_on(async |_cx| ()));
                done.notify_one();
                nested.map(|nested| nested.unwrap_err().to_string())
            },
        );
        assert_eq!(refused, ["block_on inside a task would wait for itself: await instead"; 2]);
        assert!(rt.metrics().guests.polls > 0);
        rt.block_on(async |_cx| ());
    });
}

#[test]
fn beyond_256_guests_threads_wait_for_one_to_leave() {
    ends(|| {
        let rt = &Runtime::builder().current_thread().build().unwrap();
        let (inside, most, open) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|threads| {
            for _ in 0..270 {
                threads.spawn(|| {
                    rt.block_on(async |cx: Cx| {
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        while !open.load(Ordering::SeqCst) {
                            cx.sleep(Duration::from_millis(20)).await.unwrap();
                        }
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                });
            }
            while most.load(Ordering::SeqCst) < 257 {
                thread::yield_now();
            }
            open.store(true, Ordering::SeqCst);
        });
        assert_eq!(most.load(Ordering::SeqCst), 257);
        assert_eq!(inside.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn the_journal_records_tasks_of_guests() {
    ends(|| {
        let rt = &Runtime::builder().workers(2).journal(10_000).build().unwrap();
        let done = &Notify::new();
        beside(
            rt,
            async |cx, entered| {
                entered.send(()).unwrap();
                done.notified(&cx).await.unwrap();
            },
            async |cx| {
                short_program(&cx, 8).await;
                done.notify_one();
            },
        );
        let journal = rt.journal().unwrap();
        let ended = journal.events.iter().filter(|event| event.kind.name() == "task_ended");
        assert_eq!(ended.count(), 6);
    });
}
