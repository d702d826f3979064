//! Every file is compiled.

use super::source::Source;
use super::{Findings, Tree};
use std::collections::BTreeSet;

/// Checks that every Rust file is a root of a Cargo target, or reachable from one by `mod`.
pub(super) fn unreachable(tree: &Tree, findings: &mut Findings) {
    let mut reached = BTreeSet::new();
    let mut waiting = roots(tree);
    while let Some((path, is_root)) = waiting.pop() {
        let Some(file) = tree.get(&path) else { continue };
        let Some(source) = &file.source else { continue };
        if reached.insert(path.clone()) {
            waiting.extend(children(&path, is_root, source, &file.text));
        }
    }
    for (file, _) in tree.sources() {
        // Files that must not compile are compiled by their test.
        if !reached.contains(&file.path) && !file.path.contains("/tests/ui/") {
            findings.add(
                file,
                1,
                "not reachable by `mod` from any Cargo target: delete or declare",
            );
        }
    }
}

/// Returns the crate roots: Cargo's default paths, and those in the manifests.
fn roots(tree: &Tree) -> Vec<(String, bool)> {
    let mut roots = Vec::new();
    for manifest in tree.files.iter() {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else { continue };
        for line in manifest.text.lines() {
            let value = line.split_once('=').filter(|(key, _)| key.trim() == "path");
            if let Some((_, path)) = value {
                roots.push((format!("{folder}{}", path.trim().trim_matches('"')), true));
            }
        }
        for (file, _) in tree.sources() {
            let Some(inside) = file.path.strip_prefix(folder) else { continue };
            if is_default_root(inside) {
                roots.push((file.path.clone(), true));
            }
        }
    }
    roots
}

fn is_default_root(inside: &str) -> bool {
    let parts: Vec<&str> = inside.split('/').collect();
    match parts[..] {
        [file] => file == "build.rs",
        ["src", file] => matches!(file, "lib.rs" | "main.rs"),
        ["src", "bin", _] | ["tests" | "examples" | "benches", _] => true,
        ["src", "bin", _, file] | ["tests" | "examples" | "benches", _, file] => file == "main.rs",
        _ => false,
    }
}

/// Returns the possible files of the modules that a file declares.
fn children(path: &str, is_root: bool, source: &Source, text: &str) -> Vec<(String, bool)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".rs");
    let owns_folder = is_root || stem == "mod";
    let home = if owns_folder { folder.to_owned() } else { format!("{folder}/{stem}") };

    let tokens = source.tokens();
    // The inline modules around the token, each with the depth of its braces.
    let mut around: Vec<(&str, usize)> = Vec::new();
    let mut depth = 0;
    let mut given = None;
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let next = |ahead: usize| tokens.get(index + ahead).map_or("", |token| token.text);
        let attribute = index > 0 && tokens[index - 1].text == "[";
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                around.retain(|(_, inside)| *inside <= depth);
            }
            "path" if next(1) == "=" && attribute => given = text[token.at..].split('"').nth(1),
            "mod" if next(2) == "{" => around.push((next(1), depth + 1)),
            "mod" if next(2) == ";" => {
                if let Some(given) = given.take() {
                    found.push((format!("{folder}/{given}"), true));
                    continue;
                }
                let inline: String = around.iter().map(|(name, _)| format!("/{name}")).collect();
                let base = format!("{home}{inline}/{}", next(1));
                let base = base.trim_start_matches('/');
                found.push((format!("{base}.rs"), false));
                found.push((format!("{base}/mod.rs"), false));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn files_are_reached_in_all_usual_ways() {
        let found = findings(
            unreachable,
            &[
                ("a/Cargo.toml", "[[bin]]\npath = \"odd/x.rs\"\n[dependencies]\n"),
                ("a/build.rs", ""),
                ("a/src/lib.rs", "mod b;\npub mod c;\nmod d { mod e; } mod f;\n"),
                ("a/src/b.rs", "mod inner;\n"),
                ("a/src/b/inner.rs", ""),
                ("a/src/c/mod.rs", "mod inner;\n#[path = \"odd.rs\"]\nmod g;\n"),
                ("a/src/c/inner.rs", ""),
                ("a/src/c/odd.rs", ""),
                ("a/src/d/e.rs", ""),
                ("a/src/f.rs", ""),
                ("a/odd/x.rs", "mod y;\n"),
                ("a/odd/y.rs", ""),
                ("a/tests/one.rs", ""),
                ("a/tests/two/main.rs", "mod three;\n"),
                ("a/tests/two/three.rs", ""),
            ],
        );
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn unreachable_files_are_reported() {
        let found = findings(
            unreachable,
            &[
                ("a/Cargo.toml", ""),
                ("a/src/lib.rs", "mod b; // mod c;\n"),
                ("a/src/b.rs", "const S: &str = \"mod d;\";\n"),
                ("a/src/c.rs", ""),
                ("a/src/d.rs", ""),
                ("a/tests/two/three.rs", ""),
                ("b/src/lib.rs", ""),
            ],
        );
        let paths: Vec<_> = found.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(paths, ["a/src/c.rs", "a/src/d.rs", "a/tests/two/three.rs", "b/src/lib.rs"]);
    }
}
