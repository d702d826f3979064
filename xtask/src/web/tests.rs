//! Running scripts that drive a headless browser; they clean up after themselves.

use super::{chain, dist, home, serve};
use crate::check::others;
use crate::shell::{cargo, command, output, root, run as sh, works};
use crate::{Result, apt, conform};

/// All tests: of the package's types, in the browser, of pages of traces, and of the browser
/// against other hosts.
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

/// Opens pages of traces in the browser: how many.
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

/// Holds the package's declarations, and a program that uses them, against TypeScript's compiler.
/// Where the program is wrong on purpose it says so, and the compiler wants that to be so.
fn types() -> Result {
    let compiler = chain::npm_packages()?.join("node_modules/.bin/tsc");
    let project = root().join("crates/web-js/types/tsconfig.json");
    sh(command(&compiler.to_string_lossy(), &["--project"]).arg(project))
}

/// The tests that its driver can do, in Firefox: installed for them where Debian's packages can be
/// had, skipped elsewhere.
fn in_firefox() -> Result<String> {
    if !works("firefox-esr", &["--version"])
        && let Err(why) = apt::install(&["firefox-esr"])
    {
        return Ok(format!("Firefox skipped: {why}"));
    }
    run_in("tests.mjs", "firefox")
}

/// Measures how responsive a page stays, in both browsers.
pub(super) fn responsive() -> Result {
    run("responsive.mjs")?;
    if works("firefox-esr", &["--version"]) {
        run_in("responsive.mjs", "firefox")?;
    }
    Ok(())
}

/// Runs a script of `crates/web-page/browser` with Chromium: its last line.
pub(super) fn run(script: &str) -> Result<String> {
    run_in(script, "chromium")
}

fn run_in(script: &str, browser: &str) -> Result<String> {
    let address = serve::in_background(dist())?;
    let modules = chain::npm_packages()?.join("node_modules");
    let script = root().join("crates/web-page/browser").join(script);
    let mut node = command("node", &[]);
    node.arg(script)
        .env("ASX_WEB_ADDRESS", &address)
        .env("ASX_WEB_BROWSER", browser)
        .env("ASX_WEB_MODULES", modules)
        .env("ASX_WEB_OUT", home().join("out"));
    let text = output(&mut node)?;
    print!("{text}");
    Ok(text.lines().last().unwrap_or_default().to_owned())
}
