//! Tasks that are restarted when they fail, up to a limit.
//!
//! `cargo run -p asx --example supervision`

use std::sync::{Arc, Mutex};

use asx::Restart;
use asx::prelude::*;

#[derive(Debug)]
enum CounterError {
    Cancelled,
    Broken(u32),
}

impl From<Cancelled> for CounterError {
    fn from(_: Cancelled) -> Self {
        CounterError::Cancelled
    }
}

#[asx::main(workers = 2)]
async fn main(cx: &Cx) {
    for line in counters(cx).await {
        println!("{line}");
    }
}

/// Runs one task that recovers, and one that does not.
pub(crate) async fn counters(cx: &Cx) -> Vec<String> {
    let log = Arc::new(Mutex::new(Vec::new()));

    // Three restarts per minute are allowed, after increasing pauses; two are needed.
    let patient = Restart::times(3, 60.secs()).backoff(1.millis(), 10.millis());
    let steady: Result<(), CounterError> = cx
        .scope(async |s| {
            let (mut life, log) = (0, log.clone());
            drop(s.supervise("steady", patient, move || {
                life += 1;
                log.lock().unwrap().push(format!("steady: life {life}"));
                async move |_cx: Cx| live(life, 2).await
            }));
            Ok(())
        })
        .await;
    if steady.is_ok() {
        log.lock().unwrap().push(String::from("steady ended well"));
    }

    // One restart is allowed. The next failure is a failure of the scope, with its error.
    let strict = Restart::times(1, 60.secs());
    let hopeless: Result<(), CounterError> = cx
        .scope(async |s| {
            let (mut life, log) = (0, log.clone());
            drop(s.supervise("hopeless", strict, move || {
                life += 1;
                log.lock().unwrap().push(format!("hopeless: life {life}"));
                async move |_cx: Cx| live(life, u32::MAX).await
            }));
            Ok(())
        })
        .await;
    log.lock().unwrap().push(match hopeless {
        Err(CounterError::Broken(life)) => format!("hopeless failed for good in life {life}"),
        other => format!("{other:?}"),
    });
    std::mem::take(&mut *log.lock().unwrap())
}

/// One attempt of a task: the first ones fail. A panic would be handled in the same way.
async fn live(life: u32, failures: u32) -> Result<(), CounterError> {
    if life <= failures { Err(CounterError::Broken(life)) } else { Ok(()) }
}
