//! `cargo xtask asan`: tests under the address sanitizer, with leak detection.
//!
//! It needs a nightly compiler and checks every access of this project's code. `cargo xtask
//! valgrind` runs the shipped code instead.

use crate::nightly::{NO_NIGHTLY, has_nightly};
use crate::report::Verdict;
use crate::shell::{cargo, host, run as sh, target_dir};
use crate::{Result, no_args};

/// The arguments of `cargo test` that select the tests with `unsafe` code.
pub(crate) const TESTS: &str =
    "--quiet --lib --tests -p asx-journal -p asx-task -p asx-sync -p asx-native";
/// The hostile programs, which misuse the API. A bug there shows as a use after free.
const HOSTILE: &str = "--quiet -p asx --test hostile";

pub(crate) fn run(args: &[String]) -> Result {
    no_args(args)?;
    if !has_nightly() {
        return Err(String::from(NO_NIGHTLY));
    }
    for which in [TESTS, HOSTILE] {
        let mut test = cargo(&format!("+nightly test {which} --target"));
        // Naming the target keeps the flags away from build scripts.
        test.arg(host()?).arg("--target-dir").arg(target_dir().join("asan"));
        // Reused memory would hide accesses after the drop.
        sh(test.env("RUSTFLAGS", "-Zsanitizer=address --cfg asx_no_reuse"))?;
    }
    Ok(())
}

pub(crate) fn section() -> Verdict {
    if has_nightly() { run(&[]).into() } else { Verdict::Skipped(String::from(NO_NIGHTLY)) }
}
