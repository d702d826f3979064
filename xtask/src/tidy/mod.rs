//! `cargo xtask tidy`: the project's style as a test.
//!
//! A [`Tree`] contains every text file of the repository; Rust files are also split into code and
//! comments ([`source`]). A rule examines the tree and reports [`Finding`]s with file and line, so
//! that an editor can open them. Rules do not access the disk: their tests use small trees that
//! violate each rule.

mod architecture;
mod banned;
mod examples;
mod futures;
mod imports;
mod layers;
mod layout;
pub(crate) mod lines;
mod links;
mod mentions;
mod modules;
mod names;
mod shape;
pub(crate) mod shortcuts;
mod source;
mod walks;

use crate::{Result, shell};
use source::Source;
use std::fmt;
use std::fs;
use std::path::Path;

type Rule = fn(&Tree, &mut Findings);

const RULES: &[Rule] = &[
    architecture::crates,
    architecture::cycles,
    layers::layers,
    examples::facade,
    futures::outputs,
    layout::whitespace,
    layout::machine_paths,
    links::check,
    mentions::check,
    shape::functions,
    shape::columns,
    banned::leftovers,
    banned::ignored_tests,
    banned::kernel_words,
    modules::unreachable,
    names::duplicates,
    shortcuts::check,
    walks::check,
];

/// Folders and files that are not ours or are generated.
const SKIPPED: [&str; 8] = [
    ".git",
    "target",
    "fuzz/target",
    "fuzz/corpus",
    "fuzz/artifacts",
    "fuzz/coverage",
    "mutants.out",
    "mutants.out.old",
];

pub(crate) fn run(args: &[String]) -> Result {
    match args {
        [] => check(),
        [option] if option == "--cycles" => architecture::print_cycles(&load(shell::root())?),
        [root] => check_tree(Path::new(root)),
        _ => Err(String::from("expected at most one directory")),
    }
}

/// Checks all rules for this repository.
pub(crate) fn check() -> Result {
    check_tree(shell::root())
}

/// Reads every text file of a repository.
fn load(root: &Path) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.load(root, "").map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(tree)
}

fn check_tree(root: &Path) -> Result {
    let tree = load(root)?;
    let findings = tree.findings();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files", tree.files.len());
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

/// A text file.
struct File {
    /// The path relative to the root, with `/`.
    path: String,
    text: String,
    /// For Rust files.
    source: Option<Source>,
}

impl File {
    fn new(path: &str, text: &str) -> File {
        let source = path.ends_with(".rs").then(|| Source::new(text, is_test_path(path)));
        File { path: path.to_owned(), text: text.to_owned(), source }
    }

    fn is_kernel(&self) -> bool {
        self.path.starts_with("crates/kernel/src/")
    }
}

/// Whether a file contains only tests: below a folder `tests`, or named `tests.rs`.
fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The text files of the repository, sorted by path.
#[derive(Default)]
struct Tree {
    files: Vec<File>,
}

impl Tree {
    fn load(&mut self, dir: &Path, prefix: &str) -> std::io::Result<()> {
        let mut entries = fs::read_dir(dir)?.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if SKIPPED.contains(&path.as_str()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.load(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && path != ".git" {
                // Files that are not UTF-8 are not text.
                if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                    self.files.push(File::new(&path, &text));
                }
            }
        }
        Ok(())
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        for rule in RULES {
            rule(self, &mut findings);
        }
        findings.0.sort();
        findings.0
    }

    fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Iterates over the Rust files.
    fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// Adds a finding. Lines count from 1.
    fn add(&mut self, file: &File, line: usize, what: impl Into<String>) {
        self.0.push(Finding { path: file.path.clone(), line, what: what.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings of a rule for a tree, as `path:line: what`.
    pub(super) fn findings(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut findings = Findings::default();
        rule(&Tree { files }, &mut findings);
        findings.0.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn every_rule_runs_and_findings_are_sorted() {
        let files = vec![
            File::new("b.md", "text "),
            File::new("a.md", "one\ntwo \n"),
            File::new("stray.rs", "fn f() { dbg!(1) }\n"),
        ];
        let found: Vec<_> = Tree { files }.findings().iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[0], "a.md:2: trailing whitespace");
        assert_eq!(found[1], "b.md:1: no newline at the end of the file");
        assert_eq!(found[2], "b.md:1: trailing whitespace");
        assert!(found[3].starts_with("stray.rs:1: `dbg!`"), "{found:?}");
        assert!(found[4].starts_with("stray.rs:1: not reachable"), "{found:?}");
    }

    #[test]
    fn tests_are_recognized_by_their_path() {
        assert!(is_test_path("crates/kernel/tests/laws/main.rs"));
        assert!(is_test_path("crates/kernel/src/lanes/tests.rs"));
        assert!(!is_test_path("crates/kernel/src/lanes/contests.rs"));
    }
}
