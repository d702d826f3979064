//! How things end, and how ends combine.
//!
//! Severity is a lattice, `Ok < Err < Cancelled < Panicked`. Joining two outcomes keeps the more
//! severe; on equal severity the left payload, except that two cancels keep the stronger reason.

use crate::cancel::Reason;
use alloc::sync::Arc;

/// How bad an outcome is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
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

impl Severity {
    /// Every severity, mildest first.
    pub const ALL: [Severity; 4] =
        [Severity::Ok, Severity::Err, Severity::Cancelled, Severity::Panicked];

    /// The name as the journal shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Ok => "Ok",
            Severity::Err => "Err",
            Severity::Cancelled => "Cancelled",
            Severity::Panicked => "Panicked",
        }
    }

    /// The more severe of both.
    #[must_use]
    pub fn join(self, other: Severity) -> Severity {
        self.max(other)
    }
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// The task's own error.
    Err(E),
    /// It was asked to stop, saw it and stopped.
    Cancelled(Reason),
    /// It panicked, with this message.
    Panicked(Arc<str>),
}

/// A value, or why there is none. An alias of `Result`, so that `?` works.
pub type Outcome<T, E> = Result<T, Stop<E>>;

/// The lattice on [`Outcome`].
///
/// ```
/// use asx_kernel::outcome::{Lattice, Outcome, Severity, Stop};
/// let a: Outcome<u8, &str> = Err(Stop::Err("left"));
/// let b: Outcome<u8, &str> = Err(Stop::Err("right"));
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
            Err(Stop::Err(_)) => Severity::Err,
            Err(Stop::Cancelled(_)) => Severity::Cancelled,
            Err(Stop::Panicked(_)) => Severity::Panicked,
        }
    }

    fn join(self, right: Self) -> Self {
        match (self, right) {
            (Err(Stop::Cancelled(left)), Err(Stop::Cancelled(right))) => {
                Err(Stop::Cancelled(left.strengthen(right)))
            }
            (left, right) if right.severity() > left.severity() => right,
            (left, _) => left,
        }
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
        self.best = Some(match self.best.take() {
            None => (order, outcome),
            Some((first, kept)) if first <= order => pair(first, kept, order, outcome),
            Some((second, kept)) => pair(order, outcome, second, kept),
        });
    }

    /// The fold so far; nothing if no child ended.
    pub fn outcome(&self) -> Option<&Outcome<T, E>> {
        self.best.as_ref().map(|(_, outcome)| outcome)
    }

    /// The severity of the fold; a region without children is `Ok`.
    pub fn severity(&self) -> Severity {
        self.outcome().map_or(Severity::Ok, Lattice::severity)
    }
}

/// Joins two outcomes given in creation order and remembers whose payload survived.
fn pair<T, E>(
    first: u64,
    left: Outcome<T, E>,
    second: u64,
    right: Outcome<T, E>,
) -> (u64, Outcome<T, E>) {
    let right_wins = match (&left, &right) {
        (Err(Stop::Cancelled(l)), Err(Stop::Cancelled(r))) => l.weaker_than(r),
        _ => right.severity() > left.severity(),
    };
    (if right_wins { second } else { first }, left.join(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_have_names() {
        assert_eq!(Severity::ALL.map(Severity::name), ["Ok", "Err", "Cancelled", "Panicked"]);
    }
}
