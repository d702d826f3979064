//! `cargo xtask fuzz`: builds the targets of `fuzz/` with coverage counters and runs them.
//!
//! The flags below are those that libFuzzer needs. They work with the stable compiler, so neither a
//! nightly compiler nor cargo-fuzz is needed. No sanitizer is enabled: the code under test has no
//! `unsafe`. The corpus is kept below the target directory, and crashes in `fuzz/artifacts/`.

use crate::report::Verdict;
use crate::shell::{cargo, host, root, run as sh, target_dir, works};
use crate::{Result, apt};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebuginfo=line-tables-only",
];

pub(crate) fn run(args: &[String]) -> Result {
    let mut seconds = 30;
    let mut only = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let value = args.next().and_then(|value| value.parse().ok());
            seconds = value.ok_or("--seconds requires a number")?;
        } else {
            only = Some(arg.as_str());
        }
    }
    fuzz(seconds, only).map(|_| ())
}

/// Runs every target for a few seconds; skipped if libFuzzer cannot be compiled.
pub(crate) fn section(seconds: u32) -> Verdict {
    if !works("c++", &["--version"])
        && let Err(why) = apt::install(&["g++"])
    {
        return Verdict::Skipped(format!("libFuzzer needs a C++ compiler: {why}"));
    }
    match lint_and_test().and_then(|()| fuzz(seconds, None)) {
        Ok(count) => Verdict::Passed(format!("targets: {count}, {seconds} s each")),
        Err(why) => Verdict::Failed(why),
    }
}

/// Runs the checks of the fuzz workspace, which the sections of the main workspace do not cover.
fn lint_and_test() -> Result {
    for line in ["clippy --quiet --all-targets", "test --quiet"] {
        let mut step = cargo(line);
        step.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
        step.arg(target_dir().join("fuzz"));
        if line.starts_with("clippy") {
            step.args(["--", "-D", "warnings"]);
        }
        sh(&mut step)?;
    }
    Ok(())
}

fn fuzz(seconds: u32, only: Option<&str>) -> Result<usize> {
    let mut targets = targets()?;
    if let Some(only) = only {
        if !targets.iter().any(|target| target == only) {
            return Err(format!("no target `{only}`; targets: {}", targets.join(", ")));
        }
        targets.retain(|target| target == only);
    }
    let binaries = build(only)?;
    // A failure of one target does not prevent the others.
    let failed: Vec<String> = targets
        .iter()
        .filter_map(|target| run_target(&binaries.join(target), target, seconds).err())
        .collect();
    if failed.is_empty() { Ok(targets.len()) } else { Err(failed.join("; ")) }
}

/// Returns the names of the targets: one per file.
fn targets() -> Result<Vec<String>> {
    let dir = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the targets and returns the folder of the programs.
fn build(only: Option<&str>) -> Result<PathBuf> {
    let host = host()?;
    let target_dir = target_dir().join("fuzz");
    // Naming the target keeps the flags away from build scripts.
    let mut build = cargo("build --release --manifest-path fuzz/Cargo.toml --target");
    build.arg(&host).arg("--target-dir").arg(&target_dir);
    match only {
        Some(target) => build.args(["--bin", target]),
        None => build.arg("--bins"),
    };
    sh(build.env("RUSTFLAGS", FLAGS.join(" ")))?;
    Ok(target_dir.join(host).join("release"))
}

fn run_target(binary: &Path, target: &str, seconds: u32) -> Result {
    let corpus = target_dir().join("fuzz/corpus").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    for dir in [&corpus, &artifacts] {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let mut fuzzer = Command::new(binary);
    fuzzer.current_dir(root()).arg(&corpus);
    if target == "scenario" {
        // The reader's fuzzer starts from valid scenarios; it only reads this directory.
        fuzzer.arg("crates/conformance/fixtures");
    }
    fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display()));
    fuzzer.args([format!("-max_total_time={seconds}").as_str(), "-timeout=10", "-verbosity=0"]);
    fuzzer.args(["-print_final_stats=1", "-max_len=8192"]);
    sh(&mut fuzzer).map_err(|_| {
        let found = artifacts.strip_prefix(root()).unwrap_or(&artifacts).display();
        format!("target {target} failed; reproduce with: {} {found}/<input>", binary.display())
    })
}
