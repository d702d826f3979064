//! Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

mod capi;
mod channel;
mod harness;
mod lanes;
mod rt;
mod wheel;

use harness::{Case, Plan, distinct};
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

/// Time for a case, after which its repetitions end.
const BUDGET: Duration = Duration::from_millis(600);
const SMOKE: rt::Scale = rt::Scale(100);

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    reps: usize,
    smoke: bool,
    json: bool,
    help: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, peer, tasks] = &args[..]
        && flag == PARK
    {
        return park(peer, tasks);
    }
    let chosen = parse(args.into_iter()).and_then(|options| {
        let cases = select(cases(options.smoke), &options)?;
        Ok((cases, options))
    });
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

/// Everything there is to measure. Runtimes come first: once a structure's benchmark has paused
/// tokio's clock, every look at that clock takes a lock.
fn cases(smoke: bool) -> Vec<Case> {
    let scale = if smoke { SMOKE } else { rt::Scale(1) };
    let all = [rt::cases(scale), lanes::cases(), wheel::cases(), channel::cases(), capi::cases()];
    all.into_iter().flatten().collect()
}

/// Prints the bytes per parked task.
fn park(peer: &str, tasks: &str) -> ExitCode {
    match tasks.parse().ok().and_then(|tasks| rt::park(peer, tasks)) {
        Some(bytes) => println!("{bytes}"),
        None => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let (only, peers, reps) = (Vec::new(), Vec::new(), 11);
    let mut options = Options { only, peers, reps, smoke: false, json: false, help: false };
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--only" => options.only.extend(value()?.split(',').map(String::from)),
            "--peer" => options.peers.extend(value()?.split(',').map(String::from)),
            "--reps" => {
                let text = value()?;
                options.reps =
                    text.parse().ok().filter(|reps| *reps > 0).ok_or_else(|| {
                        format!("--reps needs a whole number above 0, not '{text}'")
                    })?;
            }
            "--smoke" => options.smoke = true,
            "--json" => options.json = true,
            "--help" | "-h" => options.help = true,
            _ => {
                return Err(format!(
                    "unknown flag '{flag}'; valid: --only, --peer, --reps, --smoke, --json, --help"
                ));
            }
        }
    }
    Ok(options)
}

/// The cases asked for, once all names are known to exist.
fn select(mut cases: Vec<Case>, options: &Options) -> Result<Vec<Case>, String> {
    check("workload", &options.only, distinct(cases.iter().map(|case| case.workload)))?;
    check("peer", &options.peers, distinct(cases.iter().map(|case| case.peer)))?;
    let asked = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    cases.retain(|case| {
        asked(&options.only, case.workload) && (case.is_ours() || asked(&options.peers, case.peer))
    });
    Ok(cases)
}

fn check(what: &str, names: &[String], valid: Vec<&'static str>) -> Result<(), String> {
    match names.iter().find(|name| !valid.contains(&name.as_str())) {
        Some(name) => Err(format!("unknown {what} '{name}'; valid: {}", valid.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Vec<String>, String> {
        let case = |workload, peer| Case::new(workload, peer, || 1.0);
        let cases = vec![case("a", "asx"), case("a", "p"), case("b", "asx"), case("b", "q")];
        let options = parse(line.split_whitespace().map(String::from))?;
        let cases = select(cases, &options)?;
        Ok(cases.iter().map(|case| format!("{}/{}", case.workload, case.peer)).collect())
    }

    #[test]
    fn names_select_and_asx_always_runs() {
        assert_eq!(run("").unwrap(), ["a/asx", "a/p", "b/asx", "b/q"]);
        assert_eq!(run("--only a").unwrap(), ["a/asx", "a/p"]);
        assert_eq!(run("--only a,b --peer q").unwrap(), ["a/asx", "b/asx", "b/q"]);
    }

    #[test]
    fn errors_name_what_would_have_been_right() {
        assert_eq!(run("--only a,c").unwrap_err(), "unknown workload 'c'; valid: a, b");
        assert_eq!(run("--peer x").unwrap_err(), "unknown peer 'x'; valid: asx, p, q");
        assert_eq!(run("--only").unwrap_err(), "--only needs a value");
        for bad in ["0", "-1", "x"] {
            let message = format!("--reps needs a whole number above 0, not '{bad}'");
            assert_eq!(run(&format!("--reps {bad}")).unwrap_err(), message);
        }
        assert!(run("--fast").unwrap_err().ends_with("--reps, --smoke, --json, --help"));
    }

    #[test]
    fn flags_are_read() {
        let args = ["--json", "--reps", "3", "--smoke", "-h"].map(String::from);
        let options = parse(args.into_iter()).unwrap();
        assert_eq!((options.json, options.reps), (true, 3));
        assert_eq!((options.smoke, options.help), (true, true));
    }
}
