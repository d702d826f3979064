//! The tool chain: uses installed tools, and installs and reports missing ones.
//!
//! A plain build needs rustup's target. Where it is not available, Debian's compiler is used with
//! its sources of the standard library, which are built once, and with rustup's linker.

use super::home;
use crate::shell::{add_target, cargo, command, output, root, run as sh, works};
use crate::{Result, apt};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const COMPILER: [&str; 2] = ["rustc-web", "rust-web-src"];
const BROWSER: [&str; 1] = ["chromium"];

const NODE: [&str; 2] = ["nodejs", "npm"];

/// Packages of npm with their versions: the optimiser, the drivers of Chromium and Firefox, and the
/// type checker.
const NPM: [(&str, &str); 4] = [
    ("binaryen", "132.0.0"),
    ("playwright-core", "1.65.0"),
    ("puppeteer-core", "25.16.0"),
    ("typescript", "7.0.2"),
];

/// Installs missing tools. An error names the tool that is not available.
pub(super) fn ready() -> Result {
    compiler()?;
    npm_packages()?;
    if !works("chromium", &["--version"]) {
        apt::install(&BROWSER)?;
    }
    bindgen().map(drop)
}

/// A cargo command that builds for the browser.
pub(super) fn cargo_for_web(line: &str) -> Result<Command> {
    let mut cargo = cargo(line);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(home().join("build"));
    if let Some(sysroot) = compiler()? {
        let linker = rustup_linker()?;
        cargo
            .env("RUSTC", DEBIAN_RUSTC)
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
            .env(
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
                format!("--sysroot {}", sysroot.display()),
            );
    }
    Ok(cargo)
}

/// The compiler: rustup's (`None`), or Debian's with a standard library built here.
fn compiler() -> Result<Option<PathBuf>> {
    if add_target(TARGET).is_ok() {
        return Ok(None);
    }
    let sysroot = home().join("sysroot");
    let lib = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    if !works(DEBIAN_RUSTC, &["--version"]) || !Path::new("/usr/lib/rustlib/src").is_dir() {
        println!("rustup lacks {TARGET}; Debian's compiler can do it");
        apt::install(&COMPILER)?;
    }
    if !lib.is_dir() {
        build_std(&lib)?;
    }
    Ok(Some(sysroot))
}

fn rustup_linker() -> Result<PathBuf> {
    let sysroot = output(&mut command("rustc", &["--print", "sysroot"]))?;
    let host = crate::shell::host()?;
    let linker = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/rust-lld");
    if linker.is_file() { Ok(linker) } else { Err(format!("there is no {}", linker.display())) }
}

/// Builds the standard library from an empty crate, and keeps it in `lib`.
fn build_std(lib: &Path) -> Result {
    println!("building the standard library for {TARGET}: once, a minute or so");
    let empty = home().join("empty");
    let manifest = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
                    [workspace]\n[profile.release]\npanic = \"abort\"\n";
    write(&empty.join("Cargo.toml"), manifest)?;
    write(&empty.join("src/lib.rs"), "")?;
    let mut build = cargo("build --release -Z build-std=std,panic_abort,test --target");
    build
        .arg(TARGET)
        .arg("--manifest-path")
        .arg(empty.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(empty.join("target"))
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", rustup_linker()?)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Cembed-bitcode=yes");
    sh(&mut build)?;
    let deps = empty.join("target").join(TARGET).join("release/deps");
    // Copied under another name first: an interrupted run leaves no incomplete folder.
    let half = lib.with_extension("half");
    fs::create_dir_all(&half).map_err(|error| format!("{}: {error}", half.display()))?;
    for file in files(&deps)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libempty") {
            copy(&file, &half.join(name))?;
        }
    }
    fs::rename(&half, lib).map_err(|error| format!("{}: {error}", lib.display()))
}

/// The program that writes the glue, rebuilt if its source is newer.
pub(super) fn bindgen() -> Result<PathBuf> {
    let folder = home().join("bindgen");
    let program = folder.join("release/asx-bindgen");
    if !is_newer(&program, &root().join("xtask/bindgen/src/main.rs")) {
        println!("building the writer of the glue: once, a few minutes");
        let line = "build --release --manifest-path xtask/bindgen/Cargo.toml --target-dir";
        sh(cargo(line).arg(&folder))?;
    }
    Ok(program)
}

/// The folder of the npm packages. Installs them if they are missing.
pub(super) fn npm_packages() -> Result<PathBuf> {
    let folder = home().join("npm");
    let missing = NPM.iter().any(|(name, _)| !folder.join("node_modules").join(name).is_dir());
    if missing {
        if !works("npm", &["--version"]) {
            apt::install(&NODE)?;
        }
        let packages = NPM.map(|(name, version)| format!("{name}@{version}"));
        println!("installing {} with npm", packages.join(" and "));
        write(&folder.join("package.json"), "{\"private\":true,\"type\":\"module\"}\n")?;
        let quiet = ["--no-save", "--no-fund", "--no-audit", "--silent"];
        let mut npm = command("npm", &["install"]);
        sh(npm.args(quiet).args(packages).arg("--prefix").arg(&folder))?;
    }
    Ok(folder)
}

pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

/// Whether `made` exists and is newer than `source`.
pub(super) fn is_newer(made: &Path, source: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    matches!((time(made), time(source)), (Some(made), Some(source)) if made > source)
}

pub(super) fn write(path: &Path, text: &str) -> Result {
    let parent = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn copy(from: &Path, to: &Path) -> Result {
    let parent = to.parent().unwrap_or(to);
    // Unchanged files are kept: a browser may be reading them.
    if fs::read(from).is_ok_and(|new| fs::read(to).is_ok_and(|old| new == old)) {
        return Ok(());
    }
    let copied = fs::create_dir_all(parent).and_then(|()| fs::copy(from, to).map(drop));
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}
