//! What happens when the machine is slow: a timer comes due though the work was ready.

use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::{Grain, How, check};
use asx_runtime::{Cancelled, Cx, Scope, channel};

use super::planted;

const SECOND: Duration = Duration::from_secs(1);

/// Works under a lease of a second, and writes without looking whether it still has it.
async fn lease_runs_out<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        // Which lease wrote last: the first, or the second.
        let written = Arc::new(AtomicU32::new(0));
        let store = written.clone();
        let until = cx.now() + SECOND;
        s.spawn(async move |cx: Cx| {
            cx.sleep_until(until).await?;
            written.store(2, Relaxed);
            cx.sleep(SECOND).await?;
            assert_eq!(written.load(Relaxed), 2, "the old holder has overwritten the new one");
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            for _ in 0..3 {
                cx.yield_now().await;
            }
            // It is the store that knows which lease is the latest.
            if BUG || store.load(Relaxed) <= 1 {
                store.store(1, Relaxed);
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(lease_runs_out_is_found: lease_runs_out, Panic, 2, Unseen);

/// Asks, waits for a second, and asks again: the first answer that comes is taken for the second.
async fn late_answer<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (ask, mut asked) = channel::bounded::<u32>(2);
        let (answer, mut answers) = channel::bounded::<(u32, u32)>(2);
        s.spawn(async move |cx: Cx| {
            while let Ok(question) = asked.recv(&cx).await {
                cx.yield_now().await;
                let _ = answer.send(&cx, (question, 10 * question)).await;
            }
            Ok(())
        });
        for question in 1..=2 {
            let _ = ask.send(&cx, question).await;
            let wait = async |cx: &Cx| {
                loop {
                    let answer = answers.recv(cx).await.map_err(|_| cx.checkpoint());
                    match answer {
                        Ok((of, _)) if !BUG && of != question => {}
                        Ok((_, answer)) => return Ok::<_, Cancelled>(Some(answer)),
                        Err(stopped) => return stopped.map(|()| None),
                    }
                }
            };
            if let Ok(Some(answer)) = cx.timeout(SECOND, wait).await {
                assert_eq!(answer, 10 * question, "the answer to another question");
            }
        }
        drop(ask);
        Ok(())
    })
    .await
}
planted!(late_answer_is_found: late_answer, Panic, 2, Proved);

/// Takes a time that has run out for work that was not done, and does it itself.
async fn done_after_all<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let paid = Arc::new(AtomicU32::new(0));
    let account = paid.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        let is_taken = Arc::new(AtomicBool::new(false));
        let pay = move || {
            let is_first = !is_taken.swap(true, Relaxed);
            if BUG || is_first {
                account.fetch_add(1, Relaxed);
            }
        };
        let pay = Arc::new(pay);
        let first = pay.clone();
        let (tx, mut done) = channel::bounded::<()>(1);
        s.spawn(async move |cx: Cx| {
            cx.yield_now().await;
            first();
            let _ = tx.send(&cx, ()).await;
            Ok(())
        });
        let in_time = cx.timeout(SECOND, async |cx| Ok::<_, Cancelled>(done.recv(cx).await)).await;
        if in_time.is_err() {
            pay();
        }
        Ok(())
    })
    .await?;
    assert_eq!(paid.load(Relaxed), 1, "paid twice");
    Ok(())
}
planted!(done_after_all_is_found: done_after_all, Panic, 2, Proved);

/// A cache entry that is good for a second: looked up, and used after a wait.
async fn stale_entry<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let entry = Arc::new(StdMutex::new(Some(7)));
        let kept = entry.clone();
        s.spawn(async move |cx: Cx| {
            cx.sleep(SECOND).await?;
            *kept.lock().unwrap() = None;
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let is_there = entry.lock().unwrap().is_some();
            cx.yield_now().await;
            let value = *entry.lock().unwrap();
            if is_there && BUG {
                assert_eq!(value, Some(7), "it was there");
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(stale_entry_is_found: stale_entry, Panic, 2, Unseen);

/// Cleanup that sleeps for longer than the grace period of its scope.
async fn long_cleanup<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let cleanup = if BUG { 12 * SECOND } else { 4 * SECOND };
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            cx.cancelled().await;
            cx.shield(async |cx: &Cx| cx.sleep(cleanup).await).await
        });
        cx.sleep(SECOND).await?;
        s.stop_within(10 * SECOND);
        Ok(())
    })
    .await
}
planted!(long_cleanup_is_found: long_cleanup, Overrun, 0, Unseen);

/// A timeout in a cleanup, which fires although its body is ready.
async fn hasty_cleanup<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            cx.cancelled().await;
            let saved = cx.shield(async |cx: &Cx| {
                let save = async |cx: &Cx| {
                    cx.yield_now().await;
                    cx.checkpoint()
                };
                cx.timeout(SECOND, save).await.is_ok()
            });
            assert!(saved.await || !BUG, "nothing was saved");
            Ok(())
        });
        s.stop_within(10 * SECOND);
        Ok(())
    })
    .await
}
planted!(hasty_cleanup_is_found: hasty_cleanup, Panic, 2, Unseen);

/// A grace period is met by tasks that run in it, however slow the machine and late the clock.
#[test]
fn a_grace_period_is_met_with_a_late_clock() {
    let report = check(long_cleanup::<false>).late_clocks().run();
    assert!(report.failure.is_none(), "{report}");
    let found = check(long_cleanup::<true>).late_clocks().run().failure.expect("an overrun");
    assert_eq!(found.failure.finding.kind, asx_lab::Kind::Overrun, "{found}");
}

/// A task that needs nearly all polls of a run to stop is not out of time, because its grace period
/// passes in small parts.
#[test]
fn a_grace_period_is_met_in_many_polls() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async |cx: Cx| {
                cx.cancelled().await;
                for _ in 0..9_000 {
                    cx.yield_now().await;
                }
                Ok(())
            });
            s.stop_within(Duration::from_secs(10));
            Ok(())
        })
        .await
    };
    let report = check(program).how(How::Random).grain(Grain::Poll).runs(4).run();
    assert!(report.failure.is_none(), "{report}");
}
