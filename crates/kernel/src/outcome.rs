//! Outcomes of tasks and regions, and their combination.
//!
//! Severity is a lattice, `Ok < Err < Cancelled < Panicked`. Joining two outcomes keeps the more
//! severe one, and the left one on equal severity. This holds for two cancels as well:
//! strengthening ([`Reason::strengthen`]) applies to the reasons of one task or one region, not to
//! joins.

use crate::cancel::Reason;
use alloc::sync::Arc;

named_enum! {
    /// The severity of an outcome.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// A value.
        Ok = 0,
        /// An error.
        Err = 1,
        /// Cancelled.
        Cancelled = 2,
        /// A panic, caught at the task's boundary.
        Panicked = 3,
    }
}

impl Severity {
    /// Returns the more severe one.
    #[must_use]
    #[inline]
    pub fn join(self, other: Severity) -> Severity {
        self.max(other)
    }
}

/// The reason why a task has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue<E> {
    /// The task's own error.
    Err(E),
    /// The task observed its cancellation.
    Cancelled(Reason),
    /// The task panicked, with this message.
    Panicked(Arc<str>),
}

/// A value, or the reason why there is none. An alias of `Result`, so that `?` works.
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
    /// Returns the severity.
    fn severity(&self) -> Severity;

    /// Returns the more severe outcome; see the module's text for ties.
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

/// The fold of the children's outcomes in creation order, computed in the order in which they end.
///
/// It keeps a single outcome, so its size does not depend on the number of children.
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
    /// Adds the outcome of the child with the creation number `order`.
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
        /// The fold so far; `None` if no child has ended.
        outcome(&self) -> Option<&Outcome<T, E>> = self.best.as_ref().map(|(_, outcome)| outcome);
        /// The severity of the fold; `Ok` for a region without children.
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
