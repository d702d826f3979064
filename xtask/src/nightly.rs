//! The nightly compiler and its components, for tools that the stable one lacks.

use std::process::Stdio;

use crate::Result;
use crate::shell::{command, works};

pub(crate) const NO_NIGHTLY: &str =
    "sanitizers need a nightly compiler (rustup toolchain install nightly)";

pub(crate) fn has_nightly() -> bool {
    works("cargo", &["+nightly", "--version"])
}

/// Ensures that the nightly compiler has this component, and installs it if possible.
///
/// # Errors
/// Fails with the reason if it cannot be installed.
pub(crate) fn component(name: &str) -> Result {
    if !has_nightly() {
        return Err(String::from(NO_NIGHTLY));
    }
    if is_installed(name) || works("rustup", &["+nightly", "component", "add", name]) {
        return Ok(());
    }
    Err(format!("nightly's {name} can't be had here (rustup +nightly component add {name})"))
}

fn is_installed(name: &str) -> bool {
    let mut list = command("rustup", &["+nightly", "component", "list", "--installed"]);
    let Ok(output) = list.stderr(Stdio::null()).output() else { return false };
    names(&String::from_utf8_lossy(&output.stdout), name)
}

/// Whether this list of components contains one, possibly followed by its target.
fn names(list: &str, name: &str) -> bool {
    let is = |line: &str| {
        line.strip_prefix(name).is_some_and(|rest| matches!(rest.chars().next(), None | Some('-')))
    };
    list.lines().map(str::trim).any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_with_and_without_a_target() {
        let list = "cargo-x86_64-unknown-linux-gnu\nmiri-x86_64-unknown-linux-gnu\nrust-src\n";
        assert!(names(list, "rust-src") && names(list, "miri"));
        assert!(!names(list, "rustfmt") && !names("rustc-x86_64\n", "rust"));
    }
}
