//! Scopes nested a hundred thousand deep: no function that walks the tree is recursive. The tree is
//! run and observed by threads with small stacks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use asx_native::{Handle, Runtime};
use asx_runtime::{Cancelled, Cx, Grace, Local, Scope};

const DEPTH: u64 = 100_000;
const SMALL: usize = 256 * 1024;
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

type Boxed = std::pin::Pin<Box<dyn Future<Output = Result<(), Cancelled>> + Send>>;

static LEVEL: Local<u64> = Local::new();

/// Each task opens a scope and spawns the next one in it. The innermost reports that all are alive,
/// and waits; if `deaf`, for something that a cancel does not end.
fn nest(cx: Cx, depth: u64, deaf: bool, told: mpsc::Sender<()>) -> Boxed {
    Box::pin(async move {
        let Some(below) = depth.checked_sub(1) else {
            told.send(()).unwrap();
            drop(told);
            if deaf {
                std::future::pending::<()>().await;
            }
            cx.cancelled().await;
            return Ok(());
        };
        cx.with_local(&LEVEL, Arc::new(depth), async |cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                s.spawn(move |cx| nest(cx, below, deaf, told));
                Ok(())
            })
            .await
        })
        .await
    })
}

fn on_small_stack<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(SMALL).spawn(f).unwrap().join().unwrap()
}

/// Runs the nest on one thread with a small stack, calls `look` on another when all tasks are
/// alive, stops it with `grace`, and drops everything on the first.
fn run(deaf: bool, grace: Grace, look: fn(&Handle)) {
    let (told, all_live) = mpsc::channel();
    let (give, handle) = mpsc::channel();
    let watcher = thread::Builder::new().stack_size(SMALL).spawn(move || {
        let handle: Handle = handle.recv().unwrap();
        all_live.recv().unwrap();
        look(&handle);
        handle.stop(grace);
    });
    let watcher = watcher.unwrap();
    on_small_stack(move || {
        let runtime = Runtime::builder().current_thread().build().unwrap();
        give.send(runtime.handle()).unwrap();
        let _ = runtime.try_block_on(async |cx: Cx| nest(cx, DEPTH, deaf, told).await);
        assert_eq!(runtime.dump().tasks(), 0);
    });
    watcher.join().unwrap();
}

#[test]
fn a_deep_tree_is_cancelled() {
    run(false, Grace { soft: Duration::ZERO, hard: NEVER }, |_| ());
}

#[test]
fn a_deep_tree_is_dumped() {
    run(false, Grace { soft: Duration::ZERO, hard: NEVER }, |handle| {
        let dump = handle.dump();
        assert_eq!(dump.tasks() as u64, DEPTH + 1);
        let last = dump.regions.last().unwrap().id;
        assert_eq!(dump.path(last).len(), dump.regions.len());
        assert!(dump.to_string().lines().count() as u64 > 2 * DEPTH);
        assert!(dump.to_json().len() as u64 > DEPTH);
    });
}

#[test]
fn a_deep_tree_is_aborted() {
    run(true, Grace::from(Duration::ZERO), |_| ());
}

/// The last reference to the innermost scope keeps all outer ones alive, which are dropped with it.
#[test]
fn a_deep_tree_is_dropped() {
    static OPEN: AtomicU64 = AtomicU64::new(0);
    struct Counted(#[expect(dead_code, reason = "it is dropped")] Scope<Cancelled>);
    impl Drop for Counted {
        fn drop(&mut self) {
            OPEN.fetch_sub(1, Relaxed);
        }
    }
    fn keep(cx: Cx, depth: u64, kept: mpsc::Sender<Counted>) -> Boxed {
        Box::pin(async move {
            cx.with_local(&LEVEL, Arc::new(depth), async |cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    match depth.checked_sub(1) {
                        Some(below) => drop(s.spawn(move |cx| keep(cx, below, kept))),
                        None => {
                            OPEN.fetch_add(1, Relaxed);
                            kept.send(Counted(s)).unwrap();
                        }
                    }
                    Ok(())
                })
                .await
            })
            .await
        })
    }
    on_small_stack(|| {
        let (kept, innermost) = mpsc::channel();
        let runtime = Runtime::builder().current_thread().build().unwrap();
        let ended = runtime.block_on(async |cx: Cx| keep(cx, DEPTH, kept).await);
        assert!(ended.is_ok());
        drop(runtime);
        drop(innermost.recv().unwrap());
    });
    assert_eq!(OPEN.load(Relaxed), 0);
}
