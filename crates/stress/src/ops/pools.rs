//! Operations on channels with several receivers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use asx::channel::{RecvError, Sender, oneshot};
use asx::{Cx, select};
use futures_core::Stream;
use futures_sink::Sink;

use super::Env;
use crate::message::{Account, Batch, TrackedMessage};
use crate::pool::{Either, PoolReceiver, PoolSender};
use crate::program::{ClosedOf, CrewOp, FetchHow, PostHow};
use crate::world::Fail;

impl Env {
    pub(super) async fn post(&self, nth: usize, how: PostHow) -> Result<(), Fail> {
        let poster = self.world.pools[nth].poster();
        let from = poster.account.sender();
        self.post_to(&poster, from, how).await
    }

    /// Sends to a pool as the sender `from`.
    async fn post_to(&self, poster: &PoolSender, from: usize, how: PostHow) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let account = &poster.account;
        let Either::Bounded(tx) = &poster.sender else {
            poster.try_send(from);
            return Ok(());
        };
        match how {
            PostHow::Send => {
                let (message, receipt) = account.message_for(from);
                receipt.settle(tx.send(cx, message).await);
            }
            PostHow::Try => poster.try_send(from),
            PostHow::Reserve => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                cx.yield_now().await;
                let (message, receipt) = account.message_for(from);
                receipt.settle(permit.try_send(message));
            }
            PostHow::Owned => {
                let Ok(permit) = tx.reserve_owned(cx).await else { return Ok(cx.checkpoint()?) };
                let account = account.clone();
                world.thread(move |_| {
                    let (message, receipt) = account.message_for(from);
                    receipt.settle(permit.try_send(message));
                });
            }
            PostHow::Abort => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                permit.abort();
            }
            PostHow::NextPermit => {
                while let Some(permit) = tx.next_permit(cx).await? {
                    let (message, receipt) = account.message_for(from);
                    receipt.settle(permit.try_send(message));
                    if world.coin(2) == 0 {
                        break;
                    }
                }
            }
            PostHow::Many(..) | PostHow::TryMany(..) => {
                return self.post_many(tx, account, from, how).await;
            }
            PostHow::Evict => {
                let (message, receipt) = account.message_for(from);
                match tx.send_evict_oldest(message) {
                    Ok(evicted) => {
                        receipt.settle(Ok::<_, ()>(()));
                        if let Some(message) = evicted {
                            message.evicted();
                        }
                    }
                    Err(back) => receipt.settle(Err(back)),
                }
            }
            PostHow::Sink => {
                let mut sink = pin!(tx.sink(cx));
                for _ in 0..2 {
                    if poll_fn(|context| sink.as_mut().poll_ready(context)).await.is_err() {
                        break;
                    }
                    let (message, receipt) = account.message_for(from);
                    receipt.settle(sink.as_mut().start_send(message));
                }
            }
            PostHow::OwnedSink => self.post_into_sink(tx, account, from).await,
            PostHow::Weak => {
                let weak = tx.downgrade();
                let sender = tx.clone();
                cx.yield_now().await;
                drop(sender);
                let Some(sender) = weak.upgrade() else { return Ok(()) };
                let (message, receipt) = account.message_for(from);
                receipt.settle(sender.try_send(message));
            }
        }
        Ok(())
    }

    /// Sends some of several messages with slots that were reserved together.
    async fn post_many(
        &self,
        tx: &Sender<TrackedMessage>,
        account: &Arc<Account>,
        from: usize,
        how: PostHow,
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let (PostHow::Many(slots, used) | PostHow::TryMany(slots, used)) = how else {
            return Ok(());
        };
        let slots = slots.min(tx.max_capacity());
        let reserved = match how {
            PostHow::Many(..) => tx.reserve_many(cx, slots).await.ok(),
            _ => tx.try_reserve_many(slots).ok(),
        };
        let Some(mut permits) = reserved else { return Ok(cx.checkpoint()?) };
        world.ledger.expect(permits.len() == slots, "the number of reserved slots is wrong");
        for permit in permits.by_ref().take(used) {
            cx.yield_now().await;
            let (message, receipt) = account.message_for(from);
            receipt.settle(permit.try_send(message));
        }
        // The others are released, unless one is forgotten.
        if world.forgets && world.coin(4) == 0 {
            permits.next().into_iter().for_each(std::mem::forget);
        }
        Ok(())
    }

    /// Sends into a sink that owns its sender, and leaves it in some way.
    async fn post_into_sink(
        &self,
        tx: &Sender<TrackedMessage>,
        account: &Arc<Account>,
        from: usize,
    ) {
        let Env { world, cx, .. } = self;
        let mut sink = tx.clone().into_sink(cx);
        let mut ready = false;
        for _ in 0..2 {
            ready = poll_fn(|context| Pin::new(&mut sink).poll_ready(context)).await.is_ok();
            if !ready || world.coin(3) == 0 {
                break;
            }
            let (message, receipt) = account.message_for(from);
            receipt.settle(Pin::new(&mut sink).start_send(message));
        }
        match world.coin(3) {
            0 => drop(poll_fn(|context| Pin::new(&mut sink).poll_close(context)).await),
            1 => {
                let back = sink.into_inner().is_some_and(|back| back.same_channel(tx));
                world.ledger.expect(back, "an open sink has no sender");
            }
            _ if ready => world.thread(move |_| drop(sink)),
            _ => {}
        }
    }

    pub(super) async fn fetch(&self, nth: usize, how: FetchHow) {
        let Env { world, cx, .. } = self;
        let pool = &world.pools[nth];
        if how == FetchHow::Renew {
            return pool.renew();
        }
        if how == FetchHow::DropOne {
            return drop(pool.take());
        }
        let Some(rx) = pool.fetcher() else { return };
        match how {
            FetchHow::Recv => match rx.inner.recv(cx).await {
                Ok(message) => message.take(),
                Err(error) => self.ended(&rx, &error),
            },
            FetchHow::Try => {
                if let Ok(message) = rx.inner.try_recv() {
                    message.take();
                }
            }
            FetchHow::Many(most) => self.fetch_many(&rx, most).await,
            FetchHow::Stream(items) => {
                let mut stream = rx.map(|rx| rx.into_stream(cx));
                for _ in 0..items {
                    match poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
                        Some(Ok(message)) => message.take(),
                        _ => break,
                    }
                }
                match world.coin(3) {
                    0 => stream.inner.close(),
                    1 => drop(stream.map(|stream| stream.into_inner())),
                    _ => world.thread(move |_| drop(stream)),
                }
            }
            FetchHow::Look => {
                let rx = &rx.inner;
                let _ = (rx.len(), rx.is_empty(), rx.capacity(), rx.max_capacity());
                let _ = (rx.is_closed(), rx.senders(), rx.same_channel(&rx.clone()));
                world.ledger.expect(rx.receivers() >= 1, "a receiver is not counted");
            }
            FetchHow::Drain => {
                rx.inner.close();
                while let Ok(message) = rx.inner.recv(cx).await {
                    message.take();
                }
            }
            FetchHow::CloseAndTake => {
                rx.closes();
                drop(Batch(rx.inner.close_and_take().into()));
            }
            FetchHow::DropOne | FetchHow::Renew => {}
        }
    }

    /// Receives up to `most` messages at once.
    async fn fetch_many(&self, rx: &PoolReceiver, most: usize) {
        let Env { world, cx, .. } = self;
        let mut batch = Batch::default();
        let counted = match rx.inner.recv_many(cx, &mut batch.0, most).await {
            Ok(counted) => counted,
            Err(error) => {
                self.ended(rx, &error);
                0
            }
        };
        batch.check(most, counted, &world.ledger);
    }

    /// Checks a failed receive: the channel has ended, or the task is cancelled.
    fn ended(&self, rx: &PoolReceiver, error: &RecvError) {
        let ended = *error != RecvError::Disconnected || rx.inner.is_closed();
        self.world.ledger.expect(ended, "disconnected, but there are senders");
    }

    /// Starts tasks that send to tasks that receive. The receivers end when no sender is left.
    pub(super) fn crew(&self, op: CrewOp) {
        let Env { world, scope, .. } = self;
        let (poster, fetcher) = PoolSender::channel(op.capacity, &world.ledger);
        for _ in 0..op.producers {
            let held = world.ledger.task();
            let world = world.clone();
            let scope = scope.clone();
            let poster = poster.clone();
            self.scope.spawn(async move |cx: Cx| {
                let _held = held;
                let from = poster.account.sender();
                let env = Env { world, cx, scope };
                for _ in 0..op.messages {
                    let how = [PostHow::Send, PostHow::Reserve, PostHow::Many(2, 2), PostHow::Sink];
                    let how = how[env.world.coin(4) as usize];
                    env.post_to(&poster, from, how).await?;
                }
                Ok(env.world.ledger.returned())
            });
        }
        for _ in 0..op.consumers {
            let held = world.ledger.task();
            let world = world.clone();
            let scope = scope.clone();
            let fetcher = fetcher.clone();
            self.scope.spawn(async move |cx: Cx| {
                let _held = held;
                let env = Env { world, cx, scope };
                if op.batches {
                    loop {
                        let mut batch = Batch::default();
                        match fetcher.inner.recv_many(&env.cx, &mut batch.0, 3).await {
                            Ok(counted) => batch.check(3, counted, &env.world.ledger),
                            Err(error) => {
                                env.ended(&fetcher, &error);
                                break;
                            }
                        }
                    }
                } else {
                    loop {
                        match fetcher.inner.recv(&env.cx).await {
                            Ok(message) => message.take(),
                            Err(error) => {
                                env.ended(&fetcher, &error);
                                break;
                            }
                        }
                    }
                }
                Ok(env.world.ledger.returned())
            });
        }
    }

    /// Waits for a limited time until all receivers are gone.
    pub(super) async fn closed(&self, of: ClosedOf) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match of {
            ClosedOf::Unbounded => {
                world.unbounded.closed(cx).await?;
                world
                    .ledger
                    .expect(world.unbounded.is_closed(), "closed, but `is_closed` is false");
            }
            ClosedOf::Tracked => {
                world.tracked.closed(cx).await?;
                world.ledger.expect(world.tracked.is_closed(), "closed, but `is_closed` is false");
            }
            ClosedOf::Publisher => world.publisher.closed(cx).await?,
            ClosedOf::Reply => {
                let (reply, answer) = oneshot::<()>();
                world.thread(move |_| drop(answer));
                reply.closed(cx).await?;
                world.ledger.expect(reply.is_closed(), "closed, but `is_closed` is false");
            }
            ClosedOf::Shared(nth) => {
                let poster = world.pools[nth].poster();
                match &poster.sender {
                    Either::Bounded(sender) => sender.closed(cx).await?,
                    Either::Unbounded(sender) => select! {
                        closed = sender.closed(cx) => closed?,
                        slept = cx.sleep(Duration::from_micros(300)) => slept?,
                    },
                }
            }
        }
        Ok(())
    }
}
