//! The programs on madsim, in a process of their own.
//!
//! Its simulator is there only if every crate is compiled with `--cfg madsim`, which replaces
//! clocks and random numbers of the whole program. So it is a small program (`madsim/`), which is
//! built here, and then asked over its standard input: `rate|find PROGRAM SEED RUNS`. It answers
//! how many nanoseconds and runs that took, or `none`.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

/// The other process.
#[derive(Clone)]
pub(crate) struct Madsim(Rc<RefCell<Inner>>);

struct Inner {
    child: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Madsim {
    /// Builds and starts it; says why that cannot be.
    pub(crate) fn start() -> Result<Madsim, String> {
        let program = build()?;
        let start = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It tells of every run that fails.
            .stderr(Stdio::null())
            .spawn();
        let mut child = start.map_err(|error| format!("{}: {error}", program.display()))?;
        let asks = child.stdin.take();
        let answers = child.stdout.take();
        let answers = BufReader::new(answers.ok_or("it has no output")?);
        Ok(Madsim(Rc::new(RefCell::new(Inner { child, asks, answers }))))
    }

    /// Nanoseconds that so many schedules without the bug take, and how many there were.
    pub(crate) fn rate(&self, program: &str, seed: u64, runs: u64) -> Option<(f64, u64)> {
        self.ask(&format!("rate {program} {seed} {runs}"))
    }

    /// Nanoseconds until a schedule fails, and which it was.
    pub(crate) fn find(&self, program: &str, seed: u64, runs: u64) -> Option<(f64, u64)> {
        self.ask(&format!("find {program} {seed} {runs}"))
    }

    fn ask(&self, line: &str) -> Option<(f64, u64)> {
        let Inner { asks, answers, .. } = &mut *self.0.borrow_mut();
        writeln!(asks.as_mut()?, "{line}").ok()?;
        let mut answer = String::new();
        answers.read_line(&mut answer).ok()?;
        let (nanos, runs) = answer.trim().split_once(' ')?;
        Some((nanos.parse().ok()?, runs.parse().ok()?))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It ends with its input.
        self.asks = None;
        let _ = self.child.wait();
    }
}

/// Builds it beside this program; answers where it is.
fn build() -> Result<std::path::PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("madsim");
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = own.parent().unwrap_or(&folder).join("madsim");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", "--cfg madsim")
        .status();
    match status {
        Ok(status) if status.success() => Ok(target.join("release/asx-bench-madsim")),
        Ok(status) => Err(format!("it cannot be built: {status}")),
        Err(error) => Err(format!("it cannot be built: {error}")),
    }
}
