//! Sizes that a reader can hold.

use super::source::{Source, item_end};
use super::{Findings, Tree};

const FILE_LINES: usize = 700;
const KERNEL_FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 90;
const TEST_FUNCTION_LINES: usize = 150;
const COLUMNS: usize = 100;

pub(super) fn files(tree: &Tree, findings: &mut Findings) {
    for (file, _) in tree.sources() {
        let limit = if file.is_kernel() { KERNEL_FILE_LINES } else { FILE_LINES };
        let lines = file.text.lines().count();
        if lines > limit {
            let what = format!("{lines} lines in one file, more than {limit}: split it");
            findings.add(file, limit + 1, what);
        }
    }
}

pub(super) fn functions(tree: &Tree, findings: &mut Findings) {
    for (file, source) in tree.sources() {
        for (name, line, length) in lengths(source) {
            let limit = if source.is_test(line) { TEST_FUNCTION_LINES } else { FUNCTION_LINES };
            if length > limit {
                let what = format!("`{name}` has {length} lines, more than {limit}: split it");
                findings.add(file, line, what);
            }
        }
    }
}

pub(super) fn columns(tree: &Tree, findings: &mut Findings) {
    for (file, _) in tree.sources() {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                findings.add(file, index + 1, format!("{columns} columns, more than {COLUMNS}"));
            }
        }
    }
}

/// Each function with a body: name, first line, number of lines.
fn lengths(source: &Source) -> Vec<(String, usize, usize)> {
    let tokens = source.tokens();
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut lengths = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [keyword, name] = pair else { continue };
        if keyword.text != "fn" || !is_name(name.text) {
            continue;
        }
        if let Some(end) = item_end(&tokens, index) {
            let first = source.line(keyword.at);
            let last = source.line(tokens[end].at);
            lengths.push((name.text.to_owned(), first, last + 1 - first));
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn long(_: [u8; 2]) {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    #[test]
    fn long_files_are_found_and_the_kernel_is_held_shorter() {
        let found = findings(
            files,
            &[
                ("a.rs", &"\n".repeat(700)),
                ("b.rs", &"\n".repeat(701)),
                ("crates/kernel/src/a.rs", &"\n".repeat(500)),
                ("crates/kernel/src/b.rs", &"\n".repeat(501)),
                ("a.md", &"\n".repeat(900)),
            ],
        );
        let expected = [
            "b.rs:701: 701 lines in one file, more than 700: split it",
            "crates/kernel/src/b.rs:501: 501 lines in one file, more than 500: split it",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn long_functions_are_found_and_tests_may_be_longer() {
        let in_tests = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(lines));
        let found = findings(
            functions,
            &[
                ("a.rs", &function(90)),
                ("b.rs", &format!("fn short();\n{}fn next() {{}}\n", function(91))),
                ("c.rs", &in_tests(150)),
                ("d.rs", &in_tests(151)),
                ("tests/e.rs", &function(150)),
                ("tests/f.rs", &function(151)),
            ],
        );
        let expected = [
            "b.rs:2: `long` has 91 lines, more than 90: split it",
            "d.rs:3: `long` has 151 lines, more than 150: split it",
            "tests/f.rs:1: `long` has 151 lines, more than 150: split it",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn wide_lines_are_found_in_rust_only() {
        let found = findings(
            columns,
            &[
                ("a.rs", &format!("{}\n{}\n", "é".repeat(100), "x".repeat(101))),
                ("a.md", &"x".repeat(101)),
            ],
        );
        assert_eq!(found, ["a.rs:2: 101 columns, more than 100"]);
    }
}
