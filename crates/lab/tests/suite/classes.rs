//! Reduction against full search: the same classes, the same failures, never more runs.

use crate::program;

use asx_lab::explore::{Certificate, Dfs, Dpor, Strategy};
use program::{Machine, Op, Program, generate};

/// Above this the full search of a program is not finished.
const MOST: u64 = 1_500;

#[test]
fn reduction_sees_the_classes_and_failures_of_a_full_search() {
    let (mut compared, mut classes, mut full, mut reduced, mut redundant) = (0, 0, 0, 0, 0);
    let sorted = |failures: &[u64]| {
        let mut failures = failures.to_vec();
        failures.sort_unstable();
        failures
    };
    let wanted = std::env::var("ASX_LAB_PROGRAMS").map_or(1_000, |count| count.parse().unwrap());
    let mut seed = 0;
    while compared < wanted {
        seed += 1;
        let program = generate(seed);
        let mut machine = Machine::new(&program);
        let mut dfs = Dfs::new();
        while dfs.progress().runs < MOST && dfs.begin() {
            machine.run(&mut dfs);
        }
        let Some(expected) = dfs.progress().exhausted else { continue };
        let mut dpor = Dpor::new();
        while dpor.begin() {
            machine.run(&mut dpor);
            assert!(dpor.progress().runs <= dfs.progress().runs, "{seed}: {program:?}");
        }
        let progress = dpor.progress();
        assert_eq!(progress.exhausted, Some(expected), "{seed}: {program:?} {progress:?}");
        assert_eq!(sorted(dpor.failures()), sorted(dfs.failures()), "{seed}: {program:?}");
        compared += 1;
        classes += expected.classes;
        full += dfs.progress().runs;
        reduced += progress.runs;
        redundant += progress.redundant;
    }
    println!("{compared} of {seed} programs have {classes} classes");
    println!("{full} runs, {reduced} with reduction, {redundant} of them redundant");
    assert!(redundant * 10 < reduced);
}

#[test]
fn choices_between_steps_are_all_tried() {
    for seed in 0..120 {
        let mut program = generate(seed);
        program.is_stirred = true;
        let mut machine = Machine::new(&program);
        let (mut dfs, mut dpor) = (Dfs::new(), Dpor::new());
        while dfs.progress().runs < 1_000 && dfs.begin() {
            machine.run(&mut dfs);
        }
        let Some(expected) = dfs.progress().exhausted else { continue };
        while dpor.begin() {
            machine.run(&mut dpor);
        }
        assert_eq!(dpor.progress().exhausted, Some(expected), "{seed}");
        assert_eq!(dpor.progress().runs, dfs.progress().runs + 1);
        assert_eq!(dpor.failures(), dfs.failures());
    }
}

#[test]
fn objects_beyond_number_cost_runs_but_no_classes() {
    // So many objects that footprints are folded: steps seem to depend on each other that do not.
    let (mut reduced, mut full) = (0, 0);
    for seed in 0..80 {
        let mut program = generate(seed);
        program.own_objects = 20;
        let mut machine = Machine::new(&program);
        let (mut dfs, mut dpor) = (Dfs::new(), Dpor::new());
        while dfs.progress().runs < 300 && dfs.begin() {
            machine.run(&mut dfs);
        }
        let Some(expected) = dfs.progress().exhausted else { continue };
        while dpor.begin() {
            machine.run(&mut dpor);
        }
        assert_eq!(dpor.progress().exhausted, Some(expected), "{seed}");
        reduced += dpor.progress().runs;
        full += dfs.progress().runs;
    }
    assert!(reduced < full, "{reduced} {full}");
}

#[test]
fn long_runs_have_the_classes_they_should() {
    // Hundreds of steps that concern nobody; one pair that is a race.
    for steps in [10, 31, 32, 33, 63, 64, 65, 200] {
        let task = |own| {
            let mut ops = [Op::Write(own, 1), Op::Yield].repeat(steps);
            ops.push(Op::Write(9, 1));
            ops.extend([Op::Yield, Op::Write(own, 1)].repeat(steps));
            ops
        };
        let tasks = vec![task(0), task(1), task(2)];
        let program = Program { first: 3, tasks, ..Program::default() };
        let (mut machine, mut dpor) = (Machine::new(&program), Dpor::new());
        while dpor.begin() {
            machine.run(&mut dpor);
        }
        let Certificate { classes, .. } = dpor.progress().exhausted.expect("a proof");
        assert_eq!((classes, dpor.progress().runs), (6, 6), "{steps}");
    }
}
