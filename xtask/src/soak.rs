//! `cargo xtask soak`: the long run of `crates/native/examples/soak`.

use crate::Result;
use crate::report::Verdict;
use crate::shell::{cargo, run as sh};

pub(crate) fn run(args: &[String]) -> Result {
    sh(cargo("run --release --quiet -p asx-native --example soak --").args(args))
}

pub(crate) fn section(seconds: u32) -> Verdict {
    match run(&["--seconds".into(), seconds.to_string()]) {
        Ok(()) => Verdict::Passed(format!("{seconds} s")),
        Err(why) => Verdict::Failed(why),
    }
}
