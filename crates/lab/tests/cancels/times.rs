//! What is due comes out once, at its time, and nothing is lost by a cancel.

use std::time::Duration;

use asx_runtime::time::{DelayQueue, MissedTicks};
use asx_runtime::{Cancelled, Cx, Scope, channel, select};

use super::{Count, holds};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_queue_of_delays_gives_each_value_once_when_it_is_due() {
    holds(async |cx: Cx| {
        let mut queue = DelayQueue::new();
        let start = cx.now();
        let late = queue.insert(start + SECOND * 9, 9);
        for n in [3, 1, 2] {
            queue.insert(start + SECOND * n, n);
        }
        assert!(queue.reset(late, start + SECOND * 4));
        let mut came = Vec::new();
        let ended: Result<(), Cancelled> = async {
            while let Some(n) = queue.next(&cx).await? {
                assert!(cx.now() >= start + SECOND * n.min(4));
                came.push(n);
            }
            Ok(())
        }
        .await;
        // A cancelled wait has taken nothing.
        assert_eq!(came.len() + queue.len(), 4);
        assert_eq!(came[..], [1, 2, 3, 9][..came.len()]);
        ended
    });
}

#[test]
fn a_sleep_that_is_reset_ends_at_the_new_time() {
    holds(async |cx: Cx| {
        let start = cx.now();
        let mut quiet = cx.sleep(SECOND * 2);
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let resets = Count::default();
        cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| {
                for n in 0..2 {
                    cx.sleep(SECOND).await?;
                    let _ = tx.send(&cx, n).await;
                }
                // Kept, so that the other side never sees it closed.
                cx.sleep(SECOND * 60).await?;
                drop(tx);
                Ok(())
            });
            loop {
                select! {
                    over = &mut quiet => { over?; break }
                    came = rx.next(&cx) => match came? {
                        Some(_) => {
                            resets.add(1);
                            quiet.reset(cx.now() + SECOND * 2);
                        }
                        // Its sender was cancelled.
                        None => return Ok(()),
                    },
                }
            }
            assert!(cx.now() >= start + SECOND * (resets.get() + 2));
            quiet.reset(cx.now() + SECOND);
            let again = cx.now();
            (&mut quiet).await?;
            assert!(cx.now() >= again + SECOND, "it sleeps again");
            s.cancel("enough");
            Ok(())
        })
        .await
        .or_else(|_| cx.checkpoint())
    });
}

#[test]
fn an_interval_that_is_reset_ticks_from_there() {
    holds(async |cx: Cx| {
        let mut beat = cx.interval(SECOND * 10).missed(MissedTicks::Skip);
        beat.reset_after(&cx, SECOND);
        let first = cx.now() + SECOND;
        assert_eq!(beat.tick(&cx).await?, first);
        beat.reset_immediately(&cx);
        assert_eq!(beat.tick(&cx).await?, first);
        assert_eq!(beat.next(), first + SECOND * 10);
        cx.sleep(SECOND * 3).await?;
        beat.reset(&cx);
        assert_eq!(beat.tick(&cx).await?, first + SECOND * 13);
        beat.reset_at(first);
        assert_eq!(beat.tick(&cx).await?, first, "a time that has passed is due");
        Ok::<_, Cancelled>(())
    });
}
