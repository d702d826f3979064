//! Cleanup of one task: a scope around its work, with finalizers.

use crate::common;

use std::sync::Arc;

use asx::prelude::*;
use common::{Log, on_each};

#[derive(Clone, Copy, Debug)]
enum End {
    Value,
    Error,
    Panic,
    Cancel,
}

#[derive(Debug)]
struct Failed;

impl From<Cancelled> for Failed {
    fn from(_: Cancelled) -> Self {
        Failed
    }
}

async fn work(cx: Cx, log: Arc<Log>, end: End) -> Result<(), Failed> {
    cx.scope(async |s| {
        for what in ["first", "second"] {
            let log = log.clone();
            let undo = async move |cx: Cx| {
                // Waits, and is not cancelled by the cancel that may have ended the work.
                cx.sleep(1.millis()).await.expect("no cancel reaches it");
                log.add(what);
            };
            s.defer(undo).expect("the scope is open");
        }
        match end {
            End::Value => Ok(()),
            End::Error => Err(Failed),
            End::Panic => panic!("on purpose"),
            End::Cancel => Ok(cx.sleep(60.minutes()).await?),
        }
    })
    .await
}

#[test]
fn finalizers_run_last_first_however_the_task_ends() {
    on_each(|runtime| {
        for end in [End::Value, End::Error, End::Panic, End::Cancel] {
            let log = Arc::new(Log::default());
            let told = log.clone();
            runtime.block_on(async |cx: Cx| {
                let all = cx.scope_with(asx::Policy::CollectAll);
                let all = all.run(async |s: Scope<Failed>| {
                    let task = s.spawn(move |cx| work(cx, told, end));
                    if let End::Cancel = end {
                        task.cancel("enough");
                    }
                    let outcome = task.await;
                    // All finalizers had run when the end could be observed.
                    assert_eq!(log.take(), ["second", "first"], "{end:?}");
                    match (end, outcome) {
                        (End::Value, Ok(())) => {}
                        (End::Error, Err(TaskError::Err(Failed))) => {}
                        (End::Panic, Err(TaskError::Panicked(_))) => {}
                        (End::Cancel, Err(TaskError::Cancelled(_))) => {}
                        (end, outcome) => panic!("{end:?}: {outcome:?}"),
                    }
                    Ok(())
                });
                assert!(all.await.is_ok());
            });
        }
    });
}
