//! Rules for every text file.

use super::{Findings, Tree};

/// Checks for trailing whitespace, and for exactly one newline at the end of the file.
pub(super) fn whitespace(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        for (index, line) in file.text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.add(file, index + 1, "trailing whitespace");
            }
        }
        let last = file.text.lines().count();
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            findings.add(file, last, "no newline at the end of the file");
        }
        if file.text.ends_with("\n\n") {
            findings.add(file, last, "blank lines at the end of the file");
        }
    }
}

/// Checks that no file contains a path of the machine on which it was written.
pub(super) fn machine_paths(tree: &Tree, findings: &mut Findings) {
    const ROOTS: [&str; 4] = ["work", "root", "tmp", "home"];
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if file.source.as_ref().is_some_and(|source| source.is_test(index + 1)) {
                continue;
            }
            for root in ROOTS {
                let path = format!("/{root}/");
                // `a/tmp/b` is relative: only a path that begins here counts.
                let begins = |at: usize| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-./}>~*)".contains(c))
                };
                if line.match_indices(&path).any(|(at, _)| begins(at)) {
                    findings.add(file, index + 1, format!("a path of one machine: {path}.."));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn whitespace_is_reported_with_its_line() {
        let found = findings(
            whitespace,
            &[
                ("a.md", "ok\nbad \n\tbad\t\nbad"),
                ("b.md", "ok\n\n"),
                ("c.md", ""),
                ("d.md", "x\n"),
            ],
        );
        let expected = [
            "a.md:2: trailing whitespace",
            "a.md:3: trailing whitespace",
            "a.md:4: no newline at the end of the file",
            "b.md:2: blank lines at the end of the file",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn machine_paths_are_reported_outside_tests() {
        let code = "const A: &str = \"/tmp/x\";\n#[cfg(test)]\nmod tests {\n  // /tmp/y\n}\n";
        let found = findings(
            machine_paths,
            &[("a.md", "in /home/x\nwww/home/x\n(/tmp/)\n"), ("src/a.rs", code)],
        );
        let expected = [
            "a.md:1: a path of one machine: /home/..",
            "a.md:3: a path of one machine: /tmp/..",
            "src/a.rs:1: a path of one machine: /tmp/..",
        ];
        assert_eq!(found, expected);
    }
}
