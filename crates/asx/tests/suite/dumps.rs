//! The text of dumps.

use std::future::pending;
use std::sync::Arc;

use asx::prelude::*;
use asx::sync::{Mutex, RwLock, Semaphore};
use asx::{Activity, Cx, Dump, Grace, Policy, Runtime, TaskInfo};

/// Takes dumps until one contains the text.
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
            while !dump.to_string().contains("outside asx in `suite::dumps::later_abroad`") {
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
    assert!(json.contains("\"function\":\"suite::dumps::later_abroad\""), "{json}");
}

#[test]
fn times_are_shown_in_words() {
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
    // In any time it took to get here.
    assert!(open.contains("its timer is due in 1 h "), "{open}");
    let closing = closing.unwrap();
    assert!(closing.contains(" ago, force in 1 min "), "{closing}");
}

/// Returns the description of the task with this name.
fn task(dump: &Dump, name: &str) -> TaskInfo {
    let mut tasks = dump.regions.iter().flat_map(|region| &region.tasks);
    let task = tasks.find(|task| task.name.as_deref() == Some(name));
    task.unwrap_or_else(|| panic!("no {name} in {dump}")).clone()
}

/// Returns the name of the task that holds what this one waits for.
fn held_by(dump: &Dump, name: &str) -> Option<String> {
    task(dump, name).held_by.map(|holder| holder.name.expect("it has a name").to_string())
}

/// Holds the lock until a message arrives.
async fn hold(
    cx: Cx,
    lock: Arc<Mutex<()>>,
    mut go: channel::Receiver<()>,
) -> Result<(), Cancelled> {
    let _guard = lock.lock(&cx).await?;
    go.next(&cx).await?;
    Ok(())
}

#[test]
fn a_waiter_of_a_lock_shows_its_holder_after_a_handover() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let lock = Arc::new(Mutex::new(()));
        let ended = cx.scope(async |s: Scope<Cancelled>| {
            let mut senders = Vec::new();
            for (name, waits) in [("one", "a message"), ("two", "a lock"), ("three", "a lock")] {
                let (tx, rx) = channel::bounded(1);
                let lock = lock.clone();
                senders.push(tx);
                s.task(name).spawn(async move |cx: Cx| hold(cx, lock, rx).await);
                dump_with(cx, &format!("{name:?} Running, waits for {waits}")).await;
            }
            let dump = cx.handle().dump();
            assert_eq!(held_by(&dump, "two").as_deref(), Some("one"), "{dump}");
            assert_eq!(held_by(&dump, "three").as_deref(), Some("one"), "{dump}");
            assert_eq!(held_by(&dump, "one"), None, "{dump}");
            let one = task(&dump, "one").id;
            let text = dump.to_string();
            assert!(text.contains(&format!(", held by task t{one} \"one\"")), "{text}");
            let json = dump.to_json();
            assert!(json.contains(&format!("\"held_by\":{one},\"waited_for\":")), "{json}");
            senders[0].try_send(()).unwrap();
            let dump = dump_with(cx, "\"two\" Running, waits for a message").await;
            assert_eq!(held_by(&dump, "three").as_deref(), Some("two"), "{dump}");
            senders.clear();
            Ok(())
        });
        assert!(ended.await.is_ok());
        // Locked without a wait.
        let ended = cx.scope(async |s: Scope<Cancelled>| {
            let holder = lock.clone();
            let (go, mut gone) = channel::bounded::<()>(1);
            s.task("tried").spawn(async move |cx: Cx| {
                let _guard = holder.try_lock().expect("it is free");
                gone.next(&cx).await?;
                Ok(())
            });
            dump_with(cx, "\"tried\" Running, waits for a message").await;
            let waiter = lock.clone();
            s.task("waits").spawn(async move |cx: Cx| waiter.lock(&cx).await.map(drop));
            let dump = dump_with(cx, "\"waits\" Running, waits for a lock").await;
            assert_eq!(held_by(&dump, "waits").as_deref(), Some("tried"), "{dump}");
            drop(go);
            Ok(())
        });
        assert!(ended.await.is_ok());
    });
}

#[test]
fn a_writer_is_shown_as_holder_but_not_readers_and_permits() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let lock = Arc::new(RwLock::new(()));
        let permits = Arc::new(Semaphore::new(1));
        let ended = cx.scope(async |s: Scope<Cancelled>| {
            let write = lock.write(cx).await?;
            let reads = lock.clone();
            s.task("reads").spawn(async move |cx: Cx| reads.read(&cx).await.map(drop));
            let dump = dump_with(cx, "\"reads\" Running, waits for a lock").await;
            let holder = task(&dump, "reads").held_by.expect("a writer");
            let mut tasks = dump.regions.iter().flat_map(|region| &region.tasks);
            let holder = tasks.find(|task| task.id == holder.id).expect("it lives");
            assert_eq!(holder.activity, Activity::Running, "it makes the dump: {dump}");
            drop(write);
            let read = lock.read(cx).await?;
            let permit = permits.acquire(cx).await.expect("it is open");
            let writes = lock.clone();
            s.task("writes").spawn(async move |cx: Cx| writes.write(&cx).await.map(drop));
            let enters = permits.clone();
            s.task("enters").spawn(async move |cx: Cx| {
                drop(enters.acquire(&cx).await);
                Ok(())
            });
            dump_with(cx, "\"writes\" Running, waits for a lock").await;
            let dump = dump_with(cx, "\"enters\" Running, waits for a lock").await;
            assert_eq!(task(&dump, "writes").held_by, None, "{dump}");
            assert_eq!(task(&dump, "enters").held_by, None, "{dump}");
            drop((read, permit));
            Ok(())
        });
        assert!(ended.await.is_ok());
    });
}

/// In the lab, where waiting times are exact.
#[cfg(feature = "lab")]
#[asx::test(exact_time)]
async fn a_waiting_task_is_shown_with_its_waiting_time(cx: &Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<()>(1);
        s.task("waits").spawn(async move |cx: Cx| {
            while rx.next(&cx).await?.is_some() {}
            Ok(())
        });
        cx.sleep(90.secs()).await?;
        let dump = cx.handle().dump();
        assert_eq!(task(&dump, "waits").waited_for, Some(90.secs()), "{dump}");
        assert!(dump.to_string().contains(", for 1 min 30 s so far"), "{dump}");
        assert!(dump.to_json().contains("\"waited_for\":90000,"), "{}", dump.to_json());
        tx.try_send(()).expect("there is room");
        cx.sleep(250.millis()).await?;
        let dump = cx.handle().dump();
        assert_eq!(task(&dump, "waits").waited_for, Some(250.millis()), "since its last poll");
        assert!(!dump.to_string().contains("so far"), "not worth telling: {dump}");
        drop(tx);
        Ok(())
    })
    .await
}
