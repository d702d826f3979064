//! Which futures may be dropped half-way without losing anything.

/// A future that can be dropped between two polls with nothing lost: no message, no permit, no
/// place that others wait behind. Whoever asks again later is no worse off than a newcomer.
///
/// It is implemented for the waits of this crate that keep the promise, by type. A future that
/// holds a value of yours while it waits (a whole `send`) does not: with it the value would go.
pub trait CancelSafe: Future {}
