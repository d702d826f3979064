//! How much room the library takes: as a whole, and in programs that use a part of it.
//!
//! Text is what `size` calls so: code and constants, all that lies in a flash. A profile is chosen
//! when a runtime is created, so that a program has the code of all of them; what differs is the
//! memory it reserves.

use super::build::{Build, Built, library, sources};
use crate::Result;
use crate::shell::{command, output, run as sh, target_dir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIB: u64 = 1024;
/// A program with the embedded build must be smaller.
const MOST_PROGRAM: u64 = 96 * KIB;
/// The whole of the embedded build: no program has all of it. So that growth is noticed.
const MOST_LIBRARY: u64 = 151 * KIB;

const PROFILES: [&str; 4] = ["core", "embedded", "hft", "automotive"];
/// Programs whose size is measured.
pub(super) const EXAMPLES: [&str; 3] = ["sensor", "pipeline", "market"];

/// What was measured of a build.
struct Sizes {
    /// Text of the whole library.
    library: u64,
    /// Programs, with what they reserve if they say so.
    programs: Vec<(String, u64, Option<u64>)>,
}

/// Both builds, for people.
pub(super) fn run() -> Result {
    let mut table = String::new();
    for how in Build::ALL {
        let sizes = measure(&library(how)?)?;
        table +=
            &format!("{}: the whole library has {} bytes of text\n", how.name(), sizes.library);
        for (name, text, pool) in sizes.programs {
            let pool = pool.map_or(String::new(), |pool| format!(", default pool {pool}"));
            table += &format!("  {name}: {text} bytes of text{pool}\n");
        }
    }
    print!("{table}");
    Ok(())
}

/// The largest program with the embedded build, which must be small enough, and the whole library.
pub(super) fn check(embedded: &Built) -> Result<(u64, u64)> {
    let sizes = measure(embedded)?;
    judge(&sizes)?;
    let largest = sizes.programs.iter().map(|(_, text, _)| *text).max().unwrap_or(0);
    Ok((largest, sizes.library))
}

fn judge(sizes: &Sizes) -> Result {
    let large = |(name, text, _): &(String, u64, Option<u64>)| {
        (*text >= MOST_PROGRAM).then(|| format!("{name} has {text} bytes of text"))
    };
    let mut faults: Vec<String> = sizes.programs.iter().filter_map(large).collect();
    if sizes.library >= MOST_LIBRARY {
        faults.push(format!("the embedded library has {} bytes of text", sizes.library));
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("too large: {}", faults.join(", "))) }
}

fn measure(built: &Built) -> Result<Sizes> {
    let folder = target_dir().join("capi/sizes");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut programs = Vec::new();
    for profile in PROFILES {
        let name = format!("least program, {profile} profile");
        let define = format!("-DPROFILE=ASX_PROFILE_{}", profile.to_uppercase());
        let source = sources().join("tests/c/least.c");
        let program = link(built, &source, &[&define], &folder.join("least"))?;
        let pool = output(&mut Command::new(&program))?;
        let pool = pool.trim().parse().map_err(|_| format!("{name} says {pool:?}"))?;
        programs.push((name, text(&program)?, Some(pool)));
    }
    for example in EXAMPLES {
        let source = sources().join(format!("examples/c/{example}.c"));
        let program = link(built, &source, &[], &folder.join(example))?;
        sh(&mut Command::new(&program))?;
        programs.push((format!("example {example}"), text(&program)?, None));
    }
    Ok(Sizes { library: text(&built.object())?, programs })
}

/// A program for size, with as much of the library as it needs.
fn link(built: &Built, source: &Path, flags: &[&str], to: &Path) -> Result<PathBuf> {
    let mut compile = command("cc", &["-std=c99", "-Os", "-I"]);
    compile.arg(sources().join("include")).args(flags).arg(source);
    compile.arg(built.folder.join("libasx.a"));
    sh(compile.args(["-lpthread", "-Wl,--gc-sections", "-o"]).arg(to))?;
    Ok(to.to_owned())
}

/// Bytes of text.
fn text(of: &Path) -> Result<u64> {
    let told = output(command("size", &[]).arg(of))?;
    let number = told.lines().nth(1).and_then(|line| line.split_whitespace().next());
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("size says {told:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(library: u64, program: u64) -> Sizes {
        Sizes { library, programs: vec![(String::from("one"), program, None)] }
    }

    #[test]
    fn what_is_too_large_is_named() {
        assert_eq!(judge(&sizes(MOST_LIBRARY - 1, MOST_PROGRAM - 1)), Ok(()));
        let why = judge(&sizes(MOST_LIBRARY - 1, MOST_PROGRAM)).unwrap_err();
        assert_eq!(why, format!("too large: one has {MOST_PROGRAM} bytes of text"));
        let why = judge(&sizes(MOST_LIBRARY, 1)).unwrap_err();
        assert_eq!(
            why,
            format!("too large: the embedded library has {MOST_LIBRARY} bytes of text")
        );
    }
}
