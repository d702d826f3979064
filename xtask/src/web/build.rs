//! Building: wasm, glue, optimiser, static files.

use super::chain::{self, TARGET, cargo_for_web, copy, files, is_newer};
use super::{dist, home};
use crate::Result;
use crate::shell::{command, output, root, run as sh};
use std::fs;
use std::path::{Path, PathBuf};

/// What is built: its wasm file, its folder in `dist`, its name, and whether a fresh module can
/// take the place of one that has trapped.
struct Part {
    wasm: &'static str,
    folder: &'static str,
    name: &'static str,
    renewable: bool,
}

const PARTS: [Part; 4] = [
    Part { wasm: "examples/hello", folder: "hello", name: "hello", renewable: false },
    Part { wasm: "asx_web_js", folder: "pkg/wasm", name: "asx", renewable: true },
    Part { wasm: "asx_web_page", folder: "page", name: "page", renewable: false },
    Part { wasm: "asx_web_corpus", folder: "corpus", name: "corpus", renewable: false },
];

/// All of them. The corpus brings the lab, whose hooks in the runtime are to be in nothing else: it
/// is built by itself.
const BUILDS: [&str; 2] = [
    "build --profile web -p asx-web -p asx-web-js -p asx-web-page --lib --examples",
    "build --profile web -p asx-web-corpus",
];

/// What the optimiser is told: compressed, that is no larger than with `-Oz`. No features: browsers
/// reject what it makes of all of them.
const OPTIMISER: [&str; 3] = ["-O3", "--strip-producers", "--strip-target-features"];

/// The largest a page that says hello may be, compressed: wasm and glue.
const HELLO_LIMIT: usize = 63_000;

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
        let Part { wasm, folder, name, renewable } = self;
        let wasm = home().join("build").join(TARGET).join("web").join(format!("{wasm}.wasm"));
        let folder = dist().join(folder);
        let raw = folder.join(format!("{name}_bg.wasm"));
        let done = folder.join("small.wasm");
        // Who was interrupted has left something that looks finished.
        let mark = home().join("finished").join(name);
        if raw.is_file() && is_newer(&mark, &wasm) {
            return Ok(());
        }
        let bindgen = chain::bindgen()?;
        let flags: &[&str] = if *renewable { &["--renewable"] } else { &[] };
        let mut write = command(&bindgen.to_string_lossy(), &[]);
        sh(write.arg(&wasm).arg(&folder).arg(name).args(flags))?;
        let optimiser = chain::npm_packages()?.join("node_modules/.bin/wasm-opt");
        let mut optimise = command(&optimiser.to_string_lossy(), &OPTIMISER);
        sh(optimise.arg(&raw).arg("-o").arg(&done))?;
        scripts(&folder)?.iter().try_for_each(|path| make_lean(path))?;
        fs::rename(&done, &raw).map_err(|error| format!("{}: {error}", raw.display()))?;
        chain::write(&mark, "")
    }
}

/// The scripts of a part: its glue, and what it has in snippets.
fn scripts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in files(folder)? {
        if path.is_dir() {
            found.extend(scripts(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "js") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Takes comments and indentation out of a script: bundlers would, and not all pages have one.
fn make_lean(path: &Path) -> Result {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    chain::write(path, &lean(&text))
}

/// A script without comments that have lines of their own, and without indentation. None of ours,
/// nor of the glue's, has a text of several lines, in which that would make a difference.
fn lean(script: &str) -> String {
    let mut lean = String::new();
    let mut in_comment = false;
    for line in script.lines().map(str::trim) {
        let comment = in_comment || line.starts_with("/*");
        in_comment = comment && !line.ends_with("*/");
        if !(comment || line.is_empty() || line.starts_with("//")) {
            lean.push_str(line);
            lean.push('\n');
        }
    }
    lean
}

/// What is served as it is, and what `asx parity` drives a browser with.
fn static_files() -> Result {
    copy_all(&root().join("crates/web-page/browser"), &home().join("harness"))?;
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
    let wasm = folder.join("hello_bg.wasm");
    let glue = scripts(&folder)?;
    glue.iter().chain([&wasm]).map(|path| gzipped(path)).sum()
}

fn gzipped(path: &Path) -> Result<usize> {
    let script = "const z = require('node:zlib'), f = require('node:fs');\
                  console.log(z.gzipSync(f.readFileSync(process.argv[1]), { level: 9 }).length)";
    let mut node = command("node", &["-e", script]);
    let text = output(node.arg(path))?;
    text.trim().parse().map_err(|_| format!("`{}` is no size", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lean_script_says_the_same() {
        let script = "/* a */\n/**\n * b\n */\nlet a = 1; // c\n\n  // d\n  f(`/* */ ${a}`);\n";
        assert_eq!(lean(script), "let a = 1; // c\nf(`/* */ ${a}`);\n");
    }
}
