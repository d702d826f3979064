//! Lists the fixtures, so that the program carries them wherever it is installed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=fixtures");
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("fixtures");
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let inside = file.strip_prefix(&root).unwrap_or(&file);
        let shown = Path::new("crates/conformance/fixtures").join(inside);
        let shown = shown.to_string_lossy().replace('\\', "/");
        let _ = writeln!(code, "(r\"{shown}\", include_str!(r\"{}\")),", file.display());
    }
    code.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("corpus.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
