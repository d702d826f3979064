//! No runnable task waits forever, whatever else always yields.
//!
//! The tasks that always yield stop when the others have had their turns, which ends each test. The
//! number of their polls meanwhile is counted, not timed.

use crate::common;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use asx_kernel::lanes::Bypass;
use asx_native::Runtime;
use asx_runtime::{Cx, Scope, TaskBuilder};
use common::AppError;

/// Why a task that always yields precedes others.
#[derive(Clone, Copy, Debug)]
enum Special {
    Timed,
    Priority,
    Both,
}

impl Special {
    fn of<'a>(self, task: TaskBuilder<'a, AppError>) -> TaskBuilder<'a, AppError> {
        let far = Duration::from_secs(3600);
        match self {
            Special::Timed => task.within(far),
            Special::Priority => task.priority(200),
            Special::Both => task.within(far).priority(200),
        }
    }
}

/// Spawns a task that yields until `stop`; returns the count of its polls.
fn yields(task: TaskBuilder<'_, AppError>, stop: &Arc<AtomicBool>) -> Arc<AtomicU64> {
    let polls = Arc::new(AtomicU64::new(0));
    let (stop, counted) = (stop.clone(), polls.clone());
    task.spawn(async move |cx: Cx| {
        while !stop.load(SeqCst) {
            counted.fetch_add(1, SeqCst);
            cx.yield_now().await;
        }
        Ok(())
    });
    polls
}

fn runtime(workers: usize, journal: bool) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    if journal { builder.journal(1000) } else { builder }.build().unwrap()
}

#[test]
fn a_task_of_a_higher_lane_or_priority_does_not_starve_others() {
    const TURNS: u64 = 50;
    common::ends(|| {
        for (special, journal) in [Special::Timed, Special::Priority, Special::Both]
            .into_iter()
            .flat_map(|special| [(special, false), (special, true)])
        {
            let rt = runtime(1, journal);
            let (stop, went) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
            let result = rt.block_on(async |cx: Cx| {
                cx.scope(async |s: Scope<AppError>| {
                    let polls = yields(special.of(s.task("special")), &stop);
                    // At the default priority, and at a lower one.
                    for priority in [128, 3] {
                        let task = s.task("other").priority(priority);
                        let other = task.spawn(async move |cx: Cx| {
                            for _ in 0..TURNS {
                                cx.yield_now().await;
                            }
                            Ok(())
                        });
                        other.await.map_err(|_| AppError::Bad(1))?;
                    }
                    went.store(polls.load(SeqCst), SeqCst);
                    stop.store(true, SeqCst);
                    Ok(())
                })
                .await
            });
            assert_eq!(result, Ok(()));
            // Between two turns of the others, some of which are the body's.
            let most = (2 * TURNS + 20) * u64::from(Bypass::LIMIT + 1);
            let went = went.load(SeqCst);
            assert!(went <= most, "{special:?}: {went} of {most}");
            assert!(rt.metrics().workers[0].bypasses > 0, "{special:?}");
        }
    });
}

#[test]
fn timers_fire_beside_tasks_that_always_yield() {
    common::ends(|| {
        for workers in [1, 4] {
            for special in [Special::Timed, Special::Priority, Special::Both] {
                let rt = runtime(workers, false);
                let stop = Arc::new(AtomicBool::new(false));
                let result = rt.block_on(async |cx: Cx| {
                    cx.scope(async |s: Scope<AppError>| {
                        for _ in 0..2 * workers {
                            yields(special.of(s.task("special")), &stop);
                        }
                        for _ in 0..5 {
                            cx.sleep(Duration::from_millis(1)).await?;
                        }
                        stop.store(true, SeqCst);
                        Ok(())
                    })
                    .await
                });
                assert_eq!(result, Ok(()), "{special:?}");
            }
        }
    });
}

/// Two tasks, each of which has a thread wake the other in each poll, so that there is always an
/// entry in the global queue, beside one that only yields.
#[test]
fn global_work_does_not_starve_local_work() {
    const TURNS: u64 = 50;
    // Between two turns of the other task, and of the body.
    const MOST: u64 = (TURNS + 20) * (Bypass::LIMIT as u64 + 1);
    common::ends(|| {
        let rt = runtime(1, false);
        let (stop, polls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (wake, to_wake) = mpsc::channel::<(Waker, mpsc::Sender<()>)>();
        let wakes = thread::spawn(move || {
            for (waker, woken) in to_wake {
                waker.wake();
                woken.send(()).unwrap();
            }
        });
        let result = rt.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<AppError>| {
                let wakers = Arc::new(Mutex::new([None::<Waker>, None]));
                for nth in 0..2 {
                    let (stop, polls) = (stop.clone(), polls.clone());
                    let (wakers, wake) = (wakers.clone(), wake.clone());
                    s.spawn(async move |_cx: Cx| {
                        poll_fn(|context| {
                            let other = {
                                let mut wakers = wakers.lock().unwrap();
                                wakers[nth] = Some(context.waker().clone());
                                wakers[1 - nth].take()
                            };
                            if let Some(other) = other {
                                let (woken, is_woken) = mpsc::channel();
                                wake.send((other, woken)).unwrap();
                                is_woken.recv().unwrap();
                            }
                            // Without a limit, starvation would never end this.
                            let over = polls.fetch_add(1, SeqCst) > 2 * MOST;
                            if over || stop.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
                        })
                        .await;
                        Ok(())
                    });
                }
                let (passed, stops) = (polls.clone(), stop.clone());
                let local = s.spawn(async move |cx: Cx| {
                    for _ in 0..TURNS {
                        cx.yield_now().await;
                    }
                    stops.store(true, SeqCst);
                    Ok(passed.load(SeqCst))
                });
                let passed = local.await.map_err(|_| AppError::Bad(1))?;
                assert!(passed <= MOST, "{passed} of {MOST}");
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
        assert!(rt.metrics().workers[0].bypasses > 0);
        drop(wake);
        wakes.join().unwrap();
    });
}
