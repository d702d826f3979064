//! The walks through the code in `docs/ARCHITECTURE.md` name existing functions.
//!
//! A walk is a section with a heading that begins with `Walk:`. It states its length (`40 hops in
//! 18 files`), and its hops are numbered items, each with a file and a function in it:
//!
//! ```text
//! 7. `crates/task/src/region/tasks.rs` `Region::adopt`: the region takes the task in.
//! ```
//!
//! A hop is called by an earlier hop, either directly or through a function in a file of an earlier
//! hop. The first hop after a paragraph is called from elsewhere, as the paragraph says.

use super::source::{Source, Token, item_end};
use super::{File, Findings, Tree};
use std::collections::BTreeSet;

const DOCUMENT: &str = "docs/ARCHITECTURE.md";

/// Walks with a maximal number of hops and files.
const BOUNDS: [(&str, usize, usize); 1] = [("from spawn to join", 40, 18)];

/// Checks the files, functions and counts of all walks.
pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let Some(document) = tree.get(DOCUMENT) else { return };
    for walk in walks(document) {
        walk.check(tree, document, findings);
    }
}

/// A section of the document.
struct Walk<'a> {
    title: &'a str,
    line: usize,
    /// The stated counts, and their line.
    stated: Option<(usize, usize, usize)>,
    hops: Vec<Hop<'a>>,
}

/// A numbered item.
struct Hop<'a> {
    line: usize,
    number: usize,
    path: &'a str,
    function: &'a str,
    /// Whether it is the first one after a paragraph.
    enters: bool,
}

/// Returns the walks of a document.
fn walks(document: &File) -> Vec<Walk<'_>> {
    let mut walks: Vec<Walk<'_>> = Vec::new();
    let mut inside = false;
    let mut enters = true;
    for (index, text) in document.text.lines().enumerate() {
        let line = index + 1;
        if text.starts_with('#') {
            let title = text.trim_start_matches('#').trim().strip_prefix("Walk: ");
            inside = title.is_some();
            enters = true;
            if let Some(title) = title {
                walks.push(Walk { title, line, stated: None, hops: Vec::new() });
            }
            continue;
        }
        let Some(walk) = walks.last_mut().filter(|_| inside) else { continue };
        if let Some(mut hop) = hop(text, line) {
            hop.enters = enters;
            enters = false;
            walk.hops.push(hop);
        } else if !text.is_empty() && !text.starts_with(' ') {
            enters = true;
            if let Some((hops, files)) = counts(text) {
                walk.stated = Some((hops, files, line));
            }
        }
    }
    walks
}

/// Parses an item such as `` 3. `file.rs` `Type::function`: what it does ``.
fn hop(text: &str, line: usize) -> Option<Hop<'_>> {
    let (number, rest) = text.split_once(". `")?;
    let number = number.parse().ok()?;
    let mut quoted = rest.split('`');
    let path = quoted.next()?;
    let function = quoted.nth(1).unwrap_or("");
    Some(Hop { line, number, path, function, enters: false })
}

/// Finds `40 hops in 18 files` anywhere in a line.
fn counts(text: &str) -> Option<(usize, usize)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let counts = words.windows(5).find(|it| it[1] == "hops" && it[2] == "in");
    let [hops, _, _, files, _] = counts?[..] else { return None };
    Some((hops.parse().ok()?, files.parse().ok()?))
}

impl Walk<'_> {
    fn check(&self, tree: &Tree, document: &File, findings: &mut Findings) {
        let mut seen: Vec<Function<'_>> = Vec::new();
        let mut files = BTreeSet::new();
        for (index, hop) in self.hops.iter().enumerate() {
            let mut add = |what: String| findings.add(document, hop.line, what);
            if hop.number != index + 1 {
                add(format!("hop {} is the {}th of its walk", hop.number, index + 1));
            }
            files.insert(hop.path);
            let Some(source) = tree.get(hop.path).and_then(|file| file.source.as_ref()) else {
                add(format!("no such Rust file: {}", hop.path));
                continue;
            };
            let Some(function) = Function::find(source, hop.path, hop.function) else {
                add(format!("{} has no function `{}`", hop.path, hop.function));
                continue;
            };
            if !hop.enters && !function.is_called_by(&seen, tree) {
                add(format!("`{}` is called by no hop before it", hop.function));
            }
            seen.push(function);
        }
        let counted = (self.hops.len(), files.len());
        match self.stated {
            None => findings.add(document, self.line, "the walk does not state its hops and files"),
            Some((hops, files, line)) if (hops, files) != counted => {
                let what = format!("there are {} hops in {} files", counted.0, counted.1);
                findings.add(document, line, what);
            }
            Some(_) => {}
        }
        let bound = BOUNDS.iter().find(|(title, ..)| self.title.ends_with(title));
        if let Some((_, hops, files)) = bound
            && (counted.0 > *hops || counted.1 > *files)
        {
            findings.add(document, self.line, format!("more than {hops} hops or {files} files"));
        }
    }
}

/// A function of a file.
struct Function<'a> {
    path: &'a str,
    name: &'a str,
    /// The words of its signature and body.
    words: BTreeSet<&'a str>,
}

impl<'a> Function<'a> {
    /// Returns the function with this name, except tests: `name`, or `Type::name` if it is in an
    /// `impl` or a `trait` with a head that names the type.
    fn find(source: &'a Source, path: &'a str, name: &'a str) -> Option<Function<'a>> {
        let (of, name) = name.rsplit_once("::").map_or((None, name), |(of, it)| (Some(of), it));
        let all = functions(source);
        let mut found = all.into_iter().filter(|(heads, it, _)| {
            *it == name && of.is_none_or(|of| heads.iter().any(|head| head.contains(&of)))
        });
        let (_, name, words) = found.next()?;
        // Several functions may have the name: `impl`s of two traits for one type, or with and
        // without a feature.
        let words = found.fold(words, |words, (_, _, more)| &words | &more);
        Some(Function { path, name, words })
    }

    /// Whether one of these calls it, directly or through a function in one of their files.
    fn is_called_by(&self, others: &[Function<'_>], tree: &Tree) -> bool {
        if others.iter().any(|other| other.words.contains(self.name)) {
            return true;
        }
        let paths: BTreeSet<&str> = others.iter().map(|other| other.path).collect();
        let sources = paths.iter().filter_map(|path| tree.get(path)?.source.as_ref());
        sources.flat_map(functions).any(|(_, name, words)| {
            words.contains(self.name) && others.iter().any(|other| other.words.contains(name))
        })
    }
}

/// The heads of the blocks around a function, its name, and its words.
type Found<'a> = (Vec<Vec<&'a str>>, &'a str, BTreeSet<&'a str>);

/// Returns every function of a file, except tests.
fn functions(source: &Source) -> Vec<Found<'_>> {
    let tokens = source.tokens();
    let mut functions = Vec::new();
    // Open blocks: the end of each, and the words before its brace.
    let mut open: Vec<(usize, Vec<&str>)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        open.retain(|(end, _)| *end >= at);
        let starts =
            at == 0 || matches!(tokens[at - 1].text, "}" | ";" | "{" | "]" | "unsafe" | ")");
        match token.text {
            "impl" | "trait" if starts || tokens[at - 1].text == "pub" => {
                let head = |token: &&Token<'_>| token.text != "{" && token.text != ";";
                let words = tokens[at..].iter().take_while(head).map(|token| token.text).collect();
                open.push((item_end(&tokens, at).unwrap_or(tokens.len()), words));
            }
            "fn" if !source.is_test(source.line(token.at)) => {
                let Some(name) = tokens.get(at + 1) else { continue };
                let end = item_end(&tokens, at).unwrap_or(tokens.len() - 1);
                let words = tokens[at + 2..=end].iter().map(|token| token.text).collect();
                let heads = open.iter().map(|(_, words)| words.clone()).collect();
                functions.push((heads, name.text, words));
            }
            _ => {}
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    const CODE: &str = "pub struct A;\nimpl A {\n    pub fn go(&self) { helps() }\n}\n\
        impl Drop for B {\n    fn drop(&mut self) { A.go() }\n}\n\
        fn helps() { ends() }\nfn ends() {}\n#[cfg(test)]\nmod tests { fn only() {} }\n";

    fn findings_of(items: &str, counts: &str) -> Vec<String> {
        let text =
            format!("# A\n\n### Walk: one\n\nIt has {counts}.\n\n{items}\n## B\n\n1. `x` `y`\n");
        findings(check, &[(DOCUMENT, &text), ("crates/a/src/a.rs", CODE)])
    }

    #[test]
    fn a_correct_walk_is_accepted() {
        let items = "1. `crates/a/src/a.rs` `B::drop`: begins,\n   on two lines.\n\
            2. `crates/a/src/a.rs` `A::go`: goes.\n3. `crates/a/src/a.rs` `ends`: ends.\n";
        assert_eq!(findings_of(items, "3 hops in 1 files"), [""; 0]);
    }

    #[test]
    fn wrong_files_functions_numbers_and_counts_are_reported() {
        let cases = [
            ("1. `crates/a/src/b.rs` `go`", "no such Rust file: crates/a/src/b.rs"),
            ("1. `crates/a/src/a.rs` `went`", "crates/a/src/a.rs has no function `went`"),
            ("1. `crates/a/src/a.rs` `B::go`", "crates/a/src/a.rs has no function `B::go`"),
            ("1. `crates/a/src/a.rs` `only`", "crates/a/src/a.rs has no function `only`"),
            ("2. `crates/a/src/a.rs` `go`", "hop 2 is the 1th of its walk"),
        ];
        for (items, what) in cases {
            let expected = [format!("{DOCUMENT}:7: {what}")];
            assert_eq!(findings_of(&format!("{items}\n"), "1 hops in 1 files"), expected);
        }
        let item = "1. `crates/a/src/a.rs` `go`\n";
        let expected = [format!("{DOCUMENT}:5: there are 1 hops in 1 files")];
        assert_eq!(findings_of(item, "2 hops in 1 files"), expected);
        let expected = [format!("{DOCUMENT}:3: the walk does not state its hops and files")];
        assert_eq!(findings_of(item, "some hops"), expected);
    }

    #[test]
    fn a_hop_is_called_by_an_earlier_one_or_begins_a_part() {
        let first = "1. `crates/a/src/a.rs` `ends`: ends.\n";
        let second = "2. `crates/a/src/a.rs` `go`: goes.\n";
        let expected = [format!("{DOCUMENT}:8: `go` is called by no hop before it")];
        assert_eq!(findings_of(&format!("{first}{second}"), "2 hops in 1 files"), expected);
        let apart = format!("{first}\nAnother thread:\n\n{second}");
        assert_eq!(findings_of(&apart, "2 hops in 1 files"), [""; 0]);
    }

    #[test]
    fn the_document_has_its_four_walks() {
        let path = crate::shell::root().join(DOCUMENT);
        let document = File::new(DOCUMENT, &std::fs::read_to_string(path).unwrap());
        let found: Vec<_> = walks(&document).iter().map(|walk| walk.title.to_owned()).collect();
        let expected = [
            "from spawn to join",
            "a reserve that is cancelled",
            "a test in the lab",
            "a call from C",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_bound_of_a_walk_is_checked() {
        let item = |number: usize| format!("{number}. `crates/a/src/a.rs` `go`\n\nThen:\n\n");
        let items: String = (1..=41).map(item).collect();
        let text = format!("### Walk: from spawn to join\n\n41 hops in 1 files\n\n{items}");
        let found = findings(check, &[(DOCUMENT, &text), ("crates/a/src/a.rs", CODE)]);
        assert_eq!(found, [format!("{DOCUMENT}:1: more than 40 hops or 18 files")]);
    }
}
