//! The allowed dependencies between crates and modules.

use super::imports::Imports;
use super::source::Token;
use super::{Findings, Tree};

/// Each crate of the project with its dependencies in the project. A crate depends only on crates
/// above it, so there is no cycle. Dev-dependencies are not restricted.
const CRATES: &[(&str, &[&str])] = &[
    ("asx-origin", &[]),
    ("asx-kernel", &[]),
    ("asx-journal", &["asx-kernel"]),
    ("asx-task", &["asx-journal", "asx-kernel"]),
    ("asx-sync", &["asx-kernel", "asx-task"]),
    ("asx-runtime", &["asx-kernel", "asx-sync", "asx-task"]),
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

/// The largest allowed import cycle of top modules.
const MOST_MODULES: usize = 4;

/// The largest allowed import cycle of files, without a file's imports of its own ancestors and
/// descendants.
const MOST_FILES: usize = 8;

/// Checks that crates depend on exactly the listed crates.
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
            findings.add(
                file,
                1,
                format!("the table lists `{missing}`, but `{name}` does not use it"),
            );
        }
    }
}

/// Whether it is the manifest of a crate of the workspace.
fn is_member(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}

/// Returns the name of a package and its dependencies in the project, except dev-dependencies, each
/// with its line.
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

/// Checks that the top modules and the files of a crate have no large import cycles.
pub(super) fn cycles(tree: &Tree, findings: &mut Findings) {
    for root in &tree.files {
        let folder = root.path.strip_suffix("lib.rs").or_else(|| root.path.strip_suffix("main.rs"));
        let Some(folder) = folder.filter(|folder| is_source_folder(folder)) else { continue };
        let imports = match Imports::read(tree, root, folder) {
            Ok(imports) => imports,
            Err(error) => {
                findings.add(root, 1, error);
                continue;
            }
        };
        let modules = imports.between_top_modules().cycles();
        if let Some(largest) = modules.first().filter(|largest| largest.len() > MOST_MODULES) {
            let names = largest.join(", ");
            let count = largest.len();
            let what =
                format!("{count} modules import each other, {MOST_MODULES} are allowed: {names}");
            findings.add(root, 1, what);
        }
        let files = imports.between_files().cycles();
        if let Some(largest) = files.first().filter(|largest| largest.len() > MOST_FILES) {
            let names: Vec<&str> =
                largest.iter().filter_map(|file| file.strip_prefix(folder)).collect();
            let names = names.join(", ");
            let count = largest.len();
            let what =
                format!("{count} files import each other, {MOST_FILES} are allowed: {names}");
            findings.add(root, 1, what);
        }
    }
}

/// `cargo xtask tidy --cycles`: prints the largest import cycle of files of each crate, with its
/// edges.
pub(super) fn print_cycles(tree: &Tree) -> crate::Result {
    for root in &tree.files {
        let folder = root.path.strip_suffix("lib.rs").or_else(|| root.path.strip_suffix("main.rs"));
        let Some(folder) = folder.filter(|folder| is_source_folder(folder)) else { continue };
        let graph = Imports::read(tree, root, folder)?.between_files();
        let Some(largest) = graph.cycles().into_iter().next() else { continue };
        println!("{}: {} files", root.path, largest.len());
        let inside = |file: &str| file.strip_prefix(folder).unwrap_or(file).to_owned();
        for (from, to) in graph.edges_within(&largest) {
            println!("  {} -> {}", inside(&from), inside(&to));
        }
    }
    Ok(())
}

fn is_source_folder(folder: &str) -> bool {
    folder.ends_with("/src/") && (folder.starts_with("crates/") || folder.starts_with("xtask/"))
}

/// Whether a file belongs to a module or its descendants. `base` is the module's path without
/// `.rs`.
pub(super) fn is_of(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Returns the modules that are declared for tests only, as paths without `.rs`.
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

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::tests::findings;
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let tree = Tree { files };
        let root = tree.get("crates/a/src/lib.rs").unwrap();
        Imports::read(&tree, root, "crates/a/src/").unwrap()
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
    fn an_unlisted_dependency_is_reported_with_its_line() {
        let manifest = "[package]\nname = \"asx-journal\"\n\n[dependencies]\n\
                        asx-kernel.workspace = true\nserde = \"1\"\n\
                        asx-task = { path = \"x\" }\n\n[dev-dependencies]\nasx = \"1\"\n";
        let found = findings(crates, &[("crates/journal/Cargo.toml", manifest)]);
        let what = "`asx-journal` may not depend on `asx-task`: see the table";
        assert_eq!(found, [format!("crates/journal/Cargo.toml:7: {what}")]);
    }

    #[test]
    fn unused_edges_and_unlisted_crates_are_reported() {
        let files = [
            ("crates/journal/Cargo.toml", "[package]\nname = \"asx-journal\"\n"),
            ("crates/new/Cargo.toml", "[package]\nname = \"new\"\n"),
            ("fuzz/Cargo.toml", "[package]\nname = \"asx-fuzz\"\n[dependencies]\nasx = \"1\"\n"),
        ];
        let expected = [
            "crates/journal/Cargo.toml:1: the table lists `asx-kernel`, \
                 but `asx-journal` does not use it",
            "crates/new/Cargo.toml:1: `new` is not in the table of crates",
        ];
        assert_eq!(findings(crates, &files), expected);
    }

    #[test]
    fn dependencies_of_targets_and_builds_count() {
        for section in ["build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let manifest = format!("[package]\nname = \"asx-kernel\"\n[{section}]\nasx = \"1\"\n");
            let found = findings(crates, &[("crates/kernel/Cargo.toml", &manifest)]);
            assert_eq!(found.len(), 1, "{section}: {found:?}");
        }
    }

    #[test]
    fn imports_are_found_in_every_form() {
        let uses_b = [
            "use crate::b;\n",
            "use crate::{c, b::X};\n",
            "use super::b::X;\n",
            "use super::*; fn f(_: b::X) {}\n",
            "fn f() { crate::b::f() }\n",
            "use crate::Name;\n",
            "use crate::Other as Renamed;\n",
            "mod inner { use super::super::b; }\n",
            "macro_rules! m { () => { $crate::b::f() }; }\n",
            "fn f() { println!(\"{}\", crate::b::f()) }\n",
        ];
        for text in uses_b {
            let found = imports(&[
                ("crates/a/src/lib.rs", "mod a; mod b; mod c; pub use b::{Name, deep::Other};\n"),
                ("crates/a/src/a.rs", text),
                ("crates/a/src/b/mod.rs", "mod deep;\n"),
                ("crates/a/src/b/deep.rs", "use super::super::a;\n"),
                ("crates/a/src/c.rs", "use crate::a;\n"),
            ]);
            let expected: &[&str] =
                if text.contains("{c") { &["a", "b", "c"] } else { &["a", "b"] };
            assert_eq!(found.between_top_modules().cycles(), [expected], "{text}");
        }
    }

    #[test]
    fn imports_of_tests_and_names_in_comments_do_not_count() {
        let found = imports(&[
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
        assert!(found.between_top_modules().cycles().is_empty());
        assert!(found.between_files().cycles().is_empty());
    }

    #[test]
    fn a_name_leads_to_its_file_and_ancestors_do_not_count() {
        let found = imports(&[
            ("crates/a/src/lib.rs", "mod a; mod b;\n"),
            ("crates/a/src/a.rs", "mod one; mod two; pub use one::One; use two::Two;\n"),
            ("crates/a/src/a/one.rs", "use super::Two;\n"),
            ("crates/a/src/a/two.rs", "use super::One; use crate::b::B;\n"),
            ("crates/a/src/b.rs", "use crate::a::Other;\n"),
        ]);
        let cycles = found.between_files().cycles();
        assert_eq!(cycles, [["crates/a/src/a/one.rs", "crates/a/src/a/two.rs"]]);
    }

    #[test]
    fn large_cycles_are_reported() {
        let ring = |count: usize, folder: &str| {
            let mods: String = (0..count).map(|n| format!("mod m{n};\n")).collect();
            let root = match folder {
                "" => vec![(String::from("crates/a/src/lib.rs"), mods)],
                _ => vec![
                    (String::from("crates/a/src/lib.rs"), String::from("mod x;\n")),
                    (String::from("crates/a/src/x/mod.rs"), mods),
                ],
            };
            let files = (0..count).map(|n| {
                let next = (n + 1) % count;
                (format!("crates/a/src/{folder}m{n}.rs"), format!("use super::m{next};\n"))
            });
            root.into_iter().chain(files).collect::<Vec<_>>()
        };
        for (folder, most) in [("", MOST_MODULES), ("x/", MOST_FILES)] {
            for count in [2, most, most + 1] {
                let files = ring(count, folder);
                let files: Vec<_> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
                let found = findings(cycles, &files);
                assert_eq!(found.len(), usize::from(count > most), "{found:?}");
            }
        }
    }
}
