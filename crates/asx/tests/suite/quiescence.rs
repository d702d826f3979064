//! The quiescence check, and obligations in dumps.

use asx::prelude::*;
use asx::{Cx, Policy, QuiescenceError, Runtime, Status};

const ALL: [Status; 5] = [
    Status::TasksStillActive,
    Status::ObligationsUnresolved,
    Status::RegionsNotClosed,
    Status::TimersPending,
    Status::ChannelNotDrained,
];

/// Holds one of each object that keeps a runtime from being quiescent.
async fn hold_all(cx: Cx) -> Result<(), Cancelled> {
    let owed = cx.obligation().expect("the scope is open");
    let (tx, _rx) = cx.channel::<u32>(3).expect("the scope is open");
    tx.try_send(1).expect("there is room");
    let permit = tx.try_reserve().expect("there is room");
    let slept = cx.sleep(60.minutes()).await;
    permit.abort();
    owed.abort().expect("the scope is open");
    slept
}

/// Checks until all five failures are found.
async fn all_alive(cx: &Cx) -> QuiescenceError {
    loop {
        match cx.handle().quiescence() {
            Err(alive) if alive.codes() == ALL => return alive,
            _ => cx.yield_now().await,
        }
    }
}

#[test]
fn quiescence_lists_everything_alive_in_the_order_of_the_check() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let alive = runtime.block_on(async |cx: Cx| {
        let cx = &cx;
        let settings = cx.scope_with(Policy::CollectAll).name("orders");
        let checked = settings.run(async |s: Scope<Cancelled>| {
            s.task("holder").spawn(hold_all);
            let alive = all_alive(cx).await;
            s.cancel("enough");
            Ok(alive)
        });
        checked.await.unwrap()
    });
    assert_eq!(alive.first(), Status::TasksStillActive);
    let counts: Vec<_> = alive.counts().iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [2, 1, 3, 1, 1], "{alive}");
    let (region, holder) = alive.tasks().last().unwrap();
    assert_eq!((region, holder.id, holder.name.as_deref()), (3, 2, Some("holder")));
    let [(3, owed)] = alive.obligations().collect::<Vec<_>>()[..] else { panic!("{alive}") };
    assert_eq!((owed.id, owed.task, owed.name.as_deref()), (Some(1), Some(2), Some("holder")));
    assert_eq!(owed.reserved.file(), file!());
    let [timer] = &alive.timers[..] else { panic!("{alive}") };
    assert_eq!((timer.task, timer.region), (Some(2), None));
    assert!(timer.due_in <= 60.minutes() && timer.due_in > 10.minutes(), "{alive}");
    let [channel] = &alive.channels[..] else { panic!("{alive}") };
    assert_eq!((channel.region, channel.messages, channel.permits), (3, 1, 1));
    let text = alive.to_string();
    let codes = "not quiescent: TASKS_STILL_ACTIVE (2), OBLIGATIONS_UNRESOLVED (1), \
                 REGIONS_NOT_CLOSED (3), TIMERS_PENDING (1), CHANNEL_NOT_DRAINED (1)\nregion r1";
    assert!(text.starts_with(codes), "{text}");
    let json = alive.to_json();
    let start = "{\"failures\":[{\"code\":\"TASKS_STILL_ACTIVE\",\"count\":2},";
    assert!(json.starts_with(start), "{json}");
    let channel = "\"channels\":[{\"id\":1,\"region\":3,\"messages\":1,\"permits\":1}]}";
    assert!(json.ends_with(channel), "{json}");
    assert!(json.contains("\"timers\":[{\"task\":2,\"region\":null,\"due_in\":"), "{json}");
    for part in [
        "region r3 \"orders\" Open",
        "task t2 \"holder\" Running, waits for a point in time",
        "obligation o1 of task t2 \"holder\", reserved at ",
        "timer of task t2, due in ",
        "channel c1 of region r3: 1 messages, 1 permits",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn quiescence_holds_after_a_shutdown_and_not_before() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let root_only = |alive: QuiescenceError| {
        assert_eq!(alive.counts(), [(Status::RegionsNotClosed, 1)], "{alive}");
        assert_eq!(alive.dump.regions[0].id, 1);
    };
    root_only(runtime.quiescence().unwrap_err());
    let handle = runtime.block_on(async |cx: Cx| cx.handle());
    root_only(handle.quiescence().unwrap_err());
    runtime.shutdown(1.secs()).unwrap();
    assert!(runtime.quiescence().is_ok());
    drop(runtime);
    assert!(handle.quiescence().is_ok());
}

#[test]
fn a_dropped_runtime_closes_its_root() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let handle = runtime.handle();
    assert!(handle.quiescence().is_err());
    drop(runtime);
    assert!(handle.quiescence().is_ok());
}

#[test]
fn dumps_list_obligations_until_they_are_resolved() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let owed = cx.obligation().unwrap();
        let at = line!() - 1;
        let dump = cx.handle().dump();
        let [listed] = &dump.regions[1].obligations[..] else { panic!("{dump}") };
        assert_eq!((listed.id, listed.task, listed.reserved.line()), (Some(1), Some(1), at));
        let place = format!("{}:{at}:", file!());
        let line = format!("  obligation o1 of task t1, reserved at {place}");
        assert!(dump.to_string().contains(&line), "{dump}");
        let json =
            format!("\"obligations\":[{{\"id\":1,\"task\":1,\"name\":null,\"reserved\":\"{place}");
        assert!(dump.to_json().contains(&json), "{}", dump.to_json());
        owed.commit().unwrap();
        let dump = cx.handle().dump();
        assert!(dump.regions[1].obligations.is_empty(), "{dump}");
        assert!(!dump.to_json().contains("obligations"), "{}", dump.to_json());
    });
}

#[test]
fn dumps_list_tracked_permits_with_the_place_of_the_caller() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let (free, _rx) = channel::session::bounded::<u32>(2);
        let (tx, _scoped) = cx.channel::<u32>(2).unwrap();
        let scoped = tx.tracked();
        let at = line!() + 2;
        let permits = [
            free.try_reserve().unwrap(),
            free.reserve(&cx).await.unwrap(),
            scoped.try_reserve().unwrap(),
            scoped.reserve(&cx).await.unwrap(),
        ];
        let dump = cx.handle().dump();
        let listed = &dump.regions[1].obligations;
        let listed: Vec<_> =
            listed.iter().map(|held| (held.id, held.reserved.line() - at)).collect();
        assert_eq!(listed, [(Some(1), 2), (Some(2), 3), (None, 0), (None, 1)], "{dump}");
        let line = format!("  send permit of task t1, reserved at {}:{at}:", file!());
        assert!(dump.to_string().contains(&line), "{dump}");
        // Permits of a channel without a scope are no obligations of a region.
        let alive = cx.handle().quiescence().unwrap_err();
        assert_eq!(alive.obligations().count(), 2, "{alive}");
        for permit in permits {
            let _ = permit.abort();
        }
        let dump = cx.handle().dump();
        assert!(dump.regions[1].obligations.is_empty(), "{dump}");
        assert_eq!(cx.handle().health().leaked_obligations, 0);
    });
}

/// In the lab the check covers the program.
#[cfg(feature = "lab")]
#[asx::test(exact_time)]
async fn the_lab_checks_quiescence_of_its_program(cx: &Cx) -> Result<(), Cancelled> {
    let alive = cx.handle().quiescence().unwrap_err();
    let counts = [(Status::TasksStillActive, 1), (Status::RegionsNotClosed, 1)];
    assert_eq!(alive.counts(), counts, "{alive}");
    cx.scope(async |s: Scope<Cancelled>| {
        s.task("holder").spawn(hold_all);
        let alive = all_alive(cx).await;
        assert_eq!(alive.tasks().last().unwrap().1.name.as_deref(), Some("holder"));
        s.cancel("enough");
        Ok(())
    })
    .await
}
