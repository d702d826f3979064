//! Time that passes while tasks can run, and numbers that are drawn: both differ from run to run,
//! and are a part of the schedule.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_lab::{Found, Grain, How, Report, check};
use asx_runtime::time::DurationExt as _;
use asx_runtime::{Cancelled, Cx, Scope};

fn failure(report: Report) -> Found {
    let text = report.to_string();
    report.failure.unwrap_or_else(|| panic!("{text}"))
}

/// Work that waits for nothing.
async fn quick(cx: &Cx) -> Result<(), Cancelled> {
    cx.yield_now().await;
    cx.checkpoint()
}

/// It is done within a second.
async fn quick_enough(cx: Cx) {
    assert!(cx.timeout(1.secs(), quick).await.is_ok(), "out of time");
}

/// Fails if the greatest number is drawn after the least.
async fn two_edges(cx: Cx) {
    let first = cx.random();
    cx.yield_now().await;
    assert!(first != 0 || cx.random() != u64::MAX, "both edges");
}

#[test]
fn time_that_passes_is_told_and_found_again() {
    let found = failure(check(quick_enough).run());
    let slow = "the machine was slow after poll 1 of `main`: 1s passed while tasks could run";
    assert_eq!(found.words, [slow]);
    assert!(found.to_string().contains("`exact_time` has no such runs"), "{found}");
    let again = failure(check(quick_enough).replay(&found.token).expect("a token"));
    assert_eq!((again.failure, again.words), (found.failure, found.words));
}

#[test]
fn draws_are_told_and_found_again() {
    let found = failure(check(two_edges).run());
    let words = [
        "`random` gave 0 in poll 1 of `main`",
        "`random` gave 18446744073709551615 in poll 2 of `main`",
    ];
    assert_eq!(found.words, words);
    let again = failure(check(two_edges).replay(&found.token).expect("a token"));
    assert_eq!((again.failure, again.words), (found.failure, found.words));
}

/// Runs the schedules of this process's parent, if it has one.
#[test]
fn a_token_is_good_in_another_process() {
    const TOKENS: &str = "ASX_TEST_TOKENS";
    if let Ok(tokens) = std::env::var(TOKENS) {
        let (slow, draws) = tokens.split_once(' ').expect("two of them");
        let slow = failure(check(quick_enough).replay(slow).expect("a token"));
        let draws = failure(check(two_edges).replay(draws).expect("a token"));
        println!("{}\n{}", slow.words.join("\n"), draws.words.join("\n"));
        return;
    }
    let slow = failure(check(quick_enough).run());
    let draws = failure(check(two_edges).run());
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["varied::a_token_is_good_in_another_process", "--exact", "--nocapture"])
        .env(TOKENS, format!("{} {}", slow.token, draws.token))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let lines = [slow.words, draws.words].concat();
    assert!(lines.iter().all(|line| text.contains(line)), "{lines:?}\n{text}");
}

/// The same program with and without what would make it another one.
#[test]
fn programs_without_timers_and_draws_have_no_more_runs() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..3 {
                s.spawn(async |cx: Cx| {
                    cx.yield_now().await;
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    };
    let check_of = || check(program).transparent();
    let [usual, exact] = [check_of().run(), check_of().exact_time().run()];
    assert_eq!((usual.runs, usual.proof), (exact.runs, exact.proof));
    assert!(usual.proof.is_some_and(|proof| !proof.timers && !proof.draws), "{usual}");
    let timed = async |cx: Cx| cx.sleep(1.secs()).await;
    let [usual, exact] = [check(timed).run(), check(timed).exact_time().run()];
    assert!(usual.runs > exact.runs && usual.proof == exact.proof, "{usual}\n{exact}");
}

#[test]
fn a_proof_says_what_of_time_and_draws_it_covers() {
    let program = async |cx: Cx| {
        let pause = cx.random() % 3;
        cx.sleep(Duration::from_secs(pause + 1)).await
    };
    let report = check(program).run();
    let proof = report.proof.expect("it is small");
    assert!(proof.timers && proof.draws, "{report}");
    let text = report.to_string();
    let time = ", with time that stands still while tasks can run";
    assert!(text.contains(&format!("{time}, with one outcome of each `random`: ")), "{text}");
}

/// What is drawn in each run.
fn drawn(seed: u64) -> Vec<u64> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = seen.clone();
    let program = async |cx: Cx| seen.lock().unwrap().push(cx.random());
    let report = check(program).how(How::Random).grain(Grain::Poll).runs(200).seed(seed).run();
    assert!(report.failure.is_none(), "{report}");
    let all = all.lock().unwrap();
    all.clone()
}

#[test]
fn draws_vary_from_run_to_run_with_the_seed_and_have_their_edges() {
    let first = drawn(1);
    assert_eq!(first, drawn(1));
    assert_ne!(first, drawn(2));
    let distinct: BTreeSet<u64> = first.iter().copied().collect();
    assert!(distinct.len() > 100, "{distinct:?}");
    assert!(distinct.contains(&0) && distinct.contains(&u64::MAX), "{distinct:?}");
}

#[test]
fn a_draw_below_a_large_number_has_its_edges() {
    for (count, edge) in [(1_000_000, 999_999), (1 << 40, (1 << 40) - 1), (1 << 40, 0)] {
        let program = move |cx: Cx| async move { assert_ne!(cx.random_below(count), edge) };
        let report = check(program).how(How::Random).run();
        assert!(report.failure.is_some(), "{edge} below {count}: {report}");
    }
}

/// What does not matter is left out, though it was there when the failure was found.
#[test]
fn slowness_and_draws_that_do_not_matter_are_left_out() {
    let program = async |cx: Cx| {
        let _ = (cx.random(), cx.random());
        let _ = cx.timeout(1.secs(), quick).await;
        assert_ne!(cx.random(), 0, "the last draw");
    };
    let found = failure(check(program).seed(3).run());
    assert_eq!(found.words.len(), 1, "{found}");
    assert!(found.words[0].starts_with("`random` gave 0 in poll "), "{found}");
}

#[test]
fn a_program_that_was_slowed_down_may_answer_with_an_error() {
    let program = async |cx: Cx| cx.timeout(1.secs(), quick).await.map_err(|_| "out of time");
    let report = check(program).run();
    assert!(report.failure.is_none(), "{report}");
}
