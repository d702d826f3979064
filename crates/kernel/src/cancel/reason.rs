//! A cancel reason with its bounded chain of causes.

use super::{Cleanup, Kind};
use crate::ids::{RegionId, TaskId};
use crate::status::Status;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// What one link of a chain costs besides the bytes of its message: the same on every host.
pub const LINK_COST: usize = 88;

/// No chain is longer than this, whatever the limits say: chains are walked link by link.
const LONGEST_CHAIN: usize = 1024;

settings! {
    /// How long a chain of causes may get. Both bounds count the reason itself as the first link.
    #[derive(Copy)]
    pub struct ChainLimits {
        /// Links kept.
        depth: usize = 16,
        /// Bytes kept: [`LINK_COST`] plus the message, for each link.
        bytes: usize = 4096,
    }
}

/// Two requests to stop the same thing; see [`Reason::combine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combined {
    /// Whether the later reason takes the place of the earlier one.
    pub stronger: bool,
    /// How much cleanup both together allow.
    pub cleanup: Cleanup,
}

/// Why a task or region was cancelled, where it began, and what caused it in turn.
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
    /// Why.
    pub kind: Kind,
    /// The region the request was made in.
    pub origin_region: RegionId,
    /// The task that made it, if one did.
    pub origin_task: Option<TaskId>,
    /// When.
    pub timestamp: Time,
    /// A word for people.
    pub message: Option<Arc<str>>,
    /// What caused this, if anything did.
    pub cause: Option<Arc<Reason>>,
    /// Whether deeper causes were cut off below this link.
    pub truncated: bool,
    /// The status of the operation that was refused, if the cancel stems from a refusal.
    pub refused: Option<Status>,
}

impl Reason {
    /// A reason without task, message and cause.
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

    /// The same with a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Reason {
        self.message = Some(message.into());
        self
    }

    /// The same, made by a task.
    #[must_use]
    pub fn with_task(mut self, task: TaskId) -> Reason {
        self.origin_task = Some(task);
        self
    }

    /// The same, for a cancel that stems from a refused operation.
    #[must_use]
    pub const fn with_refusal(mut self, status: Status) -> Reason {
        self.refused = Some(status);
        self
    }

    /// Puts `cause` below this reason, in place of any it had, cutting the chain at the limits: the
    /// links nearest the top stay, and the deepest one kept, and no other, says that it was cut.
    /// The reason itself always stays.
    #[must_use]
    pub fn caused_by(mut self, cause: Reason, limits: ChainLimits) -> Reason {
        let (kept, fits) = self.links_with(&cause, limits);
        self.cause = Some(Arc::new(cause));
        self.truncated = false;
        if fits { self } else { self.cut(kept) }
    }

    /// How many links there are within the limits with this cause below, and whether that is all.
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

    /// The same for as long as links are left that may be made, of which it takes those it makes;
    /// then the cause is cut off.
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

    /// Keeps the first `links` links and marks the last of them.
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

    /// This reason, its cause, the cause's cause, and so on.
    pub fn chain(&self) -> impl Iterator<Item = &Reason> {
        core::iter::successors(Some(self), |link| link.cause.as_deref())
    }

    /// What this link costs.
    fn cost(&self) -> usize {
        LINK_COST.saturating_add(self.message.as_deref().map_or(0, str::len))
    }

    /// Whether `new` is stronger than this reason: higher severity; then earlier; then a message
    /// rather than none; then the smaller message. A full tie is not stronger.
    pub fn weaker_than(&self, new: &Reason) -> bool {
        let by_severity = new.kind.severity().cmp(&self.kind.severity());
        let by_time = self.timestamp.cmp(&new.timestamp);
        let by_message = match (&self.message, &new.message) {
            (Some(old), Some(new)) => old.cmp(new),
            (old, new) => new.is_some().cmp(&old.is_some()),
        };
        by_severity.then(by_time).then(by_message).is_gt()
    }

    /// What a further request makes of this one, which allowed so much cleanup: the one place where
    /// two cancels of a task or a region are combined.
    pub fn combine(&self, allowed: Cleanup, new: &Reason, cleanup: Cleanup) -> Combined {
        Combined { stronger: self.weaker_than(new), cleanup: allowed.combine(cleanup) }
    }

    /// The stronger of both; on a full tie the existing one.
    #[must_use]
    pub fn strengthen(self, new: Reason) -> Reason {
        if self.weaker_than(&new) { new } else { self }
    }
}

/// Link by link: chains may be longer than any stack.
impl Drop for Reason {
    fn drop(&mut self) {
        let mut next = self.cause.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.cause.take());
        }
    }
}

/// Link by link, too.
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

    /// Chains that are put together by hand have no limit.
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

    /// The longest chain there may be, on a small stack.
    #[test]
    fn a_chain_of_the_greatest_length_fits_a_small_stack() {
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
