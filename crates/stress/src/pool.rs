//! Shared channels with several receivers.

use std::sync::{Arc, Mutex, MutexGuard};

use asx::channel::mpmc::{self, SharedReceiver, mpmc};
use asx::channel::unbounded::UnboundedSender;
use asx::channel::{Disconnected, Sender, TrySendError};

use crate::ledger::Ledger;
use crate::message::{Account, Receiving, TrackedMessage};

/// A receiver of a pool.
pub(crate) type PoolReceiver = Receiving<SharedReceiver<TrackedMessage>>;

/// A sender of a pool.
#[derive(Clone)]
pub(crate) struct PoolSender {
    pub(crate) account: Arc<Account>,
    pub(crate) sender: Either,
}

#[derive(Clone)]
pub(crate) enum Either {
    Bounded(Sender<TrackedMessage>),
    Unbounded(UnboundedSender<TrackedMessage>),
}

impl PoolSender {
    pub(crate) fn channel(
        capacity: Option<usize>,
        ledger: &Arc<Ledger>,
    ) -> (PoolSender, PoolReceiver) {
        let account = Account::new(ledger);
        let (sender, receiver) = match capacity {
            Some(capacity) => {
                let (sender, receiver) = mpmc(capacity);
                (Either::Bounded(sender), receiver)
            }
            None => {
                let (sender, receiver) = mpmc::unbounded();
                (Either::Unbounded(sender), receiver)
            }
        };
        let receiver = account.receiver(receiver);
        (PoolSender { account, sender }, receiver)
    }

    /// Sends without waiting.
    pub(crate) fn try_send(&self, from: usize) {
        let (message, receipt) = self.account.message_for(from);
        receipt.settle(match &self.sender {
            Either::Bounded(sender) => sender.try_send(message),
            Either::Unbounded(sender) => {
                sender.send(message).map_err(|Disconnected(back)| TrySendError::Disconnected(back))
            }
        });
    }
}

/// The current channel, which can be replaced.
pub(crate) struct Pool {
    capacity: Option<usize>,
    ledger: Arc<Ledger>,
    ends: Mutex<(PoolSender, Option<PoolReceiver>)>,
}

impl Pool {
    pub(crate) fn new(capacity: Option<usize>, ledger: &Arc<Ledger>) -> Pool {
        let (poster, fetcher) = PoolSender::channel(capacity, ledger);
        Pool { capacity, ledger: ledger.clone(), ends: Mutex::new((poster, Some(fetcher))) }
    }

    fn ends(&self) -> MutexGuard<'_, (PoolSender, Option<PoolReceiver>)> {
        self.ends.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn poster(&self) -> PoolSender {
        self.ends().0.clone()
    }

    /// Returns another receiver, if the program has kept one.
    pub(crate) fn fetcher(&self) -> Option<PoolReceiver> {
        self.ends().1.clone()
    }

    /// Takes the receiver that the program keeps. Others continue.
    pub(crate) fn take(&self) -> Option<PoolReceiver> {
        self.ends().1.take()
    }

    /// Replaces the channel. The old one ends when it is no longer used.
    pub(crate) fn renew(&self) {
        let (poster, fetcher) = PoolSender::channel(self.capacity, &self.ledger);
        let old = std::mem::replace(&mut *self.ends(), (poster, Some(fetcher)));
        drop(old);
    }

    /// Whether every slot is free or holds a message, once no task is sending.
    pub(crate) fn has_all_slots(&self) -> bool {
        match &self.ends().0.sender {
            Either::Bounded(sender) => {
                sender.is_closed() || sender.capacity() + sender.len() == sender.max_capacity()
            }
            Either::Unbounded(_) => true,
        }
    }
}
