//! Interleaved repetitions, medians, ratios.

/// One thing to measure: a workload on a peer.
pub(crate) struct Case {
    /// The workload's name.
    pub(crate) workload: &'static str,
    /// Whose implementation runs: "asx" or a peer's name.
    pub(crate) peer: &'static str,
    /// Runs one repetition (set-up not timed) and answers nanoseconds per operation.
    pub(crate) run: Box<dyn FnMut() -> f64>,
}
