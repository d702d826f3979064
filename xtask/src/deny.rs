//! Checks licences, banned crates and sources of the dependencies.

use crate::report::Verdict;
use crate::shell::{cargo, run, works};

/// Skipped if cargo-deny is missing: building it takes longer than all other sections together.
pub(crate) fn section() -> Verdict {
    if !works("cargo", &["deny", "--version"]) {
        let why = "cargo-deny is not installed (cargo install --locked cargo-deny)";
        return Verdict::Skipped(String::from(why));
    }
    // Advisories need a database from the network; these three checks do not.
    run(&mut cargo("deny --all-features check bans licenses sources")).into()
}
