//! Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

mod capi;
mod channel;
mod instructions;
mod lanes;
#[cfg(unix)]
mod net;
mod rt;
mod wheel;

use asx_bench::harness::{self, Case, Plan, distinct};
use asx_bench::options::{Options, check, parse, select};
use instructions::{Counted, Program};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: asx-bench [--only WORKLOAD,..] [--peer PEER,..] [--reps N] [--smoke] [--json]
       asx-bench --instructions [--only WORKLOAD,..] [--peer PEER,..]

  --only   run these workloads only
  --peer   compare with these peers only (asx itself always runs)
  --reps   repetitions that count, after one to warm up (default 11, fewer where they take long)
  --smoke  each workload once and the long ones small: shows that they run, not how fast
  --json   print a list of {workload, peer, median_ns, min_ns, ratio, noise}
  --instructions  count instructions per operation with Valgrind; one line per workload and
                  peer: workload, peer, instructions, separated by tabs

ratio = asx median / peer median, on as many threads: below 1, asx is better.
Figures are nanoseconds unless the table says otherwise.
";

/// Asks for one peer's parked tasks in this process; not for people.
const PARK: &str = "--park";

/// Runs one program once; `--instructions` starts this program so.
const PROGRAM: &str = "--program";

/// How it is built as users build a program.
const ALONE: &str = "figures count from `cargo build --release -p asx-bench` only";

/// Time for a case, after which its repetitions end.
const BUDGET: Duration = Duration::from_millis(600);
const SMOKE: rt::Scale = rt::Scale(100);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, peer, tasks] = &args[..]
        && flag == PARK
    {
        return park(peer, tasks);
    }
    if let [flag, name, peer, operations] = &args[..]
        && flag == PROGRAM
    {
        return program(name, peer, operations);
    }
    #[cfg(unix)]
    if let [flag, peer, kind] = &args[..]
        && flag == net::SERVE
    {
        return net::serve(peer, kind).map_or(ExitCode::from(2), |()| ExitCode::SUCCESS);
    }
    let chosen = parse(args.into_iter()).and_then(|options| match options.instructions {
        true => Ok((Vec::new(), options)),
        false => Ok((select(cases(options.smoke), &options)?, options)),
    });
    if has_lab_hooks() {
        eprintln!("asx-bench: built with the lab's hooks, which programs do not pay for: {ALONE}");
    }
    match chosen {
        Ok((_, Options { help: true, .. })) => print!("{USAGE}"),
        Ok((_, options @ Options { instructions: true, .. })) => {
            let counts = chosen_programs(&options).and_then(|chosen| instructions::count(&chosen));
            match counts {
                Ok(counts) => print!("{}", instructions::table(&counts)),
                Err(message) => return failed(&message),
            }
        }
        Ok((cases, Options { smoke, reps, json, .. })) => {
            let reps = if smoke { 1 } else { reps };
            let rows = harness::measure(cases, &Plan { warm_up: !smoke, reps, budget: BUDGET });
            print!("{}", if json { harness::json(&rows) } else { harness::table(&rows) });
        }
        Err(message) => return failed(&message),
    }
    ExitCode::SUCCESS
}

fn failed(message: &str) -> ExitCode {
    eprintln!("asx-bench: {message}");
    ExitCode::from(2)
}

/// Returns all programs of `--instructions`.
fn programs() -> Vec<Program> {
    let mut all = rt::programs();
    #[cfg(unix)]
    all.extend(net::programs());
    all
}

fn chosen_programs(options: &Options) -> Result<Vec<Program>, String> {
    let mut all = programs();
    check("workload", &options.only, distinct(all.iter().map(|program| program.name)))?;
    check("peer", &options.peers, distinct(all.iter().map(|program| program.peer)))?;
    let is_named = |names: &[String], name| names.is_empty() || names.iter().any(|n| n == name);
    all.retain(|program| {
        is_named(&options.only, program.name) && is_named(&options.peers, program.peer)
    });
    Ok(all)
}

/// Runs one program once.
fn program(name: &str, peer: &str, operations: &str) -> ExitCode {
    let is_it = |program: &Program| program.name == name && program.peer == peer;
    let program = programs().into_iter().find(is_it);
    match (program.map(|program| program.counted), operations.parse()) {
        (Some(Counted::Itself(run)), Ok(operations)) => {
            run(operations);
            ExitCode::SUCCESS
        }
        _ => failed(&format!("no program '{name}' of '{peer}' with '{operations}' operations")),
    }
}

/// Whether the runtime notes what polls touch: a build of the whole workspace switches that on,
/// since the lab is in there as well.
fn has_lab_hooks() -> bool {
    size_of::<asx_runtime::footprint::Object>() > 0
}

/// Everything there is to measure. Runtimes come first: once a structure's benchmark has paused
/// tokio's clock, every look at that clock takes a lock.
fn cases(smoke: bool) -> Vec<Case> {
    let scale = if smoke { SMOKE } else { rt::Scale(1) };
    let all = [rt::cases(scale), lanes::cases(), wheel::cases(), channel::cases(), capi::cases()];
    let mut all: Vec<Case> = all.into_iter().flatten().collect();
    #[cfg(unix)]
    all.extend(net::cases(scale));
    all
}

/// Prints the bytes per parked task.
fn park(peer: &str, tasks: &str) -> ExitCode {
    match tasks.parse().ok().and_then(|tasks| rt::park(peer, tasks)) {
        Some(bytes) => println!("{bytes}"),
        None => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
