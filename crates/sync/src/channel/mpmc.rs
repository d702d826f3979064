//! Many senders, many receivers: each message goes to one of them.
//!
//! Receivers are served in the order in which they began to wait. A receiver that goes, or is
//! cancelled, when a message is due to it leaves it to the next.
//!
//! It is a channel like any other with a count of its messages beside it, which receivers wait for:
//! a message that is queued adds one, a receiver that has taken one may take a message. So there
//! are never fewer messages than receivers that may take one.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::channel::TryRecvError;
use asx_task::backtrace::{Endpoint, Side, Thing};
use asx_task::footprint;
use asx_task::operation::{Wait, guard};
use asx_task::{CancelSafe, Cx};

use super::items::Items;
use super::recv::take_many;
use super::shared::Shared;
use super::unbounded::UnboundedSender;
use super::{RecvError, Sender, ZeroCapacity};
use crate::prim::Arc;
use crate::prim::atomic::Ordering;
use crate::sync::claim::{Claim, HasPool, Held, RegionRef, Step};
use crate::sync::pool::{Pool, Refusal};

/// A channel with room for `capacity` messages, permits included, and any number of receivers.
///
/// ```
/// use asx::prelude::*;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     let (jobs, queue) = channel::mpmc(8);
///     cx.scope(async |s| {
///         let workers = [(); 4].map(|()| {
///             let queue = queue.clone();
///             s.spawn(async move |cx: Cx| {
///                 let mut sum = 0;
///                 while let Ok(job) = queue.recv(&cx).await {
///                     sum += job;
///                 }
///                 Ok::<u32, Cancelled>(sum)
///             })
///         });
///         for job in 0..100 {
///             jobs.send(cx, job).await.expect("there are receivers");
///         }
///         drop(jobs); // the workers end when all is done
///         let mut total = 0;
///         for worker in workers {
///             total += worker.await.unwrap_or(0);
///         }
///         assert_eq!(total, 4950);
///         Ok(())
///     })
///     .await
/// }
/// ```
///
/// # Panics
/// If the capacity is 0.
#[track_caller]
pub fn mpmc<T>(capacity: usize) -> (Sender<T>, SharedReceiver<T>) {
    match try_mpmc(capacity) {
        Ok(channel) => channel,
        Err(error) => panic!("{error}"),
    }
}

/// [`mpmc`], for capacities that are not known to be above 0.
#[track_caller]
pub fn try_mpmc<T>(capacity: usize) -> Result<(Sender<T>, SharedReceiver<T>), ZeroCapacity> {
    let shared = Shared::of(capacity, Some(Items::new()))?;
    Ok((Sender::new(shared.clone()), SharedReceiver::new(shared)))
}

/// [`mpmc`] without a bound: sending never waits.
#[track_caller]
pub fn unbounded<T>() -> (UnboundedSender<T>, SharedReceiver<T>) {
    let shared = Shared::of(usize::MAX, Some(Items::new())).expect("the capacity is not 0");
    (UnboundedSender::new(shared.clone()), SharedReceiver::new(shared))
}

impl<T> HasPool for Shared<T> {
    fn pool(&self) -> &Pool {
        match &self.items {
            Some(items) => &items.pool,
            None => unreachable!("only channels for several receivers count their messages"),
        }
    }
}

/// A receiving side; a clone is a further one. When the last is gone, the messages that nobody took
/// are dropped, and every sender is told.
pub struct SharedReceiver<T> {
    pub(super) shared: Arc<Shared<T>>,
    end: Endpoint,
}

impl<T> SharedReceiver<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn new(shared: Arc<Shared<T>>) -> SharedReceiver<T> {
        let end = Endpoint::new(&shared.usage, Side::Receives);
        SharedReceiver { shared, end }
    }
}

/// Taking messages.
impl<T> SharedReceiver<T> {
    /// Waits for a message. Receivers are served in the order of their first poll. Fails when no
    /// message and no sender is left, or the task is cancelled. Dropping the future takes no
    /// message.
    #[track_caller]
    pub fn recv<'a>(&'a self, cx: &'a Cx) -> SharedRecv<'a, T> {
        self.end.used();
        let shared = &*self.shared;
        SharedRecv { shared, claim: Claim::new(cx, shared, 1, Wait::Recv) }
    }

    /// Waits for a message, as [`recv`](SharedReceiver::recv) does, and appends it and those that
    /// are queued behind it to `into`, at most `max` in all: how many. Asked for none, it gives
    /// none at once. While other receivers wait, it takes one: the next ones are theirs. Dropping
    /// the future takes none.
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # asx::Runtime::new()?.block_on(async |cx: Cx| {
    /// let (tx, rx) = channel::mpmc(4);
    /// (0..4).for_each(|n| tx.try_send(n).unwrap());
    /// let mut batch = Vec::new();
    /// assert_eq!(rx.recv_many(&cx, &mut batch, 3).await?, 3);
    /// assert_eq!((batch, rx.len()), (vec![0, 1, 2], 1));
    /// # Ok::<(), asx::channel::RecvError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn recv_many<'a>(
        &'a self,
        cx: &'a Cx,
        into: &'a mut Vec<T>,
        max: usize,
    ) -> SharedRecvMany<'a, T> {
        self.end.used();
        let shared = &*self.shared;
        SharedRecvMany { shared, claim: Claim::new(cx, shared, 1, Wait::Recv), into, max }
    }

    /// Takes a message if there is one, and nobody waits for one.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let _after = footprint::operation();
        if !self.shared.is_usable() {
            return Err(TryRecvError::Disconnected);
        }
        self.end.used();
        match Held::try_new(&*self.shared, 1) {
            Ok(held) => {
                held.forget();
                self.shared.usage.used(Side::Receives);
                self.shared.try_recv()
            }
            Err(Refusal::Busy) => Err(TryRecvError::Empty),
            Err(Refusal::Closed) => self.shared.try_recv(),
        }
    }

    /// Closes the channel to senders, for all receivers: what was sent before can still be
    /// received, as with [`Receiver::close`](super::Receiver::close).
    pub fn close(&self) {
        let _after = footprint::operation();
        self.shared.refuse();
    }

    /// Closes the channel for good, for all receivers, and hands out the messages that were not
    /// taken, oldest first.
    pub fn close_and_take(&self) -> VecDeque<T> {
        let _after = footprint::operation();
        self.shared.close_receiver()
    }
}

/// Looking.
impl<T> SharedReceiver<T> {
    /// How many messages are queued.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots are free now.
    pub fn capacity(&self) -> usize {
        self.shared.free_slots()
    }

    /// How many messages and permits there can be at once.
    pub fn max_capacity(&self) -> usize {
        self.shared.capacity()
    }

    /// Whether it takes no more senders, or none is left. Messages may still be queued.
    pub fn is_closed(&self) -> bool {
        self.shared.is_ending()
    }

    /// How many senders there are; permits and weak senders are not counted.
    pub fn senders(&self) -> usize {
        self.shared.senders()
    }

    /// How many receivers there are.
    pub fn receivers(&self) -> usize {
        let _after = footprint::operation();
        self.items().receivers_object().read();
        self.items().receivers.load(Ordering::Relaxed)
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &SharedReceiver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn items(&self) -> &Items {
        match &self.shared.items {
            Some(items) => items,
            None => unreachable!("there are several receivers"),
        }
    }
}

impl<T> Clone for SharedReceiver<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        let _after = footprint::operation();
        self.items().receivers_object().write();
        self.items().receivers.fetch_add(1, Ordering::Relaxed);
        SharedReceiver::new(self.shared.clone())
    }
}

impl<T> Drop for SharedReceiver<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        self.items().receivers_object().write();
        // Acquire and release: what the others did with the channel comes before its close.
        if self.items().receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.shared.close_receiver());
        }
    }
}

impl<T> fmt::Debug for SharedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceiver").finish_non_exhaustive()
    }
}

/// The future of [`SharedReceiver::recv`].
#[must_use = "futures do nothing unless awaited"]
pub struct SharedRecv<'a, T> {
    shared: &'a Shared<T>,
    claim: Claim<&'a Cx, &'a Shared<T>>,
}

impl<T> Future for SharedRecv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let SharedRecv { shared, claim } = &mut *self;
        poll_receive(shared, claim, context)
    }
}

/// A poll of a wait for a message.
pub(super) fn poll_receive<T, C: Borrow<Cx>, H: RegionRef>(
    shared: &Shared<T>,
    claim: &mut Claim<C, H>,
    context: &mut Context<'_>,
) -> Poll<Result<T, RecvError>> {
    let _after = footprint::after_operation();
    ready!(poll_claim(shared, claim, context))?;
    let taken = shared.try_recv();
    debug_assert!(!matches!(taken, Err(TryRecvError::Empty)), "messages were counted wrongly");
    Poll::Ready(taken.map_err(|_| RecvError::Disconnected))
}

/// Waits until there is a message for the claim, or the channel has ended, and maybe one is left.
fn poll_claim<T, C: Borrow<Cx>, H: RegionRef>(
    shared: &Shared<T>,
    claim: &mut Claim<C, H>,
    context: &mut Context<'_>,
) -> Poll<Result<Due, RecvError>> {
    ready!(claim.poll_proceed(context))?;
    if !shared.is_usable() {
        claim.withdraw();
        return Poll::Ready(Err(RecvError::Disconnected));
    }
    match claim.step(context) {
        Step::Waits => {
            let pending = claim.pending(context);
            shared.usage.awaits(Thing::Channel, Side::Sends);
            pending
        }
        Step::Has(held) => {
            held.forget();
            shared.usage.used_at(Side::Receives, claim.place_in_source());
            Poll::Ready(Ok(Due::One))
        }
        Step::Closed => Poll::Ready(Ok(Due::Rest)),
    }
}

/// What a receiver may take.
enum Due {
    /// One message.
    One,
    /// What is left, as nothing more will come.
    Rest,
}

impl<T> CancelSafe for SharedRecv<'_, T> {}

impl<T> fmt::Debug for SharedRecv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRecv").field("waits", &self.claim.is_waiting()).finish()
    }
}

/// The future of [`SharedReceiver::recv_many`]; gives `Result<usize, RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct SharedRecvMany<'a, T> {
    shared: &'a Shared<T>,
    claim: Claim<&'a Cx, &'a Shared<T>>,
    into: &'a mut Vec<T>,
    max: usize,
}

impl<T> Future for SharedRecvMany<'_, T> {
    type Output = Result<usize, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let SharedRecvMany { shared, claim, into, max } = &mut *self;
        if *max == 0 {
            return claim.poll_proceed(context).map(|proceeds| Ok(proceeds.map(|()| 0)?));
        }
        let count = match ready!(poll_claim(shared, claim, context))? {
            Due::One => 1 + shared.pool().take_up_to(*max - 1),
            Due::Rest => *max,
        };
        let mut senders = Vec::new();
        let taken = shared.with(|channel| take_many(shared, channel, into, count, &mut senders));
        guard::wake_all(senders);
        Poll::Ready(taken.map(|(count, _)| count).map_err(|_| RecvError::Disconnected))
    }
}

impl<T> CancelSafe for SharedRecvMany<'_, T> {}

impl<T> fmt::Debug for SharedRecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRecvMany").field("waits", &self.claim.is_waiting()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::channel::{Disconnected, SendError, TrySendError};
    use asx_task::testing::{Polls, cancelled_cx, live_cx, reason};

    #[test]
    fn each_message_goes_to_who_has_waited_longest() {
        let (cx, (tx, one)) = (live_cx(), mpmc(4));
        let two = one.clone();
        let mut first = Polls::new(one.recv(&cx));
        let mut second = Polls::new(two.recv(&cx));
        assert!(first.is_pending() && second.is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        assert_eq!(one.try_recv(), Err(TryRecvError::Empty), "the message is the first one's");
        tx.try_send(2).unwrap();
        assert_eq!((second.wakes(), second.ready()), (1, Ok(1)), "messages keep their order");
        assert_eq!(first.ready(), Ok(2));
        assert_eq!((one.receivers(), one.same_channel(&two)), (2, true));
    }

    #[test]
    fn a_message_due_to_who_goes_or_is_cancelled_is_the_next_one_s() {
        let (cx, cancel) = Cx::loose();
        let (live, (tx, rx)) = (live_cx(), mpmc(4));
        let mut cancelled = Polls::new(rx.recv(&cx));
        let mut dropped = Polls::new(rx.recv(&live));
        let mut stays = Polls::new(rx.recv(&live));
        assert!(cancelled.is_pending() && dropped.is_pending() && stays.is_pending());
        tx.try_send(1).unwrap();
        cancel(reason());
        assert!(matches!(cancelled.ready(), Err(RecvError::Cancelled(_))));
        assert_eq!((dropped.wakes(), stays.wakes()), (1, 0));
        drop(dropped);
        assert_eq!((stays.wakes(), stays.ready()), (1, Ok(1)));
        tx.try_send(2).unwrap();
        assert!(Polls::new(rx.recv(&cancelled_cx())).ready().is_err());
        assert_eq!((rx.len(), rx.try_recv()), (1, Ok(2)), "a cancelled receive takes nothing");
    }

    #[test]
    fn the_last_sender_ends_all_receivers_after_the_last_message() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(4));
        let permit = tx.try_reserve_owned().unwrap();
        let mut waiting = [(); 3].map(|()| Polls::new(rx.recv(&cx)));
        assert!(waiting.iter_mut().all(Polls::is_pending));
        drop(tx);
        assert!(waiting.iter().all(|recv| recv.wakes() == 0), "a permit is out");
        permit.send(7);
        assert!(waiting.iter().all(|recv| recv.wakes() == 1));
        let got = waiting.each_mut().map(Polls::ready);
        assert_eq!(got, [Ok(7), Err(RecvError::Disconnected), Err(RecvError::Disconnected)]);
        assert_eq!((rx.try_recv(), rx.is_closed()), (Err(TryRecvError::Disconnected), true));
    }

    #[test]
    fn a_close_by_one_receiver_lets_all_drain() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(4));
        let other = rx.clone();
        (0..2).for_each(|n| tx.try_send(n).unwrap());
        let permit = tx.try_reserve().unwrap();
        let mut full = Polls::new(tx.reserve_many(&cx, 2));
        assert!(full.is_pending());
        other.close();
        assert!(full.ready().is_err() && tx.is_closed());
        assert_eq!(tx.try_send(9), Err(TrySendError::Disconnected(9)));
        assert_eq!((rx.try_recv(), other.try_recv()), (Ok(0), Ok(1)));
        let mut last = Polls::new(rx.recv(&cx));
        let mut none = Polls::new(other.recv(&cx));
        assert!(last.is_pending() && none.is_pending());
        permit.abort();
        assert_eq!((last.wakes(), last.ready()), (1, Err(RecvError::Disconnected)));
        assert_eq!((none.wakes(), none.ready()), (1, Err(RecvError::Disconnected)));
    }

    #[test]
    fn the_last_receiver_hands_everything_back_to_the_senders() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(1));
        let other = rx.clone();
        tx.try_send(1).unwrap();
        let mut sending = Polls::new(tx.send(&cx, 2));
        let mut closed = Polls::new(tx.closed(&cx));
        assert!(sending.is_pending() && closed.is_pending());
        drop(rx);
        assert_eq!((sending.wakes(), closed.wakes()), (0, 0));
        drop(other);
        assert_eq!((sending.wakes(), sending.ready()), (1, Err(SendError::Disconnected(2))));
        assert_eq!((closed.wakes(), closed.ready()), (1, Ok(())));
    }

    #[test]
    fn who_was_to_have_a_message_that_was_taken_by_a_close_is_told() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(2));
        let mut due = Polls::new(rx.recv(&cx));
        assert!(due.is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((rx.close_and_take(), due.wakes()), (vec![1].into(), 1));
        assert_eq!(due.ready(), Err(RecvError::Disconnected));
    }

    #[test]
    fn evicting_and_unbounded_sends_count_their_messages() {
        let (tx, rx) = mpmc(1);
        assert_eq!((tx.send_evict_oldest(1), tx.send_evict_oldest(2)), (Ok(None), Ok(Some(1))));
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(2), Err(TryRecvError::Empty)));
        let (tx, rx) = unbounded();
        let other = rx.clone();
        (0..3).for_each(|n| tx.send(n).unwrap());
        assert_eq!((rx.try_recv(), other.try_recv(), rx.len()), (Ok(0), Ok(1), 1));
        drop((rx, other));
        assert_eq!(tx.send(3), Err(Disconnected(3)));
        assert!(try_mpmc::<u8>(0).is_err());
    }

    #[test]
    fn many_are_taken_in_order_up_to_the_limit_and_free_their_slots() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(3));
        (0..3).for_each(|n| tx.try_send(n).unwrap());
        let mut sends = [3, 4, 5].map(|n| Polls::new(tx.send(&cx, n)));
        assert!(sends.iter_mut().all(Polls::is_pending));
        let mut into = vec![9];
        assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 0)).ready(), Ok(0));
        assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 2)).ready(), Ok(2));
        assert_eq!(sends.each_ref().map(Polls::wakes), [1, 1, 0], "slots go in order");
        assert!(sends[0].ready().is_ok() && sends[1].ready().is_ok() && sends[2].is_pending());
        assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 9)).ready(), Ok(3));
        assert_eq!((sends[2].wakes(), sends[2].ready()), (1, Ok(())));
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(5), Err(TryRecvError::Empty)));
        assert_eq!(into, [9, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn many_are_waited_for_and_leave_their_messages_to_receivers_in_line() {
        let (cx, (tx, rx)) = (live_cx(), mpmc(4));
        let mut into = Vec::new();
        let mut many = Polls::new(rx.recv_many(&cx, &mut into, 4));
        let mut other = Polls::new(rx.recv(&cx));
        let mut third = Polls::new(rx.recv(&cx));
        assert!(many.is_pending() && other.is_pending() && third.is_pending());
        (0..2).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!((many.wakes(), many.ready()), (1, Ok(1)), "the second is the other's");
        assert_eq!((other.wakes(), other.ready()), (1, Ok(1)));
        tx.try_send(2).unwrap();
        tx.try_send(3).unwrap();
        assert_eq!(Polls::new(rx.recv_many(&cx, &mut Vec::new(), 4)).ready(), Ok(1));
        assert_eq!((third.wakes(), third.ready().is_ok()), (1, true));
    }

    #[test]
    fn many_that_are_cancelled_or_dropped_take_none_and_an_end_leaves_the_rest() {
        let (cx, cancel) = Cx::loose();
        let (live, (tx, rx)) = (live_cx(), mpmc(4));
        let mut into = Vec::new();
        let mut many = Polls::new(rx.recv_many(&cx, &mut into, 4));
        assert!(many.is_pending());
        (0..3).for_each(|n| tx.try_send(n).unwrap());
        cancel(reason());
        assert!(matches!(many.ready(), Err(RecvError::Cancelled(_))));
        assert!(Polls::new(rx.recv_many(&cx, &mut Vec::new(), 0)).ready().is_err());
        drop(many);
        assert_eq!((into.len(), rx.len()), (0, 3));
        drop(tx);
        assert_eq!(Polls::new(rx.recv_many(&live, &mut into, 2)).ready(), Ok(2));
        assert_eq!(Polls::new(rx.recv_many(&live, &mut into, 2)).ready(), Ok(1));
        let ended = Polls::new(rx.recv_many(&live, &mut into, 2)).ready();
        assert_eq!((ended, into), (Err(RecvError::Disconnected), vec![0, 1, 2]));
    }

    #[test]
    fn threads_share_out_every_message_once() {
        let (tx, rx) = mpmc(4);
        let sum = AtomicU64::new(0);
        std::thread::scope(|s| {
            for _ in 0..3 {
                let (rx, sum) = (rx.clone(), &sum);
                s.spawn(move || {
                    loop {
                        match rx.try_recv() {
                            Ok(n) => drop(sum.fetch_add(n, Ordering::Relaxed)),
                            Err(TryRecvError::Empty) => std::thread::yield_now(),
                            Err(TryRecvError::Disconnected) => return,
                        }
                    }
                });
            }
            for n in 0..500 {
                while tx.try_send(n).is_err() {
                    std::thread::yield_now();
                }
            }
            drop(tx);
        });
        assert_eq!(sum.into_inner(), 124_750);
    }
}
