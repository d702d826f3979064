//! The state that several receivers of one channel share.

use asx_task::footprint::Object;
use asx_task::waits::Key;

use crate::prim::atomic::AtomicUsize;
use crate::sync::pool::{MAX, Pool};

/// The part of the pool's object that stands for the number of receivers.
const RECEIVERS: u64 = 1;

/// The number of messages, as units of a pool that receivers acquire, and the number of receivers.
pub(super) struct Items {
    pub(super) pool: Pool,
    pub(super) receivers: AtomicUsize,
}

impl Items {
    /// No messages and one receiver.
    #[track_caller]
    pub(super) fn new() -> Box<Items> {
        Box::new(Items { pool: Pool::new(0, MAX), receivers: AtomicUsize::new(1) })
    }

    /// The key that receivers wait under.
    #[inline(always)]
    pub(super) fn key(&self) -> Key {
        Key::of_pool(&self.pool)
    }

    /// The object that stands for the number of receivers.
    pub(super) fn receivers_object(&self) -> Object {
        self.pool.object().part(RECEIVERS)
    }

    /// Records that a message was added.
    pub(super) fn add_one(&self) {
        self.pool.give(1);
    }

    /// Closes the pool, because no further message will be added. Waiting receivers check for a
    /// message that is left.
    pub(super) fn end(&self) {
        self.pool.close();
    }
}
