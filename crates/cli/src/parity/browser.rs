//! The host `web` in a real browser.
//!
//! `cargo xtask web` leaves a folder with what it takes: a page that runs scenarios, the packages
//! that drive Chromium, and a script that reads scenarios from its standard input and writes their
//! records to its standard output.
//!
//! ```text
//! fixtures -> node harness/parity.mjs -> Chromium -> page: wasm -> records, a line each
//! ```

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, io, thread};

use asx_conformance::Fixture;

/// How one comes by a browser.
pub(super) const HOW: &str = "`cargo xtask web` sets up a browser for --place browser";

/// The variable that names the folder.
const FOLDER: &str = "ASX_WEB";

/// The script in it.
const SCRIPT: &str = "harness/parity.mjs";

/// What has to be there.
const PARTS: [&str; 3] = [SCRIPT, "dist/corpus/corpus_bg.wasm", "npm/node_modules/playwright-core"];

/// A browser that is set up.
pub(super) struct Browser(PathBuf);

/// Why nothing was run in a browser.
#[derive(Debug)]
pub(super) enum NoBrowser {
    /// It is not set up: where that was looked for.
    NotSetUp(Vec<PathBuf>),
    /// The program that drives it does not start.
    Driver(io::Error),
    /// It was started, and ended without an answer.
    Ended(String),
}

impl fmt::Display for NoBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBrowser::NotSetUp(places) => {
                let places: Vec<_> = places.iter().map(|it| it.display().to_string()).collect();
                let places = places.join(", ");
                write!(f, "host `web`: no browser is set up in {places}: run `cargo xtask web`, ")?;
                write!(f, "or name its folder in {FOLDER}; --place program does without")
            }
            NoBrowser::Driver(error) => {
                write!(f, "host `web`: `node`, which drives the browser: {error}; ")?;
                write!(f, "run `cargo xtask web`; --place program does without")
            }
            NoBrowser::Ended(how) => {
                write!(f, "host `web`: the browser ended without an answer: {how}; ")?;
                write!(f, "`cargo xtask web --test` tells more")
            }
        }
    }
}

impl Browser {
    /// The browser that is set up, if there is one.
    pub(super) fn find() -> Result<Browser, NoBrowser> {
        let places = places();
        let is_whole = |folder: &&PathBuf| PARTS.iter().all(|part| folder.join(part).exists());
        match places.iter().find(is_whole) {
            Some(folder) => Ok(Browser(folder.clone())),
            None => Err(NoBrowser::NotSetUp(places)),
        }
    }

    /// Runs scenarios in a page of it: the lines of its records.
    pub(super) fn run(&self, fixtures: &[Fixture]) -> Result<String, NoBrowser> {
        let fixtures: Vec<_> = fixtures.iter().map(|it| (&it.file, &it.text)).collect();
        let wanted = serde_json::json!(fixtures).to_string();
        let mut node = Command::new("node")
            .arg(self.0.join(SCRIPT))
            .arg(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(NoBrowser::Driver)?;
        // A script that does not read to the end says why itself.
        let writer = node.stdin.take().map(|mut to| {
            thread::spawn(move || {
                let _ = to.write_all(wanted.as_bytes());
            })
        });
        let output = node.wait_with_output().map_err(NoBrowser::Driver)?;
        let _ = writer.map(thread::JoinHandle::join);
        match (output.status.success(), String::from_utf8(output.stdout)) {
            (true, Ok(text)) => Ok(text),
            (true, Err(error)) => Err(NoBrowser::Ended(error.to_string())),
            (false, _) => Err(NoBrowser::Ended(output.status.to_string())),
        }
    }
}

/// Where one may be: in the folder that is named, or where builds go, next to this program or below
/// the current folder.
fn places() -> Vec<PathBuf> {
    if let Some(folder) = env::var_os(FOLDER) {
        return vec![folder.into()];
    }
    let program = env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let mut places: Vec<_> = beside.map(|target| target.join("web")).into_iter().collect();
    places.push(Path::new("target").join("web"));
    places
}
