//! Running scripts that drive a headless browser; they clean up after themselves.

use super::{chain, dist, home, serve};
use crate::Result;
use crate::shell::{command, output, root};

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
