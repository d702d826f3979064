//! What each strategy finds in programs whose bug is known, and proves of the right ones.

use crate::program;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::explore::{
    Bounded, Certificate, Dfs, Dpor, Limits, Pct, Pos, Progress, Random, Strategy, Uniform, Verdict,
};
use asx_lab::{Grain, How, Report, Stopped, check};
use asx_runtime::sync::Mutex;
use asx_runtime::{Cancelled, Cx, Scope};
use program::known::{self, CANCELLED, CLAIMED_TWICE, NEEDLE};
use program::{DEADLOCK, Machine, Op, Program};

/// The runs until the failure is found, at most `most`.
fn runs_to(program: &Program, strategy: &mut dyn Strategy, failure: u64, most: u64) -> Option<u64> {
    let mut machine = Machine::new(program);
    for run in 1..=most {
        if !strategy.begin() {
            return None;
        }
        if machine.run(strategy) == Verdict::Failed(failure) {
            return Some(run);
        }
    }
    None
}

/// Explores to the end.
fn exhaust(program: &Program, strategy: &mut dyn Strategy) -> Progress {
    let mut machine = Machine::new(program);
    while strategy.begin() {
        machine.run(strategy);
    }
    strategy.progress()
}

fn every_strategy(seed: u64) -> Vec<(&'static str, Box<dyn Strategy>)> {
    vec![
        ("random", Box::new(Random::new(seed))),
        ("uniform", Box::new(Uniform::new(seed))),
        ("pos", Box::new(Pos::new(seed))),
        ("pct", Box::new(Pct::new(seed, 2))),
        ("dfs", Box::new(Dfs::new())),
        ("dpor", Box::new(Dpor::new())),
        ("bounded", Box::new(Bounded::new(Limits::NONE, 100_000))),
    ]
}

#[test]
fn every_strategy_finds_the_ordinary_bugs() {
    let programs = [
        (known::lost_wakeup(false), DEADLOCK),
        (known::deadlock(false), DEADLOCK),
        (known::check_then_act(false), CLAIMED_TWICE),
    ];
    for (program, failure) in &programs {
        for seed in 0..20 {
            for (name, mut strategy) in every_strategy(seed) {
                let runs = runs_to(program, &mut *strategy, *failure, 300);
                assert!(runs.is_some(), "{name}, seed {seed}: {program:?}");
            }
        }
    }
}

#[test]
fn walks_that_are_even_find_the_needle_before_those_that_are_not() {
    let program = known::needle(12, false);
    let mut sums = [0; 2];
    for seed in 0..12 {
        let strategies: [&mut dyn Strategy; 2] = [&mut Uniform::new(seed), &mut Random::new(seed)];
        for (sum, strategy) in sums.iter_mut().zip(strategies) {
            *sum += runs_to(&program, strategy, NEEDLE, 60_000).expect("found");
        }
    }
    assert!(sums[0] < sums[1], "{sums:?}");
}

#[test]
fn reduction_finds_the_needle_and_counts_the_haystack() {
    // Every order of the twelve turns is a class: 12! / (6! 6!).
    let progress = exhaust(&known::needle(12, false), &mut Dpor::new());
    assert_eq!((progress.runs, progress.failures, progress.redundant), (924, 1, 0));
    let progress = exhaust(&known::needle(16, true), &mut Dpor::new());
    assert_eq!((progress.runs, progress.failures, progress.redundant), (12_870, 0, 0));
}

#[test]
fn the_right_programs_are_proved_right_by_both_searches() {
    let right = [known::lost_wakeup(true), known::deadlock(true), known::check_then_act(true)];
    for program in right {
        let reduced = exhaust(&program, &mut Dpor::new());
        let full = exhaust(&program, &mut Dfs::new());
        assert_eq!((reduced.failures, full.failures), (0, 0), "{program:?}");
        assert!(reduced.exhausted.is_some());
        assert_eq!(reduced.exhausted, full.exhausted, "{program:?}");
        assert!(reduced.runs < full.runs || full.runs <= 6, "{reduced:?} {full:?}");
    }
}

#[test]
fn bounds_grow_until_the_bug_is_within_them() {
    let program = known::deadlock(false);
    let mut none = Bounded::new(Limits { preemptions: 0, yields: 0, cancels: 0 }, 1_000);
    let progress = exhaust(&program, &mut none);
    let (limits, _) = progress.bounded.expect("a proof of what is within");
    assert_eq!((progress.failures, progress.exhausted, limits.preemptions), (0, None, 0));
    let mut bounded = Bounded::new(Limits::NONE, 100_000);
    assert!(runs_to(&program, &mut bounded, DEADLOCK, 100).is_some());
    assert_eq!(bounded.limits().preemptions, 1);
    let progress = exhaust(&program, &mut bounded);
    assert_eq!(progress.exhausted, exhaust(&program, &mut Dfs::new()).exhausted);
}

#[test]
fn a_switch_where_a_task_lets_others_go_first_is_no_preemption() {
    let mut program = known::deadlock(false);
    let bound = |yields| Bounded::new(Limits { preemptions: 0, yields, cancels: 0 }, 1_000);
    assert_eq!(exhaust(&program, &mut bound(usize::MAX)).failures, 0);
    program.tasks.iter_mut().flatten().for_each(|op| {
        if matches!(op, Op::Yield) {
            *op = Op::Pass;
        }
    });
    assert!(runs_to(&program, &mut bound(usize::MAX), DEADLOCK, 100).is_some());
    // Unless these are limited as well.
    let progress = exhaust(&program, &mut bound(0));
    let (limits, _) = progress.bounded.expect("a proof of what is within");
    assert_eq!((progress.failures, limits.yields), (0, 0));
    // Nothing is left for a second level.
    let mut all = Bounded::new(Limits::NONE, 100_000);
    let progress = exhaust(&program, &mut all);
    assert_eq!((all.limits().preemptions, progress.exhausted.is_some()), (0, true));
}

/// Two tasks that let each other go first again and again.
async fn polite(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            s.spawn(async |cx: Cx| {
                for _ in 0..3 {
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

#[test]
fn yields_of_real_tasks_are_no_preemptions() {
    let [all, bounded] =
        [How::Dfs, How::Bounded].map(|how| check(polite).how(how).grain(Grain::Poll).run());
    assert!(all.failure.is_none() && all.proof.is_some(), "{all}");
    // One level, which is everything; with another one there would be more runs.
    assert_eq!((bounded.runs, bounded.proof), (all.runs, all.proof));
}

#[test]
fn a_budget_ends_a_bounded_search() {
    let mut bounded = Bounded::new(Limits::NONE, 50);
    let progress = exhaust(&known::needle(12, true), &mut bounded);
    assert_eq!((progress.runs, progress.exhausted), (50, None));
}

#[test]
fn cancels_are_limited_with_and_without_reduction() {
    for cancels in 1..=4 {
        let program = known::cancelled(cancels as i64);
        for limit in 0..=4 {
            let most = Limits { cancels: limit, ..Limits::NONE };
            let mut full = Bounded::new(most, 1_000_000);
            let mut grown = Bounded::reduced(limit, 1_000_000);
            let mut dpor = Dpor::new().with_cancels(limit);
            let seen = [
                exhaust(&program, &mut full),
                exhaust(&program, &mut grown),
                exhaust(&program, &mut dpor),
            ];
            // There are four places for a cancel, so that four are no limit.
            assert_eq!(seen.map(|it| it.exhausted.is_some()), [limit == 4; 3]);
            let proofs = seen.map(|it| it.exhausted.map(|it| (Limits::NONE, it)).or(it.bounded));
            assert_eq!(proofs, [proofs[0]; 3]);
            assert_eq!(proofs[0].map(|(limits, _)| limits == most), Some(limit < 4));
            let expected: &[u64] = if cancels <= limit { &[CANCELLED] } else { &[] };
            let found = [full.failures(), grown.failures(), dpor.failures()];
            assert_eq!(found, [expected; 3]);
        }
    }
}

#[test]
fn walks_inject_about_one_cancel_in_a_run() {
    let program = known::cancelled(1);
    for (name, mut strategy) in every_strategy(3).into_iter().take(4) {
        let mut machine = Machine::new(&program);
        for _ in 0..2_000 {
            assert!(strategy.begin());
            machine.run(&mut *strategy);
        }
        let share = strategy.progress().failures as f64 / 2_000.0;
        assert!((0.2..0.9).contains(&share), "{name}: {share}");
    }
}

#[test]
fn a_run_that_is_cut_short_certifies_nothing() {
    for strategy in [&mut Dfs::new() as &mut dyn Strategy, &mut Dpor::new()] {
        let program = known::deadlock(true);
        let mut machine = Machine::new(&program);
        machine.max_steps = 4;
        while strategy.begin() {
            machine.run(strategy);
        }
        let progress = strategy.progress();
        assert!(progress.cut > 0 && progress.exhausted.is_none(), "{progress:?}");
    }
}

#[test]
fn a_driver_that_is_not_deterministic_is_found_out() {
    let (one, other) = (known::needle(6, true), known::deadlock(true));
    for strategy in [&mut Dfs::new() as &mut dyn Strategy, &mut Dpor::new()] {
        for run in 0..2_000 {
            if !strategy.begin() {
                break;
            }
            Machine::new(if run % 3 == 2 { &other } else { &one }).run(strategy);
        }
        let progress = strategy.progress();
        assert!(progress.diverged > 0 && progress.exhausted.is_none(), "{progress:?}");
    }
}

#[test]
fn the_estimate_of_what_is_left_ends_at_the_truth() {
    let program = known::deadlock(false);
    for strategy in [&mut Dfs::new() as &mut dyn Strategy, &mut Dpor::new()] {
        let mut machine = Machine::new(&program);
        let mut estimates = Vec::new();
        while strategy.begin() {
            machine.run(strategy);
            estimates.extend(strategy.progress().expected);
        }
        let runs = strategy.progress().runs as f64;
        let last = estimates[estimates.len() - 1];
        assert!((last - runs).abs() < 1e-6, "{last} {runs}");
        let middle = estimates[estimates.len() / 2];
        assert!(middle > runs / 10.0 && middle < runs * 10.0, "{middle} {runs}");
    }
    let mut random = Random::new(5);
    let mut machine = Machine::new(&program);
    for _ in 0..20_000 {
        random.begin();
        machine.run(&mut random);
    }
    let full = exhaust(&program, &mut Dfs::new()).runs as f64;
    let expected = random.progress().expected.expect("an estimate");
    assert!((expected / full - 1.0).abs() < 0.1, "{expected} {full}");
}

#[test]
fn certificates_of_different_programs_differ() {
    let of = |program: Program| exhaust(&program, &mut Dpor::new()).exhausted;
    let (a, b) = (of(known::deadlock(true)), of(known::deadlock(false)));
    assert_ne!(a, b);
    assert!(matches!(a, Some(Certificate { classes: 2.., .. })));
}

/// A minute: no machine is too slow for it.
const MINUTE: Duration = Duration::from_secs(60);

/// Fails for one number of 4000 that are drawn.
async fn rare_number(cx: Cx) {
    assert_ne!(cx.random() % 4000, 7, "one of 4000");
}

#[test]
fn an_incomplete_search_continues_for_the_least_time() {
    let check = check(rare_number).time(MINUTE);
    let report = check.clone().min_time(Duration::ZERO).run();
    assert!(report.failure.is_none() && report.stopped.is_none(), "{report}");
    let found = check.clone().min_time(MINUTE).run().failure.expect("there is time");
    assert!(found.run > report.runs, "{found}");
    // How fast the machine is decides how many runs there are, and not which.
    let again = check.clone().min_time(MINUTE / 2).run().failure.expect("there is time");
    assert_eq!((found.run, &found.token), (again.run, &again.token));
    assert!(check.replay(&found.token).expect("a token").failure.is_some());
}

#[test]
fn a_search_that_ends_at_its_least_time_reports_that() {
    let program = async |cx: Cx| {
        let _ = cx.random();
    };
    let least = Duration::from_secs(3);
    let program = check(program).grain(Grain::Poll);
    let report = program.clone().min_time(least).run();
    assert_eq!(report.stopped, Some(Stopped::MinTime(least)), "{report}");
    assert!(report.to_string().contains("; stopped after 3s, with more to try; "), "{report}");
    let runs = program.min_time(Duration::ZERO).run().runs;
    assert!(report.runs > runs, "{report}");
}

/// Tasks that each take a lock twice.
async fn counter(cx: Cx) -> Result<(), Cancelled> {
    let count = Arc::new(Mutex::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..4 {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                *count.lock(&cx).await? += 1;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

#[test]
fn a_search_with_time_left_is_completed() {
    let check = check(counter).time(MINUTE);
    let few = check.clone().min_time(Duration::ZERO).run();
    let all = check.min_time(MINUTE).run();
    let grain = |report: &Report| report.proof.map(|proof| proof.grain);
    assert_eq!((grain(&few), grain(&all)), (Some(Grain::Poll), Some(Grain::Operation)));
    assert!(few.runs < all.runs && all.stopped.is_none(), "{all}");
}

#[test]
fn a_check_with_a_number_of_runs_does_not_continue() {
    let check = check(rare_number).runs(1000);
    let [short, long] = [Duration::ZERO, MINUTE].map(|least| check.clone().min_time(least).run());
    assert_eq!(short.runs, long.runs);
    assert!(long.failure.is_none() && long.stopped.is_none(), "{long}");
}

/// Fails if two tasks take turns strictly, thirty times.
async fn strict_turns(cx: Cx) -> Result<(), Cancelled> {
    let turns = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for me in 0..2 {
            let turns = turns.clone();
            s.spawn(async move |cx: Cx| {
                for _ in 0..15 {
                    let is_next = turns.load(Relaxed) % 2 == me;
                    turns.fetch_add(if is_next { 1 } else { 1000 }, Relaxed);
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_ne!(turns.load(Relaxed), 30, "in turns");
    Ok(())
}

#[test]
fn the_order_of_workers_is_tried_first() {
    let program = check(strict_turns);
    let found = program.run().failure.expect("workers that take turns have this order");
    assert!(found.run <= 3, "{found}");
    assert!(found.strategy.starts_with("the order of "), "{found}");
    let again = program.replay(&found.token).expect("a token").failure.expect("it fails again");
    assert_eq!(again.failure, found.failure);
    // A strategy that is chosen has its own orders only.
    let report = check(strict_turns).how(How::Random).runs(100).run();
    assert!(report.failure.is_none(), "{report}");
}
