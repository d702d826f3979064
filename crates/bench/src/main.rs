//! Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

mod capi;
mod channel;
mod lanes;
#[cfg(unix)]
mod net;
mod rt;
mod wheel;

use asx_bench::harness::{self, Case, Plan};
use asx_bench::options::{Options, parse, select};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: asx-bench [--only WORKLOAD,..] [--peer PEER,..] [--reps N] [--smoke] [--json]

  --only   run these workloads only
  --peer   compare with these peers only (asx itself always runs)
  --reps   repetitions that count, after one to warm up (default 11, fewer where they take long)
  --smoke  each workload once and the long ones small: shows that they run, not how fast
  --json   print a list of {workload, peer, median_ns, min_ns, ratio, noise}

ratio = asx median / peer median, on as many threads: below 1, asx is better.
Figures are nanoseconds unless the table says otherwise.
";

/// Asks for one peer's parked tasks in this process; not for people.
const PARK: &str = "--park";

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
    #[cfg(unix)]
    if let [flag, peer, kind] = &args[..]
        && flag == net::SERVE
    {
        return net::serve(peer, kind).map_or(ExitCode::from(2), |()| ExitCode::SUCCESS);
    }
    let chosen = parse(args.into_iter()).and_then(|options| {
        let cases = select(cases(options.smoke), &options)?;
        Ok((cases, options))
    });
    if has_lab_hooks() {
        eprintln!("asx-bench: built with the lab's hooks, which programs do not pay for: {ALONE}");
    }
    match chosen {
        Ok((_, Options { help: true, .. })) => print!("{USAGE}"),
        Ok((cases, Options { smoke, reps, json, .. })) => {
            let reps = if smoke { 1 } else { reps };
            let rows = harness::measure(cases, &Plan { warm_up: !smoke, reps, budget: BUDGET });
            print!("{}", if json { harness::json(&rows) } else { harness::table(&rows) });
        }
        Err(message) => {
            eprintln!("asx-bench: {message}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
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
