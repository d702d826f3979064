//! What became of every message.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_runtime::channel::Receiver;
use asx_runtime::channel::oneshot::Answer;

/// Counts messages by their fate.
#[derive(Default)]
pub(crate) struct Ledger {
    made: AtomicU64,
    received: AtomicU64,
    refused: AtomicU64,
    reported: AtomicU64,
    lost: AtomicU64,
}

impl Ledger {
    pub(crate) fn message(self: &Arc<Self>) -> Message {
        self.made.fetch_add(1, Relaxed);
        Message(Some(self.clone()))
    }

    /// The counts, if they add up.
    pub(crate) fn balance(&self) -> Result<String, String> {
        let count = |count: &AtomicU64| count.load(Relaxed);
        let (made, lost) = (count(&self.made), count(&self.lost));
        let fates = [&self.received, &self.refused, &self.reported].map(count);
        let text = format!(
            "messages: {made} made, {} received, {} handed back, {} reported when a channel \
             closed, {lost} lost",
            fates[0], fates[1], fates[2]
        );
        if made == fates.iter().sum() && lost == 0 { Ok(text) } else { Err(text) }
    }
}

/// A message: whoever ends up with it says how.
pub(crate) struct Message(Option<Arc<Ledger>>);

impl Message {
    /// It arrived.
    pub(crate) fn received(self) {
        self.settle(|ledger| &ledger.received);
    }

    /// The channel did not take it.
    pub(crate) fn refused(self) {
        self.settle(|ledger| &ledger.refused);
    }

    /// The channel had it and gave it out on closing.
    fn reported(self) {
        self.settle(|ledger| &ledger.reported);
    }

    fn settle(mut self, fate: fn(&Ledger) -> &AtomicU64) {
        if let Some(ledger) = self.0.take() {
            fate(&ledger).fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.settle_lost();
    }
}

impl Message {
    fn settle_lost(&mut self) {
        if let Some(ledger) = self.0.take() {
            ledger.lost.fetch_add(1, Relaxed);
        }
    }
}

/// A receiver that accounts for what is left in its channel, however it goes.
pub(crate) struct Inbox(pub(crate) Receiver<Message>);

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.close().into_iter().for_each(Message::reported);
    }
}

/// The same for a reply.
pub(crate) struct Expected(pub(crate) Answer<Message>);

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.close().into_iter().for_each(Message::reported);
    }
}
