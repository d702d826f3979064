//! How dumps show a wait that the last poll of its task did not poll.

use std::future::{Future, pending, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use asx_native::{Handle, Runtime};
use asx_runtime::{Activity, Cancelled, Cx, Policy, Scope, TaskInfo, channel, join_all};

/// A time that no test reaches.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

type Body = for<'a> fn(&'a Cx) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn poll_once<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<()> {
    assert!(future.poll(cx).is_pending());
    Poll::Ready(())
}

/// Waits forever, outside asx.
async fn outside() {
    pending().await
}

const STALE: [(&str, Body); 6] = [
    ("a wait that has ended", |cx| {
        Box::pin(async move {
            cx.sleep(Duration::from_millis(1)).await.unwrap();
            outside().await
        })
    }),
    ("a wait that was dropped", |cx| {
        Box::pin(async move {
            let mut sleep = Some(cx.sleep(LONG));
            poll_fn(|context| poll_once(pin!(sleep.take().unwrap()), context)).await;
            outside().await
        })
    }),
    ("a wait for a cancel that was dropped", |cx| {
        Box::pin(async move {
            poll_fn(|context| poll_once(pin!(cx.cancelled()), context)).await;
            outside().await
        })
    }),
    ("a wait that is kept", |cx| {
        Box::pin(async move {
            let mut kept = pin!(cx.sleep(LONG));
            poll_fn(|context| poll_once(kept.as_mut(), context)).await;
            cx.yield_now().await;
            outside().await;
            kept.await.unwrap();
        })
    }),
    ("a wait that was leaked", |cx| {
        Box::pin(async move {
            let mut sleep = Box::pin(cx.sleep(LONG));
            poll_fn(|context| poll_once(sleep.as_mut(), context)).await;
            mem::forget(sleep);
            cx.yield_now().await;
            outside().await
        })
    }),
    ("a scope that is kept", |cx| {
        Box::pin(async move {
            let scope = cx.try_scope(async |_: Scope<Cancelled>| {
                cx.sleep(LONG).await.unwrap();
                Ok(())
            });
            let mut scope = ManuallyDrop::new(Box::pin(scope));
            poll_fn(|context| poll_once(scope.as_mut(), context)).await;
            cx.yield_now().await;
            outside().await;
            drop(ManuallyDrop::into_inner(scope));
        })
    }),
];

const LIVE: [(&str, Body); 3] = [
    ("a wait", |cx| Box::pin(async move { cx.sleep(LONG).await.unwrap() })),
    ("a wait after another", |cx| {
        Box::pin(async move {
            cx.sleep(Duration::from_millis(1)).await.unwrap();
            cx.cancelled().await;
        })
    }),
    ("a wait of a part", |cx| {
        Box::pin(async move {
            let part = |n| {
                async move |cx: &Cx| match n {
                    0 => cx.sleep(Duration::from_millis(1)).await.unwrap(),
                    _ => cx.sleep(LONG).await.unwrap(),
                }
            };
            join_all(cx, [0, 1].map(part)).await;
            outside().await
        })
    }),
];

/// Waits until the task waits; returns its description in a dump.
fn shown(handle: &Handle, name: &str) -> TaskInfo {
    loop {
        let dump = handle.dump();
        let mut tasks = dump.regions.into_iter().flat_map(|region| region.tasks);
        let task = tasks.find(|task| task.name.as_deref() == Some(name)).unwrap();
        if task.activity == Activity::Waiting && task.waits.is_some() {
            return task;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Checks whether a dump shows the wait of a task with this body as stale.
fn told(name: &'static str, body: Body, stale: bool) {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let handle = runtime.handle();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
            let (live, mut lives) = channel::oneshot();
            s.task(name).spawn(async move |cx: Cx| {
                let _ = live.send(());
                body(&cx).await;
                Ok(())
            });
            lives.recv(&cx).await.expect("the task is alive");
            // Wait for the last wait of the body, which is permanent.
            while shown(&handle, name).stale != stale {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(5));
            let task = shown(&handle, name);
            assert_eq!(task.stale, stale, "{name}: {task}");
            let place = task.waits.unwrap().1.to_string();
            assert!(place.contains("stale.rs"), "{name}: {task}");
            assert_eq!(task.to_string().contains("stale, as"), stale, "{name}: {task}");
            let json = handle.dump().to_json();
            assert_eq!(json.contains("\"stale\":true"), stale, "{name}: {json}");
            s.stop_within(Duration::ZERO);
            Ok(())
        });
        let _ = scope.await;
    });
}

#[test]
#[cfg_attr(asx_no_reuse, ignore = "leaks a sleep, which leak checkers report")]
fn a_wait_without_polls_is_stale() {
    STALE.into_iter().for_each(|(name, body)| told(name, body, true));
}

#[test]
fn a_polled_wait_is_not_stale() {
    LIVE.into_iter().for_each(|(name, body)| told(name, body, false));
}
