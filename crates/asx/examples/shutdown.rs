//! A gentle end: everybody is told, then asked, then forced; the finalizer has the last word.
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

/// What happens in a shop until it is closed.
pub(crate) fn day(runtime: &Runtime) -> Vec<String> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = |line: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(String::from(line))
    };
    // A handle goes anywhere: to a signal handler, to another thread, or into the program itself.
    let handle = runtime.handle();
    let (sold, swept, closed) = (
        note("the clerk finishes the sale"),
        note("the cleaner puts the broom away"),
        note("the books are closed"),
    );

    // `try_block_on`: a program that is ended by force has no value, and that is no panic here.
    let program = runtime.try_block_on(async |cx: Cx| {
        let (here, mut staff) = channel::bounded(2);
        let at_work = here.clone();
        cx.scope(async |s| {
            // Runs when all else in the scope has ended. No cancel reaches it.
            s.defer(async move |_cx: Cx| closed()).expect("the scope is open");

            s.task("clerk").spawn(async move |cx: Cx| {
                here.send(&cx, "clerk").await.ok();
                // Told that the end is near, it begins nothing new and ends by itself.
                let _told = cx.stopping().await;
                sold();
                Ok(())
            });

            s.task("cleaner").spawn(async move |cx: Cx| {
                at_work.send(&cx, "cleaner").await.ok();
                // Does not listen; it sees the cancel that comes after the soft grace.
                let end = cx.sleep(60.minutes()).await;
                // Cleanup that must not be interrupted, by a stronger cancel for instance.
                cx.shield(async |cx| cx.yield_now().await).await;
                swept();
                end
            });

            for _ in 0..2 {
                staff.recv(&cx).await.ok();
            }
            // 20 ms to end by oneself, then a cancel; force only for who ignores that for 10 s.
            handle.stop(Grace { soft: 20.millis(), hard: 10.secs() });
            Err::<(), _>(cx.cancelled().await)
        })
        .await
    });

    let mut lines = std::mem::take(&mut *log.lock().unwrap());
    lines.push(match program {
        Ok(Ok(())) => String::from("the program ended by itself"),
        // What reached it came from its parents; the first cause is at the end of the chain.
        Ok(Err(cancelled)) => {
            let first = cancelled.reason().chain().last().map(|reason| reason.kind.name());
            format!("the program was stopped: {}", first.unwrap_or_default())
        }
        // It did not even end when it was cancelled: this names what was ended by force.
        Err(error) => error.to_string(),
    });
    // Nothing lives any more, so that this is over at once.
    let left = runtime.shutdown(Grace { soft: 0.secs(), hard: 0.secs() });
    lines.push(format!("left over: {}", left.map_or_else(|dump| dump.tasks(), |()| 0)));
    lines
}
