//! `cargo xtask web`: builds the browser host and its pages, and tests them in browsers.
//!
//! ```text
//! crates -> wasm (rustup's target, or Debian's compiler: `web/chain`) -> glue (xtask/bindgen)
//!        -> wasm-opt -> target/web/dist: hello/ pkg/ page/ + static files -> headless Chromium
//! ```

pub(crate) mod bundlers;

mod build;
mod chain;
mod scripts;
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
            tests::run("measure.mjs")?;
            tests::responsive()
        }
        _ => Err(format!("unexpected arguments: {args:?}; --serve, --test or --measure")),
    }
}

/// The section of browser tests. Skipped only where the tools are not available, and never if `CI`
/// is set.
pub(crate) fn section() -> Verdict {
    if let Err(why) = chain::ready() {
        return without_tools(why, on_ci(std::env::var("CI").ok().as_deref()));
    }
    match build::all().and_then(|size| Ok((size, tests::all()?))) {
        Ok((size, tests)) => Verdict::Passed(format!("{tests}; {size}")),
        Err(why) => Verdict::Failed(why),
    }
}

/// The verdict where the browser or the tools of the build are not available.
fn without_tools(why: String, on_ci: bool) -> Verdict {
    if on_ci {
        return Verdict::Failed(format!("{why}; the CI demands the browser (CI is set)"));
    }
    Verdict::Skipped(why)
}

/// Whether the variable `CI` is set.
fn on_ci(variable: Option<&str>) -> bool {
    variable.is_some_and(|value| !matches!(value, "" | "0" | "false"))
}

/// The folder of all files of this command.
fn home() -> PathBuf {
    target_dir().join("web")
}

/// The folder that is served.
fn dist() -> PathBuf {
    home().join("dist")
}

#[cfg(test)]
mod tests_of_the_section {
    use super::*;

    #[test]
    fn the_ci_demands_the_browser() {
        let why = || String::from("there is no apt-get");
        assert_eq!(without_tools(why(), false), Verdict::Skipped(why()));
        let Verdict::Failed(findings_of) = without_tools(why(), true) else {
            panic!("it is skipped")
        };
        assert!(findings_of.starts_with(&why()), "{findings_of}");
        assert!([Some("true"), Some("1")].into_iter().all(on_ci));
        assert!(![None, Some(""), Some("false"), Some("0")].into_iter().any(on_ci));
    }
}
