//! Channels that are known to a runtime: what happens to them is on its record, and one that
//! belongs to a region closes with it.
//!
//! Other channels carry no tag and pay a branch for it. Whatever is recorded is recorded under the
//! channel's lock, by whoever asks the law.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use asx_kernel::channel::{Channel, ChannelState, Sent};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::region::Operation;
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;

use super::shared::Shared;
use crate::context;
use crate::core::Core;
use crate::journal::Stamp;
use crate::prim::atomic::AtomicBool;
use crate::prim::{Mutex, lock_unseen};
use crate::region::Region;
use crate::resources::Scoped;

/// Who a channel is.
pub(crate) struct Tag {
    core: Arc<Core>,
    id: u64,
    /// The region it closes with.
    scope: Option<Arc<Region>>,
    /// Who answers for permits that no task and no region holds.
    home: Option<Arc<Region>>,
    /// Permits that are out. Its lock is taken under the channel's.
    live: Mutex<BTreeMap<u64, Holder>>,
    senders_gone: AtomicBool,
    stamp: Stamp,
    /// What it weighs, while it counts against the limits.
    bytes: usize,
    counted: AtomicBool,
}

/// Whose permit it is.
#[derive(Clone)]
pub(super) struct Holder {
    task: Option<u64>,
    /// The region whose obligation it is, if it is one.
    obligation: Option<(Arc<Region>, u64)>,
}

impl Tag {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[cold]
    fn note(&self, task: Option<u64>, kind: EventKind) {
        let task = task.or_else(|| context::with_current(|task| task.id()));
        let region = self.scope.as_ref().map(|scope| scope.id);
        let channel = Some(self.id);
        self.core.note_of(&self.stamp, Subject { task, region, channel, timer: None }, kind);
    }

    /// The runtime that knows it.
    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// Whether its region still lets it be used.
    pub(super) fn is_usable(&self) -> bool {
        let state = |scope: &Arc<Region>| scope.lock().word.state();
        self.scope.as_ref().is_none_or(|scope| state(scope).admit(Operation::UseChannel).is_ok())
    }

    /// The region a permit is an obligation of: its holder's, else the channel's.
    fn obliged(&self) -> Option<Arc<Region>> {
        let own = context::with_current(|task| task.region.clone());
        own.or_else(|| self.scope.clone()).or_else(|| self.home.clone())
    }
}

/// Steps of the law and what they leave on record: all of it under the channel's lock. A [`Holder`]
/// that comes out may be the last to know its region, and is to be dropped after the lock.
impl Tag {
    /// A slot was reserved: the number of its permit.
    #[cold]
    fn number(&self, obligation: Option<(Arc<Region>, u64)>) -> u64 {
        let task = context::with_current(|task| task.id());
        let permit = self.core.next_permit.fetch_add(1, Relaxed);
        lock_unseen(&self.live).insert(permit, Holder { task, obligation });
        self.note(task, EventKind::SendReserved { permit });
        permit
    }

    /// A slot was reserved whose permit is an obligation, which may be refused.
    fn number_tracked(&self) -> Result<u64, Status> {
        let obligation = match self.obliged() {
            Some(region) => {
                let id = region.oblige()?;
                Some((region, id))
            }
            None => None,
        };
        Ok(self.number(obligation))
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
        self.core.see(&self.stamp);
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
        if let Some((region, id)) = &holder.obligation {
            let _ = region.resolve(*id, resolution);
        }
        self.account(channel.state());
    }

    /// Records that the last sender is gone, once; a channel closed on both sides counts no more.
    #[cold]
    fn account(&self, state: ChannelState) {
        if state == ChannelState::FullyClosed && self.counted.swap(false, Relaxed) {
            self.core.channel_done(self.bytes);
        }
        let gone = matches!(state, ChannelState::SenderClosed | ChannelState::FullyClosed);
        if gone && !self.senders_gone.swap(true, Relaxed) {
            self.note(None, EventKind::SendersGone {});
        }
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        self.core.see(&self.stamp);
        if let Some(scope) = &self.scope {
            scope.forget_channel(self.id);
        }
        if self.counted.load(Relaxed) {
            self.core.channel_done(self.bytes);
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

    /// A slot was reserved for a permit that is an obligation. If that is refused, the caller has
    /// the slot [given up](Shared::give_up_slot) after the lock.
    pub(super) fn number_tracked(&self) -> Result<u64, Status> {
        self.tag.as_ref().map_or(Ok(0), |tag| tag.number_tracked())
    }

    /// Looks whether a side is gone now that was there before.
    #[inline]
    pub(super) fn account(&self, channel: &Channel<T, Waker>) {
        if let Some(tag) = &self.tag {
            tag.account(channel.state());
        }
    }
}

impl<T: Send> Scoped for Shared<T> {
    fn release(&self) {
        self.close();
    }
}

/// A channel known to a runtime: free-standing, or of a region.
#[cfg(not(loom))]
pub(crate) fn tagged<T: Send + 'static>(
    core: &Arc<Core>,
    scope: Option<&Arc<Region>>,
    home: Option<&Arc<Region>>,
    capacity: usize,
) -> Result<Arc<Shared<T>>, Status> {
    let law = Channel::new(capacity).map_err(|_| Status::InvalidArgument)?;
    // Until the region has it, so that it closes with the region, or is not made.
    let mut open = scope.map(|scope| scope.lock());
    if let Some(open) = &open {
        open.admit(Operation::Create)?;
    }
    let bytes = core.room_for_channel(capacity)?;
    let id = core.next_channel.fetch_add(1, Relaxed);
    let tag = Tag {
        core: core.clone(),
        id,
        scope: scope.cloned(),
        home: home.cloned(),
        live: Mutex::default(),
        senders_gone: AtomicBool::new(false),
        stamp: Stamp::default(),
        bytes,
        counted: AtomicBool::new(true),
    };
    let shared = Arc::new(Shared::tagged(law, tag));
    if let Some(open) = &mut open {
        let known: Arc<dyn Scoped> = shared.clone();
        open.keep_channel(id, Arc::downgrade(&known));
    }
    shared.note(EventKind::ChannelOpened { capacity: capacity as u64 });
    Ok(shared)
}

#[cfg(not(loom))]
impl crate::Cx {
    /// A [`bounded`](super::bounded()) channel of the innermost scope around the caller: when the
    /// scope closes, after its finalizers, the channel is closed on both sides, and permits that
    /// are still out are aborted.
    ///
    /// Fails if the capacity is 0, if the scope is closing, or if there are too many channels.
    pub fn channel<T: Send + 'static>(
        &self,
        capacity: usize,
    ) -> Result<(super::Sender<T>, super::Receiver<T>), super::ChannelError> {
        let shared = tagged(self.core(), Some(&self.region()), None, capacity);
        let shared = shared.map_err(super::ChannelError::new)?;
        Ok((super::Sender { shared: shared.clone() }, super::Receiver { shared }))
    }
}
