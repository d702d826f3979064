//! Shortcuts past the kernel's laws: comments in the code, and the list generated from them.
//!
//! A shortcut is code that makes a decision of a law without calling it. It has a comment
//! of this form:
//!
//! ```text
//! // Shortcut: `Word::begin`: a task that nobody asked to stop runs, or goes on running.
//! // Law: `task::TaskState::step`.
//! // Equal: `a_poll_begins_as_the_law_says` (every word).
//! // Worth: 7 % of `yield_1k`.
//! ```
//! `Equal` (no difference is observable) or `Refines` (every choice is one that the law allows)
//! names the test, file or fixture that compares the two. `Worth` names a row of the benchmarks and
//! the gain in that row, which must be at least [`LEAST`] percent.
//!
//! The list is in `docs/LAWS.md`; `cargo xtask laws` writes it.

use super::{File, Findings, Tree};
use crate::{Result, shell};
use std::fs;

const DOCUMENT: &str = "docs/LAWS.md";
const BEGIN: &str = "<!-- shortcuts: written by `cargo xtask laws` -->\n";
const END: &str = "<!-- end of shortcuts -->\n";

/// The maximal line length of the document.
const WIDTH: usize = 160;

/// The minimal gain of a shortcut, in percent of a row of the benchmarks.
const LEAST: f64 = 5.0;

/// The sources with the rows of the benchmarks.
const BENCHES: [&str; 2] = ["crates/bench/src/", "crates/bench-lab/src/"];

/// `cargo xtask laws`: writes the list.
pub(crate) fn run(args: &[String]) -> Result {
    if !args.is_empty() {
        return Err(String::from("no arguments"));
    }
    let tree = super::load(shell::root())?;
    let document = tree.get(DOCUMENT).ok_or("no list to write")?;
    let text = with_list(&document.text, &list(&marks(&tree)))
        .ok_or_else(|| format!("{DOCUMENT} has no place for the list"))?;
    let path = shell::root().join(DOCUMENT);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks the form of each comment, that the names in it exist, and that the list is up to date.
pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let marks = marks(tree);
    let functions = functions(tree);
    for mark in &marks {
        for what in mark.faults(tree, &functions) {
            findings.add(mark.file, mark.line, what);
        }
    }
    let Some(document) = tree.get(DOCUMENT) else { return };
    match with_list(&document.text, &list(&marks)) {
        None => findings.add(document, 1, "no place for the list of shortcuts"),
        Some(text) if text != document.text => {
            findings.add(document, 1, "the list of shortcuts is old: `cargo xtask laws`");
        }
        Some(_) => {}
    }
}

/// The comment of a shortcut.
struct Mark<'a> {
    file: &'a File,
    line: usize,
    /// Its name and the decision it makes.
    what: String,
    law: String,
    /// `equal` or `refines`, and the proof.
    kind: &'static str,
    shown_by: String,
    worth: String,
}

/// The fields of a comment after its first.
const FIELDS: [&str; 4] = ["Law: ", "Equal: ", "Refines: ", "Worth: "];

/// Returns all comments of shortcuts, in the order of their files.
fn marks(tree: &Tree) -> Vec<Mark<'_>> {
    let mut marks = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| file.path.starts_with("crates/")) {
        let comments: Vec<&str> = source.comments.lines().map(comment).collect();
        let starts = |text: &&str| text.starts_with("Shortcut: ");
        for (index, _) in comments.iter().enumerate().filter(|(_, text)| starts(text)) {
            let block = comments[index..].iter().take_while(|text| !text.is_empty());
            marks.push(Mark::new(file, index + 1, block));
        }
    }
    marks
}

/// Returns the text of a line of a comment.
fn comment(line: &str) -> &str {
    line.trim_start().trim_start_matches('/').trim()
}

impl<'a> Mark<'a> {
    fn new<'t>(file: &'a File, line: usize, block: impl Iterator<Item = &'t &'t str>) -> Mark<'a> {
        let mut mark = Mark {
            file,
            line,
            what: String::new(),
            law: String::new(),
            kind: "",
            shown_by: String::new(),
            worth: String::new(),
        };
        let mut field = "Shortcut: ";
        for text in block {
            let begins = FIELDS.into_iter().find(|it| text.starts_with(it));
            field = begins.unwrap_or(field);
            let text = text.strip_prefix(field).unwrap_or(text);
            let part = match field {
                "Law: " => &mut mark.law,
                "Equal: " | "Refines: " => {
                    mark.kind = if field == "Equal: " { "equal" } else { "refines" };
                    &mut mark.shown_by
                }
                "Worth: " => &mut mark.worth,
                _ => &mut mark.what,
            };
            if !part.is_empty() {
                part.push(' ');
            }
            part.push_str(text);
        }
        for part in [&mut mark.what, &mut mark.law, &mut mark.shown_by, &mut mark.worth] {
            part.truncate(part.trim_end_matches('.').len());
        }
        mark
    }

    /// Returns the errors in the comment.
    fn faults(&self, tree: &Tree, functions: &[&str]) -> Vec<String> {
        let parts = [&self.what, &self.law, &self.shown_by, &self.worth];
        if parts.iter().any(|part| part.is_empty()) || !self.what.contains("`: ") {
            return vec![String::from(
                "a shortcut says `Shortcut: `name`: ..`, `Law:`, `Equal:` or `Refines:`, `Worth:`",
            )];
        }
        let mut faults = Vec::new();
        let known = |name: &str| {
            let name = name.rsplit("::").next().unwrap_or(name);
            functions.contains(&name) || tree.files.iter().any(|file| file.path == name)
        };
        let shown: Vec<&str> = quoted(&self.shown_by).collect();
        if shown.is_empty() {
            faults.push(String::from("a shortcut names the test that compares it with the law"));
        }
        faults.extend(
            shown
                .iter()
                .filter(|name| !known(name))
                .map(|name| format!("a shortcut names a test that is not there: {name}")),
        );
        let rows: Vec<&str> = quoted(&self.worth).collect();
        faults.extend(rows.iter().filter(|row| !is_row(tree, row)).map(|row| {
            format!("a shortcut names a row of the benchmarks that is not there: {row}")
        }));
        let share = self.worth.split(' ').next().and_then(|share| share.parse::<f64>().ok());
        if rows.is_empty() || share.is_none_or(|share| share < LEAST) {
            let what = format!("a shortcut is worth {LEAST} % of a row of the benchmarks or more");
            faults.push(what);
        }
        faults
    }
}

/// Returns the parts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a benchmark has a row of this name.
fn is_row(tree: &Tree, row: &str) -> bool {
    let quoted = format!("\"{row}\"");
    let benches = tree.files.iter().filter(|file| {
        file.path.ends_with(".rs") && BENCHES.iter().any(|folder| file.path.starts_with(folder))
    });
    benches.into_iter().any(|file| file.text.contains(&quoted))
}

/// Returns the names of all functions, including tests.
fn functions(tree: &Tree) -> Vec<&str> {
    let mut names = Vec::new();
    for (_, source) in tree.sources() {
        let tokens = source.tokens();
        let two = tokens.windows(2).filter(|two| two[0].text == "fn");
        names.extend(two.map(|two| two[1].text));
    }
    names
}

/// Returns the list for the document: an entry for each comment.
fn list(marks: &[Mark<'_>]) -> String {
    let entries = marks.iter().map(|mark| {
        let Mark { file, what, law, kind, shown_by, worth, .. } = mark;
        let place = format!("Code: `{}`; law: {law}; worth: {worth}", file.path);
        let proof = match *kind {
            "equal" => format!("Equal, shown by: {shown_by}"),
            _ => format!("Refines, shown by: {shown_by}"),
        };
        [("* ", what.as_str()), ("  * ", &place), ("  * ", &proof)]
            .map(|(item, text)| wrap(item, text))
    });
    entries.flatten().collect()
}

/// Formats an item of a list in lines of at most [`WIDTH`] columns, if its words allow it.
fn wrap(item: &str, text: &str) -> String {
    let indent = " ".repeat(item.len());
    let mut lines = vec![item.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        let is_empty = line.len() == item.len();
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            *line += if is_empty { "" } else { " " };
            *line += word;
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the document with a new list.
fn with_list(text: &str, list: &str) -> Option<String> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    Some(format!("{}\n{list}\n{}", &text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    const BENCH: (&str, &str) = ("crates/bench/src/a.rs", "const A: &str = \"yield_1k\";\n");
    const MARK: &str = "fn f() {\n    // Shortcut: `f`: it says so\n    // at once.\n    \
        // Law: `kernel::g`.\n    // Equal: `compared` (every word).\n    \
        // Worth: 7 % of `yield_1k`.\n    g();\n    // Not part of it.\n}\nfn compared() {}\n";
    const ENTRY: &str = "* `f`: it says so at once\n  * Code: `crates/a/src/a.rs`; law: \
        `kernel::g`; worth: 7 % of `yield_1k`\n  * Equal, shown by: `compared` (every word)\n";

    fn document(entries: &str) -> String {
        format!("# Laws\n\n{BEGIN}\n{entries}\n{END}\nMore.\n")
    }

    #[test]
    fn long_items_are_wrapped_at_words() {
        let words = vec!["nine_long"; 40].join(" ");
        let item = wrap("  * ", &words);
        assert!(item.lines().all(|line| line.len() <= WIDTH), "{item}");
        assert!(item.starts_with("  * nine_long ") && item.contains("\n    nine_long "), "{item}");
        assert_eq!(item.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), words);
    }

    #[test]
    fn a_list_that_matches_the_comments_is_accepted() {
        let laws = document(ENTRY);
        let files = [(DOCUMENT, &*laws), ("crates/a/src/a.rs", MARK), BENCH];
        assert_eq!(findings(check, &files), [""; 0]);
    }

    #[test]
    fn an_outdated_list_is_reported_and_rewritten() {
        let old = document("* old\n");
        let files = [(DOCUMENT, &*old), ("crates/a/src/a.rs", MARK), BENCH];
        let expected = "docs/LAWS.md:1: the list of shortcuts is old: `cargo xtask laws`";
        assert_eq!(findings(check, &files), [expected]);
        let files = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let tree = Tree { files };
        assert_eq!(with_list(&old, &list(&marks(&tree))).unwrap(), document(ENTRY));
        assert_eq!(with_list("no place", ""), None);
    }

    #[test]
    fn incomplete_comments_are_reported() {
        let cases = [
            ("// Law: `kernel::g`.", "// It is short.", "a shortcut says `Shortcut"),
            ("`compared` (", "`imagined` (", "a shortcut names a test that is not there: imagined"),
            ("`compared` (", "compared (", "a shortcut names the test that compares"),
            ("`yield_1k`", "`yield_2k`", "a shortcut names a row of the benchmarks that is not"),
            ("7 %", "4.9 %", "a shortcut is worth 5 % of a row"),
            ("7 % of", "Much of", "a shortcut is worth 5 % of a row"),
        ];
        for (what, instead, fault) in cases {
            let text = MARK.replace(what, instead);
            let found = findings(check, &[("crates/a/src/a.rs", &text), BENCH]);
            let expected = format!("crates/a/src/a.rs:2: {fault}");
            assert!(found.len() == 1 && found[0].starts_with(&expected), "{instead}: {found:?}");
        }
    }
}
