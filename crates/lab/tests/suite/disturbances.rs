//! How many cancels and faults there are in a run, and what ends a check that has many to try.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use asx_lab::{Faults, Grain, Kind, Part, Report, Stopped, check};
use asx_net::{TcpListener, TcpStream, io};
use asx_runtime::time::DurationExt as _;
use asx_runtime::{Cancelled, Cx, Scope};

const FAULTS: [&str; 4] = ["a", "b", "c", "d"];

/// Which faults there are in the runs of a program that has four places for them.
fn together(disturbances: usize) -> BTreeSet<Vec<&'static str>> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = seen.clone();
    let program = async |cx: Cx| {
        let made: Vec<_> = FAULTS.into_iter().filter(|fault| cx.fault(fault)).collect();
        seen.lock().unwrap().insert(made);
    };
    let report = check(program).faults().disturbances(disturbances).run();
    assert!(report.failure.is_none(), "{report}");
    let all = all.lock().unwrap();
    all.clone()
}

#[test]
fn there_are_as_many_in_a_run_as_are_asked_for() {
    for (most, expected) in [(1, 1 + 4), (2, 1 + 4 + 6), (3, 1 + 4 + 6 + 4)] {
        let seen = together(most);
        assert_eq!(seen.iter().map(Vec::len).max(), Some(most), "{seen:?}");
        assert_eq!(seen.len(), expected, "{most}: {seen:?}");
    }
}

/// A client that connects, and asks a fault where it is done.
async fn ask(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
    let is_refused = TcpStream::connect(&cx, "127.0.0.1:80").await.is_err();
    drop(listener);
    assert!(!is_refused || !cx.fault("no cache"), "neither the server nor a cache");
    Ok(())
}

#[test]
fn a_fault_and_one_of_the_network_come_together() {
    let program = check(ask).network(Faults::none().refusals(1)).faults();
    let found = program.run().failure.expect("both may happen");
    assert_eq!(found.words.len(), 2, "{found}");
    assert!(found.words[0].ends_with("was refused"), "{found}");
    assert!(found.words[1].starts_with("no cache in poll "), "{found}");
    let again = program.replay(&found.token).expect("a token").failure.expect("it fails");
    assert_eq!((again.failure, again.words), (found.failure, found.words));
    let report = program.disturbances(1).run();
    assert!(report.failure.is_none(), "{report}");
}

/// Many tasks with many awaits, each of which can be cancelled.
async fn many_awaits(cx: Cx) {
    for _ in 0..60 {
        cx.yield_now().await;
    }
}

/// There are more faults than runs, and still there are runs with two of them.
#[test]
fn runs_are_kept_for_those_with_two_disturbances() {
    let together = Arc::new(Mutex::new(0));
    let most = together.clone();
    let program = async |cx: Cx| {
        let mut made = 0;
        for _ in 0..200 {
            made += u32::from(cx.fault("disk full"));
        }
        let mut most = most.lock().unwrap();
        *most = made.max(*most);
    };
    let report = check(program).runs(10).total(100).faults().run();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!((report.runs, report.stopped), (100, Some(Stopped::Runs(100))), "{report}");
    assert_eq!(*together.lock().unwrap(), 2);
}

#[test]
fn a_check_that_takes_too_long_is_ended_and_says_so() {
    let program = async |cx: Cx| {
        std::thread::sleep(Duration::from_millis(5));
        many_awaits(cx).await;
    };
    let time = Duration::from_millis(200);
    let start = Instant::now();
    let report = check(program).runs(100_000).time(time).run();
    assert_eq!(report.stopped, Some(Stopped::Time(time)), "{report}");
    assert!(
        report.to_string().contains("; stopped by the limit of 200ms; `time` allows more"),
        "{report}"
    );
    assert!(start.elapsed() < Duration::from_secs(60) && report.runs < 1000, "{report}");
}

/// A client and a server that exchange many messages, with an await for each.
async fn long_exchange(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
    let mut client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
    let (mut server, _) = listener.accept(&cx).await?;
    for _ in 0..20 {
        client.write_all(&cx, b"x").await?;
        server.read_exact(&cx, &mut [0]).await?;
    }
    Ok(())
}

#[test]
fn requested_disturbances_with_few_runs_are_all_tried() {
    let faults = Faults::all().half_opens(0);
    let check = check(long_exchange).network(faults).faults().cancel_at_every_await();
    let report = check.runs(10).total(80).run();
    assert!(report.failure.is_none(), "{report}");
    for tried in [report.cancels, report.faults, report.network] {
        let (tried, all) = tried.expect("it was requested");
        assert!(0 < tried && tried < all, "{report}");
    }
    assert_eq!((report.runs, report.stopped), (80, Some(Stopped::Runs(80))), "{report}");
}

/// The finding of a check in which a disturbance was never tried.
fn untried(report: Report) -> String {
    let text = report.to_string();
    let found = report.failure.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(found.failure.finding.kind, Kind::Untried, "{text}");
    assert!(!text.contains("ASX_REPLAY"), "{text}");
    found.failure.finding.message
}

#[test]
fn a_disturbance_the_budget_does_not_reach_fails_the_check() {
    let check = check(long_exchange).network(Faults::all()).cancel_at_every_await();
    let message = untried(check.clone().runs(4).total(6).run());
    let expected = "`network` was requested and never tried: the limit of 6 runs came first; \
                    raise `total`";
    assert_eq!(message, expected);
    let message = untried(check.time(Duration::ZERO).run());
    assert_eq!(message.lines().count(), 2, "{message}");
    assert!(message.lines().all(|line| line.ends_with("; raise `time`")), "{message}");
}

#[test]
fn a_disturbance_without_a_point_fails_the_check() {
    let waits = async |cx: Cx| cx.yield_now().await;
    let message = untried(check(waits).network(Faults::all()).run());
    assert_eq!(
        message,
        "`network` was requested and never tried: the program uses no socket to which one of \
         these faults applies; remove the setting"
    );
    let message = untried(check(waits).late_clocks().run());
    assert!(message.starts_with("`late_clocks` was requested and never tried: no timer"));
    let message = untried(check(async |_: Cx| ()).faults().run());
    assert!(message.starts_with("`faults` was requested and never tried: the program never"));
    // A disturbance that was tried stays green.
    let report = check(waits).cancel_at_every_await().run();
    assert!(report.failure.is_none(), "{report}");
    let sleeps = async |cx: Cx| cx.sleep(1.secs()).await;
    let report = check(sleeps).late_clocks().run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
#[should_panic(expected = "fails after ")]
fn asserting_a_check_with_an_untried_disturbance_panics() {
    check(many_awaits).name("many_awaits").runs(10).network(Faults::all()).assert();
}

/// The share of a part is reported as that, and not as the limit of the whole check.
#[test]
fn a_part_that_used_up_its_share_is_reported_with_the_share() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                s.spawn(async |cx: Cx| {
                    for _ in 0..10 {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    };
    let check = check(program).runs(8000).total(8000).cancel_at_every_await();
    let check = check.grain(Grain::Poll).disturbances(1).exact_time();
    let report = check.time(Duration::from_secs(600)).run();
    let share = Stopped::ShareOfRuns { part: Part::Orders, runs: 4000, limit: 8000 };
    assert_eq!(report.stopped, Some(share), "{report}");
    let text = "the runs in other orders stopped after 4000, their share of 8000 runs in all";
    assert!(report.to_string().contains(text), "{report}");
}
