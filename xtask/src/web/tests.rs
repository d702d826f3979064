//! Running scripts that drive a headless browser; they clean up after themselves.

use super::{chain, dist, home, serve};
use crate::Result;
use crate::shell::{cargo, command, output, root};

/// Opens pages of traces in the browser: how many.
pub(super) fn run_reports() -> Result<usize> {
    let modules = chain::npm_packages()?.join("node_modules");
    let mut test = cargo("test --quiet -p asx-report --test browser -- --nocapture");
    let text = output(test.env("ASX_WEB_MODULES", modules))?;
    print!("{text}");
    match text.lines().filter(|line| line.starts_with("ok ")).count() {
        0 => Err(String::from("no page was opened")),
        pages => Ok(pages),
    }
}

/// Runs a script of `crates/web-page/browser`: its last line.
pub(super) fn run(script: &str) -> Result<String> {
    let address = serve::in_background(dist())?;
    let modules = chain::npm_packages()?.join("node_modules");
    let script = root().join("crates/web-page/browser").join(script);
    let mut node = command("node", &[]);
    node.arg(script)
        .env("ASX_WEB_ADDRESS", &address)
        .env("ASX_WEB_MODULES", modules)
        .env("ASX_WEB_OUT", home().join("out"));
    let text = output(&mut node)?;
    print!("{text}");
    Ok(text.lines().last().unwrap_or_default().to_owned())
}
