//! Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

mod channel;
mod harness;
mod lanes;
mod wheel;

use harness::{ASX, Case, distinct};
use std::process::ExitCode;

const USAGE: &str = "\
usage: asx-bench [--only WORKLOAD,..] [--peer PEER,..] [--reps N] [--json]

  --only   run these workloads only
  --peer   compare with these peers only (asx itself always runs)
  --reps   repetitions that count, after one to warm up (default 11)
  --json   print a list of {workload, peer, median_ns, min_ns, ratio, noise}

ratio = asx median / peer median: below 1, asx is faster.
";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Options {
    only: Vec<String>,
    peers: Vec<String>,
    reps: usize,
    json: bool,
    help: bool,
}

fn main() -> ExitCode {
    let cases = [lanes::cases(), wheel::cases(), channel::cases()].into_iter().flatten().collect();
    match parse(std::env::args().skip(1)).and_then(|options| select(cases, options)) {
        Ok((_, Options { help: true, .. })) => print!("{USAGE}"),
        Ok((cases, options)) => {
            let rows = harness::measure(cases, options.reps);
            print!("{}", if options.json { harness::json(&rows) } else { harness::table(&rows) });
        }
        Err(message) => {
            eprintln!("asx-bench: {message}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options =
        Options { only: Vec::new(), peers: Vec::new(), reps: 11, json: false, help: false };
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
            "--json" => options.json = true,
            "--help" | "-h" => options.help = true,
            _ => {
                return Err(format!(
                    "unknown flag '{flag}'; valid: --only, --peer, --reps, --json, --help"
                ));
            }
        }
    }
    Ok(options)
}

/// The cases asked for, once all names are known to exist.
fn select(mut cases: Vec<Case>, options: Options) -> Result<(Vec<Case>, Options), String> {
    check("workload", &options.only, distinct(cases.iter().map(|case| case.workload)))?;
    check("peer", &options.peers, distinct(cases.iter().map(|case| case.peer)))?;
    let asked = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    cases.retain(|case| {
        asked(&options.only, case.workload)
            && (case.peer == ASX || asked(&options.peers, case.peer))
    });
    Ok((cases, options))
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
        let case = |workload, peer| Case { workload, peer, run: Box::new(|| 1.0) };
        let cases = vec![case("a", ASX), case("a", "p"), case("b", ASX), case("b", "q")];
        let options = parse(line.split_whitespace().map(String::from))?;
        let (cases, _) = select(cases, options)?;
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
        assert!(run("--fast").unwrap_err().ends_with("--only, --peer, --reps, --json, --help"));
    }

    #[test]
    fn flags_are_read() {
        let args = ["--json", "--reps", "3", "-h"].map(String::from);
        let options = parse(args.into_iter()).unwrap();
        assert_eq!((options.json, options.reps, options.help), (true, 3, true));
    }
}
