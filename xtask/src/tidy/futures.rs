//! Named futures state their output in the first paragraph of their documentation, because the
//! signature of the function that returns one shows only its name.

use super::{Findings, Tree};

/// Crates with named futures.
const WITH_FUTURES: [&str; 2] = ["crates/task/src/", "crates/net/src/"];

pub(super) fn outputs(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        if !WITH_FUTURES.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let mut lines = file.text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if !line.trim_start().starts_with("/// The future of [`") {
                continue;
            }
            let rest = lines.clone().map(|(_, line)| line.trim());
            let rest = rest.map_while(|line| line.strip_prefix("///"));
            let rest = rest.take_while(|text| !text.is_empty());
            let paragraph: String = std::iter::once(line).chain(rest).collect();
            if !paragraph.contains("; gives") || !paragraph.contains('`') {
                findings.add(file, index + 1, "state the output of the future: \"..; gives `T`\"");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_future_without_its_output_is_reported() {
        let text = "/// The future of [`a`].\nstruct A;\n/// The future of [`b`]; gives `()`.\n\
            struct B;\n/// The future of [`c`](d);\n/// gives `u8`.\nstruct C;\n";
        let expected = ["crates/net/src/a.rs:1: state the output of the future: \"..; gives `T`\""];
        assert_eq!(findings(outputs, &[("crates/net/src/a.rs", text)]), expected);
        assert_eq!(findings(outputs, &[("crates/web/src/a.rs", text)]), [""; 0]);
    }
}
