//! `cargo xtask capi`: the C library as it is shipped, its header, its installation and its tests.

mod abuse;
mod answers;
mod build;
mod panics;
mod test;

use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, run as sh};
use std::path::PathBuf;

pub(crate) fn run(args: &[String]) -> Result {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => build::library().map(|built| println!("{built}")),
        ["header"] => header(),
        ["install", "--prefix", prefix] => build::install(&PathBuf::from(prefix)),
        ["test"] => match test::run() {
            Ok(told) => {
                println!("{told}");
                Ok(())
            }
            Err(why) => Err(why),
        },
        _ => Err(String::from("usage: capi [header | install --prefix DIR | test]")),
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
