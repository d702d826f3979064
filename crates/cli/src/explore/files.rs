//! The files of a run: its trace and its page.

use std::path::PathBuf;

use asx_conformance::{Record, Scenario, shell_word};
use asx_report::Cause;
use clap::Args;

use super::Setup;
use super::tape::{Change, is_law};
use crate::trace::{Recording, known_codec};

/// Where a run is written to.
#[derive(Args)]
pub(super) struct Files {
    /// Write the run as a trace; `.jsonl` or `.asxt` says in which codec.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Write the run as a page to look at in a browser.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

/// The run to write.
pub(super) struct Failed<'a> {
    /// The scenario as it was named on the command line.
    pub(super) file: &'a str,
    pub(super) seed: u64,
    pub(super) token: &'a str,
    pub(super) failure: Option<&'a str>,
    pub(super) changes: &'a [Change],
}

impl Failed<'_> {
    /// The cause of the failure, for the head of the page.
    fn cause(&self) -> Cause {
        let Some(message) = self.failure else { return Cause::default() };
        let kind = if is_law(message) { "law" } else { "expectation" };
        Cause {
            kind: kind.to_owned(),
            message: message.to_owned(),
            changes: self.changes.iter().map(|change| change.text.clone()).collect(),
            change_events: self.changes.iter().map(|change| change.event).collect(),
            replay: Some(format!("asx replay {} {}", shell_word(self.file), self.token)),
            ..Cause::default()
        }
    }
}

impl Files {
    /// Whether they can be written, as far as their names say.
    pub(super) fn check(&self) -> Result<(), String> {
        self.trace.as_deref().map_or(Ok(()), known_codec)
    }

    /// Writes a run.
    pub(super) fn write(
        &self,
        scenario: &Scenario,
        setup: Setup,
        run: &Failed<'_>,
        record: &Record,
    ) -> Result<(), String> {
        let recording = Recording {
            scenario,
            host: "lab",
            seed: run.seed,
            workers: setup.workers_of(scenario),
            meta: [("token".to_owned(), run.token.to_owned())]
                .into_iter()
                .chain(run.cause().meta())
                .collect(),
            record,
            failures: run.failure.map(str::to_owned).into_iter().collect(),
        };
        self.trace.as_deref().map_or(Ok(()), |path| recording.write(path))?;
        self.report.as_deref().map_or(Ok(()), |path| recording.page(path))
    }

    /// The files that were asked for, by name.
    pub(super) fn names(&self) -> Vec<String> {
        let paths = [&self.trace, &self.report].into_iter().flatten();
        paths.map(|path| path.display().to_string()).collect()
    }
}
