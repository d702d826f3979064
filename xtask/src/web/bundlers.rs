//! The npm package in applications of Vite, webpack and esbuild.
//!
//! `npm pack` makes the package that would be published. It is installed beside the bundlers of
//! `crates/web-js/bundlers/package-lock.json`, each bundler builds a small application with it, and
//! the applications run in Chromium. Any output of a bundler is a warning, and fails.

use super::{build, chain, home, tests, without_tools};
use crate::Result;
use crate::report::Verdict;
use crate::shell::{command, output, root, run as sh};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command lines of the documentation, with options that silence progress. Each writes to the
/// folder `out/NAME`, where `index.html` loads `main.js`. Vite writes that page itself.
const BUNDLES: [(&str, &str); 4] = [
    ("vite", "vite build --outDir out/vite --emptyOutDir --logLevel warn"),
    ("webpack", "webpack --output-path out/webpack --stats errors-warnings"),
    ("esbuild", "esbuild src/inline.js --bundle --minify --outfile=out/esbuild/main.js"),
    (
        "esbuild-file",
        "esbuild src/file.js --bundle --minify --format=esm --loader:.wasm=file \
         --outfile=out/esbuild-file/main.js",
    ),
];

/// Bundles the package's own scripts: esbuild shows no warnings of installed packages.
const CHECK: &str = "esbuild ../../dist/pkg/asx.js ../../dist/pkg/inline.js --bundle \
                     --format=esm --outdir=out/check";

/// A page for bundlers that write only scripts.
const PAGE: &str = "<!doctype html><meta charset=utf-8><link rel=icon href=data:,><body></body>\
                    <script type=module src=main.js></script>\n";

/// The output of webpack without warnings.
const WEBPACK_SUCCESS: &str = "webpack compiled successfully";

/// The test section.
pub(crate) fn section() -> Verdict {
    if let Err(why) = chain::ready() {
        return without_tools(why, super::on_ci(std::env::var("CI").ok().as_deref()));
    }
    match run() {
        Ok(tests) => Verdict::Passed(tests),
        Err(why) => Verdict::Failed(why),
    }
}

/// Bundles and runs the applications. Returns the last line of the browser tests.
pub(super) fn run() -> Result<String> {
    build::all()?;
    let app = install(&pack()?)?;
    for (name, line) in BUNDLES {
        bundle(&app, line)?;
        if name != "vite" {
            chain::write(&app.join("out").join(name).join("index.html"), PAGE)?;
        }
    }
    bundle(&app, CHECK)?;
    tests::run_at(app.join("out"), "bundlers.mjs", "chromium")
}

fn folder() -> PathBuf {
    home().join("bundlers")
}

/// The folder of the applications.
pub(super) fn app() -> PathBuf {
    folder().join("app")
}

/// Packs the npm package. Returns the archive.
fn pack() -> Result<PathBuf> {
    fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let mut npm = command("npm", &["pack", "--silent", "--pack-destination"]);
    let name = output(npm.arg(folder()).current_dir(super::dist().join("pkg")))?;
    Ok(folder().join(name.trim()))
}

/// Installs the bundlers and the packed package. Returns the folder of the applications.
fn install(package: &Path) -> Result<PathBuf> {
    let app = app();
    let source = root().join("crates/web-js/bundlers");
    let lock = source.join("package-lock.json");
    let mark = folder().join("installed");
    if !chain::is_newer(&mark, &lock) {
        build::copy_all(&source, &app)?;
        sh(&mut npm(&app, &["ci"]))?;
        chain::write(&mark, "")?;
    }
    build::copy_all(&source, &app)?;
    // Not added to the lock: the checksum of the package changes with each build.
    sh(npm(&app, &["install", "--no-save", "--no-package-lock"]).arg(package))?;
    Ok(app)
}

fn npm(app: &Path, words: &[&str]) -> Command {
    let mut npm = command("npm", words);
    npm.args(["--no-fund", "--no-audit", "--silent"]).current_dir(app);
    npm
}

/// Runs a bundler, which must not print anything.
fn bundle(app: &Path, line: &str) -> Result {
    let words: Vec<&str> = line.split_whitespace().collect();
    let program = app.join("node_modules/.bin").join(words[0]);
    let mut bundler = command(&program.to_string_lossy(), &words[1..]);
    if words[0] == "esbuild" {
        bundler.arg("--log-level=warning");
    }
    let ended = bundler.current_dir(app).output().map_err(|error| format!("{line}: {error}"))?;
    let printed = [ended.stdout, ended.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let is_quiet = matches!(printed.trim(), "" | WEBPACK_SUCCESS);
    if !(ended.status.success() && is_quiet) {
        return Err(format!("`{line}` in {}: {}\n{printed}", app.display(), ended.status));
    }
    Ok(())
}
