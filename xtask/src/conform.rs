//! Runs the conformance corpus on each host through the command-line program.

use serde_json::Value;

use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, partial_output, target_dir};

/// The hosts with default settings.
const DEFAULTS: [&str; 3] = ["native-defaults", "web-defaults", "web-silent"];

/// The hosts that run the C library, each with a separate profile.
const C_PROFILES: [&str; 4] = ["c", "c-embedded", "c-hft", "c-automotive"];

pub(crate) fn section() -> Verdict {
    let all = || {
        let [native, lab, web] = ["native", "lab", "web"].map(|host| run(host, true));
        DEFAULTS.into_iter().try_for_each(|host| run(host, true).map(drop))?;
        let c = C_PROFILES.map(|host| run(host, true)).into_iter().collect::<Result<Vec<_>>>()?;
        if c.iter().any(|passed| *passed != c[0]) {
            return Err(format!("the C profiles passed different numbers of fixtures: {c:?}"));
        }
        Ok((run("model", false)?, native?, lab?, web?, c[0]))
    };
    match all() {
        Ok((model, native, lab, web, c)) => Verdict::Passed(format!(
            "{model} on the model, {native} on threads' workers, {lab} on the lab's, \
             {web} in a page without a browser, {c} through each profile of C"
        )),
        Err(why) => Verdict::Failed(why),
    }
}

/// Checks that the hosts behave the same, scenario by scenario. Differences are written to a
/// folder. Here the web host runs without a browser; the section `browser` compares it in one.
pub(crate) fn parity_section() -> Verdict {
    let hosts = format!("model,native,lab,web,{}", C_PROFILES.join(","));
    match parity(&hosts, "program") {
        Ok(runs) => Verdict::Passed(format!("{runs} runs compared")),
        Err(why) => Verdict::Failed(why),
    }
}

/// Compares the runs of these hosts pairwise and returns their number. `place` is the web's place.
pub(crate) fn parity(hosts: &str, place: &str) -> Result<u64> {
    let mut parity = cargo("run --release --quiet -p asx-cli -- parity --json --out");
    let out = target_dir().join("parity");
    parity.arg(&out).args(["--host", hosts, "--place", place]);
    match partial_output(&mut parity)? {
        (text, None) => compared(&text, hosts.split(',').count()),
        (text, Some(why)) => Err(format!("{why}: {}; see {}", text.trim(), out.display())),
    }
}

/// Returns the number of compared runs, if all pairs have some and none differ.
fn compared(text: &str, hosts: usize) -> Result<u64> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(pairs) = json["pairs"].as_array() else {
        return Err(String::from("the report has no list `pairs`"));
    };
    let runs: Vec<u64> = pairs.iter().filter_map(|pair| pair["compared"].as_u64()).collect();
    let differences = json["differences"].as_u64();
    let all = hosts * (hosts - 1) / 2;
    let is_whole = runs.len() == pairs.len() && runs.len() == all && !runs.contains(&0);
    if is_whole && differences == Some(0) {
        Ok(runs.iter().sum())
    } else {
        Err(format!("runs compared: {runs:?}, differences: {differences:?}"))
    }
}

/// Returns the number of fixtures that passed on a host, which may skip those it cannot express.
fn run(host: &str, may_skip: bool) -> Result<u64> {
    let line = format!("run --release --quiet -p asx-cli -- conform --host {host} --json");
    let (text, why) = partial_output(&mut cargo(&line))?;
    // A failed run still reports its failures: judge the report first.
    let passed = judge(&text, may_skip).inspect_err(|_| print!("{text}"))?;
    why.map_or(Ok(passed), Err)
}

/// Returns the number of fixtures that passed, if there are some and all that ran did.
fn judge(text: &str, may_skip: bool) -> Result<u64> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let count = |key: &str| json[key].as_u64().ok_or(format!("the report has no count `{key}`"));
    let list = |key: &str| match json[key].as_array() {
        Some(list) => Ok(list.len() as u64),
        None => Err(format!("the report has no list `{key}`")),
    };
    let total = count("total")?;
    let passed = count("passed")?;
    let failed = list("failed")?;
    let skipped = list("skipped")?;
    let whole = passed + skipped == total && (may_skip || skipped == 0);
    if passed > 0 && failed == 0 && whole {
        Ok(passed)
    } else {
        Err(format!("{total} fixtures, {passed} passed, {failed} failed, {skipped} skipped"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_needs_all_pairs_and_no_difference() {
        let pairs = |counts: &str, differences: u64| {
            let pair = |count: &str| format!("{{\"compared\": {count}}}");
            let pairs: Vec<_> = counts.split(' ').map(pair).collect();
            format!("{{\"pairs\": [{}], \"differences\": {differences}}}", pairs.join(","))
        };
        assert_eq!(compared(&pairs("3 4 5", 0), 3), Ok(12));
        assert!(compared(&pairs("3 4 5", 0), 4).is_err());
        for bad in [pairs("3 4", 0), pairs("3 4 0", 0), pairs("3 4 5", 1), pairs("3 4 null", 0)] {
            assert!(compared(&bad, 3).is_err(), "{bad}");
        }
        assert!(compared("{}", 3).is_err() && compared("", 3).is_err());
    }

    #[test]
    fn only_a_complete_corpus_that_passed_is_accepted() {
        let whole = r#"{"total": 3, "passed": 3, "failed": [], "skipped": []}"#;
        assert_eq!((judge(whole, false), judge(whole, true)), (Ok(3), Ok(3)));
        let partly = r#"{"total": 3, "passed": 2, "failed": [], "skipped": [{"id": "a"}]}"#;
        assert_eq!(judge(partly, true), Ok(2));
        assert!(judge(partly, false).is_err());
        for bad in [
            "",
            "{}",
            r#"{"total": 0, "passed": 0, "failed": [], "skipped": []}"#,
            r#"{"total": 1, "passed": 0, "failed": [], "skipped": [{"id": "a"}]}"#,
            r#"{"total": 3, "passed": 2, "failed": ["a"], "skipped": []}"#,
            r#"{"total": 3, "passed": 2, "failed": [], "skipped": []}"#,
            r#"{"total": 3, "passed": 3, "failed": ["a"], "skipped": []}"#,
            r#"{"total": 3, "passed": 3, "failed": []}"#,
        ] {
            assert!(judge(bad, true).is_err(), "{bad}");
        }
    }
}
