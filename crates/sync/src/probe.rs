//! Channels as tests of the laws see and use them, beyond what programs can. Not for programs, and
//! not stable.

#[cfg(not(loom))]
use std::sync::Arc;
#[cfg(not(loom))]
use std::task::Waker;

#[cfg(not(loom))]
use asx_kernel::channel::Channel;
#[cfg(not(loom))]
use asx_kernel::status::Status;
#[cfg(not(loom))]
use asx_task::Cx;
#[cfg(not(loom))]
use asx_task::operation::ChannelRecord;
#[cfg(not(loom))]
use asx_task::probe::RegionProbe;

use crate::channel::OwnedPermit;
#[cfg(not(loom))]
use crate::channel::session::ReserveError;
use crate::channel::session::TrackedPermit;
#[cfg(not(loom))]
use crate::channel::{
    Recv, RecvError, ReserveOwned, SendError, Sender, Shared, TryRecvError, tagged,
};

/// A channel by all its operations at once, none of which counts as a handle.
#[cfg(not(loom))]
pub struct ChannelProbe<T> {
    shared: Arc<Shared<T>>,
}

#[cfg(not(loom))]
impl<T> Clone for ChannelProbe<T> {
    fn clone(&self) -> Self {
        ChannelProbe { shared: self.shared.clone() }
    }
}

#[cfg(not(loom))]
impl<T: Send + 'static> ChannelProbe<T> {
    /// Makes a channel with one sender.
    pub fn new(
        scope: Option<&RegionProbe>,
        home: &RegionProbe,
        capacity: usize,
    ) -> Result<Self, Status> {
        let scope = scope.map(RegionProbe::region);
        let record = || ChannelRecord::new(scope, home.region(), capacity);
        let shared = tagged(capacity, record)?;
        Ok(ChannelProbe { shared })
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.shared.tag_id()
    }

    /// The number of the region it closes with, if there is one.
    pub fn scope(&self) -> Option<u64> {
        self.shared.scope_id()
    }

    /// Runs `f` with a sender that counts for nothing.
    pub fn with_sender<R>(&self, f: impl FnOnce(&Sender<T>) -> R) -> R {
        let sender = Sender::uncounted(&self.shared);
        let answer = f(&sender);
        sender.forget();
        answer
    }

    /// Waits for a slot.
    pub async fn reserve(&self, cx: &Cx) -> Result<OwnedPermit<T>, SendError<()>> {
        ReserveOwned::over(&self.shared, cx).await
    }

    /// Waits for a slot whose permit is a duty.
    pub async fn reserve_tracked(&self, cx: &Cx) -> Result<TrackedPermit<T>, ReserveError> {
        TrackedPermit::reserve(&self.shared, cx).await
    }

    /// Reserves a slot whose permit is a duty, if one is free.
    pub fn try_reserve_tracked(&self) -> Result<TrackedPermit<T>, Status> {
        TrackedPermit::try_reserve(&self.shared)
    }

    /// Waits for a message.
    pub async fn recv(&self, cx: &Cx) -> Result<T, RecvError> {
        Recv::over(&self.shared, cx).await
    }

    /// Takes a message if there is one.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.shared.try_recv()
    }

    /// One more sender, if there is one.
    pub fn add_sender(&self) -> Result<(), Status> {
        if !self.shared.is_usable() || !self.shared.add_sender() {
            return Err(Status::Disconnected);
        }
        Ok(())
    }

    /// One sender fewer, if there is one.
    pub fn drop_sender(&self) -> Result<(), Status> {
        if self.shared.with(|channel| channel.senders()) == 0 {
            return Err(Status::Disconnected);
        }
        self.shared.drop_sender();
        Ok(())
    }

    /// The receiver goes, if it is there.
    pub fn drop_receiver(&self) -> Result<(), Status> {
        if self.shared.with(|channel| channel.is_receiver_closed()) {
            return Err(Status::Disconnected);
        }
        drop(self.shared.close_receiver());
        Ok(())
    }

    /// Looks at the law.
    pub fn look<R>(&self, look: impl FnOnce(&Channel<T, Waker>) -> R) -> R {
        self.shared.with(|channel| look(channel))
    }
}

/// The number of a permit.
pub fn permit_id<T>(permit: &OwnedPermit<T>) -> u64 {
    permit.id()
}

/// The number of a permit.
pub fn tracked_id<T>(permit: &TrackedPermit<T>) -> u64 {
    permit.id()
}
