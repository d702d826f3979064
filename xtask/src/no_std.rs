//! `cargo xtask bare`: checks that the kernel, the traces and the C library need no std, by
//! building them for a target without an operating system.
//!
//! If rustup can install the target, this is a plain build. Otherwise Debian's compiler is used,
//! because Debian packages the matching sources of `core` and `alloc`, which cargo can build. The
//! build is kept below the target directory.

use crate::report::Verdict;
use crate::shell::{add_target, cargo, command, run as sh, target_dir};
use crate::{Result, apt, no_args};
use std::path::Path;

/// A 32-bit target without an operating system.
const TARGET: &str = "thumbv7em-none-eabi";

/// The builds: with all features, and with none.
const WHAT: [&str; 2] = [
    "-p asx-kernel -p asx-trace -p asx-capi --no-default-features --features asx-capi/full --lib",
    "-p asx-kernel -p asx-capi --no-default-features --lib",
];

/// Debian's compiler, and the matching sources of the standard library.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    match section() {
        Verdict::Passed(_) => Ok(()),
        Verdict::Skipped(why) | Verdict::Failed(why) => Err(why),
    }
}

/// Runs the builds as a section, which is skipped only if no compiler is available.
pub(crate) fn section() -> Verdict {
    if add_target(TARGET).is_ok() {
        let build = |what| sh(&mut cargo(&format!("build {what} --target {TARGET}")));
        return with_note(WHAT.into_iter().try_for_each(build), "rustup's target");
    }
    if let Err(why) = debian_compiler() {
        println!("Debian's compiler cannot be used: {why}");
        let installed = apt::install(&PACKAGES).and_then(|()| debian_compiler());
        if let Err(why) = installed {
            return Verdict::Skipped(format!(
                "rustup lacks {TARGET}, and of Debian's compiler: {why}"
            ));
        }
    }
    with_note(WHAT.into_iter().try_for_each(build_with_core), "core and alloc built from source")
}

fn with_note(result: Result, how: &str) -> Verdict {
    match result {
        Ok(()) => Verdict::Passed(format!("{TARGET}, {how}")),
        Err(why) => Verdict::Failed(why),
    }
}

fn build_with_core(what: &str) -> Result {
    let mut build = cargo(&format!("build {what} -Z build-std=core,alloc --target"));
    build.arg(TARGET).arg("--target-dir").arg(target_dir().join("bare"));
    build.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
    sh(&mut build)
}

/// Whether Debian's compiler is installed, recent enough, and has its sources.
fn debian_compiler() -> Result {
    let ask = |args: &[&str]| {
        let output = command(DEBIAN_RUSTC, args).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let version = ask(&["--version"]).ok_or("it is not installed")?;
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    if minor(version.split(' ').nth(1).unwrap_or("")) < minor(wanted) {
        return Err(format!("{} is older than {wanted}", version.trim()));
    }
    let sysroot = ask(&["--print", "sysroot"]).unwrap_or_default();
    let lock = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    if lock.is_file() { Ok(()) } else { Err(String::from("the sources of core are missing")) }
}

/// Returns the minor number of a version.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(minor("1.96.0"), Some(96));
        assert!(minor("1.100.0") > minor("1.95") && minor("1.63.0") < minor("1.95"));
        assert!(minor("") < minor("1.95"));
    }
}
