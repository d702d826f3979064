//! Channels that belong to a scope.

use asx_task::operation::ChannelRecord;

use super::tag::tagged;
use super::{ChannelError, Receiver, Sender};

/// Creates channels that belong to the innermost scope of a context.
pub trait ChannelExt {
    /// Creates a [`bounded`](super::bounded()) channel that belongs to the innermost scope around
    /// the caller. When the scope closes, after its finalizers, the channel is closed on both sides
    /// and outstanding permits are aborted.
    ///
    /// # Errors
    ///
    /// Fails if the capacity is 0, if the scope is closing, or if the limit on channels is reached.
    fn channel<T: Send + 'static>(
        &self,
        capacity: usize,
    ) -> Result<(Sender<T>, Receiver<T>), ChannelError>;
}

impl ChannelExt for asx_task::Cx {
    #[cfg_attr(feature = "lab", track_caller)]
    fn channel<T: Send + 'static>(
        &self,
        capacity: usize,
    ) -> Result<(Sender<T>, Receiver<T>), ChannelError> {
        let shared = tagged(capacity, || ChannelRecord::in_scope(self, capacity));
        let shared = shared.map_err(ChannelError::new)?;
        Ok((Sender::new(shared.clone()), Receiver::new(shared)))
    }
}
