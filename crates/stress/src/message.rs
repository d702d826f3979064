//! Messages that track their fate, and the account of the channel that carries them.
//!
//! A sent message is received, or it is dropped with its channel: when the channel is closed
//! permanently, or its last receiver is dropped. A message that is dropped while its channel is
//! open is lost, which is reported as an error immediately.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::task::{Context, Poll};

use asx::channel::mpmc::SharedReceiver;
use futures_core::Stream;

use crate::ledger::{Ledger, Value};

/// The account of a channel.
pub(crate) struct Account {
    ledger: Arc<Ledger>,
    /// The number of receivers.
    receivers: AtomicUsize,
    /// Whether messages may be dropped from now on.
    closing: AtomicBool,
    numbers: AtomicUsize,
}

/// The events of a message, as bits.
const SENT: u8 = 1;
const TAKEN: u8 = 2;
const DROPPED: u8 = 4;

impl Account {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Arc<Account> {
        Arc::new(Account {
            ledger: ledger.clone(),
            receivers: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            numbers: AtomicUsize::new(0),
        })
    }

    /// Wraps a receiver of the channel.
    pub(crate) fn receiver<R>(self: &Arc<Self>, inner: R) -> Receiving<R> {
        Receiving { share: Share::new(self), inner }
    }

    /// Creates a message of a numbering sender, and the receipt that the sender keeps.
    pub(crate) fn message_for(self: &Arc<Self>, sender: usize) -> (TrackedMessage, Receipt) {
        let fate = Arc::new(AtomicU8::new(0));
        let receipt = Receipt { account: self.clone(), fate: fate.clone() };
        let number = self.numbers.fetch_add(1, Relaxed);
        let value = self.ledger.value();
        (TrackedMessage { account: self.clone(), fate, sender, number, value }, receipt)
    }

    /// Returns a number for a sender.
    pub(crate) fn sender(&self) -> usize {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// The channel is about to be closed permanently.
    pub(crate) fn closes(&self) {
        self.closing.store(true, SeqCst);
    }

    /// Records that a sent message was dropped without being received.
    fn dropped_unread(&self) {
        self.ledger.reported.fetch_add(1, Relaxed);
        if !self.closing.load(SeqCst) {
            self.ledger.fault("a message was dropped although its channel is open".into());
        }
    }
}

/// A message.
pub(crate) struct TrackedMessage {
    account: Arc<Account>,
    fate: Arc<AtomicU8>,
    sender: usize,
    number: usize,
    value: Value,
}

impl TrackedMessage {
    /// Records that the message was received.
    pub(crate) fn take(self) {
        self.is_taken();
    }

    fn is_taken(&self) {
        self.value.check();
        if self.fate.fetch_or(TAKEN, AcqRel) & (TAKEN | DROPPED) != 0 {
            self.account.ledger.fault("a message was received twice".into());
        }
        self.account.ledger.received.fetch_add(1, Relaxed);
    }

    /// Records that the message was evicted and returned to a sender.
    pub(crate) fn evicted(self) {
        self.fate.fetch_or(TAKEN, AcqRel);
        self.account.ledger.reported.fetch_add(1, Relaxed);
    }
}

impl Drop for TrackedMessage {
    fn drop(&mut self) {
        let before = self.fate.fetch_or(DROPPED, AcqRel);
        if before & (SENT | TAKEN) == SENT {
            self.account.dropped_unread();
        }
    }
}

/// The sender's record of a message.
pub(crate) struct Receipt {
    account: Arc<Account>,
    fate: Arc<AtomicU8>,
}

impl Receipt {
    /// Records the result of the send. A message that is returned is dropped.
    pub(crate) fn settle<E>(self, sent: Result<(), E>) {
        if sent.is_ok() {
            self.account.ledger.sent.fetch_add(1, Relaxed);
            let before = self.fate.fetch_or(SENT, AcqRel);
            if before & (TAKEN | DROPPED) == DROPPED {
                self.account.dropped_unread();
            }
        }
        drop(sent);
    }
}

/// One of the receivers that an account counts.
struct Share(Arc<Account>);

impl Share {
    fn new(account: &Arc<Account>) -> Share {
        account.receivers.fetch_add(1, SeqCst);
        Share(account.clone())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.0.receivers.fetch_sub(1, SeqCst) == 1 {
            self.0.closes();
        }
    }
}

/// A receiver, or an object made from one. The share is dropped first, so that the account is
/// updated before the channel.
pub(crate) struct Receiving<R> {
    share: Share,
    pub(crate) inner: R,
}

impl<R> Receiving<R> {
    /// Converts the receiver.
    pub(crate) fn map<S>(self, make: impl FnOnce(R) -> S) -> Receiving<S> {
        let Receiving { share, inner } = self;
        Receiving { share, inner: make(inner) }
    }

    /// The channel is about to be closed permanently.
    pub(crate) fn closes(&self) {
        self.share.0.closes();
    }
}

impl Clone for Receiving<SharedReceiver<TrackedMessage>> {
    fn clone(&self) -> Self {
        Receiving { share: Share::new(&self.share.0), inner: self.inner.clone() }
    }
}

impl<S: Stream + Unpin> Stream for Receiving<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.inner).poll_next(context)
    }
}

/// Messages that were received together; the drop counts them as received.
#[derive(Default)]
pub(crate) struct Batch(pub(crate) Vec<TrackedMessage>);

impl Batch {
    /// Checks that the batch has `counted` messages, at most `most`, and that those of each sender
    /// are in the order in which they were sent.
    pub(crate) fn check(&self, most: usize, counted: usize, ledger: &Ledger) {
        if self.0.len() > most || self.0.len() != counted {
            let has = self.0.len();
            ledger.fault(format!(
                "a batch of {has} messages, at most {most}, was counted as {counted}"
            ));
        }
        let mut last = BTreeMap::new();
        for message in &self.0 {
            if last.insert(message.sender, message.number).is_some_and(|last| last > message.number)
            {
                ledger.fault("two messages of a sender are in the wrong order".into());
            }
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Mark all of them first, because the drop of one may panic.
        self.0.iter().for_each(TrackedMessage::is_taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx::channel::bounded;

    fn sent(account: &Arc<Account>) -> TrackedMessage {
        let (message, receipt) = account.message_for(0);
        receipt.settle(Ok::<_, ()>(()));
        message
    }

    #[test]
    fn dropping_a_message_of_an_open_channel_is_reported() {
        let ledger = Ledger::new(false);
        let account = Account::new(&ledger);
        let receiver = account.receiver(());
        sent(&account).take();
        sent(&account).evicted();
        let (kept, receipt) = account.message_for(0);
        receipt.settle(Err(kept));
        assert_eq!(ledger.balance(false), Ok(()));
        drop(sent(&account));
        assert!(ledger.balance(false).unwrap_err().contains("its channel is open"));
        drop(receiver);
    }

    #[test]
    fn messages_dropped_with_the_last_receiver_are_counted() {
        let ledger = Ledger::new(false);
        let account = Account::new(&ledger);
        let (tx, rx) = bounded(2);
        let receiver = account.receiver(rx);
        let (message, receipt) = account.message_for(0);
        receipt.settle(tx.try_send(message));
        drop(receiver);
        let (message, receipt) = account.message_for(0);
        receipt.settle(tx.try_send(message));
        assert_eq!(ledger.balance(false), Ok(()));
        assert_eq!(ledger.reported.load(Relaxed), 1);
    }

    #[test]
    fn settling_a_send_after_the_message_is_lost_is_reported() {
        let ledger = Ledger::new(false);
        let account = Account::new(&ledger);
        let (message, receipt) = account.message_for(0);
        drop(message);
        assert_eq!(ledger.balance(false), Ok(()), "the message may be with its sender");
        receipt.settle(Ok::<_, ()>(()));
        assert!(ledger.balance(false).is_err());
    }

    #[test]
    fn a_batch_is_checked_for_order_and_count() {
        let wrong = |order: &[usize], counted: usize| {
            let ledger = Ledger::new(false);
            let account = Account::new(&ledger);
            let mut parcels: Vec<_> = (0..2).map(|_| Some(sent(&account))).collect();
            let batch = Batch(order.iter().filter_map(|nth| parcels[*nth].take()).collect());
            batch.check(2, counted, &ledger);
            drop((batch, account));
            parcels.into_iter().flatten().for_each(TrackedMessage::take);
            ledger.balance(false).is_err()
        };
        assert!(!wrong(&[0, 1], 2));
        assert!(wrong(&[1, 0], 2) && wrong(&[0], 2));
    }
}
