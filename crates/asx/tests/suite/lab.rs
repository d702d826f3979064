//! `#[asx::test]`: the runs of tests, and the reports of failures.
//!
//! Ignored tests fail on purpose: other tests start this program again to run them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use asx::prelude::*;
use asx::sync::Mutex;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[asx::test(seeds = 40, strategy = "random", seed = 7)]
#[ignore = "called by the next one"]
async fn runs_as_often_as_requested(_cx: &Cx) {
    RUNS.fetch_add(1, Relaxed);
}

#[test]
fn the_number_of_runs_is_the_number_of_seeds() {
    runs_as_often_as_requested();
    // The first run is repeated at once, and at the end.
    assert_eq!(RUNS.load(Relaxed), 42);
}

/// Two workers and four jobs: all orders with a cancel at every await would never end.
async fn jobs(cx: Cx) -> Result<(), Cancelled> {
    let (tx, rx) = channel::bounded(1);
    let rx = std::sync::Arc::new(Mutex::new(rx));
    cx.scope(async |s| {
        for _ in 0..2 {
            let rx = rx.clone();
            s.spawn(async move |cx: Cx| {
                while rx.lock(&cx).await?.recv(&cx).await.is_ok() {}
                Ok(())
            });
        }
        for job in 0..4 {
            if tx.send(&cx, job).await.is_err() {
                break;
            }
        }
        drop(tx);
        Ok(())
    })
    .await
}

#[test]
fn a_check_with_cancels_reports_reaching_its_total_limit() {
    let report = asx::lab::check(jobs).runs(20).disturbances(1).cancel_at_every_await().run();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!((report.runs, report.stopped), (200, Some(asx::lab::Stopped::Runs(200))));
    let limit = "; stopped by the limit of 200 runs in all; `total` allows more";
    assert!(report.to_string().ends_with(limit), "{report}");
}

#[asx::test]
async fn without_an_argument() {}

/// In the lab a handle stops its program, which continues until it is cancelled.
#[asx::test(seeds = 100, exact_time)]
async fn a_program_stops_itself(cx: &Cx) {
    cx.handle().stop(asx::Grace { soft: 60.secs(), hard: 60.secs() });
    assert!(cx.stopping().await.is_ok());
    let late = cx.scope(async |s| {
        let task = s.spawn(async |_cx: Cx| Ok(7));
        Ok::<_, Cancelled>(task.await.ok())
    });
    assert_eq!(late.await, Ok(Some(7)));
    assert_eq!(cx.handle().dump().tasks(), 1);
    assert!(cx.sleep(60.minutes()).await.is_err());
}

#[asx::test(steps = 100, time = "10s")]
async fn with_a_context_of_its_own(cx: Cx) -> Result<(), Cancelled> {
    cx.sleep(60.minutes()).await
}

#[asx::test(cancel = "every await", runs = 20)]
async fn a_sent_message_arrives(cx: &Cx) -> Result<(), Cancelled> {
    let (tx, mut rx) = channel::bounded(1);
    cx.scope(async |s| {
        let sent = s.task("feed").spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
        let got = rx.recv(cx).await;
        assert!(got.is_ok() || !matches!(sent.await, Ok(true)));
        Ok(())
    })
    .await
}

#[asx::test(virtual_workers = 2, faults)]
async fn workers_and_faults_can_be_requested(cx: &Cx) {
    assert!(!cx.fault("never looked at") || cx.random_below(2) < 2);
}

/// The same program as on threads, with all faults of the simulated network.
#[cfg(feature = "net")]
#[asx::test(lab, native, network, seeds = 100)]
async fn a_server_answers_in_spite_of_network_faults(cx: &Cx) -> asx::io::Result<()> {
    use asx::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    cx.scope(async |s| {
        let server = s.spawn(async move |cx: Cx| {
            let (mut stream, _) = listener.accept(&cx).await?;
            let mut request = [0; 4];
            stream.read_exact(&cx, &mut request).await?;
            Ok(stream.write_all(&cx, &request).await?)
        });
        let mut answer = [0; 4];
        let asked = cx.timeout(5.secs(), async |cx| {
            let mut stream = TcpStream::connect(cx, at).await?;
            stream.write_all(cx, b"ping").await?;
            stream.read_exact(cx, &mut answer).await
        });
        if asked.await.is_ok() {
            assert_eq!(&answer, b"ping");
        }
        server.cancel("enough");
        asx::io::Result::Ok(())
    })
    .await
}

#[asx::test(strategy = "dpor", transparent)]
#[should_panic(expected = "not this order")]
async fn other_attributes_are_kept(cx: &Cx) -> Result<(), Cancelled> {
    let first = Arc::new(Mutex::new(0));
    let seen = first.clone();
    cx.scope(async |s| {
        for n in 1..=2 {
            let first = first.clone();
            s.spawn(async move |cx: Cx| {
                let mut first = first.lock(&cx).await?;
                if *first == 0 {
                    *first = n;
                }
                Ok(())
            });
        }
        Ok::<_, Cancelled>(())
    })
    .await?;
    assert_eq!(*seen.lock(cx).await?, 1, "not this order");
    Ok(())
}

#[asx::test(workers = 2)]
async fn on_threads(cx: &Cx) -> Result<(), Cancelled> {
    let here = std::thread::current().id();
    cx.scope(async |s| {
        let (tx, rx) = std::sync::mpsc::channel();
        s.spawn(async move |_cx: Cx| {
            let _ = tx.send(std::thread::current().id());
            Ok(())
        });
        // In the lab no thread would ever send.
        assert_ne!(rx.recv().ok(), Some(here));
        Ok(())
    })
    .await
}

#[asx::test(lab, native, strategy = "dfs")]
async fn in_the_lab_and_on_threads(cx: &Cx) {
    cx.yield_now().await;
}

mod failing {
    use super::*;

    #[asx::test]
    #[ignore = "fails on purpose"]
    pub(super) async fn crossed(cx: &Cx) -> Result<(), Cancelled> {
        cx.scope(async |s: Scope<Cancelled>| {
            let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
            for (name, swap) in [("left", false), ("right", true)] {
                let locks = locks.clone();
                s.task(name).spawn(async move |cx: Cx| {
                    let (a, b) = if swap { (&locks.1, &locks.0) } else { (&locks.0, &locks.1) };
                    let mut first = a.lock(&cx).await?;
                    cx.yield_now().await;
                    let mut second = b.lock(&cx).await?;
                    *first += 1;
                    *second += 1;
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    }

    #[asx::test(strategy = "pct(2)", seed = 3)]
    #[ignore = "fails on purpose"]
    pub(super) async fn check_then_act(cx: &Cx) -> Result<(), Cancelled> {
        let count = Arc::new(AtomicU32::new(0));
        cx.scope(async |s| {
            for _ in 0..2 {
                let count = count.clone();
                s.spawn(async move |cx: Cx| {
                    let before = count.load(Relaxed);
                    cx.yield_now().await;
                    assert_eq!(count.swap(before + 1, Relaxed), before, "somebody was faster");
                    Ok(())
                });
            }
            Ok::<_, Cancelled>(())
        })
        .await
    }

    #[asx::test(native)]
    #[ignore = "fails on purpose"]
    pub(super) async fn on_threads() -> Result<(), &'static str> {
        Err("not today")
    }

    #[asx::test(workers = 1)]
    #[ignore = "fails on purpose"]
    pub(super) async fn unheeding_on_threads(cx: &Cx) -> Result<(), Cancelled> {
        cx.scope(async |s: Scope<Cancelled>| {
            let deaf = s.task("deaf").spawn(async |cx: Cx| {
                for _ in 0..5000 {
                    cx.yield_now().await;
                }
                Ok(())
            });
            cx.yield_now().await;
            deaf.cancel("now");
            Ok(())
        })
        .await
    }
}

/// Runs an ignored test of this program. Returns its output if it fails.
pub(crate) fn run(name: &str, replay: Option<&str>) -> Result<(), String> {
    let program = std::env::current_exe().expect("a program");
    let mut command = Command::new(program);
    command.args([name, "--exact", "--include-ignored"]).env_remove("ASX_REPLAY");
    command.env_remove("RUST_BACKTRACE");
    command.envs(replay.map(|token| ("ASX_REPLAY", token)));
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("running 1 test"), "{text}");
    if output.status.success() { Ok(()) } else { Err(text) }
}

/// Returns the text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split(after).next().unwrap_or(rest)
}

#[test]
fn a_deadlock_report_names_waits_and_schedule() {
    let text = run("lab::failing::crossed", None).unwrap_err();
    let lines = [
        "`lab::failing::crossed` fails in run 1 (strategy the order of one worker, seed 0):",
        "deadlock at step 5: `left (main/1)` and `right (main/2)` wait for each other",
        "  `left (main/1)` waits for what `right (main/2)` took at crates/asx/tests/suite/lab.rs:",
        "  `main` (Running) waits for the close of a scope at crates/asx/tests/suite/lab.rs:",
        "  `left (main/1)` (Running) waits for a lock or permit at crates/asx/tests/suite/lab.rs:",
        "  `right (main/2)` (Running) waits for a lock or permit at crates/asx/tests/suite/lab.rs:",
        "when the usual order of polls is changed like this (one change that does not matter",
        "  at step 3 run `right (main/2)` instead of `left (main/1)`",
        "panicked at crates/asx/tests/suite/lab.rs:",
    ];
    lines.iter().for_each(|line| assert!(text.contains(line), "no {line:?} in {text}"));
}

#[test]
fn a_panic_report_names_location_and_task() {
    let text = run("lab::failing::check_then_act", None).unwrap_err();
    let lines = [
        "(strategy pct(2) at operation grain, seed 3):",
        "somebody was faster",
        "instead of `main/",
    ];
    lines.iter().for_each(|line| assert!(text.contains(line), "no {line:?} in {text}"));
    let place = between(&text, " in `main/", ": assertion");
    assert!(place.contains("` at crates/asx/tests/suite/lab.rs:"), "{text}");
}

#[test]
fn a_failure_is_repeated_by_its_complete_token_only() {
    let text = run("lab::failing::crossed", None).unwrap_err();
    let token = between(&text, "ASX_REPLAY=", " cargo test lab::failing::crossed\n");
    let again = run("lab::failing::crossed", Some(token)).unwrap_err();
    let failure = "deadlock at step 5: `left (main/1)` and `right (main/2)` wait";
    assert!(again.contains(failure) && again.contains("(strategy replay, seed 0)"), "{again}");
    // A schedule of another program, with and without its mark.
    let other = run("lab::a_sent_message_arrives", Some(token)).unwrap_err();
    assert!(other.contains("the schedule is of another test: say the name"), "{other}");
    let (unmarked, _) = token.split_once('.').expect("a mark");
    let other = run("lab::a_sent_message_arrives", Some(unmarked)).unwrap_err();
    assert!(other.contains("the schedule does not fit: "), "{other}");
    assert!(other.contains("the token is stale: run the test without ASX_REPLAY"), "{other}");
    assert!(run("lab::failing::crossed", Some(unmarked)).unwrap_err().contains(failure));
    let damaged = run("lab::failing::crossed", Some(&token[1..])).unwrap_err();
    assert!(damaged.contains(&format!("ASX_REPLAY={}: the schedule", &token[1..])), "{damaged}");
    assert!(damaged.contains("copy the whole token"), "{damaged}");
    assert!(!damaged.contains("deadlock"), "{damaged}");
}

#[test]
fn a_failure_leaves_a_readable_trace() {
    let text = run("lab::failing::check_then_act", None).unwrap_err();
    let path = PathBuf::from(between(&text, "to see what happened: ", "\n"));
    assert!(path.parent().is_some_and(|dir| dir.ends_with("asx")), "{path:?}");
    let trace = std::fs::read_to_string(&path).expect("a trace");
    let program = r#""program":"lab::failing::check_then_act","host":"lab","seed":3"#;
    for part in [program, "somebody was fas"] {
        assert!(trace.contains(part), "no {part:?} in {trace}");
    }
}

#[test]
fn on_threads_an_error_fails_the_test_too() {
    let text = run("lab::failing::on_threads", None).unwrap_err();
    assert!(text.contains("error: \"not today\""), "{text}");
}

#[test]
fn on_threads_an_unheeded_cancel_fails_the_test_too() {
    let text = run("lab::failing::unheeding_on_threads", None).unwrap_err();
    assert!(text.contains("`deaf` was asked to stop and has not looked in 1001 polls"), "{text}");
}
