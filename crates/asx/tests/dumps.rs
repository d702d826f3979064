//! What dumps tell people.

use std::future::pending;

use asx::prelude::*;
use asx::{Cx, Dump, Grace, Policy, Runtime};

/// Looks until the dump says it.
async fn dump_with(cx: &Cx, text: &str) -> Dump {
    loop {
        let dump = cx.handle().dump();
        if dump.to_string().contains(text) {
            return dump;
        }
        cx.yield_now().await;
    }
}

async fn abroad(_cx: Cx) -> Result<(), Cancelled> {
    pending().await
}

async fn later_abroad(cx: Cx) -> Result<(), Cancelled> {
    cx.sleep(1.millis()).await?;
    pending().await
}

#[test]
fn regions_have_names_and_places_and_tasks_outside_asx_an_origin() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let dump = runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let settings = cx.scope_with(Policy::CollectAll).name("orders");
        let dump = settings.run(async |s: Scope<Cancelled>| {
            s.spawn(abroad);
            s.task("late").spawn(later_abroad);
            let mut dump = dump_with(cx, "outside asx, spawned at").await;
            while !dump.to_string().contains("outside asx in `dumps::later_abroad`") {
                cx.yield_now().await;
                dump = cx.handle().dump();
            }
            s.cancel("enough");
            s.stop_within(Grace { soft: 0.secs(), hard: 0.secs() }.hard);
            Ok(dump)
        });
        match dump.await {
            Ok(dump) => dump,
            Err(error) => panic!("{error}"),
        }
    });
    let text = dump.to_string();
    let file = file!();
    assert!(text.contains("region r3 \"orders\" Open, opened at "), "{text}");
    assert!(text.contains(&format!("opened at {file}:")), "{text}");
    assert!(
        text.contains(&format!("waits for something outside asx, spawned at {file}:")),
        "{text}"
    );
    assert!(
        text.contains("(stale, as its last poll did not look at it: a point in time"),
        "{text}"
    );
    let json = dump.to_json();
    assert!(json.contains("\"name\":\"orders\"") && json.contains("\"spawned\":\""), "{json}");
    assert!(json.contains("\"function\":\"dumps::later_abroad\""), "{json}");
}

#[test]
fn times_are_told_in_words() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (open, closing) = runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let settings = cx.scope_with(Policy::CollectAll);
        let looked = settings.run(async |s: Scope<Cancelled>| {
            s.spawn(async |cx: Cx| {
                cx.sleep(90.minutes()).await.ok();
                cx.shield(async |cx| cx.sleep(50.millis()).await.ok()).await;
                Ok(())
            });
            let open = dump_with(cx, "its timer is due in 1 h ").await;
            s.stop_within(0.secs());
            Ok(open)
        });
        let handle = cx.handle();
        let inner = Policy::CollectAll;
        let (looked, closing) = join(
            cx,
            async |_| looked.await,
            async |cx| {
                let stops = cx.scope_with(inner).run(async |s: Scope<Cancelled>| {
                    s.spawn(async |cx: Cx| {
                        cx.cancelled().await;
                        cx.shield(async |cx| cx.sleep(50.millis()).await.ok()).await;
                        Ok(())
                    });
                    s.cancel(asx::Why::from("enough").cleanup_time(100.secs()));
                    Ok(handle.dump())
                });
                stops.await
            },
        )
        .await;
        (looked.ok().map(|dump| dump.to_string()), closing.ok().map(|dump| dump.to_string()))
    });
    let open = open.unwrap();
    // However long it took to get there.
    assert!(open.contains("its timer is due in 1 h "), "{open}");
    let closing = closing.unwrap();
    assert!(closing.contains(" ago, force in 1 min "), "{closing}");
}
