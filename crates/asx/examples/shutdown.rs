//! A graceful shutdown: tasks are notified, cancelled and aborted; the finalizer runs last.
//!
//! `cargo run -p asx --example shutdown`

use std::sync::{Arc, Mutex};

use asx::prelude::*;
use asx::{Grace, Runtime};

fn main() -> std::io::Result<()> {
    for line in day(&Runtime::builder().workers(2).build()?) {
        println!("{line}");
    }
    Ok(())
}

/// Runs a shop until it is closed; returns a log.
pub(crate) fn day(runtime: &Runtime) -> Vec<String> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |line: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(String::from(line))
    };
    // A handle can be sent to a signal handler, to another thread, or into the program itself.
    let handle = runtime.handle();
    let (sold, swept, closed) = (
        note("the clerk finishes the sale"),
        note("the cleaner puts the broom away"),
        note("the books are closed"),
    );

    // `try_block_on` returns an error, where `block_on` would panic, if the program is aborted.
    let program = runtime.try_block_on(async |cx: Cx| {
        let (here, mut staff) = channel::bounded(2);
        let at_work = here.clone();
        cx.scope(async |s| {
            // Runs when everything else in the scope has ended. Cancels do not reach it.
            s.defer(async move |_cx: Cx| closed()).expect("the scope is open");

            s.task("clerk").spawn(async move |cx: Cx| {
                here.send(&cx, "clerk").await.ok();
                // When notified of the shutdown, it starts nothing new and ends.
                let _told = cx.stopping().await;
                sold();
                Ok(())
            });

            s.task("cleaner").spawn(async move |cx: Cx| {
                at_work.send(&cx, "cleaner").await.ok();
                // Ignores the notification. It observes the cancel after the soft grace period.
                let end = cx.sleep(60.minutes()).await;
                // Cleanup that a stronger cancel must not interrupt.
                cx.shield(async |cx| cx.yield_now().await).await;
                swept();
                end
            });

            for _ in 0..2 {
                staff.recv(&cx).await.ok();
            }
            // 20 ms to end when notified, then a cancel; 10 s later tasks are aborted.
            handle.stop(Grace { soft: 20.millis(), hard: 10.secs() });
            Err::<(), _>(cx.cancelled().await)
        })
        .await
    });

    let mut lines = std::mem::take(&mut *log.lock().unwrap());
    lines.push(match program {
        Ok(Ok(())) => String::from("the program ended by itself"),
        // The cancel came from its parents; the first cause is at the end of the chain.
        Ok(Err(cancelled)) => {
            let first = cancelled.reason().chain().last().map(|reason| reason.kind.name());
            format!("the program was stopped: {}", first.unwrap_or_default())
        }
        // The body did not end after its cancel: the error names the aborted tasks.
        Err(error) => error.to_string(),
    });
    // Nothing is alive, so this returns at once.
    let left = runtime.shutdown(Grace { soft: 0.secs(), hard: 0.secs() });
    lines.push(format!("left over: {}", left.map_or_else(|dump| dump.tasks(), |()| 0)));
    lines
}
