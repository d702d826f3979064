//! A channel with several receivers that a program shares.

use std::sync::{Arc, Mutex, MutexGuard};

use asx::channel::mpmc::{self, SharedReceiver, mpmc};
use asx::channel::unbounded::UnboundedSender;
use asx::channel::{Disconnected, Sender, TrySendError};

use crate::books::Books;
use crate::parcel::{Account, Parcel, Receiving};

/// A receiver of a pool.
pub(crate) type Fetcher = Receiving<SharedReceiver<Parcel>>;

/// A sender of a pool.
#[derive(Clone)]
pub(crate) struct Poster {
    pub(crate) account: Arc<Account>,
    pub(crate) sender: Either,
}

#[derive(Clone)]
pub(crate) enum Either {
    Bounded(Sender<Parcel>),
    Unbounded(UnboundedSender<Parcel>),
}

impl Poster {
    pub(crate) fn channel(capacity: Option<usize>, books: &Arc<Books>) -> (Poster, Fetcher) {
        let account = Account::new(books);
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
        (Poster { account, sender }, receiver)
    }

    /// Sends without waiting.
    pub(crate) fn try_send(&self, from: usize) {
        let (parcel, receipt) = self.account.parcel(from);
        receipt.settle(match &self.sender {
            Either::Bounded(sender) => sender.try_send(parcel),
            Either::Unbounded(sender) => {
                sender.send(parcel).map_err(|Disconnected(back)| TrySendError::Disconnected(back))
            }
        });
    }
}

/// The channel, until it is replaced.
pub(crate) struct Pool {
    capacity: Option<usize>,
    books: Arc<Books>,
    ends: Mutex<(Poster, Option<Fetcher>)>,
}

impl Pool {
    pub(crate) fn new(capacity: Option<usize>, books: &Arc<Books>) -> Pool {
        let (poster, fetcher) = Poster::channel(capacity, books);
        Pool { capacity, books: books.clone(), ends: Mutex::new((poster, Some(fetcher))) }
    }

    fn ends(&self) -> MutexGuard<'_, (Poster, Option<Fetcher>)> {
        self.ends.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn poster(&self) -> Poster {
        self.ends().0.clone()
    }

    /// A receiver more, if the program has kept one.
    pub(crate) fn fetcher(&self) -> Option<Fetcher> {
        self.ends().1.clone()
    }

    /// The receiver that the program keeps: others go on.
    pub(crate) fn take(&self) -> Option<Fetcher> {
        self.ends().1.take()
    }

    /// A new channel. The old one ends when nobody uses it any more.
    pub(crate) fn renew(&self) {
        let (poster, fetcher) = Poster::channel(self.capacity, &self.books);
        let old = std::mem::replace(&mut *self.ends(), (poster, Some(fetcher)));
        drop(old);
    }

    /// Whether every slot is free or has a message in it, once nobody sends.
    pub(crate) fn has_all_slots(&self) -> bool {
        match &self.ends().0.sender {
            Either::Bounded(sender) => {
                sender.is_closed() || sender.capacity() + sender.len() == sender.max_capacity()
            }
            Either::Unbounded(_) => true,
        }
    }
}
