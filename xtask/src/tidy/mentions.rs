//! Functions and tests that a document names exist.
//!
//! `docs/LAWS.md` and `docs/CALLBACKS.md` name functions and tests in backticks. A name that is in
//! no Rust file any more is reported, so a renamed test is renamed there too.

use super::{Findings, Tree};
use std::collections::BTreeSet;

const DOCUMENTS: [&str; 2] = ["docs/LAWS.md", "docs/CALLBACKS.md"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let mut known = BTreeSet::new();
    for (file, _) in tree.sources() {
        known.extend(words(&file.text));
        known.extend(words(&file.path));
    }
    for document in DOCUMENTS.into_iter().filter_map(|path| tree.get(path)) {
        let mut in_block = false;
        for (index, line) in document.text.lines().enumerate() {
            in_block ^= line.starts_with("```");
            let quoted = line.split('`').skip(1).step_by(2).filter(|_| !in_block);
            for name in quoted.filter(|text| is_path(text)).flat_map(words) {
                if !known.contains(name) {
                    let what = format!("names an unknown function or test: {name}");
                    findings.add(document, index + 1, what);
                }
            }
        }
    }
}

/// Whether this is a name, a path with `::`, or a list of names in braces.
fn is_path(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_:{}, ".contains(c))
}

/// The words with lower-case letters and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.contains('_') && !word.contains(|c: char| c.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn missing_functions_and_tests_are_reported() {
        let text = "`a::does_this`, `x::{is_kept, is_gone}` `old_test`\n`no-name_here` plain_text\n\
                    ```\n`in_code`\n```\n";
        let code = "fn does_this() {}\n// `is_kept`\n";
        let files = [("docs/LAWS.md", text), ("docs/NET.md", text), ("crates/a/src/a.rs", code)];
        let found = findings(check, &files);
        let names = ["is_gone", "old_test"];
        let names =
            names.map(|it| format!("docs/LAWS.md:1: names an unknown function or test: {it}"));
        assert_eq!(found, names);
    }
}
