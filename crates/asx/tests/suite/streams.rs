//! Streams over time, in the lab, where times are exact.

use asx::channel::stream::{StreamMap, throttle};
use asx::prelude::*;
use asx::time::MissedTicks;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};

/// Returns the milliseconds since `start`.
fn since(cx: &Cx, start: asx::time::Time) -> u128 {
    (cx.now() - start).as_millis()
}

#[asx::test(exact_time)]
async fn ticks_are_on_time_and_a_reset_restarts_them(cx: &Cx) -> Result<(), Cancelled> {
    let start = cx.now();
    let mut ticks = cx.interval(10.millis()).into_stream(cx);
    for tick in 1..=3 {
        assert_eq!(ticks.try_next().await?, Some(start + 10.millis() * tick));
        assert_eq!(since(cx, start), u128::from(tick) * 10);
    }
    cx.sleep(5.millis()).await?;
    ticks.reset();
    assert_eq!(ticks.try_next().await?, Some(start + 45.millis()));
    let mut interval = ticks.into_inner();
    assert_eq!(interval.tick(cx).await?, start + 55.millis());
    Ok(())
}

#[asx::test(exact_time)]
async fn a_late_stream_of_ticks_follows_its_policy(cx: &Cx) -> Result<(), Cancelled> {
    let start = cx.now();
    let skips = cx.interval(10.millis()).missed(MissedTicks::Skip);
    let mut ticks = skips.into_stream(cx);
    cx.sleep(25.millis()).await?;
    assert_eq!(ticks.try_next().await?, Some(start + 10.millis()));
    assert_eq!(ticks.try_next().await?, Some(start + 30.millis()));
    Ok(())
}

#[asx::test(exact_time)]
async fn a_cancel_is_the_last_tick(cx: &Cx) {
    let ended = cx
        .timeout(5.millis(), async |cx: &Cx| {
            let mut ticks = cx.interval(10.millis()).into_stream(cx);
            let cancelled = ticks.next().await.expect("a last item").unwrap_err();
            assert_eq!(ticks.next().await, None);
            Err::<(), _>(cancelled)
        })
        .await;
    assert!(ended.is_err());
}

#[asx::test(exact_time)]
async fn ticks_can_be_merged_with_messages(cx: &Cx) {
    let (tx, rx) = channel::mpmc(1);
    let mut map = StreamMap::new();
    map.insert("tick", cx.interval(1.millis()).into_stream(cx).map_ok(|_| 0).boxed());
    map.insert("job", rx.into_stream(cx).boxed());
    tx.try_send(7).unwrap();
    assert_eq!(map.next().await, Some(("job", Ok(7))));
    assert_eq!(map.next().await, Some(("tick", Ok(0))));
}

#[asx::test(exact_time)]
async fn at_most_one_item_comes_in_a_period(cx: &Cx) -> Result<(), Cancelled> {
    let start = cx.now();
    let (tx, rx) = channel::bounded(4);
    (0..3).for_each(|n| tx.try_send(n).unwrap());
    let mut slowly = throttle(cx, 10.millis(), rx.into_stream(cx));
    for n in 0..3_u32 {
        assert_eq!(slowly.try_next().await?, Some(n));
        assert_eq!(since(cx, start), u128::from(n) * 10);
    }
    // After a pause the next item comes at once, and the one after it a period later.
    cx.sleep(95.millis()).await?;
    tx.try_send(3).unwrap();
    tx.try_send(4).unwrap();
    assert_eq!((slowly.try_next().await?, since(cx, start)), (Some(3), 115));
    assert!(slowly.next().now_or_never().is_none());
    assert_eq!(tx.len(), 1, "what is held back is not taken");
    assert_eq!((slowly.try_next().await?, since(cx, start)), (Some(4), 125));
    drop(tx);
    assert_eq!(slowly.try_next().await?, None);
    assert_eq!(slowly.try_next().await?, None);
    Ok(())
}

#[asx::test(exact_time)]
async fn a_throttled_foreign_stream_ends_with_a_cancel(cx: &Cx) {
    let ended = cx
        .timeout(25.millis(), async |cx: &Cx| {
            let numbers = stream::iter(0..).map(Ok::<u32, Cancelled>);
            let mut slowly = throttle(cx, 10.millis(), numbers);
            let mut seen = 0;
            while let Some(number) = slowly.next().await {
                match number {
                    Ok(_) => seen += 1,
                    Err(cancelled) => {
                        assert_eq!((seen, slowly.next().await), (3, None));
                        return Err(cancelled);
                    }
                }
            }
            Ok(())
        })
        .await;
    assert!(ended.is_err());
}
