//! How many runs a second: `cargo run --release -p asx-lab --example runs`. A program, a strategy
//! and a number of runs as arguments make just those, to be counted by another tool.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use asx_lab::{How, check};
use asx_runtime::sync::Mutex;
use asx_runtime::{Cancelled, Cx, Scope, channel};

/// Three send what one receives: a channel that is full most of the time.
async fn pipeline(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        for n in 0..3 {
            let tx = tx.clone();
            s.spawn(async move |cx: Cx| {
                let sent = tx.send(&cx, n).await.is_ok();
                assert!(sent);
                Ok(())
            });
        }
        drop(tx);
        let mut sum = 0;
        while let Some(n) = rx.next(&cx).await? {
            sum += n;
        }
        assert_eq!(sum, 3);
        Ok(())
    })
    .await
}

/// A client that asks a server twice, over the simulated network.
#[cfg(not(target_family = "wasm"))]
async fn network(cx: Cx) -> asx_net::io::Result<()> {
    use asx_net::{TcpListener, TcpStream, io};
    let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
    cx.scope(async |s: Scope<io::Error>| {
        s.spawn(async move |cx: Cx| {
            let (mut stream, _) = listener.accept(&cx).await?;
            let mut request = [0; 4];
            while stream.read(&cx, &mut request).await? > 0 {
                stream.write_all(&cx, &request).await?;
            }
            Ok(())
        });
        let mut stream = TcpStream::connect(&cx, "127.0.0.1:80").await?;
        for _ in 0..2 {
            stream.write_all(&cx, b"ping").await?;
            stream.read_exact(&cx, &mut [0; 4]).await?;
        }
        Ok(())
    })
    .await
}

/// Tasks that count under a lock, so often each.
async fn counters(cx: Cx, tasks: u32, times: u32) -> Result<(), Cancelled> {
    let count = Arc::new(Mutex::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..tasks {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                for _ in 0..times {
                    *count.lock(&cx).await? += 1;
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(*count.lock(&cx).await?, tasks * times);
    Ok(())
}

fn measure<B>(name: &str, how: How, runs: u64, program: impl Fn(Cx) -> B)
where
    B: Future<Output: asx_lab::Judged>,
{
    let start = cpu_time();
    let report = check(program).how(how).runs(runs).run();
    let rate = report.runs as f64 / (cpu_time() - start).as_secs_f64();
    println!("{name}, {how:?}: {report}, {rate:.0} runs a second");
}

fn run(name: &str, how: How, runs: u64) {
    match name {
        "pipeline" => measure(name, how, runs, pipeline),
        #[cfg(not(target_family = "wasm"))]
        "network" => measure(name, how, runs, network),
        "small" => measure(name, how, runs, |cx| counters(cx, 4, 2)),
        _ => measure(name, how, runs, |cx| counters(cx, 50, 20)),
    }
}

/// How long this thread has been on a processor, where the system tells; else the time of day.
fn cpu_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn parse<T: Debug + Copy>(word: &str, all: &[T]) -> Option<T> {
    all.iter().copied().find(|it| format!("{it:?}").eq_ignore_ascii_case(word))
}

fn main() {
    let all = [How::Random, How::Pos, How::Pct(3), How::Uniform, How::Dfs, How::Dpor];
    let mut words = std::env::args().skip(1);
    if let (Some(name), Some(how)) = (words.next(), words.next()) {
        let runs = words.next().and_then(|runs| runs.parse().ok()).unwrap_or(10_000);
        return run(&name, parse(&how, &all).unwrap_or(How::Random), runs);
    }
    for how in all {
        run("pipeline", how, 300_000);
        run("network", how, 100_000);
        run("small", how, 300_000);
        run("large", how, 1_000);
    }
}
