//! Building: wasm, glue, optimiser, static files.

use super::chain::{self, TARGET, cargo_for_web, copy, files, is_newer};
use super::scripts;
use super::{dist, home};
use crate::Result;
use crate::shell::{command, output, root, run as sh};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A WebAssembly file with its glue.
struct Part {
    wasm: &'static str,
    /// The folder in `dist`.
    folder: &'static str,
    name: &'static str,
    /// Whether it is the module of the npm package: the glue differs (`xtask/bindgen`).
    is_package: bool,
}

const PARTS: [Part; 4] = [
    Part { wasm: "examples/hello", folder: "hello", name: "hello", is_package: false },
    Part { wasm: "asx_web_js", folder: "pkg/wasm", name: "asx", is_package: true },
    Part { wasm: "asx_web_page", folder: "page", name: "page", is_package: false },
    Part { wasm: "asx_web_corpus", folder: "corpus", name: "corpus", is_package: false },
];

/// The cargo commands. The corpus enables the hooks of the lab in the runtime, so it is built
/// separately.
const BUILDS: [&str; 2] = [
    "build --profile web -p asx-web -p asx-web-js -p asx-web-page --lib --examples",
    "build --profile web -p asx-web-corpus",
];

/// Arguments of the optimiser. Compressed, the result is no larger than with `-Oz`. No features are
/// enabled: browsers reject some of them.
const OPTIMISER: [&str; 3] = ["-O3", "--strip-producers", "--strip-target-features"];

/// Limit of the compressed size of the example `hello`, WebAssembly and glue.
const HELLO_LIMIT: usize = 64_000;

/// Sections that run beside each other build one after the other.
static TURN: Mutex<()> = Mutex::new(());

/// Builds everything into `dist`. Returns the size of the smallest page.
pub(super) fn all() -> Result<String> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    chain::ready()?;
    for build in BUILDS {
        sh(&mut cargo_for_web(build)?)?;
    }
    PARTS.iter().try_for_each(Part::finish)?;
    static_files()?;
    let size = hello_size()?;
    let said = format!("hello is {size} bytes gzipped, wasm and glue");
    println!("{said}");
    if size > HELLO_LIMIT {
        return Err(format!("{said}: more than {HELLO_LIMIT}"));
    }
    Ok(said)
}

impl Part {
    /// Writes the glue and optimises the file, unless that was done for this file.
    fn finish(&self) -> Result {
        let Part { wasm, folder, name, is_package } = self;
        let wasm = home().join("build").join(TARGET).join("web").join(format!("{wasm}.wasm"));
        let folder = dist().join(folder);
        let raw = folder.join(format!("{name}_bg.wasm"));
        let done = folder.join("small.wasm");
        // An interrupted run leaves files that look finished, but no mark.
        let mark = home().join("finished").join(name);
        let bindgen = chain::bindgen()?;
        if raw.is_file() && is_newer(&mark, &wasm) && is_newer(&mark, &bindgen) {
            return Ok(());
        }
        let flags: &[&str] = if *is_package { &["--package"] } else { &[] };
        let mut write = command(&bindgen.to_string_lossy(), &[]);
        sh(write.arg(&wasm).arg(&folder).arg(name).args(flags))?;
        let optimiser = chain::npm_packages()?.join("node_modules/.bin/wasm-opt");
        let mut optimise = command(&optimiser.to_string_lossy(), &OPTIMISER);
        sh(optimise.arg(&raw).arg("-o").arg(&done))?;
        scripts::finish(&folder)?;
        fs::rename(&done, &raw).map_err(|error| format!("{}: {error}", raw.display()))?;
        if *is_package {
            scripts::embed(&raw, &folder.join("bytes.js"))?;
        }
        chain::write(&mark, "")
    }
}

/// Copies the static files, and the scripts with which `asx parity` drives a browser.
fn static_files() -> Result {
    copy_all(&root().join("crates/web-page/browser"), &home().join("harness"))?;
    copy_all(&root().join("crates/web-page/static"), &dist())?;
    copy_all(&root().join("crates/web-js/pkg"), &dist().join("pkg"))
}

pub(super) fn copy_all(from: &Path, to: &Path) -> Result {
    for path in files(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_all(&path, &target)?;
        } else {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

/// The compressed size of the files that a browser loads for `hello`.
fn hello_size() -> Result<usize> {
    let folder = dist().join("hello");
    let wasm = folder.join("hello_bg.wasm");
    let glue = scripts::all(&folder)?;
    glue.iter().chain([&wasm]).map(|path| gzipped(path)).sum()
}

fn gzipped(path: &Path) -> Result<usize> {
    let script = "const z = require('node:zlib'), f = require('node:fs');\
                  console.log(z.gzipSync(f.readFileSync(process.argv[1]), { level: 9 }).length)";
    let mut node = command("node", &["-e", script]);
    let text = output(node.arg(path))?;
    text.trim().parse().map_err(|_| format!("`{}` is no size", text.trim()))
}
