//! Parts of a task: each ends before what it is a part of, and cleans up once.

use std::cell::Cell;
use std::time::Duration;

use asx_kernel::time::Time;
use asx_runtime::{Cancelled, Cx, Scope, group, join, race, try_join};

use super::{Count, holds, holds_in_exact_time};

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Time {
    Time::ZERO + SECOND * seconds as u32
}

#[test]
fn a_sleep_is_neither_short_nor_long() {
    holds_in_exact_time(async |cx: Cx| {
        let slept = cx.sleep(SECOND).await;
        // A cancel that comes with the time is what is seen.
        assert!(cx.now() == at(1) || slept.is_err() && cx.now() == at(0));
        let again = cx.shield(|cx| cx.sleep(SECOND)).await;
        assert!(again.is_ok() && (cx.now() == at(1) || cx.now() == at(2)));
        slept
    });
}

#[test]
fn a_tick_is_taken_or_not() {
    holds_in_exact_time(async |cx: Cx| {
        let mut interval = cx.interval(SECOND);
        for number in 1..=3 {
            let due = interval.next();
            assert_eq!(due, at(number));
            if interval.tick(&cx).await.is_err() {
                assert_eq!(interval.next(), due, "a tick was lost");
                assert_eq!(cx.shield(|cx| interval.tick(cx)).await, Ok(due));
            }
            assert_eq!(cx.now(), due);
        }
        cx.checkpoint()
    });
}

/// Counts itself while it lives, and once more when it has cleaned up.
async fn part(cx: &Cx, time: Duration, live: &Count, clean: &Count) -> Result<(), Cancelled> {
    let inside = live.inside();
    let slept = cx.sleep(time).await;
    cx.yield_now().await;
    clean.add(1);
    drop(inside);
    slept
}

#[test]
fn a_join_is_over_when_both_are() {
    holds(async |cx: Cx| {
        let (live, clean) = (Count::default(), Count::default());
        let (one, two) = join(
            &cx,
            |cx| part(cx, SECOND, &live, &clean),
            |cx| part(cx, 2 * SECOND, &live, &clean),
        )
        .await;
        assert_eq!((live.get(), clean.get()), (0, 2));
        one.and(two)
    });
}

#[test]
fn a_failed_join_is_over_when_both_are() {
    holds(async |cx: Cx| {
        let (live, clean) = (Count::default(), Count::default());
        let fails = async |cx: &Cx| {
            let _ = cx.sleep(SECOND).await;
            Err::<(), _>(None)
        };
        let begun = Cell::new(false);
        let slow = async |cx: &Cx| {
            begun.set(true);
            part(cx, 2 * SECOND, &live, &clean).await.map_err(Some)
        };
        let joined = try_join(&cx, fails, slow).await;
        assert!(joined.is_err());
        // If the first one fails at once, the second one never begins.
        assert!(live.get() == 0 && clean.get() == u32::from(begun.get()));
        cx.checkpoint()
    });
}

#[test]
fn a_race_is_over_when_its_losers_are() {
    holds_in_exact_time(async |cx: Cx| {
        let (live, clean) = (Count::default(), Count::default());
        let first = race(
            &cx,
            |cx| part(cx, SECOND, &live, &clean),
            |cx| part(cx, 2 * SECOND, &live, &clean),
        )
        .await;
        assert_eq!((live.get(), clean.get()), (0, 2));
        assert!(cx.now() <= at(1));
        first
    });
}

#[test]
fn a_group_is_over_when_its_children_are() {
    holds(async |cx: Cx| {
        let (live, clean) = (Count::default(), Count::default());
        let made = Count::default();
        let ended = group(&cx, async |group| {
            for seconds in 1..=3 {
                made.add(1);
                let (live, clean) = (&live, &clean);
                group.add(move |cx| part(cx, SECOND * seconds, live, clean));
            }
            let _ = group.next(&cx).await;
            Ok::<_, Cancelled>(())
        })
        .await;
        assert_eq!(live.get(), 0);
        // Those that were never polled have nothing to clean up.
        assert!(clean.get() <= made.get());
        ended
    });
}

#[test]
fn a_timeout_is_over_when_its_body_is() {
    holds_in_exact_time(async |cx: Cx| {
        for (time, fits) in [(SECOND, true), (3 * SECOND, false)] {
            let (live, clean) = (Count::default(), Count::default());
            let ended = cx.timeout(2 * SECOND, |cx| part(cx, time, &live, &clean)).await;
            assert_eq!((live.get(), clean.get()), (0, 1));
            cx.checkpoint()?;
            assert_eq!(ended.is_ok(), fits);
        }
        Ok::<_, Cancelled>(())
    });
}

#[test]
fn a_scope_is_over_when_its_tasks_are() {
    holds(async |cx: Cx| {
        let (live, clean) = (Count::default(), Count::default());
        let begun = Count::default();
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for seconds in 1..=2 {
                    let (live, clean, begun) = (live.clone(), clean.clone(), begun.clone());
                    s.spawn(async move |cx: Cx| {
                        cx.scope(async |s: Scope<Cancelled>| {
                            begun.add(1);
                            let (inner, done) = (live.clone(), clean.clone());
                            s.spawn(async move |cx: Cx| part(&cx, SECOND, &inner, &done).await);
                            part(&cx, SECOND * seconds, &live, &clean).await
                        })
                        .await
                    });
                }
                Ok(())
            })
            .await;
        assert_eq!(live.get(), 0);
        assert!(clean.get() >= begun.get());
        ended
    });
}
