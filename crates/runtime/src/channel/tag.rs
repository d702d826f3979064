//! Channels that are known to a runtime: what happens to them is on its record, and one that
//! belongs to a region closes with it.
//!
//! Other channels carry no tag and pay a branch for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use asx_kernel::channel::{Channel, ChannelState};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::region::Operation;
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;

use super::shared::{Shared, wake};
use crate::ambient;
use crate::core::Core;
use crate::holdings::Scoped;
use crate::prim::atomic::AtomicBool;
use crate::prim::{Mutex, lock_unseen};
use crate::region::Region;

/// Who a channel is.
pub(crate) struct Tag {
    core: Arc<Core>,
    id: u64,
    /// The region it closes with.
    scope: Option<Arc<Region>>,
    /// Who answers for permits that no task and no region holds.
    home: Option<Arc<Region>>,
    /// Permits that are out.
    live: Mutex<BTreeMap<u64, Holder>>,
    senders_gone: AtomicBool,
    /// It counts against the limit.
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

    fn note(&self, task: Option<u64>, kind: EventKind) {
        let task = task.or_else(|| ambient::with_current(|task| task.id()));
        let (region, channel) = (self.scope.as_ref().map(|scope| scope.id), Some(self.id));
        self.core.note(Subject { task, region, channel, timer: None }, kind);
    }

    /// Whether its region still lets it be used.
    fn is_usable(&self) -> bool {
        let state = |scope: &Arc<Region>| scope.lock().word.state();
        self.scope.as_ref().is_none_or(|scope| state(scope).admit(Operation::UseChannel).is_ok())
    }

    /// The region a permit is an obligation of: its holder's, else the channel's.
    fn obliged(&self) -> Option<Arc<Region>> {
        let own = ambient::with_current(|task| task.region.clone());
        own.or_else(|| self.scope.clone()).or_else(|| self.home.clone())
    }

    /// A slot was reserved: the number of its permit. A tracked one is an obligation, which may be
    /// refused.
    fn granted(&self, tracked: bool) -> Result<u64, Status> {
        let obligation = match self.obliged().filter(|_| tracked) {
            Some(region) => {
                let id = region.oblige()?;
                Some((region, id))
            }
            None => None,
        };
        let task = ambient::with_current(|task| task.id());
        let permit = self.core.next_permit.fetch_add(1, Relaxed);
        lock_unseen(&self.live).insert(permit, Holder { task, obligation });
        self.note(task, EventKind::SendReserved { permit });
        Ok(permit)
    }

    fn take(&self, permit: u64) -> Option<Holder> {
        lock_unseen(&self.live).remove(&permit)
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        if let Some(scope) = &self.scope {
            scope.forget_channel(self.id);
        }
        if self.counted.load(std::sync::atomic::Ordering::Acquire) {
            self.core.channel_done();
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
    pub(super) fn granted(&self) -> u64 {
        self.tag.as_ref().map_or(0, |tag| tag.granted(false).unwrap_or(0))
    }

    /// A slot was reserved for a permit that is an obligation. If that is refused it is free again.
    pub(super) fn granted_tracked(&self) -> Result<u64, Status> {
        let Some(tag) = &self.tag else { return Ok(0) };
        tag.granted(true).inspect_err(|_| {
            let next = self.with(Channel::abort);
            self.account();
            wake(next);
        })
    }

    /// The permit is about to be resolved: whether it still holds its slot.
    #[inline]
    pub(super) fn claim(&self, permit: u64) -> Option<Claim<'_>> {
        match &self.tag {
            None => Some(Claim { tag: None }),
            Some(tag) => Some(Claim { tag: Some((tag, permit, tag.take(permit)?)) }),
        }
    }

    /// Records that the last sender is gone, once; a channel closed on both sides counts no more.
    #[inline]
    pub(super) fn account(&self) {
        if let Some(tag) = &self.tag {
            self.account_for(tag);
        }
    }

    #[cold]
    fn account_for(&self, tag: &Tag) {
        use std::sync::atomic::Ordering::AcqRel;
        let state = self.with(|channel| channel.state());
        if state == ChannelState::FullyClosed && tag.counted.swap(false, AcqRel) {
            tag.core.channel_done();
        }
        let gone = matches!(state, ChannelState::SenderClosed | ChannelState::FullyClosed);
        if gone && !tag.senders_gone.swap(true, AcqRel) {
            tag.note(None, EventKind::SendersGone {});
        }
    }
}

/// A permit that is being resolved.
pub(super) struct Claim<'a> {
    tag: Option<(&'a Tag, u64, Holder)>,
}

impl Claim<'_> {
    /// Records what became of the slot.
    #[inline]
    pub(super) fn note(&self, kind: impl FnOnce(u64) -> EventKind) {
        if let Some((tag, permit, holder)) = &self.tag {
            tag.note(holder.task, kind(*permit));
        }
    }

    /// Resolves the obligation, if the permit is one.
    #[inline]
    pub(super) fn resolve(self, resolution: Resolution) {
        if let Some((_, _, Holder { obligation: Some((region, id)), .. })) = self.tag {
            let _ = region.resolve(id, resolution);
        }
    }
}

impl<T> Shared<T> {
    /// Closes both sides, as a region does that ends: neither side asked for it, so everybody
    /// who waits is woken. Messages nobody took are dropped.
    pub(crate) fn close(&self) {
        let (first, closed) =
            self.with(|channel| (!channel.is_receiver_closed(), channel.close_receiver()));
        if first {
            self.note(EventKind::ReceiverGone { dropped: closed.messages.len() as u64 });
        }
        self.account();
        closed.wakes.into_iter().for_each(Waker::wake);
        drop(closed.messages);
        while self.with(|channel| channel.senders() > 0) {
            self.drop_sender();
        }
        wake(closed.receiver);
    }
}

impl<T: Send> Scoped for Shared<T> {
    fn release(&self) {
        let Some(tag) = &self.tag else { return };
        let permits: Vec<_> = lock_unseen(&tag.live).keys().copied().collect();
        for permit in permits {
            self.free(permit, Resolution::Abort);
        }
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
    if let Some(scope) = scope {
        scope.lock().admit(Operation::Create)?;
    }
    core.room_for_channel()?;
    let tag = Tag {
        core: core.clone(),
        id: core.next_channel.fetch_add(1, Relaxed),
        scope: scope.cloned(),
        home: home.cloned(),
        live: Mutex::default(),
        senders_gone: AtomicBool::new(false),
        counted: AtomicBool::new(true),
    };
    let shared = Arc::new(Shared::tagged(law, tag));
    let (id, weak) = (shared.tag.as_ref().map_or(0, |tag| tag.id()), Arc::downgrade(&shared));
    if let Some(scope) = scope {
        scope.keep_channel(id, weak);
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
    ) -> Result<(super::Sender<T>, super::Receiver<T>), Status> {
        let shared = tagged(self.core(), Some(&self.region()), None, capacity)?;
        Ok((super::Sender { shared: shared.clone() }, super::Receiver { shared }))
    }
}
