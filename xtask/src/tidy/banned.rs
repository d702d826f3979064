//! Words that must not remain in the code.

use super::source::Source;
use super::{Findings, Tree};

/// Reports unfinished work.
pub(super) fn leftovers(tree: &Tree, findings: &mut Findings) {
    for (file, source) in tree.sources() {
        let tokens = source.tokens();
        for pair in tokens.windows(2) {
            let [name, bang] = pair else { continue };
            if bang.text == "!" && matches!(name.text, "todo" | "unimplemented" | "dbg") {
                let what = format!("`{}!` is left in the code", name.text);
                findings.add(file, source.line(name.at), what);
            }
        }
        for (index, line) in source.comments.lines().enumerate() {
            for word in ["FIXME", "XXX", "TODO"] {
                if words(line).any(|found| found == word) {
                    findings.add(file, index + 1, format!("{word}: finish or remove it"));
                }
            }
        }
    }
}

/// Checks that an ignored test has a reason.
pub(super) fn ignored_tests(tree: &Tree, findings: &mut Findings) {
    for (file, source) in tree.sources() {
        for at in sequences(source, &["#", "[", "ignore", "]"]) {
            findings.add(file, source.line(at), "#[ignore] without a reason");
        }
    }
}

/// Checks that the kernel has neither std nor unsafe code, except in its tests.
pub(super) fn kernel_words(tree: &Tree, findings: &mut Findings) {
    for (file, source) in tree.sources().filter(|(file, _)| file.is_kernel()) {
        let mut report = |at: usize, what: &str| {
            let line = source.line(at);
            if !source.is_test(line) {
                findings.add(file, line, what);
            }
        };
        for at in sequences(source, &["std", ":", ":"]) {
            report(at, "the kernel has no std: use core or alloc");
        }
        for at in sequences(source, &["extern", "crate", "std"]) {
            report(at, "the kernel has no std outside tests");
        }
        for at in sequences(source, &["unsafe"]) {
            report(at, "the kernel has no unsafe code");
        }
    }
}

/// Returns the positions of a sequence of tokens.
fn sequences(source: &Source, wanted: &[&str]) -> Vec<usize> {
    let tokens = source.tokens();
    let matches = tokens
        .windows(wanted.len())
        .filter(|window| window.iter().zip(wanted).all(|(token, wanted)| token.text == *wanted));
    matches.map(|window| window[0].at).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn leftovers_are_reported_in_code_and_comments_but_not_in_strings() {
        let text = "fn f() {\n  todo!();\n  unimplemented ! ();\n  dbg!(1); // FIXME later\n\
            // XXX\n// TODO: x\n  \"todo!() FIXME\"; // XXXL todo!()\n}\n";
        let expected = [
            "a.rs:2: `todo!` is left in the code",
            "a.rs:3: `unimplemented!` is left in the code",
            "a.rs:4: `dbg!` is left in the code",
            "a.rs:4: FIXME: finish or remove it",
            "a.rs:5: XXX: finish or remove it",
            "a.rs:6: TODO: finish or remove it",
        ];
        assert_eq!(findings(leftovers, &[("a.rs", text)]), expected);
    }

    #[test]
    fn ignored_tests_need_a_reason() {
        let text = "#[ignore = \"slow\"]\nfn a() {}\n#[ignore]\nfn b() {}\n";
        let found = findings(ignored_tests, &[("tests/a.rs", text)]);
        assert_eq!(found, ["tests/a.rs:3: #[ignore] without a reason"]);
    }

    #[test]
    fn the_kernel_has_no_std_and_no_unsafe() {
        let text = "#![forbid(unsafe_code)]\n/// std::vec\nuse std::vec;\nextern crate std;\n\
            unsafe fn f() {}\n#[cfg(test)]\nmod tests { use std::vec; }\n";
        let expected = [
            "crates/kernel/src/a.rs:3: the kernel has no std: use core or alloc",
            "crates/kernel/src/a.rs:4: the kernel has no std outside tests",
            "crates/kernel/src/a.rs:5: the kernel has no unsafe code",
        ];
        let files = [("crates/kernel/src/a.rs", text), ("crates/cli/src/a.rs", text)];
        assert_eq!(findings(kernel_words, &files), expected);
    }
}
