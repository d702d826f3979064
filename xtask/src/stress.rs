//! `cargo xtask stress`: runs random programs (`crates/stress`) for some time.

use std::process::Command;

use crate::Result;
use crate::audit::audited;
use crate::nightly::{NO_NIGHTLY, component, has_nightly};
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, target_dir};
use crate::tsan::sanitized;

const USAGE: &str = "usage: stress [--minutes N] [--asan | --tsan | --audit] [ARGS of asx-stress]";

/// The build under which the programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    Release,
    Asan,
    Tsan,
    /// With the ledger of references: see `audit`.
    Audit,
}

#[derive(Debug, PartialEq, Eq)]
struct Stress {
    under: Under,
    /// Arguments for the program itself.
    args: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result {
    let Stress { under, args } = parse(args)?;
    let leaks = CLEAN.iter().all(|option| args.iter().any(|arg| arg == option));
    let detect = if leaks { "detect_leaks=1" } else { "detect_leaks=0" };
    match under.command() {
        Ok(mut command) => sh(command.args(args).env("ASAN_OPTIONS", detect)),
        Err(Missing::Skips(why)) => {
            println!("stress: skipped: {why}");
            Ok(())
        }
        Err(Missing::Fails(why)) => Err(why),
    }
}

/// With these options every program frees all its memory: nothing is forgotten on purpose, and no
/// destructor panics (then Rust leaks the value that the function was about to return).
const CLEAN: [&str; 2] = ["--no-forgets", "--no-callback-panics"];

/// Runs programs for `release` seconds as shipped, and for `asan` seconds under the address
/// sanitizer, if that is available. Each is repeated with programs that leave nothing in memory.
pub(crate) fn section(release: u32, asan: u32) -> Verdict {
    let twice = |first: u32, second: u32, under: &[&str]| {
        let args = |seconds: u32, more: &[&str]| {
            let mut args = vec![String::from("--seconds"), seconds.to_string()];
            args.extend(under.iter().chain(more).map(ToString::to_string));
            args
        };
        run(&args(first, &[])).and_then(|()| run(&args(second, &CLEAN)))
    };
    if let Err(why) = twice(release, release / 4, &[]) {
        return Verdict::Failed(why);
    }
    if !has_nightly() {
        return Verdict::Passed(format!("{release} s; no address sanitizer: {NO_NIGHTLY}"));
    }
    match twice(asan, asan, &["--asan"]) {
        Ok(()) => Verdict::Passed(format!("{release} s, address sanitizer twice {asan} s")),
        Err(why) => Verdict::Failed(why),
    }
}

fn parse(args: &[String]) -> Result<Stress> {
    let mut stress = Stress { under: Under::Release, args: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--asan" => stress.under = Under::Asan,
            "--tsan" => stress.under = Under::Tsan,
            "--audit" => stress.under = Under::Audit,
            "--minutes" => {
                let minutes = args.next().and_then(|minutes| minutes.parse::<u64>().ok());
                let seconds = minutes.and_then(|minutes| minutes.checked_mul(60)).ok_or(USAGE)?;
                stress.args.extend(["--seconds".into(), seconds.to_string()]);
            }
            _ => stress.args.push(arg.clone()),
        }
    }
    Ok(stress)
}

/// The reason why a command cannot run.
enum Missing {
    /// An optional tool is missing.
    Skips(String),
    Fails(String),
}

impl From<String> for Missing {
    fn from(why: String) -> Missing {
        Missing::Fails(why)
    }
}

impl Under {
    fn command(self) -> std::result::Result<Command, Missing> {
        const RUN: &str = "run --release --quiet -p asx-stress";
        if self == Under::Release {
            return Ok(cargo(&format!("{RUN} --")));
        }
        if self == Under::Audit {
            return Ok(audited("run --quiet -p asx-stress --"));
        }
        if self == Under::Tsan {
            component("rust-src").map_err(Missing::Skips)?;
            let mut command = cargo("+nightly run --quiet -p asx-stress");
            sanitized(&mut command)?.arg("--");
            return Ok(command);
        }
        if !has_nightly() {
            return Err(Missing::Skips(NO_NIGHTLY.into()));
        }
        // The profile of the tests under this sanitizer, which has built most of the crates.
        let mut command = cargo("+nightly run --quiet -p asx-stress");
        // Naming the target keeps the flags away from build scripts.
        command.args(["--target", &host()?, "--target-dir"]).arg(target_dir().join("asan"));
        // Reused memory would hide accesses after the drop.
        command.env("RUSTFLAGS", "-Zsanitizer=address --cfg asx_no_reuse").arg("--");
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Stress> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn minutes_are_converted_and_other_arguments_passed_on() {
        let stress = parsed("--asan --minutes 2 --seed 7").unwrap();
        assert_eq!(stress.under, Under::Asan);
        assert_eq!(stress.args, ["--seconds", "120", "--seed", "7"]);
        assert_eq!(parsed("--audit").unwrap().under, Under::Audit);
        assert!(parsed("--minutes").is_err() && parsed("--minutes x").is_err());
        assert_eq!(parsed("").unwrap(), Stress { under: Under::Release, args: Vec::new() });
    }
}
