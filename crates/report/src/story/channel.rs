//! Channels: their fill levels over time.

use asx_kernel::journal::{Event, EventKind};

/// The fill level of a channel from one event on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) at: usize,
    pub(crate) queued: u64,
    pub(crate) reserved: u64,
    /// The number of senders that wait for a slot.
    pub(crate) waiting: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub(crate) number: u64,
    pub(crate) region: Option<usize>,
    /// Known if the trace contains the opening of the channel.
    pub(crate) capacity: Option<u64>,
    /// One entry for each change.
    pub(crate) levels: Vec<Level>,
}

impl Channel {
    pub(super) fn new(number: u64) -> Channel {
        Channel { number, region: None, capacity: None, levels: Vec::new() }
    }

    /// Applies an event. Counts saturate: in a trace without its beginning they are lower bounds.
    pub(super) fn apply(&mut self, at: usize, event: &Event) {
        let mut level = self.levels.last().copied().unwrap_or_default();
        let Level { queued, reserved, waiting, .. } = &mut level;
        let less = |count: &mut u64| *count = count.saturating_sub(1);
        match event.kind {
            EventKind::ChannelOpened { capacity } => self.capacity = Some(capacity),
            EventKind::SendReserved { .. } => *reserved += 1,
            EventKind::SendWaiting {} => *waiting += 1,
            EventKind::SendLeft {} => less(waiting),
            EventKind::Sent { permit } => {
                *queued += 1;
                permit.into_iter().for_each(|_| less(reserved));
            }
            EventKind::SendRefused { .. } | EventKind::SendAborted { .. } => less(reserved),
            EventKind::Evicted {} | EventKind::Received {} => less(queued),
            EventKind::ReceiverGone { .. } => *queued = 0,
            _ => return,
        }
        self.levels.push(Level { at, ..level });
    }
}
