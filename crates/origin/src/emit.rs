//! Looking around while a program is built.

use crate::UNKNOWN;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Tells the program being built where it comes from; for build scripts.
pub fn emit() -> Result<(), String> {
    let variable = |name| env::var(name).map_err(|_| format!("{name} is not set"));
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let compiler = told(Command::new(variable("RUSTC")?).arg("-vV")).unwrap_or_default();
    let say = |name: &str, value: &str| println!("cargo::rustc-env=ASX_ORIGIN_{name}={value}");
    say("RELEASE", field(&compiler, "release"));
    say("COMPILER_COMMIT", field(&compiler, "commit-hash"));
    say("HOST", field(&compiler, "host"));
    say("TARGET", &variable("TARGET")?);
    let commit = git(&package, &["rev-parse", "HEAD"]);
    say("COMMIT", commit.as_deref().unwrap_or(UNKNOWN));
    let lockfile = lockfile(&package).ok_or("there is no Cargo.lock at or above the package")?;
    let bytes = fs::read(&lockfile).map_err(|error| format!("{}: {error}", lockfile.display()))?;
    say("LOCK_SHA256", &sha256(&bytes));
    say("LOCK_SIZE", &bytes.len().to_string());
    let folder = lockfile.parent().unwrap_or(&package);
    let tracked = git(folder, &["ls-files", "--error-unmatch", "Cargo.lock"]).is_some();
    say("LOCK_TRACKED", if tracked { "true" } else { "false" });
    // Another commit, another lockfile: look again. What is not there would mean every time.
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

/// The nearest lockfile: that of the workspace, or of an installed package.
fn lockfile(package: &Path) -> Option<PathBuf> {
    package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|path| path.is_file())
}

/// What a compiler says of itself under a name.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    values.map(str::trim).find(|value| !value.is_empty()).unwrap_or(UNKNOWN)
}

/// One line of git's, if it has one.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    told(Command::new("git").arg("-C").arg(folder).args(args)).map(|text| text.trim().to_owned())
}

fn told(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compiler_does_not_tell_is_unknown() {
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
