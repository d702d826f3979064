//! What was found once: replayed, followed, shrunk and told.

use crate::program;

use asx_lab::explore::{
    Decision, Decisions, Deviation, Dpor, Follow, Point, Random, Recorder, Replay, Schedule,
    Strategy, shrink,
};
use program::known::{self, CLAIMED_TWICE, NEEDLE};
use program::{DEADLOCK, Machine, Op, Program, generate, path, task_of};

/// A run of a seed: its log and the order of its steps.
fn random_run(program: &Program, seed: u64) -> (Decisions, Vec<usize>, Option<u64>) {
    let mut machine = Machine::new(program);
    let mut recorder = Recorder::new(Random::new(seed));
    assert!(recorder.begin());
    let verdict = machine.run(&mut recorder);
    (recorder.into_parts().1, machine.order, verdict.failure())
}

/// Follows a schedule once: its log and how it failed.
fn follow(program: &Program, schedule: &Schedule) -> (Decisions, Option<u64>) {
    let mut recorder = Recorder::new(Follow::new(schedule.clone()));
    assert!(recorder.begin());
    let verdict = Machine::new(program).run(&mut recorder);
    assert!(!recorder.begin());
    (recorder.into_parts().1, verdict.failure())
}

/// The log of a failing run, found by reduction.
fn failing_run(program: &Program, failure: u64) -> Decisions {
    let mut machine = Machine::new(program);
    for seed in 0.. {
        let mut recorder = Recorder::new(Random::new(seed));
        recorder.begin();
        if machine.run(&mut recorder).failure() == Some(failure) {
            return recorder.into_parts().1;
        }
    }
    unreachable!("every program here can fail")
}

fn shrunk(program: &Program, schedule: &Schedule, budget: u64) -> asx_lab::explore::Shrunk {
    let run = |schedule: &Schedule, log: &mut Decisions| {
        let (own, failure) = follow(program, schedule);
        log.clone_from(&own);
        failure
    };
    shrink(schedule, budget, run).expect("it fails")
}

fn name(task: asx_lab::explore::TaskPath) -> String {
    String::from(["a", "b", "c", "d"][task_of(task)])
}

#[test]
fn a_log_replays_exactly() {
    for seed in 0..500 {
        let program = generate(seed);
        let (log, order, failure) = random_run(&program, seed);
        let mut machine = Machine::new(&program);
        let mut replay = Recorder::new(Replay::new(log.clone()));
        assert!(replay.begin());
        assert_eq!(machine.run(&mut replay).failure(), failure);
        assert!(!replay.begin());
        assert_eq!((machine.order, replay.decisions()), (order, &log));
        assert_eq!(replay.strategy().diverged(), None);
    }
}

#[test]
fn a_replay_says_where_the_program_has_changed() {
    let program = known::check_then_act(false);
    let (log, ..) = random_run(&program, 1);
    let diverged = |program: &Program| {
        let mut replay = Replay::new(log.clone());
        replay.begin();
        Machine::new(program).run(&mut replay);
        assert_eq!(replay.progress().diverged, 1);
        replay.diverged().expect("it differs")
    };
    let mut fewer = program.clone();
    fewer.tasks.pop();
    fewer.first = 2;
    let first = diverged(&fewer);
    assert_eq!((first.at, first.expected), (0, log.list().first().copied()));
    assert!(matches!(first.found, Some(Decision::Task { count: 2, .. })));
    let mut longer = program.clone();
    longer.tasks.iter_mut().for_each(|task| task.extend([Op::Yield, Op::Read(0)]));
    let later = diverged(&longer);
    assert!(later.at > 0, "{later}");
    let mut shorter = program;
    shorter.tasks.iter_mut().for_each(|task| task.truncate(1));
    let end = diverged(&shorter);
    assert!(end.to_string().contains("the log has"), "{end}");
}

#[test]
fn a_schedule_and_its_token_lead_to_the_same_run() {
    for seed in 0..2_000 {
        let mut program = generate(seed);
        program.is_stirred = seed % 4 == 0;
        let (log, ..) = random_run(&program, seed);
        let schedule = log.schedule();
        let read = Schedule::from_token(&schedule.token());
        assert_eq!(read.as_ref(), Ok(&schedule));
        let (followed, _) = follow(&program, &schedule);
        assert_eq!(followed, log, "{seed}: {program:?}");
    }
}

#[test]
fn the_default_policy_has_no_deviations() {
    for seed in 0..200 {
        let (log, _) = follow(&generate(seed), &Schedule::default());
        assert_eq!(log.schedule(), Schedule::default());
    }
}

#[test]
fn known_bugs_shrink_to_the_one_switch_that_makes_them() {
    let programs = [
        (known::lost_wakeup(false), DEADLOCK, "at step 2 run `b` instead of `a`"),
        (known::deadlock(false), DEADLOCK, "at step 2 run `b` instead of `a`"),
        (known::check_then_act(false), CLAIMED_TWICE, "at step 2 run `b` instead of `a`"),
    ];
    for (program, failure, line) in &programs {
        let log = failing_run(program, *failure);
        let shrunk = shrunk(program, &log.schedule(), 10_000);
        assert_eq!(shrunk.failure, *failure);
        assert!(shrunk.is_smallest);
        assert_eq!(shrunk.schedule.deviations.len(), 1, "{:?}", shrunk.schedule);
        assert_eq!(shrunk.log.words(name), [*line]);
        assert!(shrunk.schedule.token().len() <= 24);
    }
}

#[test]
fn what_must_be_long_stays_long_and_still_fits_into_a_token() {
    let program = known::needle(12, false);
    let mut machine = Machine::new(&program);
    let mut recorder = Recorder::new(Dpor::new());
    while recorder.begin() {
        if machine.run(&mut recorder).failure() == Some(NEEDLE) {
            break;
        }
    }
    let schedule = recorder.decisions().schedule();
    let shrunk = shrunk(&program, &schedule, 3_000);
    assert_eq!((shrunk.failure, shrunk.schedule.deviations.len()), (NEEDLE, 10));
    assert!(shrunk.schedule.token().len() <= 64, "{}", shrunk.schedule.token());
}

#[test]
fn shrinking_keeps_the_failure_and_never_adds() {
    let mut shrunk_count = 0;
    for seed in 0..600 {
        let program = generate(seed);
        let (log, _, Some(failure)) = random_run(&program, seed) else { continue };
        let schedule = log.schedule();
        let shrunk = shrunk(&program, &schedule, 400);
        assert_eq!(shrunk.failure, failure);
        assert_eq!(follow(&program, &shrunk.schedule), (shrunk.log, Some(failure)));
        assert!(shrunk.schedule.deviations.len() <= schedule.deviations.len());
        shrunk_count += 1;
    }
    assert!(shrunk_count > 100);
}

#[test]
fn leaving_out_alone_would_stop_too_early() {
    // Fails with deviations 1 and 2 together, or with 3 alone; 3 is not in what was found.
    let of = |task| Deviation::Task { of: path(0).tag(), step: 0, task: path(task).tag() };
    let run = |schedule: &Schedule, log: &mut Decisions| {
        let has = |task| schedule.deviations.contains(&of(task));
        let mut enabled = vec![path(0), path(1), path(2), path(3)];
        for task in (1..4).filter(|task| has(*task)) {
            let at = enabled.iter().position(|other| *other == path(task)).unwrap();
            log.push_task(&enabled, at);
            enabled.remove(at);
        }
        log.push_task(&enabled, 0);
        (has(3) || has(1) && has(2)).then_some(1)
    };
    let found = Schedule { deviations: vec![of(1), of(2)] };
    let better = shrink(&found, 100, run).expect("it fails");
    assert_eq!(better.schedule.deviations, [of(3)]);
    assert!(better.is_smallest);
    let without_budget = shrink(&found, 1, run).expect("it fails");
    assert_eq!((without_budget.schedule, without_budget.is_smallest), (found, false));
    assert_eq!(shrink(&Schedule::default(), 100, run), None);
}

#[test]
fn a_schedule_survives_edits_elsewhere_in_the_program() {
    let program = known::deadlock(false);
    let log = failing_run(&program, DEADLOCK);
    let token = shrunk(&program, &log.schedule(), 10_000).schedule.token();
    let schedule = Schedule::from_token(&token).expect("its own token");
    let mut edited = program.clone();
    edited.tasks.push(vec![Op::Read(0), Op::Yield, Op::Write(1, 1)]);
    edited.first = 3;
    edited.tasks[1].extend([Op::Yield, Op::Write(2, 2)]);
    edited.tasks[0].insert(0, Op::Write(3, 1));
    assert_eq!(follow(&edited, &schedule).1, Some(DEADLOCK));
    let mut follower = Follow::new(schedule);
    follower.begin();
    Machine::new(&known::lost_wakeup(true)).run(&mut follower);
    assert_eq!(follower.unused(), 1);
}

#[test]
fn words_tell_choices_and_cancels() {
    let program = known::cancelled(1);
    let log = failing_run(&program, known::CANCELLED);
    let shrunk = shrunk(&program, &log.schedule(), 10_000);
    let lines = shrunk.log.words(name);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("inject a cancel"), "{lines:?}");
    let mut log = Decisions::default();
    log.push_pick(Point::Timer, 3, 2);
    log.push_task(&[path(0), path(1)], 1);
    log.push_pick(Point::Select, 2, 1);
    let told = [
        "before step 1 timer takes 2 of 0..3",
        "at step 1 run `b` instead of `a`",
        "in step 1 (`b`) select takes 1 of 0..2",
    ];
    assert_eq!(log.words(name), told);
}
