//! Links in documents point to existing files.

use super::{Findings, Tree};

/// Folders with files that documents also name in backticks.
const FOLDERS: [&str; 5] = ["crates/", "docs/", "fuzz/", "xtask/", ".cargo/"];

/// Checks links in Markdown files, and paths in backticks. The change log is exempt, because it
/// names files that were removed.
pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let is_document = |path: &str| path.ends_with(".md") && !path.ends_with("CHANGELOG.md");
    for file in tree.files.iter().filter(|file| is_document(&file.path)) {
        let mut in_block = false;
        for (index, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            }
            if in_block {
                continue;
            }
            let (prose, quoted) = split_backticks(line);
            for link in links(&prose) {
                if !exists(tree, &resolve(&file.path, link)) {
                    findings.add(file, index + 1, format!("link to a missing file: {link}"));
                }
            }
            for path in quoted.into_iter().filter_map(named_path) {
                if !exists(tree, path) {
                    findings.add(file, index + 1, format!("names a missing file: {path}"));
                }
            }
        }
    }
}

/// Returns the text outside backticks, and the pieces inside.
fn split_backticks(line: &str) -> (String, Vec<&str>) {
    let pieces: Vec<&str> = line.split('`').collect();
    let prose = pieces.iter().step_by(2).copied().collect();
    (prose, pieces.into_iter().skip(1).step_by(2).collect())
}

/// Returns the targets of `[text](target)` and `[name]: target` that are files.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let named = prose.split_once("]: ").filter(|_| prose.starts_with('['));
    let targets = inline.chain(named.map(|(_, target)| target.trim()));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
}

/// Returns a path from the root, unless it is a pattern or a placeholder.
fn named_path(quoted: &str) -> Option<&str> {
    let path = quoted.split(':').next()?;
    let is_plain = !path.contains([' ', '*', '<', '{', '$']) && !path.contains("..");
    (is_plain && FOLDERS.iter().any(|folder| path.starts_with(folder))).then_some(path)
}

/// Resolves a link to a path from the root.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let inside = format!("{path}/");
    path.is_empty()
        || tree.files.iter().any(|file| file.path == path || file.path.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn dead_links_are_reported() {
        let text = "[a](b.md) [c](../README.md#top) [d](https://x.y/z) [e](#f)\n\
            [g](gone.md) and `[h](x)`\n```\n[i](gone.md)\n```\n[j]: gone/k.md\n[l](.)\n";
        let found = findings(
            check,
            &[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "[m](docs/) [n](doc/)\n")],
        );
        let expected = [
            "docs/a.md:2: link to a missing file: gone.md",
            "docs/a.md:6: link to a missing file: gone/k.md",
            "README.md:1: link to a missing file: doc/",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn paths_in_backticks_must_exist() {
        let text = "`crates/a/src/lib.rs` `crates/a/src/lib.rs::f` `docs/*.md` `other/x`\n\
            `crates/b` `crates/a`\n";
        let files = [("docs/a.md", text), ("crates/a/src/lib.rs", ""), ("CHANGELOG.md", text)];
        let found = findings(check, &files);
        assert_eq!(found, ["docs/a.md:2: names a missing file: crates/b"]);
    }
}
