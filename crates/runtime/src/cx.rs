//! The context a task gets its powers from.

use std::panic::Location;
use std::sync::Arc;

use crate::Cancelled;
use crate::prim::{Mutex, lock};

/// A task's context.
#[derive(Clone, Debug)]
pub struct Cx {
    cancel: Arc<Mutex<Option<Cancelled>>>,
}

/// What a task waits for, as dumps tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Wait {
    /// A slot in a channel.
    Reserve,
    /// A message.
    Recv,
    /// A lock.
    Lock,
    /// A permit of a semaphore.
    Permit,
    /// A notification.
    Notify,
    /// The others at a barrier.
    Barrier,
    /// Somebody else's initialisation.
    Init,
}

impl Cx {
    /// Whether to stop: an error once the task was asked to, which counts as having seen it.
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        lock(&self.cancel).clone().map_or(Ok(()), Err)
    }

    /// Notes what the task is about to wait for, and where.
    pub(crate) fn waits(&self, _on: Wait, _at: &'static Location<'static>) {}

    /// A context outside any runtime, and a switch that cancels it.
    #[cfg(test)]
    pub(crate) fn loose() -> (Cx, impl Fn(asx_kernel::cancel::Reason)) {
        let cx = Cx { cancel: Arc::default() };
        let cancel = cx.cancel.clone();
        (cx, move |reason| *lock(&cancel) = Some(reason.into()))
    }
}
