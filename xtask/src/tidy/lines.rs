//! `cargo xtask lines`: counts the lines of code of each crate.
//!
//! Blank lines and lines that contain only comments do not count. Tests do not count either: items
//! under `cfg(test)`, files that are declared so, `tests.rs`, `model.rs`, and folders of these
//! names.

use super::architecture::{is_of, test_files};
use super::source::Source;
use super::{Tree, load};
use crate::{Result, shell};
use std::collections::BTreeMap;

pub(crate) fn run(args: &[String]) -> Result {
    if !args.is_empty() {
        return Err(String::from("no arguments"));
    }
    let counts = count(&load(shell::root())?);
    for (name, lines) in &counts {
        println!("{lines:>7}  {name}");
    }
    println!("{:>7}  total", counts.values().sum::<usize>());
    Ok(())
}

/// Returns the lines of code of each crate.
fn count(tree: &Tree) -> BTreeMap<String, usize> {
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (file, source) in tree.sources() {
        let Some((crate_path, _)) = file.path.split_once("/src/") else { continue };
        let folder = format!("{crate_path}/src/");
        let of_tests = tests.entry(folder.clone()).or_insert_with(|| test_files(tree, &folder));
        let inside = &file.path[folder.len()..];
        if of_tests.iter().any(|base| is_of(&file.path, base)) || is_model(inside) {
            continue;
        }
        *counts.entry(crate_path.to_owned()).or_default() += lines(&file.text, source);
    }
    counts
}

/// Whether the file is a model for loom.
fn is_model(inside: &str) -> bool {
    inside.split('/').any(|part| part == "model" || part == "model.rs")
}

/// Returns the lines of code of a file.
fn lines(text: &str, source: &Source) -> usize {
    let comments = source.comments.lines();
    let lines = text.lines().zip(comments).enumerate();
    let counts = lines.filter(|(index, (text, comment))| {
        text.trim() != comment.trim() && !text.trim().is_empty() && !source.is_test(index + 1)
    });
    counts.count()
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let code = "//! A.\n\nuse b; // Why.\n/* two\nlines */\nfn f() {\n    \"a\n    b\";\n}\n\
            #[cfg(test)]\nmod t {\n    fn g() {}\n}\n";
        let files = [
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod only;\n"),
            ("crates/a/src/b.rs", code),
            ("crates/a/src/b/tests.rs", "fn g() {}\n"),
            ("crates/a/src/only.rs", "fn g() {}\n"),
            ("crates/a/src/model/c.rs", "fn g() {}\n"),
            ("crates/a/tests/d.rs", "fn g() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ];
        let files = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let counts = count(&Tree { files });
        let expected = [("crates/a", 6), ("xtask", 1)].map(|(name, n)| (name.to_owned(), n));
        assert_eq!(counts, BTreeMap::from(expected));
    }
}
