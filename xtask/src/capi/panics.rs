//! Which functions of the shipped library can still reach a panic, and why they do not.
//!
//! The object is disassembled; a function that calls one of `core`'s panicking functions must be
//! in the reviewed list, by its path or by the beginning of it, or this fails. None of the
//! library's own entry points may be there without a reason of its own.

use super::build::sources;
use crate::Result;
use crate::shell::{command, output};
use std::collections::BTreeSet;
use std::path::Path;

/// What a panic begins with.
const PANICKING: [&str; 7] = [
    "panicking",
    "unwrap_failed",
    "expect_failed",
    "slice_index_fail",
    "slice_error_fail",
    "assert_failed",
    "handle_alloc_error",
];

/// How many functions were looked up in the list.
pub(super) fn check(object: &Path) -> Result<usize> {
    let listing = sources().join("panics.txt");
    let list = std::fs::read_to_string(listing).map_err(|error| error.to_string())?;
    let text = output(command("objdump", &["-drC", "--no-show-raw-insn"]).arg(object))?;
    judge(&text, &list)
}

fn judge(text: &str, list: &str) -> Result<usize> {
    let reviewed: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    let found = callers(text);
    let unknown: Vec<_> =
        found.iter().filter(|name| !reviewed.iter().any(|known| matches(name, known))).collect();
    if unknown.is_empty() {
        return Ok(found.len());
    }
    Err(format!("functions that may panic and are not in panics.txt: {unknown:?}"))
}

/// Whether a path begins with a reviewed one, whatever wraps it; a bare name is only itself.
fn matches(name: &str, known: &str) -> bool {
    let bare = name.trim_start_matches('<');
    bare == known || (known.contains("::") && bare.starts_with(known))
}

fn callers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            current = name.1;
        }
        let target = line.split_once("R_X86_64_").and_then(|(_, rest)| rest.split_once('\t'));
        if target.is_some_and(|(_, to)| PANICKING.iter().any(|panics| to.contains(panics)))
            && !current.starts_with("core::")
        {
            found.insert(current.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0000 <asx_kernel::queue::Queue::put>:\n\
        12:\tcall 17\n\t\t\t13: R_X86_64_PLT32\tcore::panicking::panic-0x4\n\
        0000 <asx_task_wake>:\n\t\t\t13: R_X86_64_PLT32\tmemcpy-0x4\n";

    #[test]
    fn a_function_that_may_panic_must_be_listed() {
        assert_eq!(judge(TEXT, "# why\nasx_kernel::queue  its own heap"), Ok(1));
        assert!(judge(TEXT, "asx_kernel::wheel  no").is_err());
    }
}
