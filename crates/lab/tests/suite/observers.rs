//! Public functions that report shared state without waiting. Each program's outcome depends on
//! when such a function is called, so a reduced search must see every outcome of a full one.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex as StdMutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use asx_lab::{Grain, How, check};
use asx_net::UdpSocket;
use asx_runtime::channel::{bounded, broadcast, mpmc, oneshot, unbounded, watch};
use asx_runtime::sync::{Mutex, Notify, OnceCell, RwLock, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, Task};

/// Runs of each search: in release, all orders of most programs.
const ORDERS: u64 = if cfg!(debug_assertions) { 1000 } else { 20_000 };

/// The outcomes that a search has seen, and whether it was complete.
fn outcomes(program: impl AsyncFn(Cx) -> String, how: How) -> (BTreeSet<String>, bool) {
    let seen = StdMutex::new(BTreeSet::new());
    let report = check(async |cx: Cx| {
        let outcome = program(cx).await;
        seen.lock().unwrap().insert(outcome);
    })
    // Without the random runs that confirm a proof: the reduction itself must be right.
    .transparent()
    .how(how)
    .grain(Grain::Operation)
    .runs(ORDERS)
    .time(Duration::from_secs(600))
    .run();
    assert!(report.failure.is_none(), "{report}");
    (seen.into_inner().unwrap(), report.proof.is_some())
}

/// Asserts that the outcome varies, and that a reduced search sees every outcome.
#[track_caller]
fn varies(program: impl AsyncFn(Cx) -> String) {
    let (reduced, is_proved) = outcomes(&program, How::Dpor);
    let (mut all, _) = outcomes(&program, How::Dfs);
    all.extend(outcomes(&program, How::Random).0);
    assert!(all.len() > 1, "only {all:?}");
    let missed: Vec<_> = all.difference(&reduced).collect();
    assert!(missed.is_empty(), "missed {missed:?}, proved: {is_proved}");
}

/// Runs `change` in one task and `look` in another; returns what `look` returned.
async fn look_during<C, L>(
    cx: &Cx,
    change: impl FnOnce(Cx) -> C + Send + 'static,
    look: impl FnOnce(Cx) -> L + Send + 'static,
) -> String
where
    C: Future<Output = ()> + Send + 'static,
    L: Future<Output = String> + Send + 'static,
{
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async |cx: Cx| {
            change(cx).await;
            Ok(())
        });
        let seen = s.spawn(async |cx: Cx| Ok(look(cx).await));
        Ok(seen.await.unwrap())
    })
    .await
    .unwrap()
}

async fn ready(_: Cx) -> Result<(), Cancelled> {
    Ok(())
}

#[test]
fn task_is_finished_sees_either_end_first() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let tasks: [Task<(), Cancelled>; 2] = [s.spawn(ready), s.spawn(ready)];
            Ok(format!("{:?}", tasks.each_ref().map(Task::is_finished)))
        })
        .await
        .unwrap()
    });
}

#[test]
fn task_outcome_sees_either_end_first() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let mut tasks: [Task<(), Cancelled>; 2] = [s.spawn(ready), s.spawn(ready)];
            Ok(format!("{:?}", tasks.each_mut().map(|task| task.outcome().is_some())))
        })
        .await
        .unwrap()
    });
}

#[test]
fn task_cancel_reports_whether_it_was_the_first() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let task = Arc::new(s.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await)));
            let other = task.clone();
            let first = s.spawn(async move |_: Cx| Ok(task.cancel("one")));
            let second = other.cancel("two");
            Ok(format!("{:?} {second}", first.await.unwrap()))
        })
        .await
        .unwrap()
    });
}

#[test]
fn handle_dump_sees_tasks() {
    varies(async |cx: Cx| {
        let handle = cx.handle();
        look_during(&cx, async |_| (), async move |_| handle.dump().tasks().to_string()).await
    });
}

#[test]
fn handle_dump_sees_waits() {
    varies(async |cx: Cx| {
        let (tx, mut rx) = bounded::<u32>(1);
        let handle = cx.handle();
        let seen = look_during(
            &cx,
            async move |cx: Cx| drop(rx.recv(&cx).await),
            async move |cx: Cx| {
                let dump = handle.dump();
                drop(tx.send(&cx, 1).await);
                let tasks = dump.regions.iter().flat_map(|region| &region.tasks);
                let waits = tasks.map(|task| format!("{:?} {:?}", task.activity, task.state));
                waits.collect::<Vec<_>>().join(", ")
            },
        );
        seen.await
    });
}

#[test]
fn handle_dump_sees_which_of_two_tasks_is_left() {
    varies(async |cx: Cx| {
        let handle = cx.handle();
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("one").spawn(ready);
            s.task("two").spawn(ready);
            let dump = handle.dump();
            let tasks = dump.regions.iter().flat_map(|region| &region.tasks);
            Ok(tasks.map(|task| format!("{:?}", task.name)).collect::<String>())
        })
        .await
        .unwrap()
    });
}

#[test]
fn handle_quiescence_sees_tasks() {
    varies(async |cx: Cx| {
        let handle = cx.handle();
        let look = async move |_| {
            let alive = handle.quiescence().expect_err("the program is alive");
            alive.tasks().count().to_string()
        };
        look_during(&cx, async |_| (), look).await
    });
}

#[test]
fn handle_quiescence_and_dump_see_obligations() {
    for dumps in [false, true] {
        varies(async move |cx: Cx| {
            let handle = cx.handle();
            let owe = async |cx: Cx| {
                let owed = cx.obligation().expect("the scope is open");
                cx.yield_now().await;
                owed.commit().expect("the scope is open");
            };
            let look = async move |_| {
                let alive = handle.quiescence().expect_err("the program is alive");
                let dump = if dumps { handle.dump() } else { alive.dump };
                let owed = dump.regions.iter().map(|region| region.obligations.len());
                owed.sum::<usize>().to_string()
            };
            look_during(&cx, owe, look).await
        });
    }
}

/// Returns the waker of a task that has ended.
async fn stale_waker(cx: &Cx) -> Waker {
    cx.scope(async |s: Scope<Cancelled>| {
        let waker = poll_fn(|context| Poll::Ready(context.waker().clone()));
        Ok(s.spawn(async |_: Cx| Ok(waker.await)).await.unwrap())
    })
    .await
    .unwrap()
}

#[test]
fn handle_health_and_metrics_see_stale_wakes() {
    for metrics in [false, true] {
        varies(async move |cx: Cx| {
            let handle = cx.handle();
            let waker = stale_waker(&cx).await;
            let before = handle.health().stale_wakes;
            let look = async move |_| {
                let health = if metrics { handle.metrics().health } else { handle.health() };
                (health.stale_wakes - before).to_string()
            };
            look_during(&cx, async move |_| waker.wake(), look).await
        });
    }
}

#[test]
fn handle_stop_is_seen_by_is_stopping() {
    varies(async |cx: Cx| {
        let handle = cx.handle();
        let stop = async move |_: Cx| handle.stop(Duration::from_secs(1));
        look_during(&cx, stop, async |cx: Cx| cx.is_stopping().to_string()).await
    });
}

#[test]
fn scope_stop_is_seen_by_is_stopping() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let seen = s.spawn(async |cx: Cx| Ok(cx.is_stopping()));
            s.stop();
            Ok(seen.await.unwrap().to_string())
        })
        .await
        .unwrap()
    });
}

#[test]
fn is_cancelled_sees_a_cancel_of_the_task() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let (tell, mut told) = unbounded();
            let task = s.spawn(async move |cx: Cx| {
                let _ = tell.send(cx.is_cancelled());
                Ok(())
            });
            task.cancel("now");
            let _ = task.await;
            Ok(format!("{:?}", told.try_recv()))
        })
        .await
        .unwrap()
    });
}

#[test]
fn is_cancelled_of_a_foreign_context_sees_a_cancel_of_its_task() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let (tell, mut told) = bounded::<Cx>(1);
            let task = s.spawn(async move |cx: Cx| {
                tell.try_send(cx.clone()).ok();
                cx.cancelled().await;
                Ok(())
            });
            let other = told.recv(&cx).await.unwrap();
            let seen = s.spawn(async move |_: Cx| Ok(other.is_cancelled()));
            task.cancel("now");
            Ok(format!("{:?}", seen.await.unwrap()))
        })
        .await
        .unwrap()
    });
}

#[test]
fn task_ids_depend_on_the_order_of_spawns() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let scope = s.clone();
            let one = s.spawn(async move |_: Cx| Ok(scope.spawn(ready).id()));
            let two = s.spawn(ready).id();
            let one = one.await.unwrap();
            Ok(format!("{}", one < two))
        })
        .await
        .unwrap()
    });
}

#[test]
fn channel_counts_and_states() {
    varies(async |cx: Cx| {
        let (tx, rx) = bounded::<u32>(2);
        let send = tx.clone();
        let change = async move |_: Cx| {
            send.try_send(1).ok();
            drop((send, rx));
        };
        let look = async move |_: Cx| {
            format!("{} {} {} {}", tx.len(), tx.capacity(), tx.is_closed(), tx.senders())
        };
        look_during(&cx, change, look).await
    });
}

#[test]
fn unbounded_channel_counts_and_states() {
    varies(async |cx: Cx| {
        let (tx, rx) = unbounded::<u32>();
        let send = tx.clone();
        let change = async move |_: Cx| send.send(1).unwrap_or(());
        let look = async move |_: Cx| format!("{} {} {}", tx.len(), rx.is_closed(), rx.senders());
        look_during(&cx, change, look).await
    });
}

#[test]
fn weak_sender_upgrade_sees_the_last_sender() {
    varies(async |cx: Cx| {
        let (tx, _rx) = bounded::<u32>(2);
        let weak = tx.downgrade();
        let look = async move |_: Cx| weak.upgrade().is_some().to_string();
        look_during(&cx, async move |_| drop(tx), look).await
    });
}

#[test]
fn shared_receiver_counts() {
    varies(async |cx: Cx| {
        let (tx, rx) = mpmc::<u32>(2);
        let other = rx.clone();
        let change = async move |_: Cx| {
            tx.try_send(1).ok();
            drop((tx, other));
        };
        let look = async move |_: Cx| {
            format!("{} {} {} {}", rx.len(), rx.capacity(), rx.senders(), rx.receivers())
        };
        look_during(&cx, change, look).await
    });
}

#[test]
fn oneshot_states() {
    varies(async |cx: Cx| {
        let (tx, rx) = oneshot::<u32>();
        look_during(&cx, async move |_| drop(rx), async move |_| tx.is_closed().to_string()).await
    });
    varies(async |cx: Cx| {
        let (tx, mut rx) = oneshot::<u32>();
        let look = async move |_: Cx| format!("{} {:?}", rx.is_closed(), rx.try_recv());
        look_during(&cx, async move |_| tx.send(1).unwrap_or(()), look).await
    });
}

#[test]
fn watch_values_and_counts() {
    varies(async |cx: Cx| {
        let (set, seen) = watch(0);
        let other = seen.clone();
        let change = async move |_: Cx| {
            set.send_replace(1);
            drop(seen);
        };
        let look = async move |_: Cx| {
            format!("{} {} {}", *other.borrow(), other.has_changed(), other.is_closed())
        };
        look_during(&cx, change, look).await
    });
    varies(async |cx: Cx| {
        let (set, seen) = watch(0);
        let other = set.clone();
        let change = async move |_: Cx| drop((set, seen));
        let look = async move |_: Cx| {
            format!("{} {} {}", other.watchers(), other.setters(), other.is_closed())
        };
        look_during(&cx, change, look).await
    });
}

#[test]
fn broadcast_counts() {
    varies(async |cx: Cx| {
        let (publish, seen) = broadcast::<u32>(2);
        let other = publish.clone();
        let change = async move |_: Cx| {
            publish.send(1).ok();
            drop((publish, seen));
        };
        let look = async move |_: Cx| {
            let counts = (other.len(), other.publishers(), other.subscribers());
            format!("{counts:?} {}", other.is_closed())
        };
        look_during(&cx, change, look).await
    });
}

#[test]
fn lock_attempts() {
    varies(async |cx: Cx| {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        let change = async move |cx: Cx| *lock.lock(&cx).await.unwrap() += 1;
        let look = async move |_: Cx| format!("{:?}", other.try_lock().map(|guard| *guard).ok());
        look_during(&cx, change, look).await
    });
    varies(async |cx: Cx| {
        let lock = Arc::new(RwLock::new(0));
        let other = lock.clone();
        let change = async move |cx: Cx| *lock.write(&cx).await.unwrap() += 1;
        let look = async move |_: Cx| format!("{:?}", other.try_read().map(|guard| *guard).ok());
        look_during(&cx, change, look).await
    });
}

#[test]
fn semaphore_counts_and_states() {
    varies(async |cx: Cx| {
        let gate = Arc::new(Semaphore::new(1));
        let other = gate.clone();
        let change = async move |_: Cx| {
            drop(gate.try_acquire());
            gate.close();
        };
        let look =
            async move |_: Cx| format!("{} {}", other.available_permits(), other.is_closed());
        look_during(&cx, change, look).await
    });
}

#[test]
fn once_cell_and_notify_states() {
    varies(async |cx: Cx| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let change = async move |_: Cx| cell.set(1).unwrap();
        look_during(&cx, change, async move |_: Cx| format!("{:?}", other.get())).await
    });
    varies(async |cx: Cx| {
        let notify = Arc::new(Notify::new());
        let other = notify.clone();
        let change = async move |_: Cx| notify.notify_one();
        let look = async move |cx: Cx| {
            let mut notified = std::pin::pin!(other.notified(&cx));
            notified.as_mut().enable().to_string()
        };
        look_during(&cx, change, look).await
    });
}

/// Returns what `look` returned in a task that is cancelled at any time.
async fn look_when_cancelled<L>(cx: &Cx, look: impl FnOnce(Cx) -> L + Send + 'static) -> String
where
    L: Future<Output = String> + Send + 'static,
{
    cx.scope(async |s: Scope<Cancelled>| {
        let (tell, mut told) = unbounded();
        let task = s.spawn(async move |cx: Cx| {
            let _ = tell.send(look(cx).await);
            Ok(())
        });
        task.cancel("now");
        let _ = task.await;
        Ok(format!("{:?}", told.try_recv()))
    })
    .await
    .unwrap()
}

#[test]
fn a_cancel_comes_between_two_checks() {
    varies(async |cx: Cx| {
        let look = async |cx: Cx| format!("{} {}", cx.is_cancelled(), cx.is_cancelled());
        look_when_cancelled(&cx, look).await
    });
    varies(async |cx: Cx| {
        let look = async |cx: Cx| {
            let first = cx.checkpoint().is_ok();
            format!("{first} {}", cx.checkpoint().is_ok())
        };
        look_when_cancelled(&cx, look).await
    });
    varies(async |cx: Cx| {
        let look = async |cx: Cx| {
            let first = cx.sleep(Duration::ZERO).await.is_ok();
            format!("{first} {}", cx.sleep(Duration::ZERO).await.is_ok())
        };
        look_when_cancelled(&cx, look).await
    });
}

#[test]
fn budget_of_a_foreign_context_sees_polls_and_cost() {
    varies(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let (tell, mut told) = bounded::<Cx>(1);
            s.task("worker").polls(50).cost(50).spawn(async move |cx: Cx| {
                let _ = tell.try_send(cx.clone());
                cx.yield_now().await;
                let _ = cx.try_consume(7);
                Ok(())
            });
            let budget = told.recv(&cx).await.unwrap().budget();
            Ok(format!("{:?} {:?}", budget.poll_quota, budget.cost_quota))
        })
        .await
        .unwrap()
    });
}

#[test]
fn debug_of_a_semaphore_sees_its_permits() {
    varies(async |cx: Cx| {
        let gate = Arc::new(Semaphore::new(2));
        let other = gate.clone();
        let change = async move |_: Cx| gate.try_acquire().unwrap().forget();
        look_during(&cx, change, async move |_: Cx| format!("{other:?}")).await
    });
}

/// A full search without points misses such an outcome too, so it is named.
#[test]
fn options_of_a_socket_are_set_one_after_another() {
    let options = async |cx: Cx| {
        let socket = Arc::new(UdpSocket::bind(&cx, "127.0.0.1:0").await.unwrap());
        let other = socket.clone();
        let change = async move |_: Cx| {
            socket.set_ttl(7).unwrap();
            socket.set_broadcast(true).unwrap();
            // The last owner would close it, which is not visible before it happens.
            std::mem::forget(socket);
        };
        let look = async move |_: Cx| {
            format!("{} {}", other.ttl().unwrap() == 7, other.broadcast().unwrap())
        };
        look_during(&cx, change, look).await
    };
    let (seen, _) = outcomes(options, How::Dpor);
    assert!(seen.contains("true false"), "{seen:?}");
}
