//! What it costs that the thread in `block_on` is no worker: `spawn_join` from the body of the
//! program and from a task, with asx and tokio, two workers each.
//!
//! ```text
//! cargo run --release -p asx-bench --example program
//! ```

use std::hint::black_box;
use std::time::Instant;

use asx_native::Runtime;
use asx_runtime::{Cancelled, Cx, Scope};

const TASKS: u32 = 100_000;

async fn asx_tasks(s: Scope<Cancelled>) -> Result<f64, Cancelled> {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS).map(|n| s.spawn(async move |_: Cx| Ok(n))).collect();
    for task in tasks {
        black_box(task.await.expect("no error"));
    }
    Ok(begun.elapsed().as_nanos() as f64 / f64::from(TASKS))
}

fn asx(in_task: bool) -> f64 {
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    let figure = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| match in_task {
            false => asx_tasks(s).await,
            true => {
                let tasks = s.clone();
                Ok(s.spawn(move |_: Cx| asx_tasks(tasks)).await.expect("no error"))
            }
        })
        .await
    });
    figure.expect("no error")
}

async fn tokio_tasks() -> f64 {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS).map(|n| tokio::spawn(async move { n })).collect();
    for task in tasks {
        black_box(task.await.expect("no panic"));
    }
    begun.elapsed().as_nanos() as f64 / f64::from(TASKS)
}

fn tokio(in_task: bool) -> f64 {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
    match in_task {
        false => runtime.block_on(tokio_tasks()),
        true => runtime.block_on(async { tokio::spawn(tokio_tasks()).await.expect("no panic") }),
    }
}

fn main() {
    println!("ns per task, median of 11    asx   tokio   ratio");
    for (name, in_task) in [("from the body", false), ("from a task", true)] {
        let mut figures: [Vec<f64>; 2] = Default::default();
        for _ in 0..11 {
            figures[0].push(asx(in_task));
            figures[1].push(tokio(in_task));
        }
        let [asx, tokio] = figures.map(|mut figures| {
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        });
        println!("{name:24} {asx:7.0} {tokio:7.0} {:7.2}", asx / tokio);
    }
}
