//! The kernel can be read in a day.

use super::{Findings, Tree};

const KERNEL_LINES: usize = 6000;

/// All lines of the kernel but its tests.
pub(super) fn kernel_lines(tree: &Tree, findings: &mut Findings) {
    let kernel = || tree.sources().filter(|(file, _)| file.is_kernel());
    let lines: usize = kernel().map(|(_, source)| source.own_lines()).sum();
    let root = kernel().map(|(file, _)| file).find(|file| file.path.ends_with("src/lib.rs"));
    if let Some(root) = root.filter(|_| lines >= KERNEL_LINES) {
        let what = format!("the kernel has {lines} lines without tests; less than {KERNEL_LINES}");
        findings.add(root, 1, what);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_kernel_is_counted_without_its_tests() {
        let count = |lines: usize| {
            let tests = "#[cfg(test)]\nmod tests {\n}\n";
            findings(
                kernel_lines,
                &[
                    ("crates/kernel/src/lib.rs", &format!("{}{tests}", "\n".repeat(lines))),
                    ("crates/kernel/src/a.rs", &"\n".repeat(1000)),
                    ("crates/kernel/src/a/tests.rs", &"\n".repeat(1000)),
                    ("crates/cli/src/a.rs", &"\n".repeat(1000)),
                ],
            )
        };
        let what = "the kernel has 6000 lines without tests; less than 6000";
        assert_eq!(count(5000), [format!("crates/kernel/src/lib.rs:1: {what}")]);
        assert!(count(4999).is_empty());
    }
}
