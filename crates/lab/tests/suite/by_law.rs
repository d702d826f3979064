//! Programs on virtual workers: the orders that threads can have, and no others.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_lab::{How, Kind, Report, TieBreak, check};
use asx_runtime::{Cancelled, Cx, Scope};

/// All of it is to be run, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

fn passes(report: &Report) -> bool {
    report.failure.is_none()
}

/// Two polls each of three tasks on one worker; `who` gets the order of the polls.
async fn two_polls_each(cx: Cx, who: impl FnOnce(&[u32])) -> Result<(), Cancelled> {
    let polled = Arc::new(Mutex::new(Vec::new()));
    let order = polled.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        for task in 0..3 {
            let polled = polled.clone();
            s.spawn(async move |cx: Cx| {
                polled.lock().expect("no panic").push(task);
                cx.yield_now().await;
                polled.lock().expect("no panic").push(task);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    who(&order.lock().expect("no panic"));
    Ok(())
}

#[test]
fn one_worker_goes_by_the_law_alone() {
    let program = |cx| two_polls_each(cx, |order| assert_eq!(order, [0, 1, 2, 0, 1, 2]));
    let report = check(program).workers(1).run();
    assert!(passes(&report), "{report}");
    assert_eq!(report.proof.map(|proof| proof.classes), Some(1), "{report}");
    let free = check(program).run();
    assert_eq!(free.failure.expect("any order").failure.finding.kind, Kind::Panic);
}

#[test]
fn equals_go_by_arrival_or_by_task_id() {
    let arrival = |cx| two_polls_each(cx, |order| assert_eq!(order, [0, 1, 2, 0, 1, 2]));
    let report = check(arrival).workers(1).run();
    assert!(passes(&report), "{report}");
    let by_id = |cx| two_polls_each(cx, |order| assert_eq!(order, [0, 0, 1, 1, 2, 2]));
    let report = check(by_id).workers(1).tie_break(TieBreak::TaskKey).run();
    assert!(passes(&report), "{report}");
    let report = check(by_id).workers(1).run();
    assert_eq!(report.failure.expect("by arrival").failure.finding.kind, Kind::Panic);
}

#[test]
fn more_workers_have_more_orders() {
    let seen = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let mut counts = Vec::new();
    for workers in 1..=3 {
        seen.lock().expect("no panic").clear();
        let note = seen.clone();
        let program = move |cx| {
            let note = note.clone();
            two_polls_each(cx, move |order| {
                note.lock().expect("no panic").insert(order.to_vec());
            })
        };
        let report = check(program).workers(workers).how(How::Dfs).runs(100_000).time(LONG).run();
        assert!(passes(&report) && report.proof.is_some(), "{report}");
        counts.push(seen.lock().expect("no panic").len());
    }
    assert!(counts[0] == 1 && counts[1] > 1 && counts[1] <= counts[2], "{counts:?}");
}

/// Two that read, wait, and write what they have read.
async fn check_then_act(cx: Cx) -> Result<(), Cancelled> {
    let shared = Arc::new(AtomicU32::new(0));
    let result = shared.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let shared = shared.clone();
            s.spawn(async move |cx: Cx| {
                let read = shared.load(Relaxed);
                cx.yield_now().await;
                shared.store(read + 1, Relaxed);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(result.load(Relaxed), 2, "one was lost");
    Ok(())
}

#[test]
fn a_race_is_found_by_every_strategy_and_found_again() {
    for how in [How::Mixed, How::Random, How::Dfs, How::Dpor, How::Bounded, How::Pct(2)] {
        let bug = || check(check_then_act).workers(2).how(how);
        let found = bug().run().failure.unwrap_or_else(|| panic!("{how}"));
        assert_eq!(found.failure.finding.kind, Kind::Panic, "{how}: {found}");
        let again = bug().replay(&found.token).expect("a token");
        assert_eq!(again.failure.map(|it| it.failure), Some(found.failure), "{how}");
    }
}

#[test]
fn cancels_and_faults_go_with_workers() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = asx_runtime::channel::bounded::<u32>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| {
                for value in 0..2 {
                    if tx.send(&cx, value).await.is_err() {
                        break;
                    }
                }
                Ok(())
            });
            let mut next = 0;
            while let Ok(value) = rx.recv(&cx).await {
                assert_eq!(value, next);
                next += 1;
            }
            Ok(())
        })
        .await
    };
    let report = check(program).workers(2).cancel_at_every_await().faults().run();
    assert!(passes(&report), "{report}");
    let (tried, all) = report.cancels.expect("cancels");
    assert!(tried == all && all > 0, "{report}");
}

#[test]
fn any_number_of_workers_can_be_asked_for() {
    let report = check(|cx| two_polls_each(cx, |_| ())).workers(usize::MAX).runs(2).run();
    assert!(passes(&report), "{report}");
}
