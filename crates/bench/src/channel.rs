//! Workloads.
use crate::harness::Case;

/// The cases of this file.
pub(crate) fn cases() -> Vec<Case> {
    Vec::new()
}
