//! Needles: failures that take many decisions in a row, each of which shows in what tasks do next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use asx_lab::{Grain, How, check};
use asx_runtime::{Cancelled, Cx, Scope};

/// Fails only if two tasks go strictly in turns, sixteen times, beside three others who are always
/// there. There are too many classes of orders to run them all, and a walk finds it in one run of
/// 2^16.
async fn deep_needle<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    const TURNS: u32 = 16;
    let turn = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for task in 0..2 {
            let turn = turn.clone();
            s.spawn(async move |cx: Cx| {
                for mine in (task..TURNS).step_by(2) {
                    if turn.compare_exchange(mine, mine + 1, Relaxed, Relaxed).is_err() {
                        break;
                    }
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        for _ in 0..3 {
            s.spawn(async |cx: Cx| {
                for _ in 0..6 {
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert!(!BUG || turn.load(Relaxed) < TURNS, "the needle");
    Ok(())
}

/// In which run the needle is found, if it is, in each of so many searches with a seed of its own.
fn found(how: How, runs: u64, seeds: u64) -> Vec<Option<u64>> {
    let find = |seed| {
        let check = check(deep_needle::<true>).grain(Grain::Poll).how(how).runs(runs).seed(seed);
        check.run().failure.map(|found| found.run)
    };
    (0..seeds).map(find).collect()
}

#[test]
fn a_guided_search_finds_the_needle_far_more_often_than_a_random_one() {
    let runs = found(How::Guided, 1000, 10);
    let mut sorted: Vec<_> = runs.iter().flatten().collect();
    sorted.sort_unstable();
    let guided = sorted.len();
    let random = found(How::Random, 1000, 10).iter().flatten().count();
    println!("of 10: guided {guided} {sorted:?}, random {random}");
    assert!(guided >= 7 && random * 5 <= guided, "guided {guided}, random {random}");
}

#[test]
fn the_needle_is_found_with_the_settings_as_they_are() {
    let find = |seed| check(deep_needle::<true>).seed(seed).run().failure;
    let found: Vec<_> = (0..10).filter_map(find).collect();
    // The order of one worker is the needle: each search begins with it.
    assert_eq!(found.len(), 10);
    assert!(found.iter().all(|found| found.strategy == "the order of one worker"), "{}", found[0]);
    let again = check(deep_needle::<true>).replay(&found[0].token).expect("a token");
    assert_eq!(again.failure.expect("it fails").failure, found[0].failure);
    let report = check(deep_needle::<false>).run();
    assert!(report.failure.is_none(), "{report}");
    let report = check(deep_needle::<false>).how(How::Random).run();
    assert!(report.to_string().contains("; not all orders were run: `runs` has more"), "{report}");
}

#[test]
fn a_guided_search_is_the_same_with_the_same_seed() {
    let [first, second] = [1, 1].map(|seed| found(How::Guided, 400, seed));
    assert_eq!(first, second);
}
