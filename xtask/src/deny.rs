//! Licences, banned crates and sources of the dependencies.

use crate::report::Verdict;
use crate::shell::{cargo, run, works};

/// Skipped where cargo-deny is missing: building it takes longer than all the rest together.
pub(crate) fn section() -> Verdict {
    if !works("cargo", &["deny", "--version"]) {
        let why = "cargo-deny is not installed (cargo install --locked cargo-deny)";
        return Verdict::Skipped(String::from(why));
    }
    // Advisories need a database from the network; these three do not.
    run(&mut cargo("deny --all-features check bans licenses sources")).into()
}
