//! What may depend on what: crates on crates, and the modules of a crate on each other.

use super::source::{Source, Token};
use super::{File, Findings, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Each crate of ours, and those of ours that it depends on. A crate depends only on crates above
/// it, so that there is no cycle. What is needed for tests alone is free.
const CRATES: &[(&str, &[&str])] = &[
    ("asx-origin", &[]),
    ("asx-kernel", &[]),
    ("asx-journal", &["asx-kernel"]),
    ("asx-task", &["asx-journal", "asx-kernel"]),
    ("asx-sync", &["asx-kernel", "asx-task"]),
    ("asx-runtime", &["asx-sync", "asx-task"]),
    ("asx-native", &["asx-kernel", "asx-runtime"]),
    ("asx-net", &["asx-runtime"]),
    ("asx-web", &["asx-kernel", "asx-runtime"]),
    ("asx-trace", &["asx-kernel"]),
    ("asx-report", &["asx-kernel", "asx-trace"]),
    ("asx-lab", &["asx-kernel", "asx-report", "asx-runtime", "asx-trace"]),
    ("asx-macros", &[]),
    ("asx", &["asx-kernel", "asx-lab", "asx-macros", "asx-native", "asx-net", "asx-runtime"]),
    ("asx-capi", &["asx-kernel"]),
    (
        "asx-conformance",
        &[
            "asx-capi",
            "asx-kernel",
            "asx-lab",
            "asx-native",
            "asx-origin",
            "asx-runtime",
            "asx-trace",
            "asx-web",
        ],
    ),
    (
        "asx-cli",
        &[
            "asx",
            "asx-conformance",
            "asx-kernel",
            "asx-lab",
            "asx-origin",
            "asx-report",
            "asx-trace",
        ],
    ),
    ("asx-web-js", &["asx-kernel", "asx-runtime", "asx-trace", "asx-web"]),
    ("asx-web-page", &["asx-kernel", "asx-report", "asx-runtime", "asx-trace", "asx-web"]),
    ("asx-web-corpus", &["asx-conformance", "asx-origin"]),
    ("asx-stress", &["asx", "asx-kernel", "asx-runtime"]),
    ("asx-bench", &["asx-capi", "asx-kernel", "asx-native", "asx-net", "asx-runtime"]),
    ("asx-bench-lab", &["asx-bench", "asx-lab", "asx-net", "asx-runtime"]),
    ("xtask", &[]),
];

/// As many modules may depend on each other in a circle.
const MOST: usize = 4;

/// Crates depend only on what is listed, and everything listed is needed.
pub(super) fn crates(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        if !is_member(&file.path) {
            continue;
        }
        let Some((name, dependencies)) = manifest(&file.text) else { continue };
        let Some((_, allowed)) = CRATES.iter().find(|(listed, _)| *listed == name) else {
            findings.add(file, 1, format!("`{name}` is not in the table of crates"));
            continue;
        };
        for (line, dependency) in &dependencies {
            if !allowed.contains(&dependency.as_str()) {
                let what = format!("`{name}` may not depend on `{dependency}`: see the table");
                findings.add(file, *line, what);
            }
        }
        for missing in allowed.iter().filter(|name| !dependencies.iter().any(|(_, it)| it == *name))
        {
            findings.add(file, 1, format!("`{name}` may depend on `{missing}`, and does not"));
        }
    }
}

/// Whether it is the manifest of a crate of the workspace.
fn is_member(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}

/// The name of a package and the crates of ours that it depends on, other than for tests, each with
/// its line.
fn manifest(text: &str) -> Option<(String, Vec<(usize, String)>)> {
    let mut name = None;
    let mut dependencies = Vec::new();
    let mut section = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().trim_end_matches(".workspace");
        if section == "package" && key == "name" {
            name = Some(value.trim().trim_matches('"').to_owned());
        }
        let counts = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
        if counts && (key == "asx" || key.starts_with("asx-")) {
            dependencies.push((index + 1, key.to_owned()));
        }
    }
    Some((name?, dependencies))
}

/// No large circles among the top modules of a crate.
pub(super) fn cycles(tree: &Tree, findings: &mut Findings) {
    for root in &tree.files {
        let folder = root.path.strip_suffix("lib.rs").or_else(|| root.path.strip_suffix("main.rs"));
        let Some(folder) = folder.filter(|folder| is_source_folder(folder)) else { continue };
        let graph = Graph::new(tree, root, folder);
        let largest = graph.circles().into_iter().max_by_key(Vec::len).unwrap_or_default();
        if largest.len() > MOST {
            let what = format!(
                "{} modules depend on each other, {MOST} may: {}",
                largest.len(),
                largest.join(", ")
            );
            findings.add(root, 1, what);
        }
    }
}

fn is_source_folder(folder: &str) -> bool {
    folder.ends_with("/src/") && (folder.starts_with("crates/") || folder.starts_with("xtask/"))
}

/// Who uses whom among the top modules of a crate, outside of tests.
struct Graph {
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn new(tree: &Tree, root: &File, folder: &str) -> Graph {
        let tests = test_files(tree, folder);
        let own = |file: &&File| {
            file.path.starts_with(folder)
                && file.path != root.path
                && !tests.iter().any(|test| is_of(&file.path, test))
        };
        let files: Vec<&File> = tree.files.iter().filter(own).collect();
        let mut uses = BTreeMap::new();
        for file in &files {
            if let Some((module, _)) = place(&file.path[folder.len()..]) {
                uses.insert(module.to_owned(), BTreeSet::new());
            }
        }
        let names = exported(root, &uses);
        for file in files {
            let Some(source) = &file.source else { continue };
            let Some((module, depth)) = place(&file.path[folder.len()..]) else { continue };
            for used in names_of_root(source, depth) {
                let used = names.get(&used).unwrap_or(&used);
                if used != module
                    && uses.contains_key(used)
                    && let Some(from) = uses.get_mut(module)
                {
                    from.insert(used.clone());
                }
            }
        }
        Graph { uses }
    }

    /// Modules that use each other, directly or not: each group of two or more.
    fn circles(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&String, BTreeSet<&String>> =
            self.uses.keys().map(|from| (from, self.reached(from))).collect();
        let mut circles: Vec<Vec<String>> = Vec::new();
        for (from, to) in &reach {
            let circle: Vec<String> = (to.iter())
                .filter(|to| reach[*to].contains(from))
                .map(|to| (*to).clone())
                .collect();
            if circle.len() > 1 && !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles
    }

    /// What a module uses, directly or not; itself if it is in a circle.
    fn reached<'a>(&'a self, from: &'a String) -> BTreeSet<&'a String> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(module) = waiting.pop() {
            for used in &self.uses[module] {
                if reached.insert(used) {
                    waiting.push(used);
                }
            }
        }
        reached
    }
}

/// The top module that a file belongs to, and how many modules deep it is. Programs are none.
fn place(inside: &str) -> Option<(&str, usize)> {
    let path = inside.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let mut parts = path.split('/');
    let module = parts.next()?;
    (module != "bin" && module != "main" && module != "lib").then_some((module, 1 + parts.count()))
}

/// Whether a file is that of a module, or below it: `base` is the path without `.rs`.
pub(super) fn is_of(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The modules that are declared for tests only, as paths without `.rs`.
pub(super) fn test_files(tree: &Tree, folder: &str) -> Vec<String> {
    let mut tests = Vec::new();
    for (file, source) in tree.sources() {
        let Some(inside) = file.path.strip_prefix(folder) else { continue };
        let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let stem = name.trim_end_matches(".rs");
        let owns = matches!(stem, "mod" | "lib" | "main");
        let base = if owns { parent.to_owned() } else { format!("{parent}/{stem}") };
        let tokens = source.tokens();
        let declares = |three: &[Token<'_>]| three[0].text == "mod" && three[2].text == ";";
        for three in tokens.windows(3).filter(|three| declares(three)) {
            if source.is_test(source.line(three[0].at)) {
                tests.push(format!("{base}/{}", three[1].text));
            }
        }
        if super::is_test_path(inside) {
            tests.push(file.path.trim_end_matches(".rs").to_owned());
        }
    }
    tests
}

/// What the root calls by a shorter name: the module each name is from.
fn exported(root: &File, modules: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let Some(source) = &root.source else { return names };
    let tokens = source.tokens();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "use") {
        let mut from = at + 1;
        if tokens.get(from).is_some_and(|token| matches!(token.text, "self" | "crate")) {
            from += 3;
        }
        let Some(module) = tokens.get(from).filter(|token| modules.contains_key(token.text)) else {
            continue;
        };
        for token in tokens[from + 1..].iter().take_while(|token| token.text != ";") {
            names.insert(token.text.to_owned(), module.text.to_owned());
        }
    }
    // A module is what its own name says.
    names.retain(|name, _| !modules.contains_key(name));
    names
}

/// The names of the crate's root that a file uses, outside of tests: after `crate::`, and after as
/// many `super::` as lead there.
fn names_of_root(source: &Source, depth: usize) -> Vec<String> {
    let tokens = source.tokens();
    let text = |at: usize| tokens.get(at).map_or("", |token: &Token<'_>| token.text);
    let is_path = |at: usize| text(at) == ":" && text(at + 1) == ":";
    let mut names = Vec::new();
    // Modules inside the file that are open here, by the depth of their braces.
    let mut inside: Vec<usize> = Vec::new();
    let mut braces = 0;
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "{" => braces += 1,
            "}" => {
                inside.retain(|opened| *opened != braces);
                braces -= 1;
            }
            "mod" if text(at + 2) == "{" => inside.push(braces + 1),
            _ => {}
        }
        let mut next = at;
        let mut up = 0;
        if text(at) == "crate" && is_path(at + 1) {
            up = depth + inside.len();
            next = at + 3;
        }
        while up < depth + inside.len() && text(next) == "super" && is_path(next + 1) {
            up += 1;
            next += 3;
        }
        let leads = next > at && up == depth + inside.len();
        if leads && !source.is_test(source.line(tokens[at].at)) {
            names.extend(first_names(&tokens, next));
        }
        at = next.max(at + 1);
    }
    names
}

/// The name at this place of a path, or the first name of each path in the group that is there.
fn first_names(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let Some(first) = tokens.get(at) else { return Vec::new() };
    if first.text != "{" {
        return vec![first.text.to_owned()];
    }
    let mut names = Vec::new();
    let mut depth = 0;
    let mut begins = false;
    for token in &tokens[at..] {
        match token.text {
            "{" => {
                depth += 1;
                begins = depth == 1;
            }
            "}" => depth -= 1,
            "," => begins = depth == 1,
            name => {
                if std::mem::take(&mut begins) {
                    names.push(name.to_owned());
                }
            }
        }
        if depth == 0 {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let tree = Tree { files };
        let root = tree.get("crates/a/src/lib.rs").unwrap();
        Graph::new(&tree, root, "crates/a/src/").circles()
    }

    #[test]
    fn the_table_has_no_cycles_and_names_each_crate_once() {
        for (at, (name, dependencies)) in CRATES.iter().enumerate() {
            let above = &CRATES[..at];
            assert!(above.iter().all(|(other, _)| other != name), "{name} twice");
            for dependency in *dependencies {
                assert!(above.iter().any(|(other, _)| other == dependency), "{name}: {dependency}");
            }
        }
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_found_where_it_is() {
        let manifest = "[package]\nname = \"asx-journal\"\n\n[dependencies]\n\
                        asx-kernel.workspace = true\nserde = \"1\"\n\
                        asx-task = { path = \"x\" }\n\n[dev-dependencies]\nasx = \"1\"\n";
        let found = findings(crates, &[("crates/journal/Cargo.toml", manifest)]);
        let what = "`asx-journal` may not depend on `asx-task`: see the table";
        assert_eq!(found, [format!("crates/journal/Cargo.toml:7: {what}")]);
    }

    #[test]
    fn edges_that_are_gone_and_crates_that_are_new_are_found() {
        let files = [
            ("crates/journal/Cargo.toml", "[package]\nname = \"asx-journal\"\n"),
            ("crates/new/Cargo.toml", "[package]\nname = \"new\"\n"),
            ("fuzz/Cargo.toml", "[package]\nname = \"asx-fuzz\"\n[dependencies]\nasx = \"1\"\n"),
        ];
        let expected = [
            "crates/journal/Cargo.toml:1: `asx-journal` may depend on `asx-kernel`, and does not",
            "crates/new/Cargo.toml:1: `new` is not in the table of crates",
        ];
        assert_eq!(findings(crates, &files), expected);
    }

    #[test]
    fn a_dependency_of_a_target_or_of_a_build_counts() {
        for section in ["build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let manifest = format!("[package]\nname = \"asx-kernel\"\n[{section}]\nasx = \"1\"\n");
            let found = findings(crates, &[("crates/kernel/Cargo.toml", &manifest)]);
            assert_eq!(found.len(), 1, "{section}: {found:?}");
        }
    }

    #[test]
    fn modules_that_use_each_other_are_a_circle_however_they_say_so() {
        let uses_b = [
            "use crate::b;\n",
            "use crate::{c, b::X};\n",
            "use super::b::X;\n",
            "fn f() { crate::b::f() }\n",
            "use crate::Name;\n",
            "mod inner { use super::super::b; }\n",
            "macro_rules! m { () => { $crate::b::f() }; }\n",
        ];
        for text in uses_b {
            let found = circles(&[
                ("crates/a/src/lib.rs", "mod a; mod b; mod c; pub use b::{Name, Other};\n"),
                ("crates/a/src/a.rs", text),
                ("crates/a/src/b/mod.rs", "mod deep;\n"),
                ("crates/a/src/b/deep.rs", "use super::super::a;\n"),
                ("crates/a/src/c.rs", "use crate::a;\n"),
            ]);
            let expected: &[&str] =
                if text.contains("{c") { &["a", "b", "c"] } else { &["a", "b"] };
            assert_eq!(found, [expected], "{text}");
        }
    }

    #[test]
    fn what_only_tests_or_comments_say_is_no_use() {
        let found = circles(&[
            ("crates/a/src/lib.rs", "mod a; mod b; #[cfg(test)] mod t;\n"),
            (
                "crates/a/src/a.rs",
                "// crate::b\n#[cfg(test)]\nmod tests { use crate::b; }\nmod x;\n",
            ),
            ("crates/a/src/a/x.rs", "use super::b;\n#[cfg(all(test, x))]\nmod y;\n"),
            ("crates/a/src/a/x/y.rs", "use crate::b;\n"),
            ("crates/a/src/b.rs", "use crate::{a, t};\nconst B: &str = \"crate::a\";\n"),
            ("crates/a/src/b/tests.rs", "use crate::a;\n"),
            ("crates/a/src/t.rs", "use crate::b;\n"),
        ]);
        assert_eq!(found, [[""; 0]; 0]);
    }

    #[test]
    fn circles_that_are_too_large_are_found() {
        let ring = |count: usize| {
            let mods: String = (0..count).map(|n| format!("mod m{n};\n")).collect();
            let mut files = vec![(String::from("crates/a/src/lib.rs"), mods)];
            files.extend((0..count).map(|n| {
                let next = (n + 1) % count;
                (format!("crates/a/src/m{n}.rs"), format!("use crate::m{next};\n"))
            }));
            files
        };
        for count in [2, MOST, MOST + 1] {
            let files = ring(count);
            let files: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
            let found = findings(cycles, &files);
            assert_eq!(found.len(), usize::from(count > MOST), "{found:?}");
        }
    }
}
