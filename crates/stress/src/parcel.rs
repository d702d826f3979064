//! Messages that know what became of them, and the account of the channel they go through.
//!
//! A message that was sent is taken by a receiver, or it is dropped with its channel: when that is
//! closed for good, or its last receiver is gone. One that is dropped while its channel is open is
//! lost, which is a fault at once.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::task::{Context, Poll};

use asx::channel::mpmc::SharedReceiver;
use futures_core::Stream;

use crate::books::{Books, Value};

/// The account of a channel.
pub(crate) struct Account {
    books: Arc<Books>,
    /// How many receivers the program has.
    receivers: AtomicUsize,
    /// Whether messages may be dropped from now on.
    closing: AtomicBool,
    numbers: AtomicUsize,
}

/// What happened to a message, as bits.
const SENT: u8 = 1;
const TAKEN: u8 = 2;
const DROPPED: u8 = 4;

impl Account {
    pub(crate) fn new(books: &Arc<Books>) -> Arc<Account> {
        Arc::new(Account {
            books: books.clone(),
            receivers: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            numbers: AtomicUsize::new(0),
        })
    }

    /// A receiver of the channel.
    pub(crate) fn receiver<R>(self: &Arc<Self>, inner: R) -> Receiving<R> {
        Receiving { share: Share::new(self), inner }
    }

    /// A message of a sender that numbers its messages, and what the sender keeps of it.
    pub(crate) fn parcel(self: &Arc<Self>, sender: usize) -> (Parcel, Receipt) {
        let fate = Arc::new(AtomicU8::new(0));
        let receipt = Receipt { account: self.clone(), fate: fate.clone() };
        let number = self.numbers.fetch_add(1, Relaxed);
        let value = self.books.value();
        (Parcel { account: self.clone(), fate, sender, number, value }, receipt)
    }

    /// A number for somebody who sends.
    pub(crate) fn sender(&self) -> usize {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// The channel is about to be closed for good.
    pub(crate) fn closes(&self) {
        self.closing.store(true, SeqCst);
    }

    /// A message that was sent has been dropped, and nobody took it.
    fn untaken(&self) {
        self.books.reported.fetch_add(1, Relaxed);
        if !self.closing.load(SeqCst) {
            self.books.fault("a message was dropped, and its channel is open".into());
        }
    }
}

/// A message.
pub(crate) struct Parcel {
    account: Arc<Account>,
    fate: Arc<AtomicU8>,
    sender: usize,
    number: usize,
    value: Value,
}

impl Parcel {
    /// A receiver has it.
    pub(crate) fn take(self) {
        self.is_taken();
    }

    fn is_taken(&self) {
        self.value.look();
        if self.fate.fetch_or(TAKEN, AcqRel) & (TAKEN | DROPPED) != 0 {
            self.account.books.fault("a message was taken twice".into());
        }
        self.account.books.received.fetch_add(1, Relaxed);
    }

    /// It came back to somebody who sends: it had to make room.
    pub(crate) fn evicted(self) {
        self.fate.fetch_or(TAKEN, AcqRel);
        self.account.books.reported.fetch_add(1, Relaxed);
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let before = self.fate.fetch_or(DROPPED, AcqRel);
        if before & (SENT | TAKEN) == SENT {
            self.account.untaken();
        }
    }
}

/// What the sender of a message keeps of it.
pub(crate) struct Receipt {
    account: Arc<Account>,
    fate: Arc<AtomicU8>,
}

impl Receipt {
    /// The channel has said what became of the send. A message that comes back is dropped.
    pub(crate) fn settle<E>(self, sent: Result<(), E>) {
        if sent.is_ok() {
            self.account.books.sent.fetch_add(1, Relaxed);
            let before = self.fate.fetch_or(SENT, AcqRel);
            if before & (TAKEN | DROPPED) == DROPPED {
                self.account.untaken();
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

/// A receiver or what was made of one. The share goes first, so that the account knows before the
/// channel does.
pub(crate) struct Receiving<R> {
    share: Share,
    pub(crate) inner: R,
}

impl<R> Receiving<R> {
    /// Makes something else of the receiver.
    pub(crate) fn map<S>(self, make: impl FnOnce(R) -> S) -> Receiving<S> {
        let Receiving { share, inner } = self;
        Receiving { share, inner: make(inner) }
    }

    /// The channel is about to be closed for good.
    pub(crate) fn closes(&self) {
        self.share.0.closes();
    }
}

impl Clone for Receiving<SharedReceiver<Parcel>> {
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

/// Messages that were taken several at a time; dropped, they have been taken.
#[derive(Default)]
pub(crate) struct Batch(pub(crate) Vec<Parcel>);

impl Batch {
    /// Whether it has at most so many, as many as were counted, and those of each sender in the
    /// order they were sent in.
    pub(crate) fn check(&self, most: usize, counted: usize, books: &Books) {
        if self.0.len() > most || self.0.len() != counted {
            let has = self.0.len();
            books.fault(format!("{has} of at most {most} messages, {counted} are counted"));
        }
        let mut last = BTreeMap::new();
        for parcel in &self.0 {
            if last.insert(parcel.sender, parcel.number).is_some_and(|last| last > parcel.number) {
                books.fault("two messages of a sender are in the wrong order".into());
            }
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // All of them, before the drop of one may panic.
        self.0.iter().for_each(Parcel::is_taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx::channel::bounded;

    fn sent(account: &Arc<Account>) -> Parcel {
        let (parcel, receipt) = account.parcel(0);
        receipt.settle(Ok::<_, ()>(()));
        parcel
    }

    #[test]
    fn a_message_that_an_open_channel_drops_is_a_fault() {
        let books = Books::new(false);
        let account = Account::new(&books);
        let receiver = account.receiver(());
        sent(&account).take();
        sent(&account).evicted();
        let (kept, receipt) = account.parcel(0);
        receipt.settle(Err(kept));
        assert_eq!(books.balance(false), Ok(()));
        drop(sent(&account));
        assert!(books.balance(false).unwrap_err().contains("its channel is open"));
        drop(receiver);
    }

    #[test]
    fn what_goes_with_the_last_receiver_is_reported() {
        let books = Books::new(false);
        let account = Account::new(&books);
        let (tx, rx) = bounded(2);
        let receiver = account.receiver(rx);
        let (parcel, receipt) = account.parcel(0);
        receipt.settle(tx.try_send(parcel));
        drop(receiver);
        let (parcel, receipt) = account.parcel(0);
        receipt.settle(tx.try_send(parcel));
        assert_eq!(books.balance(false), Ok(()));
        assert_eq!(books.reported.load(Relaxed), 1);
    }

    #[test]
    fn a_send_that_is_settled_after_the_message_is_lost_is_a_fault() {
        let books = Books::new(false);
        let account = Account::new(&books);
        let (parcel, receipt) = account.parcel(0);
        drop(parcel);
        assert_eq!(books.balance(false), Ok(()), "it may be with its sender");
        receipt.settle(Ok::<_, ()>(()));
        assert!(books.balance(false).is_err());
    }

    #[test]
    fn a_batch_is_in_order_and_counted() {
        let wrong = |order: &[usize], counted: usize| {
            let books = Books::new(false);
            let account = Account::new(&books);
            let mut parcels: Vec<_> = (0..2).map(|_| Some(sent(&account))).collect();
            let batch = Batch(order.iter().filter_map(|nth| parcels[*nth].take()).collect());
            batch.check(2, counted, &books);
            drop((batch, account));
            parcels.into_iter().flatten().for_each(Parcel::take);
            books.balance(false).is_err()
        };
        assert!(!wrong(&[0, 1], 2));
        assert!(wrong(&[1, 0], 2) && wrong(&[0], 2));
    }
}
