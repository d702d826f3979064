//! `cargo xtask mutants`: counts the deliberate errors in the kernel that the tests do not detect.
//!
//! `.cargo/mutants.toml` defines the mutations and the tests.

use crate::Result;
use crate::shell::{cargo, run as sh, target_dir, works};
use std::fs;
use std::path::Path;

const VERSION: &str = "27.1.0";

/// The share of viable mutants that may survive, in percent.
const ALLOWED: f64 = 3.0;

pub(crate) fn run(args: &[String]) -> Result {
    let options = options(args)?;
    if !works("cargo", &["mutants", "--version"]) {
        println!("installing cargo-mutants {VERSION}");
        sh(&mut cargo(&format!("install --locked cargo-mutants --version {VERSION}")))?;
    }
    let parent = target_dir().join("mutants");
    let out = parent.join("mutants.out");
    // An old result must not be mistaken for the new one.
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&parent).map_err(|error| format!("{}: {error}", parent.display()))?;

    let mut mutants = cargo("mutants --no-shuffle --colors never --package asx-kernel --output");
    mutants.arg(&parent).args(options);
    // Each copy of the tree builds in its own directory.
    mutants.env_remove("CARGO_TARGET_DIR");
    let ended = sh(&mut mutants);
    // It fails if any mutants survive; here some are allowed.
    let tally = Tally::read(&out).map_err(|why| ended.err().unwrap_or(why))?;
    for survivor in &tally.missed {
        println!("survivor: {survivor}");
    }
    println!("{}", tally.summary());
    tally.judge()
}

/// Checks the options, which are passed on: `--name value` pairs.
fn options(args: &[String]) -> Result<Vec<String>> {
    for pair in args.chunks(2) {
        let known = matches!(pair[0].as_str(), "--shard" | "--file" | "--jobs");
        if !known || pair.len() < 2 {
            return Err(format!("unexpected argument `{}`", pair[0]));
        }
    }
    Ok(args.to_vec())
}

/// The number of mutants by result. Those that do not compile are ignored.
struct Tally {
    missed: Vec<String>,
    caught: usize,
    timeout: usize,
    unviable: usize,
}

impl Tally {
    fn read(out: &Path) -> Result<Tally> {
        let lines = |name: &str| {
            let path = out.join(name);
            let text = fs::read_to_string(&path);
            let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<_, String>(text.lines().map(str::to_owned).collect::<Vec<_>>())
        };
        let missed = lines("missed.txt")?;
        let caught = lines("caught.txt")?.len();
        let timeout = lines("timeout.txt")?.len();
        let unviable = lines("unviable.txt")?.len();
        Ok(Tally { missed, caught, timeout, unviable })
    }

    fn viable(&self) -> usize {
        self.missed.len() + self.caught + self.timeout
    }

    fn percent(&self) -> f64 {
        100.0 * self.missed.len() as f64 / self.viable().max(1) as f64
    }

    fn summary(&self) -> String {
        format!(
            "{} of {} viable mutants survived ({:.1} %); {} timed out, {} did not compile",
            self.missed.len(),
            self.viable(),
            self.percent(),
            self.timeout,
            self.unviable
        )
    }

    fn judge(&self) -> Result {
        if self.viable() == 0 {
            return Err(String::from("no mutant was tested"));
        }
        if self.percent() > ALLOWED {
            return Err(format!("more than {ALLOWED} % survived"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(missed: usize, caught: usize, timeout: usize) -> Tally {
        Tally { missed: vec![String::new(); missed], caught, timeout, unviable: 50 }
    }

    #[test]
    fn three_percent_may_survive() {
        assert!(tally(3, 90, 7).judge().is_ok());
        assert!(tally(4, 90, 6).judge().is_err());
        assert!(tally(0, 0, 0).judge().is_err());
        let summary = "3 of 100 viable mutants survived (3.0 %); 7 timed out, 50 did not compile";
        assert_eq!(tally(3, 90, 7).summary(), summary);
    }

    #[test]
    fn only_known_options_are_accepted() {
        let options =
            |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(options("--shard 1/4 --jobs 2 --file crates/kernel/src/arena.rs").is_ok());
        assert!(options("--shard").is_err());
        assert!(options("--in-place yes").is_err());
    }
}
