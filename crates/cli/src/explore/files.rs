//! What is written of a run that failed: its trace, and the page that shows it.

use std::path::PathBuf;

use asx_conformance::{Record, Scenario};
use clap::Args;

use super::Setup;
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

/// Which run it was.
pub(super) struct Failed<'a> {
    pub(super) seed: u64,
    pub(super) token: &'a str,
    pub(super) failure: Option<&'a str>,
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
            meta: vec![("token".to_owned(), run.token.to_owned())],
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
