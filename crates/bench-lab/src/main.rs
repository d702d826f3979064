//! The lab beside shuttle, loom, madsim and turmoil: how many schedules a second, how soon a bug is
//! found, and how soon there is nothing left to run. All of them on one thread, in one run.

mod cases;
mod clock;
mod counted;
mod ours;
mod pipe;
mod programs;
mod requests;
mod tables;
mod threads;
mod with_loom;
mod with_madsim;
mod with_shuttle;

use std::panic;
use std::process::ExitCode;
use std::time::Duration;

use asx_bench::harness::{self, Plan};
use asx_bench::options::{Options, parse, select};

use cases::{Cases, Notes};
use programs::Program;
use with_madsim::Madsim;

const USAGE: &str = "\
usage: asx-bench-lab [--only WORKLOAD,..] [--peer PEER,..] [--reps N] [--quick]
                     [--json | --markdown]
       asx-bench-lab --count PROGRAM random|pct|dfs|dpor asx|shuttle RUNS

  --only      run these workloads only
  --peer      compare with these peers only (asx itself always runs)
  --reps      repetitions that count, after one to warm up (default 11, fewer where they take long)
  --quick     each workload once and small: shows that they run, not how fast
  --json      print a list of {workload, peer, median_ns, min_ns, ratio, noise}
  --markdown  print the tables of docs/BENCHMARKS.md
  --count     make just those runs, to be counted by another tool

P.random, P.pct, P.dfs: ns a schedule; requests.random: of a program that has a network.
P.find: ns until the bug is told, for asx with its schedule made small and its trace recorded.
P.proof: ns until all schedules, or one of each class, were run.
All are ns of processor time. ratio = asx median / peer median: below 1, asx is better.
";

/// Asks for the tables of the documentation.
const MARKDOWN: &str = "--markdown";

/// Time for a case, after which its repetitions end.
const BUDGET: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, program] = &args[..]
        && flag == with_loom::FIND
    {
        with_loom::find_here(program, cases::LONGEST);
        return ExitCode::SUCCESS;
    }
    if let [flag, words @ ..] = &args[..]
        && flag == counted::FLAG
    {
        return match counted::run(words) {
            Some(runs) => {
                println!("{runs}");
                ExitCode::SUCCESS
            }
            None => refuse("--count PROGRAM random|pct|dfs|dpor asx|shuttle RUNS"),
        };
    }
    let markdown = args.iter().any(|arg| arg == MARKDOWN);
    let options = match parse(args.into_iter().filter(|arg| arg != MARKDOWN)) {
        Ok(options) => options,
        Err(message) => return refuse(&message),
    };
    if options.help {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let notes = Notes::default();
    let madsim = wants(&options, "madsim").then(Madsim::start).and_then(|started| {
        started.inspect_err(|why| eprintln!("asx-bench-lab: without madsim: {why}")).ok()
    });
    let cases = Cases { notes: &notes, madsim, smoke: options.smoke }.all();
    let cases = match select(cases, &options) {
        Ok(cases) => cases,
        Err(message) => return refuse(&message),
    };
    // Peers tell a failing run by a panic, and there are many. Shuttle's first run sets a hook.
    with_shuttle::explore(Program::Needle, with_shuttle::How::Random, 0, 1);
    panic::set_hook(Box::new(|_| {}));
    let reps = if options.smoke { 1 } else { options.reps };
    let plan = Plan { warm_up: !options.smoke, reps, budget: BUDGET };
    let mut rows = harness::measure(cases, &plan);
    rows.iter_mut().for_each(|row| row.ratio = row.ratio.filter(|ratio| ratio.is_finite()));
    let (rows, out): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| !row.median.is_nan());
    let text = match (options.json, markdown) {
        (true, _) => harness::json(&rows),
        (false, true) => tables::markdown(&rows, &notes),
        (false, false) => tables::plain(&rows, &out, &notes),
    };
    print!("{text}");
    ExitCode::SUCCESS
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("asx-bench-lab: {message}");
    ExitCode::from(2)
}

/// Whether a peer is among those asked for.
fn wants(options: &Options, peer: &str) -> bool {
    options.peers.is_empty() || options.peers.iter().any(|asked| asked == peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_lab::{Grain, How};
    use with_shuttle::How as Shuttle;

    #[test]
    fn the_lab_finds_each_bug_with_a_short_witness_and_proves_the_fixed_one() {
        for program in Program::ALL.into_iter().filter(|program| program.is_small()) {
            let found = ours::find(program, How::Mixed, 0, 10_000).failure;
            let found = found.unwrap_or_else(|| panic!("{program:?}: no bug"));
            let most = if program == Program::Needle { 12 } else { 2 };
            assert!(found.schedule.deviations.len() <= most, "{program:?}: {found}");
            let report = ours::explore(program, How::Dpor, Grain::Poll, 0, 10_000);
            assert!(report.failure.is_none() && report.proof.is_some(), "{program:?}: {report}");
        }
        assert_eq!(ours::explore(Program::Crowd, How::Random, Grain::Operation, 0, 3).runs, 3);
    }

    #[test]
    fn shuttle_finds_each_bug_and_none_in_the_fixed_one() {
        for program in Program::ALL {
            assert_eq!(with_shuttle::explore(program, Shuttle::Random, 0, 20), 20, "{program:?}");
            if program.is_small() {
                let found = with_shuttle::find(program, Shuttle::Dfs, 0, 10_000);
                assert!(found.is_some(), "{program:?}");
            }
        }
    }

    #[test]
    fn the_program_over_a_network_runs_in_both_simulators() {
        assert_eq!(requests::ours(0, 20), 20);
        assert_eq!(requests::turmoil(0, 2, true), 2);
    }

    #[test]
    fn loom_proves_the_smallest_fixed_program() {
        assert!(with_loom::prove(Program::Needle, Duration::from_secs(600)).is_some());
        assert!(!with_loom::has(Program::Crowd) && with_loom::has(Program::AbBa));
    }
}
