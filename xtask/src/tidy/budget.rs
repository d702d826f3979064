//! The kernel can be read in a day.

use super::{Findings, Tree};

const KERNEL_LINES: usize = 7400;

/// The lines of code of the kernel: no tests, no comments, no blank lines.
pub(super) fn kernel_lines(tree: &Tree, findings: &mut Findings) {
    let kernel = || tree.sources().filter(|(file, _)| file.is_kernel());
    let lines: usize = kernel().map(|(_, source)| source.own_lines()).sum();
    let root = kernel().map(|(file, _)| file).find(|file| file.path.ends_with("src/lib.rs"));
    if let Some(root) = root.filter(|_| lines >= KERNEL_LINES) {
        let what = format!(
            "the kernel has {lines} lines of code without tests and comments; \
             less than {KERNEL_LINES}"
        );
        findings.add(root, 1, what);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_kernel_is_counted_without_tests_comments_and_blank_lines() {
        let count = |lines: usize| {
            let unread = "//! Module.\n\n/// Item.\n#[cfg(test)]\nmod tests {\n}\n";
            findings(
                kernel_lines,
                &[
                    ("crates/kernel/src/lib.rs", &format!("{}{unread}", "x; // y\n".repeat(lines))),
                    ("crates/kernel/src/a.rs", &"\"only text\"\n".repeat(1000)),
                    ("crates/kernel/src/a/tests.rs", &"x;\n".repeat(1000)),
                    ("crates/cli/src/a.rs", &"x;\n".repeat(1000)),
                ],
            )
        };
        let what = "the kernel has 7400 lines of code without tests and comments; less than 7400";
        assert_eq!(count(6400), [format!("crates/kernel/src/lib.rs:1: {what}")]);
        assert!(count(6399).is_empty());
    }
}
