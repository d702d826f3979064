//! What an exploration has seen, as a file: to go on from, and to merge.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use asx_conformance::Scenario;
use asx_kernel::digest::Digest;
use serde::{Deserialize, Serialize};

/// Failures that are kept.
const MOST_FAILURES: usize = 1000;
/// Journals that are told apart.
const MOST_DISTINCT: usize = 1 << 20;
/// Of the file.
const VERSION: u32 = 2;

/// What was seen so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    pub(super) id: String,
    /// The digest of the scenario, in hex digits.
    scenario: String,
    pub(super) strategy: String,
    /// All seeds, of which this is the `part`-th of `parts` parts.
    seeds: u64,
    pub(super) part: u64,
    pub(super) parts: u64,
    /// How many runs there were; those of the first so many own seeds.
    pub(super) done: u64,
    /// There is nothing left to run.
    pub(super) exhausted: bool,
    /// The digests of the journals.
    pub(super) distinct: BTreeSet<u64>,
    /// A hash of which seed had which journal, the same in whatever order they were run.
    #[serde(default)]
    pub(super) fingerprint: u64,
    /// How many runs failed.
    #[serde(default)]
    pub(super) failed: u64,
    /// The first of the runs that failed.
    pub(super) failures: Vec<Found>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// The seed of a sampled run; an exhaustive search has none.
    pub(super) seed: Option<u64>,
    pub(super) token: String,
    pub(super) message: String,
}

impl State {
    pub(super) fn new(
        scenario: &Scenario,
        strategy: &str,
        seeds: u64,
        (part, parts): (u64, u64),
    ) -> State {
        State {
            version: VERSION,
            id: scenario.id.clone(),
            scenario: format!("{:016x}", scenario.digest),
            strategy: strategy.into(),
            seeds,
            part,
            parts,
            done: 0,
            exhausted: false,
            distinct: BTreeSet::new(),
            fingerprint: 0,
            failed: 0,
            failures: Vec::new(),
        }
    }

    /// Which search it is a part of.
    fn search(&self) -> String {
        let State { id, strategy, seeds, parts, .. } = self;
        format!("`{id}` ({strategy}), {seeds} seeds in {parts} parts")
    }

    /// How many runs of the search were not made, in these parts and in others.
    pub(super) fn left(&self) -> u64 {
        if self.exhausted { 0 } else { self.seeds.saturating_sub(self.done) }
    }

    /// How many seeds are in this part.
    pub(super) fn mine(&self) -> u64 {
        (self.seeds.saturating_sub(self.part)).div_ceil(self.parts.max(1))
    }

    /// Counts a run that failed, and keeps it if there is room.
    pub(super) fn add_failure(&mut self, found: impl FnOnce() -> Found) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            self.failures.push(found());
        }
    }

    pub(super) fn saw(&mut self, seed: u64, digest: u64) {
        let of_run = Digest::new().bytes(self.id.as_bytes()).word(seed).word(digest).value();
        self.fingerprint = self.fingerprint.wrapping_add(of_run);
        if self.distinct.len() < MOST_DISTINCT {
            self.distinct.insert(digest);
        }
    }

    /// What an earlier part of the same exploration has seen, if the file is there.
    pub(super) fn load(path: &Path, fresh: &State) -> Result<Option<State>, String> {
        if !path.exists() {
            return Ok(None);
        }
        let state = State::read(path)?;
        let same =
            |state: &State| (state.id.clone(), state.strategy.clone(), state.part, state.parts);
        if same(&state) != same(fresh) {
            let State { id, strategy, part, parts, .. } = &state;
            let what = format!("part {part} of {parts} of `{id}` ({strategy})");
            return Err(format!("{}: it is of another exploration: {what}", path.display()));
        }
        if state.scenario != fresh.scenario {
            let id = &state.id;
            let why = format!("`{id}` was edited since; move the file away to begin anew");
            return Err(format!("{}: {why}", path.display()));
        }
        Ok(Some(State { seeds: fresh.seeds, ..state }))
    }

    fn read(path: &Path) -> Result<State, String> {
        let at = |wrong: &dyn std::fmt::Display| format!("{}: {wrong}", path.display());
        let text = fs::read_to_string(path).map_err(|error| at(&error))?;
        let damaged = |wrong: &dyn std::fmt::Display| {
            at(&format!("not what an exploration has saved: {wrong}; move it away to begin anew"))
        };
        let state: State = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
        let State { version, part, parts, done, .. } = state;
        if version != VERSION {
            return Err(at(&format!("it is of version {version}, and this is for {VERSION}")));
        }
        if part >= parts {
            return Err(damaged(&format!("part {part} of {parts}")));
        }
        match state.mine() {
            mine if done > mine => Err(damaged(&format!("{done} runs of {mine} are done"))),
            // Files of earlier versions do not have the number.
            _ => Ok(State { failed: state.failed.max(state.failures.len() as u64), ..state }),
        }
    }

    /// Writes it, whole or not at all: under another name first, in the same folder.
    pub(super) fn save(&self, path: &Path) -> Result<(), String> {
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().ok_or_else(|| format!("{}: no file", path.display()))?);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let new = path.with_file_name(hidden);
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(self.to_json().as_bytes())?;
            // A name that outlives a crash must not outlive what it names.
            file.sync_all()
        });
        let kept = written.and_then(|()| fs::rename(&new, path));
        kept.map_err(|error| {
            // There is nothing more to be done about it.
            let _ = fs::remove_file(&new);
            at(error)
        })
    }

    /// What several parts have seen together.
    pub(super) fn merged(paths: &[PathBuf]) -> Result<State, String> {
        let mut parts = paths.iter().map(|path| State::read(path));
        let mut all = parts.next().unwrap_or(Err("nothing to merge".into()))?;
        let mut seen = BTreeSet::from([all.part]);
        for part in parts {
            let part = part?;
            let same = |state: &State| {
                (state.id.clone(), state.strategy.clone(), state.parts, state.seeds)
            };
            if same(&part) != same(&all) {
                let [one, other] = [&all, &part].map(State::search);
                return Err(format!("parts of two explorations: {one}, and {other}"));
            }
            if part.scenario != all.scenario {
                let id = &all.id;
                return Err(format!("parts of two versions of `{id}`: it was edited in between"));
            }
            if !seen.insert(part.part) {
                return Err(format!("part {} of `{}` is there twice", part.part, all.id));
            }
            all.done = all.done.saturating_add(part.done);
            all.distinct.extend(part.distinct);
            all.fingerprint = all.fingerprint.wrapping_add(part.fingerprint);
            all.failed = all.failed.saturating_add(part.failed);
            all.failures.extend(part.failures);
        }
        all.failures.sort_by_key(|found| found.seed);
        Ok(all)
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
