//! `cargo xtask determinism`: the same seed, the same run.
//!
//! All built-in scenarios and the examples run in the lab, each seed twice in one process. The
//! results of all runs of a process form one number, the fingerprint, which must be equal in
//! another process, with another number of threads, and in debug as in release. The examples are
//! also written in both codecs and read again.

use serde_json::Value;

use crate::Result;
use crate::check::others;
use crate::report::Verdict;
use crate::shell::{cargo, output, partial_output};

/// Seeds of each scenario and each example.
const SEEDS: u64 = 500;
/// The factor on the seeds of each example, because there are few examples.
const MORE: u64 = 50;
/// One in this many seeds also runs in debug mode.
const SHARE: u64 = 50;
/// The number of seeds in the test suite.
const FEW: u64 = 30;

pub(crate) fn run(args: &[String]) -> Result {
    let seeds = match args {
        [] => SEEDS,
        [flag, count] if flag == "--seeds" => {
            count.parse().map_err(|error| format!("{count}: {error}"))?
        }
        _ => return Err(String::from("determinism [--seeds N]")),
    };
    // Debug mode is slow, so it runs only a share of the seeds.
    let fast = [("--release", 1), ("--release", 4)];
    let both = [("--release", 2), ("", 3)];
    let runs = scenarios(seeds, &fast)?;
    let in_debug = scenarios(seeds.div_ceil(SHARE), &both)?;
    println!("scenarios: {runs} runs, each twice in two processes; {in_debug} in debug: the same");
    let seeds = seeds.saturating_mul(MORE);
    let runs = examples(seeds, &fast)?;
    let in_debug = examples(seeds.div_ceil(SHARE), &both)?;
    println!("examples: {runs} runs, each twice in two processes; {in_debug} in debug: the same");
    Ok(())
}

/// Compares two processes with different numbers of threads, in builds that exist anyway.
pub(crate) fn section() -> Verdict {
    let all = || {
        let scenarios = scenarios(FEW, &[("--release", 1), ("--release", 3)])?;
        Ok((scenarios, examples(FEW, &[("", 1), ("", 3)])?))
    };
    match all() {
        Ok((scenarios, examples)) => Verdict::Passed(format!(
            "{scenarios} runs of scenarios, {examples} of examples, each twice in two processes"
        )),
        Err(why) => Verdict::Failed(why),
    }
}

/// A profile, and the number of threads that share the runs.
type Way = (&'static str, u64);

/// Runs all scenarios in each way. Returns the number of runs, which must be the same in each.
fn scenarios(seeds: u64, ways: &[Way]) -> Result<u64> {
    let one = |(profile, jobs): &Way| {
        let explore = "-p asx-cli -- explore --all --twice --workers 3 --json";
        let line = format!("run {profile} --quiet {explore} --seeds {seeds} --jobs {jobs}");
        let (text, why) = partial_output(&mut cargo(&line))?;
        match why {
            None => scenarios_of(&text),
            Some(why) => Err(format!("{why}: {text}")),
        }
    };
    let all: Vec<_> = ways.iter().map(one).collect::<Result<_>>()?;
    let runs = all.first().map_or(0, |(runs, _)| *runs);
    same(&all).map(|()| runs)
}

/// Returns the number of runs and the fingerprint of a report.
fn scenarios_of(text: &str) -> Result<(u64, String)> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    let runs = json["runs"].as_u64().filter(|runs| *runs > 0);
    match (runs, json["fingerprint"].as_str()) {
        (Some(runs), Some(fingerprint)) => Ok((runs, String::from(fingerprint))),
        _ => Err(format!("not a report: {text}")),
    }
}

/// Runs the examples in each way. Returns the number of runs, which must be the same in each.
fn examples(seeds: u64, ways: &[Way]) -> Result<u64> {
    let one = |(profile, jobs): &Way| {
        let test = format!("{} --test fingerprints -- --nocapture", others());
        let mut command = cargo(&format!("test {profile} --quiet {test}"));
        command.env("ASX_SEEDS", seeds.to_string()).env("ASX_JOBS", jobs.to_string());
        output(&mut command).map(|text| fingerprints(&text))
    };
    let all: Vec<_> = ways.iter().map(one).collect::<Result<_>>()?;
    same(&all)?;
    let counts = all.first().map_or_else(Vec::new, |lines| counts(lines));
    match counts.len() {
        EXAMPLES => Ok(counts.iter().sum()),
        other => Err(format!("{other} of {EXAMPLES} examples have printed a fingerprint")),
    }
}

const EXAMPLES: usize = 5;

/// Returns the lines with fingerprints, in order. There may be other lines in between.
fn fingerprints(text: &str) -> Vec<String> {
    let after = |line: &str| Some(line[line.find("fingerprint ")?..].trim().to_owned());
    let mut lines: Vec<_> = text.lines().filter_map(after).collect();
    lines.sort();
    lines
}

/// Returns the number of runs in each of these lines.
fn counts(lines: &[String]) -> Vec<u64> {
    lines.iter().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(all: &[T]) -> Result {
    match all.windows(2).find(|pair| pair[0] != pair[1]) {
        None => Ok(()),
        Some([one, other]) => Err(format!("different results: {one:?} and {other:?}")),
        Some(_) => Err(String::from("different results")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_results_are_accepted() {
        assert!(same(&[1, 1, 1]).is_ok());
        assert!(same(&[1, 1, 2]).is_err() && same(&[2, 1, 1]).is_err());
    }

    #[test]
    fn fingerprints_are_found_among_other_output() {
        let text = "running\n.fingerprint b 20 3 0f\n\nfingerprint a 10 1 ff\nok";
        let lines = fingerprints(text);
        assert_eq!(lines, ["fingerprint a 10 1 ff", "fingerprint b 20 3 0f"]);
        assert_eq!(counts(&lines), [10, 20]);
    }

    #[test]
    fn a_report_without_runs_is_refused() {
        let good = r#"{"runs": 3, "fingerprint": "0f"}"#;
        assert_eq!(scenarios_of(good), Ok((3, String::from("0f"))));
        for bad in [r#"{"runs": 0, "fingerprint": "0f"}"#, r#"{"runs": 3}"#, "{}", ""] {
            assert!(scenarios_of(bad).is_err(), "{bad}");
        }
    }
}
