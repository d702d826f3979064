//! Public types have unique names.

use super::{Findings, Tree};
use std::collections::BTreeMap;

/// Crates that share one set of names.
const TOGETHER: [&str; 2] = ["kernel", "conformance"];

pub(super) fn duplicates(tree: &Tree, findings: &mut Findings) {
    let mut seen: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (file, source) in tree.sources() {
        let Some((scope, "src")) = crate_of(&file.path) else { continue };
        // The counterpart of `unix.rs`, with the same names: only one of them is compiled.
        if file.path.ends_with("/windows.rs") {
            continue;
        }
        let scope = if TOGETHER.contains(&scope) { TOGETHER[0] } else { scope };
        for words in source.tokens().windows(3) {
            let is_type = matches!(words[1].text, "struct" | "enum" | "union" | "trait" | "type");
            // The name is a macro parameter.
            if words[0].text != "pub" || !is_type || words[2].text == "$" {
                continue;
            }
            let line = source.line(words[0].at);
            if source.is_test(line) {
                continue;
            }
            let name = &source.code[words[2].at..][..words[2].text.len()];
            let here = format!("{}:{line}", file.path);
            match seen.get(&(scope, name)) {
                Some(first) => {
                    let what = format!("public type `{name}` is also at {first}: rename one");
                    findings.add(file, line, what);
                }
                None => drop(seen.insert((scope, name), here)),
            }
        }
    }
}

/// Returns the crate's folder, and the folder of the file in it.
fn crate_of(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.strip_prefix("crates/")?.split('/');
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_public_name_is_unique_in_its_crate_and_in_kernel_and_conformance() {
        let found = findings(
            duplicates,
            &[
                ("crates/cli/src/a.rs", "pub struct Key;\n"),
                ("crates/conformance/src/a.rs", "pub struct Key;\nstruct Own;\n"),
                ("crates/kernel/src/a.rs", "\npub enum Key {}\npub type Own = u8;\n"),
                (
                    "crates/kernel/src/b.rs",
                    "pub trait Own {}\npub struct Mine;\npub enum $a {}\npub enum $b {}\n",
                ),
                ("crates/kernel/src/c.rs", "#[cfg(test)]\nmod tests { pub struct Mine; }\n"),
                ("crates/kernel/src/windows.rs", "pub struct Mine;\n"),
                ("crates/kernel/tests/d.rs", "pub struct Mine;\n"),
            ],
        );
        let expected = [
            "crates/kernel/src/a.rs:2: public type `Key` is also at crates/conformance/src/a.rs:1: \
                rename one",
            "crates/kernel/src/b.rs:1: public type `Own` is also at crates/kernel/src/a.rs:3: \
                rename one",
        ];
        assert_eq!(found, expected);
    }
}
