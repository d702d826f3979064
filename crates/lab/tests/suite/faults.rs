//! What goes wrong on request, and what programs make of it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use asx_lab::{Found, Kind, Report, check};
use asx_runtime::time::DurationExt as _;
use asx_runtime::{Cancelled, Cx, channel};

fn failure(report: Report) -> Found {
    let text = report.to_string();
    report.failure.unwrap_or_else(|| panic!("{text}"))
}

/// Two lines, of which the second is written though the first was not.
async fn log(cx: Cx) -> Result<(), &'static str> {
    let written = ["one", "two"].map(|line| (line, !cx.fault("disk full")));
    cx.yield_now().await;
    assert!(written[0].1 || !written[1].1, "the second line without the first");
    if written.iter().all(|(_, written)| *written) { Ok(()) } else { Err("disk full") }
}

#[test]
fn a_fault_is_named_and_found_again() {
    let found = failure(check(log).faults().run());
    assert_eq!(found.words, ["disk full in poll 1 of `main`"]);
    assert_eq!(found.failure.finding.kind, Kind::Panic);
    let again = check(log).faults().replay(&found.token);
    assert_eq!(again.map(failure).map(|again| again.failure), Ok(found.failure));
}

#[test]
fn nothing_goes_wrong_unless_asked_for() {
    let report = check(log).run();
    assert!(report.failure.is_none() && report.faults.is_none(), "{report}");
    let report = check(log).cancel_at_every_await().run();
    assert!(report.failure.is_none() && report.faults.is_none(), "{report}");
}

#[test]
fn an_error_is_an_answer_to_a_fault_and_all_are_tried() {
    let program = async |cx: Cx| match cx.fault("no route") || cx.fault("refused") {
        true => Err("no connection"),
        false => Ok(cx.sleep(1.secs()).await.is_ok()),
    };
    let report = check(program).late_clocks().run();
    assert!(report.failure.is_none(), "{report}");
    // Two of the program's own, wakes while it sleeps, a late clock.
    let (tried, all) = report.faults.expect("faults");
    assert!(tried == all && all >= 4, "{report}");
    assert!(report.to_string().ends_with(&format!("; {tried} of {all} faults tried")), "{report}");
}

/// Waits by hand, and takes any wake for the one it waits for.
async fn gullible(cx: Cx) -> Result<(), Cancelled> {
    let shared = Arc::new(Mutex::new((false, None::<Waker>)));
    let other = shared.clone();
    cx.scope(async |s| {
        s.spawn(async move |cx: Cx| {
            cx.sleep(1.secs()).await?;
            let mut shared = other.lock().expect("no panic");
            shared.0 = true;
            shared.1.take().into_iter().for_each(Waker::wake);
            Ok(())
        });
        poll_fn(|task| {
            let (is_done, waker) = &mut *shared.lock().expect("no panic");
            if waker.is_none() && !*is_done {
                *waker = Some(task.waker().clone());
                return Poll::Pending;
            }
            assert!(*is_done, "woken for nothing");
            Poll::Ready(())
        })
        .await;
        Ok(())
    })
    .await
}

#[test]
fn a_wake_for_nothing_shows_who_takes_it_for_something() {
    let found = failure(check(gullible).faults().run());
    assert_eq!(found.failure.finding.kind, Kind::Panic, "{found}");
    assert!(found.words[0].starts_with("a spurious wake"), "{found}");
}

#[test]
fn what_asx_has_does_not_mind_wakes_and_late_clocks() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let got = cx
            .scope(async |s| {
                s.spawn(async move |cx: Cx| {
                    for value in 0..3 {
                        cx.sleep(1.secs()).await?;
                        let _ = tx.send(&cx, value).await;
                    }
                    Ok(())
                });
                let mut got = Vec::new();
                while let Ok(value) = rx.recv(&cx).await {
                    got.push(value);
                }
                Ok::<_, Cancelled>(got)
            })
            .await;
        assert_eq!(got.ok(), Some(vec![0, 1, 2]));
    };
    let report = check(program).late_clocks().run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn a_clock_that_is_late_is_late_for_all() {
    let program = async |cx: Cx| {
        let start = cx.now();
        let _ = cx.sleep(1.secs()).await;
        let late = cx.now() - start > std::time::Duration::from_secs(2);
        assert!(!late, "the lease is over");
    };
    let found = failure(check(program).late_clocks().run());
    assert_eq!(found.words.len(), 1);
    assert!(found.words[0].starts_with("a late clock"), "{found}");
}

/// Whether a check could also cancel, or had faults, is not to matter to a schedule without.
#[test]
fn a_draw_is_found_again_where_there_are_cancels_and_faults() {
    let program = async |cx: Cx| {
        cx.yield_now().await;
        assert_ne!(cx.random_below(5), 3);
    };
    let found = failure(check(program).run());
    let again = check(program).cancel_at_every_await().faults().replay(&found.token);
    let again = again.expect("a token");
    assert_eq!(again.unused, 0, "{again}");
    assert_eq!(failure(again).failure, found.failure);
}
