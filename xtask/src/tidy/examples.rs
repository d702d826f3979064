//! Examples in the documentation have the names that users write: those of the facade.

use super::{Findings, Tree};

/// Crates whose items people use through `asx`.
const BEHIND: [&str; 5] = ["task", "sync", "native", "net", "lab"];

/// Names of those crates that examples do not use: the facade has them.
const NAMES: [&str; 6] =
    ["asx_runtime::", "asx_task::", "asx_sync::", "asx_native::", "asx_net::", "asx_lab::"];

/// What the facade does not have, because it is for who writes operations or hosts.
const ALLOWED: [&str; 6] = [
    "asx_runtime::operation",
    "asx_runtime::Operation",
    "asx_native::idle",
    "asx_native::parker",
    "asx_native::ring",
    "asx_native::stepped",
];

/// Code in doc comments of the crates behind the facade.
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
    fn names_of_crates_behind_the_facade_are_found_in_examples_only() {
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
