//! Runs the conformance corpus on the model host through the program, as a user would.

use crate::Result;
use crate::json::Json;
use crate::report::Verdict;
use crate::shell::{cargo, partial_output};

pub(crate) fn section() -> Verdict {
    match run() {
        Ok(total) => Verdict::Passed(format!("{total} fixtures")),
        Err(why) => Verdict::Failed(why),
    }
}

fn run() -> Result<u64> {
    let line = "run --release --quiet -p asx-cli -- conform --host model --json";
    let (text, why) = partial_output(&mut cargo(line))?;
    // A run that failed still says what failed: judge its report first.
    let total = judge(&text).inspect_err(|_| print!("{text}"))?;
    why.map_or(Ok(total), Err)
}

/// The number of fixtures, if there are some and all passed.
fn judge(text: &str) -> Result<u64> {
    let json = Json::parse(text)?;
    let count = |key| match json.get(key).and_then(Json::count) {
        Some(count) => Ok(count),
        None => Err(format!("the report has no count `{key}`")),
    };
    let (total, passed) = (count("total")?, count("passed")?);
    let failed = json.get("failed").and_then(Json::len).ok_or("the report has no list `failed`")?;
    if total > 0 && failed == 0 && passed == total {
        Ok(total)
    } else {
        Err(format!("{total} fixtures, {passed} passed, {failed} failed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_corpus_that_passed_is_good() {
        assert_eq!(judge(r#"{"total": 3, "passed": 3, "failed": []}"#), Ok(3));
        for bad in [
            "",
            "{}",
            r#"{"total": 0, "passed": 0, "failed": []}"#,
            r#"{"total": 3, "passed": 2, "failed": ["a"]}"#,
            r#"{"total": 3, "passed": 2, "failed": []}"#,
            r#"{"total": 3, "passed": 3, "failed": ["a"]}"#,
            r#"{"total": 3, "passed": 3}"#,
        ] {
            assert!(judge(bad).is_err(), "{bad}");
        }
    }
}
