//! `cargo xtask web`: builds what runs in browsers, and tests it there.
//!
//! ```text
//! crates -> wasm (rustup's target, or Debian's compiler: `web/chain`) -> glue (xtask/bindgen)
//!        -> wasm-opt -> target/web/dist: hello/ pkg/ page/ + static files -> headless Chromium
//! ```

mod build;
mod chain;
mod serve;
mod tests;

use crate::Result;
use crate::report::Verdict;
use crate::shell::target_dir;
use std::path::PathBuf;

/// `cargo xtask web [--serve | --test | --measure]`.
pub(crate) fn run(args: &[String]) -> Result {
    let flags: Vec<&str> = args.iter().map(String::as_str).collect();
    match flags[..] {
        [] => build::all().map(drop),
        ["--serve"] => {
            build::all()?;
            serve::forever(&dist())
        }
        ["--test"] => {
            build::all()?;
            tests::all().map(drop)
        }
        ["--measure"] => {
            build::all()?;
            tests::run("measure.mjs").map(drop)
        }
        _ => Err(format!("unexpected arguments: {args:?}; --serve, --test or --measure")),
    }
}

/// The browser tests as a section: skipped only when the tools cannot be had.
pub(crate) fn section() -> Verdict {
    if let Err(why) = chain::ready() {
        return Verdict::Skipped(why);
    }
    match build::all().and_then(|size| Ok((size, tests::all()?))) {
        Ok((size, tests)) => Verdict::Passed(format!("{tests}; {size}")),
        Err(why) => Verdict::Failed(why),
    }
}

/// Where everything of this chore is kept.
fn home() -> PathBuf {
    target_dir().join("web")
}

/// What is to be served.
fn dist() -> PathBuf {
    home().join("dist")
}
