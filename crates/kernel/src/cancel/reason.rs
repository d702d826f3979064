//! A cancel reason and its bounded chain of causes.

use super::{Cleanup, Kind};
use crate::ids::{RegionId, TaskId};
use crate::status::Status;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The bytes accounted for one link of a chain, without its message: the same on every host.
pub const LINK_COST: usize = 88;

/// The maximal length of a chain, whatever the limits say, because chains are traversed link by
/// link.
const LONGEST_CHAIN: usize = 1024;

settings! {
    /// The limits of a chain of causes. The reason itself counts as the first link.
    #[derive(Copy)]
    pub struct ChainLimits {
        /// The maximal number of links.
        depth: usize = 16,
        /// The maximal number of bytes: [`LINK_COST`] plus the message, for each link.
        bytes: usize = 4096,
    }
}

/// The combination of two cancel requests; see [`Reason::combine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// Whether the later reason replaces the earlier one.
    pub stronger: bool,
    /// The cleanup that both together allow.
    pub cleanup: Cleanup,
}

/// The reason of a cancel: its kind, its origin and its chain of causes.
///
/// ```
/// use asx_kernel::cancel::{ChainLimits, Kind, Reason};
/// use asx_kernel::{arena::Key, ids::RegionId, time::Time};
/// let region = RegionId(Key { generation: 1, index: 0 });
/// let root = Reason::new(Kind::Shutdown, region, Time::ZERO);
/// let child = Reason::new(Kind::ParentCancelled, region, Time::ZERO)
///     .caused_by(root, ChainLimits::default());
/// assert_eq!(child.chain().map(|r| r.kind).collect::<Vec<_>>(),
///            [Kind::ParentCancelled, Kind::Shutdown]);
/// ```
#[derive(Clone)]
pub struct Reason {
    /// The kind.
    pub kind: Kind,
    /// The region in which the request was made.
    pub origin_region: RegionId,
    /// The task that made the request, if any.
    pub origin_task: Option<TaskId>,
    /// The time of the request.
    pub timestamp: Time,
    /// A message for people.
    pub message: Option<Arc<str>>,
    /// The cause of this reason, if any.
    pub cause: Option<Arc<Reason>>,
    /// Whether deeper causes were cut off below this link.
    pub truncated: bool,
    /// The status of the refused operation, if the cancel results from a refusal.
    pub refused: Option<Status>,
}

impl Reason {
    /// Creates a reason without task, message and cause.
    pub const fn new(kind: Kind, origin_region: RegionId, timestamp: Time) -> Reason {
        Reason {
            kind,
            origin_region,
            origin_task: None,
            timestamp,
            message: None,
            cause: None,
            truncated: false,
            refused: None,
        }
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Reason {
        self.message = Some(message.into());
        self
    }

    /// Sets the task that made the request.
    #[must_use]
    pub fn with_task(mut self, task: TaskId) -> Reason {
        self.origin_task = Some(task);
        self
    }

    /// Sets the status of the refused operation from which the cancel results.
    #[must_use]
    pub const fn with_refusal(mut self, status: Status) -> Reason {
        self.refused = Some(status);
        self
    }

    /// Replaces the cause of this reason by `cause` and cuts the chain at the limits. The links
    /// nearest the top are kept, and the deepest kept link is marked as truncated. The reason
    /// itself is always kept.
    #[must_use]
    pub fn caused_by(mut self, cause: Reason, limits: ChainLimits) -> Reason {
        let (kept, fits) = self.links_with(&cause, limits);
        self.cause = Some(Arc::new(cause));
        self.truncated = false;
        if fits { self } else { self.cut(kept) }
    }

    /// Returns the number of links within the limits if `cause` is added, and whether all fit.
    fn links_with(&self, cause: &Reason, limits: ChainLimits) -> (usize, bool) {
        let depth = limits.depth.min(LONGEST_CHAIN);
        let mut bytes = self.cost();
        let mut kept = 1;
        let fits = cause.chain().all(|link| {
            bytes = bytes.saturating_add(link.cost());
            let fits = kept < depth && bytes <= limits.bytes;
            kept += usize::from(fits);
            fits
        });
        (kept, fits)
    }

    /// Like [`caused_by`](Reason::caused_by), but cuts off the cause if that would create more than
    /// `left` links. The links it creates are subtracted from `left`.
    #[must_use]
    pub(crate) fn caused_within(
        mut self,
        cause: Reason,
        limits: ChainLimits,
        left: &mut usize,
    ) -> Reason {
        let (kept, fits) = self.links_with(&cause, limits);
        let made = if fits { 1 } else { kept };
        self.truncated = *left < made;
        if self.truncated {
            return self;
        }
        *left -= made;
        self.caused_by(cause, limits)
    }

    /// Keeps the first `links` links and marks the last of them as truncated.
    fn cut(self, links: usize) -> Reason {
        let top: Vec<Reason> = self.chain().take(links).cloned().collect();
        let mut below: Option<Reason> = None;
        for mut link in top.into_iter().rev() {
            link.truncated = below.is_none();
            link.cause = below.map(Arc::new);
            below = Some(link);
        }
        below.unwrap_or(self)
    }

    /// Iterates over this reason, its cause, the cause's cause, and so on.
    pub fn chain(&self) -> impl Iterator<Item = &Reason> {
        core::iter::successors(Some(self), |link| link.cause.as_deref())
    }

    /// Returns the bytes accounted for this link.
    fn cost(&self) -> usize {
        LINK_COST.saturating_add(self.message.as_deref().map_or(0, str::len))
    }

    /// Whether `new` is stronger than this reason: higher severity; then earlier; then with a
    /// message; then with the smaller message. An equal reason is not stronger.
    pub fn weaker_than(&self, new: &Reason) -> bool {
        let by_severity = new.kind.severity().cmp(&self.kind.severity());
        let by_time = self.timestamp.cmp(&new.timestamp);
        let by_message = match (&self.message, &new.message) {
            (Some(old), Some(new)) => old.cmp(new),
            (old, new) => new.is_some().cmp(&old.is_some()),
        };
        by_severity.then(by_time).then(by_message).is_gt()
    }

    /// Combines this reason, which allowed the cleanup `allowed`, with a later request. This is the
    /// only place where two cancels of a task or a region are combined.
    pub fn combine(&self, allowed: Cleanup, new: &Reason, cleanup: Cleanup) -> Combined {
        Combined { stronger: self.weaker_than(new), cleanup: allowed.combine(cleanup) }
    }

    /// Returns the stronger reason; the existing one if they are equal.
    #[must_use]
    pub fn strengthen(self, new: Reason) -> Reason {
        if self.weaker_than(&new) { new } else { self }
    }
}

/// Drops link by link, because a recursive drop of a long chain would overflow the stack.
impl Drop for Reason {
    fn drop(&mut self) {
        let mut next = self.cause.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.cause.take());
        }
    }
}

/// Compares link by link, to avoid recursion.
impl PartialEq for Reason {
    fn eq(&self, other: &Reason) -> bool {
        fn link(of: &Reason) -> impl PartialEq + '_ {
            let Reason { kind, origin_region, origin_task, timestamp, message, .. } = of;
            let Reason { truncated, refused, .. } = of;
            (kind, origin_region, origin_task, timestamp, message, truncated, refused)
        }
        self.chain().map(link).eq(other.chain().map(link))
    }
}

impl Eq for Reason {}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arrow = "";
        for link in self.chain() {
            write!(f, "{arrow}{} in {}", link.kind.name(), link.origin_region)?;
            if let Some(task) = link.origin_task {
                write!(f, " by {task}")?;
            }
            write!(f, " at {}", link.timestamp)?;
            if let Some(message) = &link.message {
                write!(f, " ({message})")?;
            }
            arrow = " <- ";
        }
        if self.chain().any(|link| link.truncated) { f.write_str(" <- ..") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Key;
    use std::format;

    #[test]
    fn a_reason_prints_its_chain() {
        let region = |n| RegionId(Key { generation: n, index: 0 });
        let root = Reason::new(Kind::User, region(1), Time::from_nanos(3))
            .with_task(TaskId(Key { generation: 4, index: 0 }))
            .with_message("enough");
        assert_eq!(format!("{root}"), "User in r1 by t4 at 3ns (enough)");
        let child = Reason::new(Kind::ParentCancelled, region(2), Time::from_nanos(5));
        let whole = child.clone().caused_by(root.clone(), ChainLimits::default());
        let text = "ParentCancelled in r2 at 5ns <- User in r1 by t4 at 3ns (enough)";
        assert_eq!((format!("{whole}"), format!("{whole:?}")), (text.into(), text.into()));
        let cut = child.caused_by(root, ChainLimits { depth: 1, bytes: 4096 });
        assert_eq!(format!("{cut}"), "ParentCancelled in r2 at 5ns <- ..");
    }

    #[test]
    fn a_new_reason_has_no_task_message_or_cause() {
        let region = RegionId(Key { generation: 1, index: 0 });
        let reason = Reason::new(Kind::Timeout, region, Time::from_nanos(8));
        assert_eq!((reason.kind, reason.origin_region), (Kind::Timeout, region));
        assert_eq!((reason.timestamp, reason.truncated), (Time::from_nanos(8), false));
        assert_eq!((&reason.origin_task, &reason.message), (&None, &None));
        assert_eq!(reason.chain().count(), 1);
    }

    /// A chain that is built by hand is not limited.
    #[test]
    fn a_deep_chain_is_compared_and_dropped_on_a_small_stack() {
        let run = || {
            let region = RegionId(Key { generation: 1, index: 0 });
            let reason = || Reason::new(Kind::User, region, Time::ZERO);
            let chain = |root: Reason| {
                (0..100_000).fold(root, |cause, _| {
                    let mut next = reason();
                    next.cause = Some(Arc::new(cause));
                    next
                })
            };
            let one = chain(reason());
            let same = chain(reason());
            assert!(one == same);
            assert!(one != chain(reason().with_message("another")) && one != reason());
        };
        let small = std::thread::Builder::new().stack_size(256 * 1024);
        small.spawn(run).unwrap().join().unwrap();
    }

    /// A chain of the maximal length on a small stack.
    #[test]
    fn a_chain_of_maximal_length_fits_a_small_stack() {
        let run = || {
            let reason =
                |n| Reason::new(Kind::User, RegionId(Key { generation: n, index: 0 }), Time::ZERO);
            let limits = ChainLimits { depth: usize::MAX, bytes: usize::MAX };
            let mut whole = reason(0);
            for n in 1..2000 {
                whole = reason(n).caused_by(whole, limits);
            }
            assert_eq!(whole.chain().count(), LONGEST_CHAIN);
            assert_eq!(format!("{whole}").matches(" <- ").count(), LONGEST_CHAIN);
        };
        let small = std::thread::Builder::new().stack_size(256 * 1024);
        small.spawn(run).unwrap().join().unwrap();
    }
}
