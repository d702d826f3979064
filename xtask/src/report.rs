//! Named sections run one after the other, timed, summed up at the end.

use crate::Result;
use std::time::{Duration, Instant};

/// How a section ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ran and all was well; with what it found, if that is worth a word.
    Passed(String),
    /// It could not run here, and why.
    Skipped(String),
    /// It ran and something is wrong.
    Failed(String),
}

impl From<Result> for Verdict {
    fn from(result: Result) -> Verdict {
        match result {
            Ok(()) => Verdict::Passed(String::new()),
            Err(why) => Verdict::Failed(why),
        }
    }
}

/// The sections run so far.
#[derive(Default)]
pub(crate) struct Report {
    done: Vec<(&'static str, Verdict, Duration)>,
}

impl Report {
    /// Runs one section. A failure does not keep the next ones from running.
    pub(crate) fn section<V: Into<Verdict>>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> V,
    ) {
        println!("\n=== {name}");
        let start = Instant::now();
        let verdict = run().into();
        if let Verdict::Failed(why) = &verdict {
            println!("{name} failed: {why}");
        }
        self.done.push((name, verdict, start.elapsed()));
    }

    /// Prints the table and the closing line; an error, already told, if any section failed.
    pub(crate) fn finish(self) -> Result {
        println!("\n=== summary");
        for (name, verdict, time) in &self.done {
            let (word, note) = match verdict {
                Verdict::Passed(note) => ("passed", note),
                Verdict::Skipped(why) => ("skipped", why),
                Verdict::Failed(why) => ("FAILED", why),
            };
            let line = format!("{name:<12} {word:<8} {:>7.1} s  {note}", time.as_secs_f64());
            println!("{}", line.trim_end());
        }
        // The last line of all: programs read it.
        println!("{}", self.counts());
        if self.count(|verdict| matches!(verdict, Verdict::Failed(_))) == 0 {
            Ok(())
        } else {
            Err(String::new())
        }
    }

    fn counts(&self) -> String {
        let passed = self.count(|verdict| matches!(verdict, Verdict::Passed(_)));
        let failed = self.count(|verdict| matches!(verdict, Verdict::Failed(_)));
        let skipped = self.count(|verdict| matches!(verdict, Verdict::Skipped(_)));
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.done.iter().filter(|(_, verdict, _)| which(verdict)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_counted_and_the_rest_still_runs() {
        let mut report = Report::default();
        report.section("a", || Err(String::from("broken")));
        report.section("b", || Ok(()));
        report.section("c", || Verdict::Skipped(String::from("no tool")));
        report.section("d", || Ok(()));
        assert_eq!(report.counts(), "2 passed, 1 failed, 1 skipped");
        assert!(report.finish().is_err());
    }

    #[test]
    fn skipping_is_not_failing() {
        let mut report = Report::default();
        report.section("a", || Verdict::Skipped(String::from("no tool")));
        assert!(report.finish().is_ok());
    }
}
