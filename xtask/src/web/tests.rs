//! Runs scripts that drive a headless browser.

use super::{bundlers, chain, dist, home, serve};
use crate::check::others;
use crate::shell::{cargo, command, output, root, run as sh, works};
use crate::{Result, apt, conform};
use std::path::PathBuf;

/// Runs all tests: types of the package, browsers, pages of traces, and comparisons with other
/// hosts.
pub(super) fn all() -> Result<String> {
    types()?;
    let tests = run("tests.mjs")?;
    let firefox = in_firefox()?;
    let pages = run_reports()?;
    let compared = conform::parity("model,native,web,c", "browser")?;
    let all = format!(
        "{tests}; {firefox}; {pages} pages of traces; {compared} runs compared with other hosts"
    );
    println!("{all}");
    Ok(all)
}

/// Opens pages of traces in the browser. Returns their number.
fn run_reports() -> Result<usize> {
    let modules = chain::npm_packages()?.join("node_modules");
    let mut test = cargo(&format!("test --quiet {} --test browser -- --nocapture", others()));
    let text = output(test.env("ASX_WEB_MODULES", modules))?;
    print!("{text}");
    match text.lines().filter(|line| line.starts_with("ok ")).count() {
        0 => Err(String::from("no page was opened")),
        pages => Ok(pages),
    }
}

/// Checks the package's declarations with TypeScript's compiler: a program that uses them, and one
/// with errors that the compiler must find.
fn types() -> Result {
    let compiler = chain::npm_packages()?.join("node_modules/.bin/tsc");
    let project = root().join("crates/web-js/types/tsconfig.json");
    sh(command(&compiler.to_string_lossy(), &["--project"]).arg(project))
}

/// Runs the tests that its driver supports in Firefox. Skipped where it cannot be installed.
fn in_firefox() -> Result<String> {
    match firefox() {
        Ok(()) => run_in("tests.mjs", "firefox"),
        Err(why) => Ok(format!("Firefox skipped: {why}")),
    }
}

/// Installs Debian's Firefox, unless it is there.
fn firefox() -> Result {
    match works("firefox-esr", &["--version"]) {
        true => Ok(()),
        false => apt::install(&["firefox-esr"]),
    }
}

/// Measures how responsive a page stays, in both browsers.
pub(super) fn responsive() -> Result {
    run("responsive.mjs")?;
    match firefox() {
        Ok(()) => run_in("responsive.mjs", "firefox").map(drop),
        Err(why) => {
            println!("Firefox skipped: {why}");
            Ok(())
        }
    }
}

/// Runs a script of `crates/web-page/browser` with Chromium. Returns its last line.
pub(super) fn run(script: &str) -> Result<String> {
    run_in(script, "chromium")
}

fn run_in(script: &str, browser: &str) -> Result<String> {
    run_at(dist(), script, browser)
}

/// Runs a script with a browser while a folder is served. Returns its last line.
pub(super) fn run_at(folder: PathBuf, script: &str, browser: &str) -> Result<String> {
    let address = serve::in_background(folder)?;
    let modules = chain::npm_packages()?.join("node_modules");
    let script = root().join("crates/web-page/browser").join(script);
    let mut node = command("node", &[]);
    node.arg(script)
        .env("ASX_WEB_ADDRESS", &address)
        .env("ASX_WEB_BROWSER", browser)
        .env("ASX_WEB_MODULES", modules)
        .env("ASX_WEB_APP", bundlers::app())
        .env("ASX_WEB_OUT", home().join("out"));
    let text = output(&mut node)?;
    print!("{text}");
    Ok(text.lines().last().unwrap_or_default().to_owned())
}
