//! What programs take time for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::check;
use asx_runtime::time::MissedTicks;
use asx_runtime::{Cancelled, Cx, Scope};

use super::planted;

const SECOND: Duration = Duration::from_secs(1);

/// One sleeps as long as the other, and counts on being later.
async fn same_instant<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let work = s.spawn(async move |cx: Cx| {
            cx.sleep(SECOND).await?;
            done.store(true, Relaxed);
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            if BUG {
                cx.sleep(SECOND).await?;
            } else {
                let _ = work.await;
            }
            assert!(seen.load(Relaxed), "not done after a second");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(same_instant_is_found: same_instant, Panic, 1, Unseen);

/// "Surely it is done after a second."
async fn long_enough<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let work = s.spawn(async move |cx: Cx| {
            // What it waits for is usually there; here it comes late.
            cx.sleep(2 * SECOND).await?;
            done.store(true, Relaxed);
            Ok(())
        });
        if BUG {
            cx.sleep(SECOND).await?;
        } else {
            let _ = work.await;
        }
        assert!(seen.load(Relaxed), "not done after a second");
        Ok(())
    })
    .await
}
planted!(long_enough_is_found: long_enough, Panic, 0, Unseen);

/// Counts ticks for a clock, with ticks that are put off when work takes long.
async fn drift<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let missed = if BUG { MissedTicks::Delay } else { MissedTicks::Burst };
    let start = cx.now();
    let mut interval = cx.interval(SECOND).missed(missed);
    for tick in 1..=3 {
        interval.tick(&cx).await?;
        if tick == 1 {
            cx.sleep(SECOND + SECOND / 2).await?;
        }
    }
    let late = (cx.now() - start).saturating_sub(3 * SECOND);
    assert_eq!(late, Duration::ZERO, "three ticks are not three seconds");
    Ok(())
}
planted!(drift_is_found: drift, Panic, 0, Proved, exact_time);

/// A watchdog and the work it watches: which is told first that a second is over?
async fn watchdog<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let barks = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        let fed = Arc::new(AtomicBool::new(false));
        let (food, bark) = (fed.clone(), barks.clone());
        s.spawn(async move |cx: Cx| {
            cx.sleep(SECOND).await?;
            food.store(true, Relaxed);
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            cx.sleep(if BUG { SECOND } else { SECOND + SECOND / 10 }).await?;
            if !fed.load(Relaxed) {
                bark.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        Ok(())
    })
    .await?;
    assert_eq!(barks.load(Relaxed), 0, "it barked at nothing");
    Ok(())
}
planted!(watchdog_is_found: watchdog, Panic, 1, Unseen, exact_time);
