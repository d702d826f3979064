//! Limits on the length of functions and lines. Files may have any length.

use super::source::{Source, item_end};
use super::{Findings, Tree};

const FUNCTION_LINES: usize = 90;
const TEST_FUNCTION_LINES: usize = 150;
const COLUMNS: usize = 100;

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

/// Returns each function with a body: name, first line, number of lines.
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
    fn long_functions_are_reported_and_tests_may_be_longer() {
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
    fn wide_lines_are_reported_in_rust_only() {
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
