//! Collection of the provenance in a build script.

use crate::UNKNOWN;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Sets the build variables that [`origin!`](crate::origin) reads. Call this from a build script.
///
/// # Errors
/// Fails outside a build script, or if there is no readable lockfile.
pub fn emit() -> Result<(), String> {
    let variable = |name| env::var(name).map_err(|_| format!("{name} is not set"));
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let compiler = output_of(Command::new(variable("RUSTC")?).arg("-vV")).unwrap_or_default();
    let set = |name: &str, value: &str| println!("cargo::rustc-env=ASX_ORIGIN_{name}={value}");
    set("RELEASE", field(&compiler, "release"));
    set("COMPILER_COMMIT", field(&compiler, "commit-hash"));
    set("HOST", field(&compiler, "host"));
    set("TARGET", &variable("TARGET")?);
    let commit = git(&package, &["rev-parse", "HEAD"]);
    set("COMMIT", commit.as_deref().unwrap_or(UNKNOWN));
    let lockfile = lockfile(&package).ok_or("no Cargo.lock in the package's folder or above it")?;
    let bytes = fs::read(&lockfile).map_err(|error| format!("{}: {error}", lockfile.display()))?;
    set("LOCK_SHA256", &sha256(&bytes));
    set("LOCK_SIZE", &bytes.len().to_string());
    let folder = lockfile.parent().unwrap_or(&package);
    let tracked = git(folder, &["ls-files", "--error-unmatch", "Cargo.lock"]).is_some();
    set("LOCK_TRACKED", if tracked { "true" } else { "false" });
    // Rerun after a new commit or lockfile. A missing path would rerun the script every time.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", lockfile.display());
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&package, &["rev-parse", "--git-path", name]).map(|at| package.join(at));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Ok(())
}

/// Returns the SHA-256 of the bytes in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the nearest lockfile at or above the package.
fn lockfile(package: &Path) -> Option<PathBuf> {
    package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|path| path.is_file())
}

/// Returns the value of a field in the compiler's report.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    values.map(str::trim).find(|value| !value.is_empty()).unwrap_or(UNKNOWN)
}

/// Runs git and returns its output, if it succeeds.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    output_of(Command::new("git").arg("-C").arg(folder).args(args))
        .map(|text| text.trim().to_owned())
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_the_compiler_does_not_report_is_unknown() {
        let text = "rustc 1.95.0\nbinary: rustc\ncommit-hash: abc\nhost: here\nrelease: 1.95.0\n";
        assert_eq!(field(text, "release"), "1.95.0");
        assert_eq!(field(text, "commit-hash"), "abc");
        assert_eq!(field(text, "commit"), UNKNOWN);
        assert_eq!(field("", "host"), UNKNOWN);
    }

    #[test]
    fn sha256_is_lower_case_hexadecimal() {
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), hash);
    }

    #[test]
    fn the_lockfile_is_the_nearest_above() {
        let found = lockfile(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the workspace's");
        assert!(found.parent().is_some_and(|folder| folder.join("crates/origin").is_dir()));
        assert_eq!(lockfile(Path::new("/nowhere/at/all")), None);
    }
}
