//! Examples in the documentation use the facade crate, as users do.

use super::{Findings, Tree};

/// Crates that users access through `asx`.
const BEHIND: [&str; 5] = ["task", "sync", "native", "net", "lab"];

/// Paths of those crates, which examples replace by those of the facade.
const NAMES: [&str; 6] =
    ["asx_runtime::", "asx_task::", "asx_sync::", "asx_native::", "asx_net::", "asx_lab::"];

/// Exceptions, which are for implementors of operations or hosts and not part of the facade.
const ALLOWED: [&str; 6] = [
    "asx_runtime::operation",
    "asx_runtime::Operation",
    "asx_native::idle",
    "asx_native::parker",
    "asx_native::ring",
    "asx_native::stepped",
];

/// Checks code in doc comments of the crates behind the facade.
pub(super) fn facade(tree: &Tree, findings: &mut Findings) {
    let folders = BEHIND.map(|name| format!("crates/{name}/src/"));
    for file in &tree.files {
        if !file.path.ends_with(".rs") || !folders.iter().any(|it| file.path.starts_with(it)) {
            continue;
        }
        let mut in_example = false;
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
                in_example = false;
                continue;
            };
            if text.trim_start().starts_with("```") {
                in_example = !in_example;
            }
            if in_example && uses_other_names(text) {
                let what = "examples use the names of the facade: `asx::..`";
                findings.add(file, index + 1, what);
            }
        }
    }
}

fn uses_other_names(text: &str) -> bool {
    NAMES.iter().any(|name| {
        text.match_indices(name).any(|(at, _)| !ALLOWED.iter().any(|it| text[at..].starts_with(it)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn names_behind_the_facade_are_reported_in_examples_only() {
        let text = "/// [`x`](asx_runtime::x)\n/// ```\n/// use asx_runtime::{Cx, operation};\n\
            /// use asx_native::ring::Owner;\n/// use asx::Cx;\n/// ```\nuse asx_runtime::Cx;\n\
            //! ```\n//! asx_sync::channel::bounded(1);\n//! ```\n";
        let expected = [3, 9].map(|line| {
            format!("crates/sync/src/a.rs:{line}: examples use the names of the facade: `asx::..`")
        });
        assert_eq!(findings(facade, &[("crates/sync/src/a.rs", text)]), expected);
        assert_eq!(findings(facade, &[("crates/web/src/a.rs", text)]), [""; 0]);
    }
}
