//! A task that loops over an operation that is always ready lets others run, and can be stopped.

use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use asx_kernel::time::Time;
use asx_native::Runtime;
use asx_runtime::channel;
use asx_runtime::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
use asx_runtime::{
    BoxFuture, CancelSafe, Cancelled, Cx, Group, Local, Policy, Ready, Scope, Task, group, join,
    join_all, race, race_all, select, try_join,
};

type Hog = fn(Cx, Scope<Cancelled>) -> BoxFuture<'static, ()>;

/// Loops over an operation forever and ignores its result. The first block runs once.
macro_rules! hog {
    ($name:literal, |$cx:ident, $s:ident| { $($before:stmt;)* } $operation:expr) => {
        ($name, |$cx: Cx, $s: Scope<Cancelled>| {
            let _ = (&$cx, &$s);
            Box::pin(async move {
                $($before)*
                while forever() {
                    let _ = $operation;
                }
            })
        })
    };
}

static NUMBER: Local<u8> = Local::new();

/// A foreign future that is immediately ready.
struct Now;

impl Future for Now {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl CancelSafe for Now {}

const LONG: Duration = Duration::from_secs(3600);

fn forever() -> bool {
    true
}

const HOGS: &[(&str, Hog)] = &[
    hog!("send and recv", |cx, s| {
        let (tx, mut rx) = channel::bounded(1);
    }(tx.send(&cx, 1).await, rx.recv(&cx).await)),
    hog!("reserve", |cx, s| { let (tx, _rx) = channel::bounded::<u8>(1); }
        tx.reserve(&cx).await.is_ok()),
    hog!("recv without senders", |cx, s| { let mut rx = channel::bounded::<u8>(1).1; }
        rx.recv(&cx).await),
    hog!("recv of nothing", |cx, s| { let (_tx, mut rx) = channel::bounded::<u8>(1); }
        rx.recv(&cx).await),
    hog!("recv_many of none", |cx, s| { let (_tx, mut rx) = channel::bounded::<u8>(1); }
        rx.recv_many(&cx, &mut Vec::new(), 0).await),
    hog!("unbounded", |cx, s| {
        let (tx, mut rx) = channel::unbounded();
    }(tx.send(1).is_ok(), rx.recv(&cx).await)),
    hog!("oneshot", |cx, s| {} {
        let (reply, mut answer) = channel::oneshot();
        let _ = reply.send(1);
        answer.recv(&cx).await
    }),
    hog!("broadcast", |cx, s| {
        let (tx, mut rx) = channel::broadcast(1);
    }(tx.send(1), rx.recv(&cx).await)),
    hog!("changed", |cx, s| {
        let (tx, mut rx) = channel::watch(1);
    }(tx.send(1), rx.changed(&cx).await)),
    hog!("wait_for", |cx, s| { let (_tx, mut rx) = channel::watch(1); }
        rx.wait_for(&cx, |_| true).await),
    hog!("closed", |cx, s| { let tx = channel::watch(1).0; } tx.closed(&cx).await),
    hog!("mutex", |cx, s| { let lock = Mutex::new(1); } lock.lock(&cx).await.is_ok()),
    hog!("rwlock", |cx, s| { let lock = RwLock::new(1); } lock.read(&cx).await.is_ok()),
    hog!("semaphore", |cx, s| { let permits = Semaphore::new(1); }
        permits.acquire(&cx).await.is_ok()),
    hog!("once cell", |cx, s| { let cell = OnceCell::new(); }
        cell.get_or_init(&cx, async || 1).await.is_ok()),
    hog!("notified", |cx, s| { let notify = Notify::new(); } {
        notify.notify_one();
        notify.notified(&cx).await
    }),
    hog!("notified with all", |cx, s| { let notify = Notify::new(); } {
        let notified = notify.notified(&cx);
        notify.notify_waiters();
        notified.await
    }),
    hog!("barrier", |cx, s| { let barrier = Barrier::new(1); } barrier.wait(&cx).await),
    hog!("sleep", |cx, s| {} cx.sleep(Duration::ZERO).await),
    hog!("long sleep", |cx, s| {} cx.sleep(Duration::from_secs(3600)).await),
    hog!("sleep_until", |cx, s| {} cx.sleep_until(Time::ZERO).await),
    hog!("tick", |cx, s| { let mut ticks = cx.interval(Duration::ZERO); } ticks.tick(&cx).await),
    hog!("timeout", |cx, s| {}
        cx.timeout(Duration::from_secs(9), async |_| Ok::<_, Cancelled>(())).await),
    hog!("scope", |cx, s| {} cx.scope(async |_s| Ok::<_, Cancelled>(())).await),
    hog!("try_scope", |cx, s| {} cx.try_scope(async |_s| Ok::<_, Cancelled>(())).await),
    hog!("race", |cx, s| {} race(&cx, async |_| 1, async |_| 2).await),
    hog!("race_all", |cx, s| {} race_all(&cx, [async |_: &Cx| 1]).await),
    hog!("join", |cx, s| {} join(&cx, async |_| 1, async |_| 2).await),
    hog!("try_join", |cx, s| {}
        try_join(&cx, async |_| Ok::<_, ()>(1), async |_| Err::<(), _>(())).await),
    hog!("join_all", |cx, s| {} join_all(&cx, [async |_: &Cx| 1]).await),
    hog!("group", |cx, s| {} {
        let next = async |g: Group<'_, BoxFuture<'_, u8>>| g.next(&cx).await.map(|_| ());
        group(&cx, next).await
    }),
    hog!("next of a group", |cx, s| {} {
        let hog = async |g: Group<'_, BoxFuture<'_, u8>>| {
            while forever() {
                let _ = g.next(&cx).await;
            }
            Ok::<_, Cancelled>(())
        };
        group(&cx, hog).await
    }),
    hog!("finished task", |cx, s| {
        let mut task = s.spawn(async |_cx: Cx| Ok(1));
    }(&mut task)
    .await),
    hog!("failed start", |cx, s| {} {
        let body = async |_cx: Cx, ready: Ready<u8>| { ready.set(1); Ok(()) };
        s.start(body).await.is_ok()
    }),
    hog!("outcomes", |cx, s| {} cx.outcomes(Vec::<Task<(), Cancelled>>::new()).await),
    hog!("stopping", |cx, s| { s.stop(); } cx.stopping().await),
    hog!("cancelled", |cx, s| {} cx.cancelled().await),
    hog!("shield", |cx, s| {} cx.shield(async |_| 1).await),
    hog!("shield_for", |cx, s| {} cx.shield_for(LONG, async |_| 1).await),
    hog!("select", |cx, s| {} select! { now = Now => now }),
    hog!("select of nothing", |cx, s| {} {
        let closed = !forever();
        select! {
            _ = Now, if closed => {}
            else => {}
        }
    }),
    hog!("select of the second", |cx, s| {} select! {
        _ = cx.sleep(LONG) => {}
        _ = Now => {}
    }),
    hog!("with a local value", |cx, s| {} cx.with_local(&NUMBER, 1, async |_| 1).await),
];

/// Calls `run` for each hog on a new thread; returns the names of those that did not return.
fn stalled(run: fn(Hog)) -> Vec<&'static str> {
    let runs = HOGS.iter().map(|(name, hog)| {
        let (done, over) = mpsc::channel();
        thread::spawn(move || {
            run(*hog);
            let _ = done.send(());
        });
        // Each of them takes much less.
        over.recv_timeout(Duration::from_secs(30)).err().map(|_| *name)
    });
    runs.flatten().collect()
}

/// Runs a task that never ends by itself on one worker. Other tasks run beside it, before and after
/// its cancel, and it can be aborted.
fn run_beside(hog: Hog) {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope_with(Policy::CollectAll);
        let _ = scope
            .run(async |s: Scope<Cancelled>| {
                let own = s.clone();
                let task = s.spawn(async move |cx: Cx| {
                    hog(cx, own).await;
                    Ok(())
                });
                for _ in 0..3 {
                    // The hog uses up the operations of a whole poll before the first of these.
                    assert!(s.spawn(async |_cx: Cx| Ok(())).await.is_ok());
                }
                task.cancel("enough");
                for _ in 0..3 {
                    assert!(s.spawn(async |_cx: Cx| Ok(())).await.is_ok());
                }
                s.stop_within(Duration::ZERO);
                Ok(())
            })
            .await;
    });
}

#[test]
fn a_loop_over_an_operation_does_not_starve_others() {
    assert_eq!(stalled(run_beside), [""; 0]);
}

/// Without an operation budget, a cancelled task that continues is not polled a second time: it is
/// aborted at its next operation.
fn abort_at_next_operation(hog: Hog) {
    let unbounded = Runtime::builder().workers(2).operations_per_poll(None);
    let runtime = Arc::new(unbounded.build().unwrap());
    let (begun, begins) = mpsc::channel();
    // The hog may run on the thread of the body.
    let stop = thread::spawn({
        let runtime = runtime.clone();
        move || {
            begins.recv().unwrap();
            runtime.shutdown(Duration::ZERO).map_err(|left| left.to_string())
        }
    });
    let ended = runtime.try_block_on(async |cx: Cx| {
        let body = async |s: Scope<Cancelled>| {
            let own = s.clone();
            s.spawn(async move |cx: Cx| {
                begun.send(()).unwrap();
                hog(cx, own).await;
                Ok(())
            });
            Ok(())
        };
        cx.try_scope(body).await.is_ok()
    });
    assert_eq!(stop.join().unwrap(), Ok(()));
    assert!(runtime.metrics().health.overruns > 0, "{ended:?}");
}

#[test]
fn abort_ends_a_task_at_its_next_operation() {
    assert_eq!(stalled(abort_at_next_operation), [""; 0]);
}

/// A part of a task that uses up the operations of each poll does not starve another part of the
/// same task.
#[test]
fn a_part_that_is_always_ready_does_not_starve_another() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let first = runtime.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::unbounded();
        let hog = async |cx: &Cx| {
            while tx.send(1).is_ok() && rx.recv(cx).await.is_ok() {}
            "hog"
        };
        let notify = Notify::new();
        notify.notify_one();
        let waits = async |cx: &Cx| {
            // It begins when the poll has no operations left.
            let _ = notify.notified(cx).await;
            let short = cx.timeout(LONG, async |cx| cx.sleep(Duration::ZERO).await);
            assert_eq!(short.await, Ok(()));
            cx.sleep(Duration::from_millis(1)).await.map_or("cancelled", |()| "slept")
        };
        race(&cx, hog, waits).await
    });
    assert_eq!(first, "slept");
}

/// Waiting operations are not charged: more of them than a poll has operations can wait at once.
#[test]
fn operations_that_wait_are_not_charged() {
    let runtime = Runtime::builder().workers(1).operations_per_poll(Some(2)).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded(1);
        let (notify, permits) = (Notify::new(), Semaphore::new(0));
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |mut future: Pin<&mut dyn Future<Output = ()>>| {
            future.as_mut().poll(&mut context).is_pending()
        };
        for _ in 0..9 {
            assert!(poll(pin!(async { drop(rx.recv(&cx).await) })));
            assert!(poll(pin!(async { drop(notify.notified(&cx).await) })));
            assert!(poll(pin!(async { drop(permits.acquire(&cx).await) })));
            assert!(poll(pin!(async { drop(cx.sleep(Duration::from_secs(9)).await) })));
            assert!(poll(pin!(async { drop(cx.cancelled().await) })));
        }
        tx.try_send(7).unwrap();
        let mut recv = pin!(rx.recv(&cx));
        assert_eq!(recv.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
    });
}

/// An executor inside a poll completes, whatever the poll has left.
#[test]
fn an_executor_inside_a_poll_completes_in_it() {
    let runtime = Runtime::builder().workers(1).operations_per_poll(Some(1)).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let (tx, mut rx) = channel::unbounded();
        for number in 0..9 {
            tx.send(number).unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let mut recv = pin!(rx.recv(&cx));
            let mut polls = std::iter::repeat_with(|| recv.as_mut().poll(&mut context));
            assert!(polls.by_ref().take(2).any(|polled| polled == Poll::Ready(Ok(number))));
        }
    });
}
