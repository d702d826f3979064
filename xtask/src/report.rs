//! Runs named sections one after the other and prints a summary with their times.

use crate::Result;
use crate::shell::prefix;
use std::time::{Duration, Instant};

/// The result of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Success, with a remark for the summary (may be empty).
    Passed(String),
    /// The section cannot run on this machine, with the reason.
    Skipped(String),
    /// Failure, with the reason.
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

/// A section that has run: its name, result and time.
type Done = (&'static str, Verdict, Duration);

/// The sections that have run.
#[derive(Default)]
pub(crate) struct Report {
    done: Vec<Done>,
}

/// Returns the line of a section, which is printed when it ends and in the summary.
fn line((name, verdict, time): &Done) -> String {
    let (word, note) = match verdict {
        Verdict::Passed(note) => ("passed", note),
        Verdict::Skipped(why) => ("skipped", why),
        Verdict::Failed(why) => ("FAILED", why),
    };
    let line = format!("{name:<12} {word:<8} {:>7.1} s  {note}", time.as_secs_f64());
    String::from(line.trim_end())
}

impl Report {
    /// Adds the sections of another report.
    pub(crate) fn append(&mut self, other: Report) {
        self.done.extend(other.done);
    }

    /// Runs one section. After a failure the next sections still run.
    pub(crate) fn section<V: Into<Verdict>>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> V,
    ) {
        println!("\n{}=== {name}", prefix());
        let start = Instant::now();
        let verdict = run().into();
        let done = (name, verdict, start.elapsed());
        println!("{}{}", prefix(), line(&done));
        self.done.push(done);
    }

    /// Prints the table and the closing line. Returns an empty error if a section failed: the
    /// reason has been printed.
    pub(crate) fn finish(self) -> Result {
        println!("\n=== summary");
        for done in &self.done {
            println!("{}", line(done));
        }
        println!("{}", self.times());
        // Programs parse the last line.
        println!("{}", self.counts());
        if self.count(|verdict| matches!(verdict, Verdict::Failed(_))) == 0 {
            Ok(())
        } else {
            Err(String::new())
        }
    }

    /// Returns the total time and the slowest sections.
    fn times(&self) -> String {
        let total: Duration = self.done.iter().map(|(_, _, time)| *time).sum();
        let mut slowest: Vec<_> = self.done.iter().map(|(name, _, time)| (*time, *name)).collect();
        slowest.sort_unstable_by(|a, b| b.cmp(a));
        let names: Vec<&str> = slowest.iter().take(5).map(|(_, name)| *name).collect();
        let minutes = total.as_secs_f64() / 60.0;
        format!("total {minutes:.1} min; slowest: {}", names.join(", "))
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
    fn sections_after_a_failure_run_and_are_counted() {
        let mut report = Report::default();
        report.section("a", || Err(String::from("broken")));
        report.section("b", || Ok(()));
        report.section("c", || Verdict::Skipped(String::from("no tool")));
        report.section("d", || Ok(()));
        assert_eq!(report.counts(), "2 passed, 1 failed, 1 skipped");
        assert!(report.finish().is_err());
    }

    #[test]
    fn a_skipped_section_is_not_a_failure() {
        let mut report = Report::default();
        report.section("a", || Verdict::Skipped(String::from("no tool")));
        assert!(report.finish().is_ok());
    }
}
