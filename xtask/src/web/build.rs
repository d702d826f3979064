//! Building: wasm, glue, optimiser, static files.

use super::chain::{self, TARGET, cargo_for_web, copy, files};
use super::{dist, home};
use crate::Result;
use crate::shell::{command, output, root, run as sh};
use std::fs;
use std::path::Path;

/// What is built: its wasm file, its folder in `dist`, its name.
struct Part {
    wasm: &'static str,
    folder: &'static str,
    name: &'static str,
}

const PARTS: [Part; 4] = [
    Part { wasm: "examples/hello", folder: "hello", name: "hello" },
    Part { wasm: "asx_web_js", folder: "pkg/wasm", name: "asx" },
    Part { wasm: "asx_web_page", folder: "page", name: "page" },
    Part { wasm: "asx_web_corpus", folder: "corpus", name: "corpus" },
];

/// All of them. The corpus brings the lab, whose hooks in the runtime are to be in nothing else: it
/// is built by itself.
const BUILDS: [&str; 2] = [
    "build --profile web -p asx-web -p asx-web-js -p asx-web-page --lib --examples",
    "build --profile web -p asx-web-corpus",
];

/// The largest a page that says hello may be, compressed: wasm and glue. So it grows no further;
/// the goal is 60 kB.
const HELLO_LIMIT: usize = 72_000;

/// Builds everything into `dist`; says how large the smallest page is.
pub(super) fn all() -> Result<String> {
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
    /// Glue and optimiser, unless they have seen this file.
    fn finish(&self) -> Result {
        let Part { wasm, folder, name } = self;
        let wasm = home().join("build").join(TARGET).join("web").join(format!("{wasm}.wasm"));
        let folder = dist().join(folder);
        if is_newer(&folder.join(format!("{name}_bg.wasm")), &wasm) {
            return Ok(());
        }
        let bindgen = chain::bindgen()?;
        sh(command(&bindgen.to_string_lossy(), &[]).arg(&wasm).arg(&folder).arg(name))?;
        let (raw, done) = (folder.join(format!("{name}_bg.wasm")), folder.join("small.wasm"));
        let optimiser = chain::npm_packages()?.join("node_modules/.bin/wasm-opt");
        let mut optimise = command(&optimiser.to_string_lossy(), &["-Oz"]);
        sh(optimise.arg(&raw).arg("-o").arg(&done))?;
        fs::rename(&done, &raw).map_err(|error| format!("{}: {error}", raw.display()))
    }
}

fn is_newer(made: &Path, source: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    matches!((time(made), time(source)), (Some(made), Some(source)) if made > source)
}

/// What is served as it is.
fn static_files() -> Result {
    copy_all(&root().join("crates/web-page/static"), &dist())?;
    copy_all(&root().join("crates/web-js/pkg"), &dist().join("pkg"))
}

fn copy_all(from: &Path, to: &Path) -> Result {
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

/// What a browser loads for a page that says hello, compressed as servers do.
fn hello_size() -> Result<usize> {
    let folder = dist().join("hello");
    let mut names = vec![folder.join("hello_bg.wasm"), folder.join("hello.js")];
    let mut folders = vec![folder.join("snippets")];
    while let Some(folder) = folders.pop() {
        for path in files(&folder)? {
            if path.is_dir() { folders.push(path) } else { names.push(path) }
        }
    }
    names.iter().map(|path| gzipped(path)).sum()
}

fn gzipped(path: &Path) -> Result<usize> {
    let script = "const z = require('node:zlib'), f = require('node:fs');\
                  console.log(z.gzipSync(f.readFileSync(process.argv[1]), { level: 9 }).length)";
    let mut node = command("node", &["-e", script]);
    let text = output(node.arg(path))?;
    text.trim().parse().map_err(|_| format!("`{}` is no size", text.trim()))
}
