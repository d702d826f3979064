//! Channels that are known to a runtime: what happens to them is on its record, and one that
//! belongs to a region closes with it.
//!
//! Other channels carry no tag and pay a branch for it. Whatever is recorded is recorded under the
//! channel's lock, by whoever asks the law.

use std::collections::BTreeMap;
use std::panic::Location;
#[cfg(not(loom))]
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use asx_kernel::channel::{Channel, ChannelState, Sent};
use asx_kernel::journal::EventKind;
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_task::Obligation;
use asx_task::operation::{ChannelLoad, ChannelRecord, Scoped};

use super::shared::Shared;
use crate::prim::atomic::AtomicBool;
use crate::prim::{Mutex, lock_unseen};

/// Who a channel is.
pub(crate) struct Tag {
    record: ChannelRecord,
    /// Permits that are out. Its lock is taken under the channel's.
    live: Mutex<BTreeMap<u64, Holder>>,
    senders_gone: AtomicBool,
}

/// Whose permit it is.
pub(super) struct Holder {
    task: Option<u64>,
    /// What it is besides, if it is one.
    obligation: Option<Obligation>,
}

impl Tag {
    pub(crate) fn id(&self) -> u64 {
        self.record.id()
    }

    #[cfg(not(loom))]
    pub(crate) fn scope(&self) -> Option<u64> {
        self.record.scope()
    }

    #[cold]
    fn note(&self, task: Option<u64>, kind: EventKind) {
        self.record.note(task, kind);
    }

    /// Whether its region still lets it be used.
    pub(super) fn is_usable(&self) -> bool {
        self.record.is_usable()
    }
}

/// Steps of the law and what they leave on record: all of it under the channel's lock. A [`Holder`]
/// that comes out may be the last to know its region, and is to be dropped after the lock.
impl Tag {
    /// A slot was reserved: the number of its permit.
    #[cold]
    fn number(&self, obligation: Option<Obligation>) -> u64 {
        let (permit, task) = self.record.next_permit();
        lock_unseen(&self.live).insert(permit, Holder { task, obligation });
        self.note(task, EventKind::SendReserved { permit });
        permit
    }

    /// Registers the permit of a slot reserved at this place as an obligation. May be refused.
    fn number_tracked(&self, at: &'static Location<'static>) -> Result<u64, Status> {
        let obligation = self.record.oblige(at)?;
        Ok(self.number(Some(obligation)))
    }

    fn holder(&self, permit: u64) -> Option<Holder> {
        lock_unseen(&self.live).remove(&permit)
    }

    /// Fills the slot of a permit, if it still holds one.
    pub(super) fn fill<T>(
        &self,
        channel: &mut Channel<T, Waker>,
        permit: u64,
        value: T,
    ) -> (Sent<T, Waker>, Option<Holder>) {
        let Some(holder) = self.holder(permit) else { return (Sent::NoPermit { value }, None) };
        let sent = channel.send(value);
        let kind = match sent {
            Sent::Queued { .. } => EventKind::Sent { permit: Some(permit) },
            Sent::Refused { .. } | Sent::NoPermit { .. } => EventKind::SendRefused { permit },
        };
        self.resolved(channel, &holder, kind, Resolution::Commit);
        (sent, Some(holder))
    }

    /// Gives the slot of a permit back, if it still holds one: who is to be woken.
    pub(super) fn free<T>(
        &self,
        channel: &mut Channel<T, Waker>,
        permit: u64,
        resolution: Resolution,
    ) -> (Option<Waker>, Option<Holder>) {
        let Some(holder) = self.holder(permit) else { return (None, None) };
        let next = channel.abort();
        self.resolved(channel, &holder, EventKind::SendAborted { permit }, resolution);
        (next, Some(holder))
    }

    /// Gives back every slot that a permit still holds.
    pub(super) fn free_all<T>(
        &self,
        channel: &mut Channel<T, Waker>,
    ) -> Vec<(Option<Waker>, Option<Holder>)> {
        self.record.observe();
        let permits: Vec<_> = lock_unseen(&self.live).keys().copied().collect();
        let free = |permit| self.free(channel, permit, Resolution::Abort);
        permits.into_iter().map(free).collect()
    }

    fn resolved<T>(
        &self,
        channel: &Channel<T, Waker>,
        holder: &Holder,
        kind: EventKind,
        resolution: Resolution,
    ) {
        self.note(holder.task, kind);
        if let Some(obligation) = &holder.obligation {
            let _ = obligation.resolve_locked(resolution);
        }
        self.account(channel.state());
    }

    /// Records that the last sender is gone, once; a channel closed on both sides counts no more.
    #[cold]
    fn account(&self, state: ChannelState) {
        if state == ChannelState::FullyClosed {
            self.record.closed();
        }
        let gone = matches!(state, ChannelState::SenderClosed | ChannelState::FullyClosed);
        if gone && !self.senders_gone.swap(true, Relaxed) {
            self.note(None, EventKind::SendersGone {});
        }
    }
}

impl<T> Shared<T> {
    /// Records something, if the channel is known.
    #[inline]
    pub(super) fn note(&self, kind: EventKind) {
        if let Some(tag) = &self.tag {
            tag.note(None, kind);
        }
    }

    /// Its number, 0 if nobody knows it.
    pub(crate) fn tag_id(&self) -> u64 {
        self.tag.as_ref().map_or(0, |tag| tag.id())
    }

    /// The number of the region it closes with, if there is one.
    #[cfg(not(loom))]
    pub(crate) fn scope_id(&self) -> Option<u64> {
        self.tag.as_ref().and_then(|tag| tag.scope())
    }

    /// Whether the channel may be used: not if its region is past that.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.tag.as_ref().is_none_or(|tag| tag.is_usable())
    }

    /// A slot was reserved: the number of its permit, 0 if nobody counts.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.tag.as_ref().map_or(0, |tag| tag.number(None))
    }

    /// A slot was reserved at this place for a permit that is an obligation. If that is refused,
    /// the caller has the slot [given up](Shared::give_up_slot) after the lock.
    pub(super) fn number_tracked(&self, at: &'static Location<'static>) -> Result<u64, Status> {
        self.tag.as_ref().map_or(Ok(0), |tag| tag.number_tracked(at))
    }

    /// Whether a permit that must be resolved is an obligation of a scope.
    pub(super) fn has_obligations(&self) -> bool {
        self.tag.is_some()
    }

    /// Looks whether a side is gone now that was there before.
    #[inline]
    pub(super) fn account(&self, channel: &Channel<T, Waker>) {
        if let Some(tag) = &self.tag {
            tag.account(channel.state());
        }
    }
}

impl Holder {
    /// Reports the leak of its permit. The channel's lock is not held.
    pub(super) fn report_leak(&self) {
        if let Some(obligation) = &self.obligation {
            obligation.report_leak();
        }
    }
}

impl<T: Send> Scoped for Shared<T> {
    fn load(&self) -> ChannelLoad {
        self.with(|channel| ChannelLoad { messages: channel.len(), permits: channel.reserved() })
    }

    fn release(&self) {
        self.close();
    }
}

/// A channel known to a runtime.
#[cfg(not(loom))]
pub(crate) fn tagged<T: Send + 'static>(
    capacity: usize,
    record: impl FnOnce() -> Result<ChannelRecord, Status>,
) -> Result<Arc<Shared<T>>, Status> {
    let law = Channel::new(capacity).map_err(|_| Status::InvalidArgument)?;
    let record = record()?;
    let live = Mutex::default();
    let tag = Tag { record, live, senders_gone: AtomicBool::new(false) };
    let shared = Arc::new(Shared::tagged(law, tag));
    let known: Arc<dyn Scoped> = shared.clone();
    if let Some(tag) = &shared.tag {
        tag.record.open(capacity, Arc::downgrade(&known))?;
    }
    Ok(shared)
}
