//! What an exploration has seen: runs, failures, classes.

use super::index::Hashes;
use super::{Limits, Verdict};
use asx_kernel::rng::mix64;

/// How far an exploration is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Runs that ended.
    pub runs: u64,
    /// How many of them failed.
    pub failures: u64,
    /// How many of them were cut short.
    pub cut: u64,
    /// How many of them were found, on the way, to equal an earlier run.
    pub redundant: u64,
    /// How many of them did not do what the same decisions had led to before. The driver is then
    /// not deterministic, and nothing is certified.
    pub diverged: u64,
    /// How many runs the whole exploration takes, estimated; nothing if it has no end.
    pub expected: Option<f64>,
    /// The proof that all was seen.
    pub exhausted: Option<Certificate>,
    /// The proof that all was seen within limits, where these kept something out.
    pub bounded: Option<(Limits, Certificate)>,
}

impl Progress {
    /// Counts a run.
    pub(crate) fn count(&mut self, verdict: Verdict) {
        self.runs += 1;
        self.failures += u64::from(verdict.failure().is_some());
        self.cut += u64::from(verdict == Verdict::Cut);
    }
}

/// The whole of a space that was explored to its end: the classes of its runs.
///
/// Two runs are in one class if one becomes the other by swapping neighbouring steps that touch
/// nothing in common, or only read it. Two explorations that saw the same classes have equal
/// certificates, in whatever order they saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// How many classes there are.
    pub classes: u64,
    /// A hash of the set of classes.
    pub hash: u64,
}

/// The counters behind [`Progress`].
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) progress: Progress,
    /// The failures seen, in the order of first sight.
    pub(super) failures: Vec<u64>,
    classes: Hashes,
    hash: u64,
}

/// In one run of so many, steps that were seen before are compared with what they were then.
const WATCHED: u64 = 8;

impl Tally {
    /// Whether steps that were seen before are looked at again in this run.
    pub(super) fn is_watched(&self) -> bool {
        self.progress.runs.is_multiple_of(WATCHED)
    }

    /// Counts a run.
    pub(super) fn ended(&mut self, verdict: Verdict) {
        self.progress.count(verdict);
        if let Some(failure) = verdict.failure().filter(|it| !self.failures.contains(it)) {
            self.failures.push(failure);
        }
    }

    /// Counts the class of a run.
    pub(super) fn class(&mut self, class: u64) {
        if self.classes.insert(class) {
            self.hash = self.hash.wrapping_add(mix64(class));
        } else {
            self.progress.redundant += 1;
        }
    }

    /// Whether a run of this class was counted.
    pub(super) fn has_class(&self, class: u64) -> bool {
        self.classes.contains(&class)
    }

    /// All within these limits is explored; a proof of it unless something was missed on the way.
    pub(super) fn exhaust(&mut self, within: Limits) {
        let progress = &mut self.progress;
        if progress.cut > 0 || progress.diverged > 0 {
            return;
        }
        let certificate = Certificate { classes: self.classes.len() as u64, hash: self.hash };
        match within {
            Limits::NONE => progress.exhausted = Some(certificate),
            limits => progress.bounded = Some((limits, certificate)),
        }
    }
}
