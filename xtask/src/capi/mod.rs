//! `cargo xtask capi`: the C library as it is shipped, its header, its installation and its tests.

mod abuse;
mod answers;
mod build;
mod panics;
mod sizes;
mod test;

use self::build::Build;
use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, run as sh};
use std::path::PathBuf;

const USAGE: &str = "usage: capi [--embedded] | capi install --prefix DIR [--embedded] | \
                     capi (header | sizes | test)";

pub(crate) fn run(args: &[String]) -> Result {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (how, words) = match words[..] {
        [ref rest @ .., "--embedded"] => (Build::Embedded, rest.to_vec()),
        _ => (Build::Full, words),
    };
    match words[..] {
        [] => build::library(how).map(|built| println!("{built}")),
        ["install", "--prefix", prefix] => build::install(&PathBuf::from(prefix), how),
        _ if how == Build::Embedded => Err(String::from(USAGE)),
        ["header"] => header(),
        ["sizes"] => sizes::run(),
        ["test"] => match test::run() {
            Ok(told) => {
                println!("{told}");
                Ok(())
            }
            Err(why) => Err(why),
        },
        _ => Err(String::from(USAGE)),
    }
}

pub(crate) fn section() -> Verdict {
    match test::run() {
        Ok(told) => Verdict::Passed(told),
        Err(why) => Verdict::Failed(why),
    }
}

/// Makes the header anew.
fn header() -> Result {
    sh(cargo("test --quiet -p asx-capi --test header").env("ASX_BLESS", "1"))
}
