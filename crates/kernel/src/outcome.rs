//! How things end, and how ends combine.
//!
//! Severity is a lattice, `Ok < Err < Cancelled < Panicked`. Joining two outcomes keeps the more
//! severe, on equal severity the left one. That holds for two cancels as well: strengthening
//! ([`Reason::strengthen`]) is for the reasons of one task or one region, not for joins.

use crate::cancel::Reason;
use alloc::sync::Arc;

named_enum! {
    /// How bad an outcome is.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// A value.
        Ok = 0,
        /// An error.
        Err = 1,
        /// Stopped by request.
        Cancelled = 2,
        /// A panic, caught at the task's boundary.
        Panicked = 3,
    }
}

impl Severity {
    /// The more severe of both.
    #[must_use]
    #[inline]
    pub fn join(self, other: Severity) -> Severity {
        self.max(other)
    }
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue<E> {
    /// The task's own error.
    Err(E),
    /// It was asked to stop, saw it and stopped.
    Cancelled(Reason),
    /// It panicked, with this message.
    Panicked(Arc<str>),
}

/// A value, or why there is none. An alias of `Result`, so that `?` works.
pub type Outcome<T, E> = Result<T, NoValue<E>>;

/// The lattice on [`Outcome`].
///
/// ```
/// use asx_kernel::outcome::{Lattice, Outcome, Severity, NoValue};
/// let a: Outcome<u8, &str> = Err(NoValue::Err("left"));
/// let b: Outcome<u8, &str> = Err(NoValue::Err("right"));
/// assert_eq!(a.clone().join(Ok(1)), a);
/// assert_eq!(a.clone().join(b), a);
/// assert_eq!(a.severity(), Severity::Err);
/// ```
pub trait Lattice: Sized {
    /// How bad it is.
    fn severity(&self) -> Severity;

    /// The more severe of both; see the module's text for ties.
    #[must_use]
    fn join(self, right: Self) -> Self;
}

impl<T, E> Lattice for Outcome<T, E> {
    fn severity(&self) -> Severity {
        match self {
            Ok(_) => Severity::Ok,
            Err(NoValue::Err(_)) => Severity::Err,
            Err(NoValue::Cancelled(_)) => Severity::Cancelled,
            Err(NoValue::Panicked(_)) => Severity::Panicked,
        }
    }

    fn join(self, right: Self) -> Self {
        if right.severity() > self.severity() { right } else { self }
    }
}

/// The fold of children's outcomes in creation order, computed as they end, in any order.
///
/// It keeps one outcome, so that a region with a million children costs no more than one with two.
#[derive(Clone, Debug)]
pub struct Fold<T, E> {
    best: Option<(u64, Outcome<T, E>)>,
}

impl<T, E> Default for Fold<T, E> {
    fn default() -> Self {
        Fold { best: None }
    }
}

impl<T, E> Fold<T, E> {
    /// Adds the outcome of the child created as number `order`.
    pub fn add(&mut self, order: u64, outcome: Outcome<T, E>) {
        let severity = outcome.severity();
        let replaces = self.best.as_ref().is_none_or(|(kept_order, kept)| {
            severity > kept.severity() || (severity == kept.severity() && order < *kept_order)
        });
        if replaces {
            self.best = Some((order, outcome));
        }
    }

    getters! {
        /// The fold so far; nothing if no child ended.
        outcome(&self) -> Option<&Outcome<T, E>> = self.best.as_ref().map(|(_, outcome)| outcome);
        /// The severity of the fold; a region without children is `Ok`.
        severity(&self) -> Severity = self.outcome().map_or(Severity::Ok, Lattice::severity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_have_names() {
        assert_eq!(Severity::ALL.map(Severity::name), ["Ok", "Err", "Cancelled", "Panicked"]);
    }
}
