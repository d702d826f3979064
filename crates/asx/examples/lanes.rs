//! The order of dispatches: cancelled tasks, then those with a deadline, then others by priority.
//!
//! `cargo run -p asx --example lanes`

use std::sync::{Arc, Mutex};

use asx::prelude::*;

// One worker, so that the order is deterministic: with more workers, tasks also run in parallel.
#[asx::main(current_thread)]
async fn main(cx: &Cx) -> Result<(), Cancelled> {
    println!("order: {}", order(cx).await?.join(", "));
    println!("{}", late(cx).await?);
    Ok(())
}

/// Returns the order in which tasks run that all became runnable while this one ran.
pub(crate) async fn order(cx: &Cx) -> Result<Vec<&'static str>, Cancelled> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let logs = |name: &'static str| {
        let log = log.clone();
        async move |_cx: Cx| {
            log.lock().unwrap().push(name);
            Ok(())
        }
    };
    let leaves = log.clone();
    cx.scope(async |s| {
        let waiting = s.task("cancelled").spawn(async move |cx: Cx| {
            let cancelled = cx.cancelled().await;
            leaves.lock().unwrap().push("cancelled");
            Err::<(), _>(cancelled)
        });
        cx.yield_now().await; // the task waits now

        // Spawned in the opposite order.
        s.task("plain").spawn(logs("plain"));
        s.task("urgent").priority(200).spawn(logs("urgent"));
        s.task("due later").within(60.minutes()).spawn(logs("due later"));
        s.task("due soon").within(30.minutes()).spawn(logs("due soon"));
        waiting.cancel("done with");
        Ok::<_, Cancelled>(())
    })
    .await?;
    Ok(std::mem::take(&mut *log.lock().unwrap()))
}

/// Returns the outcome of a task that misses its deadline. A nested deadline can only be earlier.
pub(crate) async fn late(cx: &Cx) -> Result<String, Cancelled> {
    cx.timeout(60.minutes(), async |cx| {
        cx.scope(async |s| {
            let slow = s.task("slow").within(1.millis()).spawn(async |cx: Cx| {
                cx.timeout(2.minutes(), async |cx| cx.sleep(90.secs()).await).await
            });
            Ok(match slow.await {
                Err(TaskError::Cancelled(cancelled)) => format!("slow: {:?}", cancelled.kind()),
                other => format!("slow: {other:?}"),
            })
        })
        .await
    })
    .await
}
