//! What takes two disturbances: each alone is taken care of.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use asx_lab::{Check, Judged, check};
use asx_runtime::sync::Notify;
use asx_runtime::{Cancelled, Cx, Scope};

/// The bug is found with what the check asks for, by two disturbances and no fewer; the fixed
/// program passes.
fn judge<F, G, B, C>(name: &str, bug: Check<F>, fixed: Check<G>)
where
    F: Fn(Cx) -> B + Clone,
    G: Fn(Cx) -> C,
    B: Future<Output: Judged>,
    C: Future<Output: Judged>,
{
    crate::find(name, &bug, asx_lab::Kind::Panic, 3);
    let alone = bug.clone().disturbances(1).run();
    assert!(alone.failure.is_none(), "{name}, with one disturbance a run: {alone}");
    let report = fixed.run();
    assert!(report.failure.is_none(), "{name}, fixed: {report}");
}

/// A job is handed to another if who does it is asked to stop, who may be asked to stop as well.
async fn handed_over_once<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let job = Arc::new(StdMutex::new(Some("job")));
    let done = Arc::new(AtomicBool::new(false));
    cx.scope(async |s: Scope<Cancelled>| {
        let is_over = Arc::new(Notify::new());
        for nth in 0..2 {
            let (job, done, is_over) = (job.clone(), done.clone(), is_over.clone());
            s.spawn(async move |cx: Cx| {
                if nth == 1 && is_over.notified(&cx).await.is_err() {
                    return Ok(());
                }
                let mine = job.lock().unwrap().take();
                let slept = cx.sleep(Duration::from_secs(1)).await;
                match mine {
                    Some(_) if slept.is_ok() => done.store(true, Relaxed),
                    Some(mine) if !BUG || nth == 0 => *job.lock().unwrap() = Some(mine),
                    _ => {}
                }
                is_over.notify_one();
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    // If the whole program was asked to stop, nobody counts on the job.
    cx.checkpoint()?;
    assert!(done.load(Relaxed) || job.lock().unwrap().is_some(), "the job is lost");
    Ok(())
}

#[test]
fn handed_over_once_is_found() {
    let bug = check(handed_over_once::<true>).cancel_at_every_await();
    let fixed = check(handed_over_once::<false>).cancel_at_every_await();
    judge("handed_over_once", bug, fixed);
}

/// Writes what is left when it is asked to stop, and does not look whether that went well.
async fn last_write_fails<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let lines = Arc::new(StdMutex::new(vec![1, 2, 3]));
    let written = Arc::new(AtomicU32::new(0));
    let to_write = lines.clone();
    let counted = written.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            let write = |keeps: bool| {
                let Some(line) = to_write.lock().unwrap().pop() else { return false };
                if !cx.fault("disk full") {
                    counted.fetch_add(1, Relaxed);
                } else if keeps {
                    to_write.lock().unwrap().push(line);
                }
                true
            };
            while cx.sleep(Duration::from_secs(1)).await.is_ok() {
                if !write(true) {
                    return Ok(());
                }
            }
            // What can't be written now is left for the next start.
            while write(!BUG) && cx.fault("power is back") {}
            Ok(())
        });
        Ok(())
    })
    .await?;
    let left = lines.lock().unwrap().len() as u32;
    assert!(left + written.load(Relaxed) == 3, "a line is lost");
    Ok(())
}

#[test]
fn last_write_fails_is_found() {
    let bug = check(last_write_fails::<true>).cancel_at_every_await().faults();
    let fixed = check(last_write_fails::<false>).cancel_at_every_await().faults();
    judge("last_write_fails", bug, fixed);
}

/// Two copies, of which either may fail to be written.
async fn no_copy_left<const BUG: bool>(cx: Cx) -> Result<(), &'static str> {
    let copies = ["disk full", "no route"].map(|fault| {
        let is_written = !cx.fault(fault);
        u32::from(is_written)
    });
    cx.yield_now().await;
    match copies.iter().sum::<u32>() {
        0 if !BUG => Err("nothing is written"),
        copies => {
            assert!(copies > 0, "no copy is left");
            Ok(())
        }
    }
}

#[test]
fn no_copy_left_is_found() {
    let bug = check(no_copy_left::<true>).faults();
    let fixed = check(no_copy_left::<false>).faults();
    judge("no_copy_left", bug, fixed);
}
