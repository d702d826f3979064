//! How late sleeps are, and what they cost with other wakers than their task's: the figures of
//! decisions 014 and 034.
//!
//! ```text
//! cargo run --release -p asx-bench --example sleeps -- late asx
//! cargo run --release -p asx-bench --example sleeps -- late tokio
//! valgrind --tool=callgrind target/release/examples/sleeps own 20000
//! ```
//! `own`, `shared` and `distinct` poll so many sleeps once, each with its task's own waker, one
//! that all share, or one of its own, and drop them; what differs between 20,000 and 10,000 of them
//! is the cost of 10,000.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use asx_kernel::rng::DetRng;
use asx_native::Runtime;
use asx_runtime::Cx;

const SLEEPS: usize = 100_000;

/// How late each was, and who waits for all of them.
#[derive(Default)]
struct All {
    late: Mutex<(Vec<Duration>, Option<Waker>)>,
}

/// Wakes nobody when its time has come, but notes how late that is.
struct One {
    all: Arc<All>,
    due: Instant,
}

impl Wake for One {
    fn wake(self: Arc<Self>) {
        let late = self.due.elapsed();
        let mut all = self.all.late.lock().expect("no panic under the lock");
        all.0.push(late);
        let waiter = if all.0.len() == SLEEPS { all.1.take() } else { None };
        drop(all);
        waiter.into_iter().for_each(Waker::wake);
    }
}

impl All {
    /// Polls a sleep that ends after so long.
    fn begin(self: &Arc<All>, sleep: Pin<&mut impl Future>, far: Duration) {
        let one = One { all: self.clone(), due: Instant::now() + far };
        let waker = Waker::from(Arc::new(one));
        drop(sleep.poll(&mut Context::from_waker(&waker)));
    }

    async fn ended(&self) {
        poll_fn(|cx| {
            let mut all = self.late.lock().expect("no panic under the lock");
            all.1 = Some(cx.waker().clone());
            if all.0.len() == SLEEPS { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn report(&self) {
        let mut all = self.late.lock().expect("no panic under the lock");
        all.0.sort();
        let mean = all.0.iter().sum::<Duration>() / SLEEPS as u32;
        println!("mean {mean:?}, 99th of a hundred {:?} late", all.0[SLEEPS / 100 * 99]);
    }
}

fn delays() -> impl Iterator<Item = Duration> {
    let mut rng = DetRng::new(3, 0);
    (0..SLEEPS).map(move |_| Duration::from_micros(100_000 + rng.next_u64() % 900_000))
}

fn late_here() {
    let (all, runtime) = (Arc::<All>::default(), Runtime::builder().workers(2).build());
    runtime.expect("a runtime").block_on(async |cx: Cx| {
        let mut sleeps = Vec::new();
        for far in delays() {
            let mut sleep = Box::pin(cx.sleep(far));
            all.begin(sleep.as_mut(), far);
            sleeps.push(sleep);
        }
        all.ended().await;
    });
    all.report();
}

fn late_there() {
    let all = Arc::<All>::default();
    let own = all.clone();
    let body = tokio::task::unconstrained(async move {
        let mut sleeps = Vec::new();
        for far in delays() {
            let mut sleep = Box::pin(tokio::time::sleep(far));
            own.begin(sleep.as_mut(), far);
            sleeps.push(sleep);
        }
        own.ended().await;
    });
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_time().build().expect("a runtime");
    runtime.block_on(async { tokio::spawn(body).await }).expect("no panic");
    all.report();
}

/// A waker that wakes nobody, but is not known for it.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn polled_once(kind: &str, count: usize) {
    let runtime = Runtime::builder().workers(1).build().expect("a runtime");
    runtime.block_on(async |cx: Cx| {
        let shared = Waker::from(Arc::new(Nobody));
        let distinct: Vec<_> = (0..count).map(|_| Waker::from(Arc::new(Nobody))).collect();
        let own = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let sleep = |_| Box::pin(cx.sleep(Duration::from_secs(100)));
        let mut sleeps: Vec<_> = (0..count).map(sleep).collect();
        for (sleep, waker) in sleeps.iter_mut().zip(&distinct) {
            let waker = match kind {
                "own" => &own,
                "shared" => &shared,
                _ => waker,
            };
            drop(sleep.as_mut().poll(&mut Context::from_waker(waker)));
        }
    });
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match (&words[..], words.get(1).map(|count| count.parse())) {
        (["late", "asx"], _) => late_here(),
        (["late", "tokio"], _) => late_there(),
        ([kind @ ("own" | "shared" | "distinct"), _], Some(Ok(count))) => polled_once(kind, count),
        _ => {
            eprintln!("usage: sleeps late asx|tokio, or own|shared|distinct COUNT");
            std::process::exit(2);
        }
    }
}
