//! Channels with several receivers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use asx::channel::{RecvError, Sender, oneshot};
use asx::{Cx, select};
use futures_core::Stream;
use futures_sink::Sink;

use super::Env;
use crate::parcel::{Account, Batch, Parcel};
use crate::pool::{Either, Fetcher, Poster};
use crate::program::{ClosedOf, CrewOp, FetchHow, PostHow};
use crate::world::Fail;

impl Env {
    pub(super) async fn post(&self, nth: usize, how: PostHow) -> Result<(), Fail> {
        let poster = self.world.pools[nth].poster();
        let from = poster.account.sender();
        self.post_to(&poster, from, how).await
    }

    /// Sends to a pool, in the name of `from`.
    async fn post_to(&self, poster: &Poster, from: usize, how: PostHow) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let account = &poster.account;
        let Either::Bounded(tx) = &poster.sender else {
            poster.try_send(from);
            return Ok(());
        };
        match how {
            PostHow::Send => {
                let (parcel, receipt) = account.parcel(from);
                receipt.settle(tx.send(cx, parcel).await);
            }
            PostHow::Try => poster.try_send(from),
            PostHow::Reserve => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                cx.yield_now().await;
                let (parcel, receipt) = account.parcel(from);
                receipt.settle(permit.try_send(parcel));
            }
            PostHow::Owned => {
                let Ok(permit) = tx.reserve_owned(cx).await else { return Ok(cx.checkpoint()?) };
                let account = account.clone();
                world.thread(move |_| {
                    let (parcel, receipt) = account.parcel(from);
                    receipt.settle(permit.try_send(parcel));
                });
            }
            PostHow::Abort => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                permit.abort();
            }
            PostHow::NextPermit => {
                while let Some(permit) = tx.next_permit(cx).await? {
                    let (parcel, receipt) = account.parcel(from);
                    receipt.settle(permit.try_send(parcel));
                    if world.coin(2) == 0 {
                        break;
                    }
                }
            }
            PostHow::Many(..) | PostHow::TryMany(..) => {
                return self.post_many(tx, account, from, how).await;
            }
            PostHow::Evict => {
                let (parcel, receipt) = account.parcel(from);
                match tx.send_evict_oldest(parcel) {
                    Ok(evicted) => {
                        receipt.settle(Ok::<_, ()>(()));
                        if let Some(parcel) = evicted {
                            parcel.evicted();
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
                    let (parcel, receipt) = account.parcel(from);
                    receipt.settle(sink.as_mut().start_send(parcel));
                }
            }
            PostHow::OwnedSink => self.post_into_sink(tx, account, from).await,
            PostHow::Weak => {
                let weak = tx.downgrade();
                let sender = tx.clone();
                cx.yield_now().await;
                drop(sender);
                let Some(sender) = weak.upgrade() else { return Ok(()) };
                let (parcel, receipt) = account.parcel(from);
                receipt.settle(sender.try_send(parcel));
            }
        }
        Ok(())
    }

    /// Sends some of several messages whose slots were reserved at once.
    async fn post_many(
        &self,
        tx: &Sender<Parcel>,
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
        world.books.expect(permits.len() == slots, "other than so many slots reserved");
        for permit in permits.by_ref().take(used) {
            cx.yield_now().await;
            let (parcel, receipt) = account.parcel(from);
            receipt.settle(permit.try_send(parcel));
        }
        // The others are given back, unless one is forgotten.
        if world.forgets && world.coin(4) == 0 {
            permits.next().into_iter().for_each(std::mem::forget);
        }
        Ok(())
    }

    /// Sends into a sink that owns its sender, and leaves it in some way.
    async fn post_into_sink(&self, tx: &Sender<Parcel>, account: &Arc<Account>, from: usize) {
        let Env { world, cx, .. } = self;
        let mut sink = tx.clone().into_sink(cx);
        let mut ready = false;
        for _ in 0..2 {
            ready = poll_fn(|context| Pin::new(&mut sink).poll_ready(context)).await.is_ok();
            if !ready || world.coin(3) == 0 {
                break;
            }
            let (parcel, receipt) = account.parcel(from);
            receipt.settle(Pin::new(&mut sink).start_send(parcel));
        }
        match world.coin(3) {
            0 => drop(poll_fn(|context| Pin::new(&mut sink).poll_close(context)).await),
            1 => {
                let back = sink.into_inner().is_some_and(|back| back.same_channel(tx));
                world.books.expect(back, "an open sink has no sender");
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
                Ok(parcel) => parcel.take(),
                Err(error) => self.ended(&rx, &error),
            },
            FetchHow::Try => {
                if let Ok(parcel) = rx.inner.try_recv() {
                    parcel.take();
                }
            }
            FetchHow::Many(most) => self.fetch_many(&rx, most).await,
            FetchHow::Stream(items) => {
                let mut stream = rx.map(|rx| rx.into_stream(cx));
                for _ in 0..items {
                    match poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
                        Some(Ok(parcel)) => parcel.take(),
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
                world.books.expect(rx.receivers() >= 1, "a receiver is not counted");
            }
            FetchHow::Drain => {
                rx.inner.close();
                while let Ok(parcel) = rx.inner.recv(cx).await {
                    parcel.take();
                }
            }
            FetchHow::CloseAndTake => {
                rx.closes();
                drop(Batch(rx.inner.close_and_take().into()));
            }
            FetchHow::DropOne | FetchHow::Renew => {}
        }
    }

    /// Up to so many messages at once.
    async fn fetch_many(&self, rx: &Fetcher, most: usize) {
        let Env { world, cx, .. } = self;
        let mut batch = Batch::default();
        let counted = match rx.inner.recv_many(cx, &mut batch.0, most).await {
            Ok(counted) => counted,
            Err(error) => {
                self.ended(rx, &error);
                0
            }
        };
        batch.check(most, counted, &world.books);
    }

    /// A receive has failed: no message comes any more, or the task is to stop.
    fn ended(&self, rx: &Fetcher, error: &RecvError) {
        let ended = *error != RecvError::Disconnected || rx.inner.is_closed();
        self.world.books.expect(ended, "disconnected, and yet there are senders");
    }

    /// Tasks that send to tasks that receive. Those that receive end when no sender is left.
    pub(super) fn crew(&self, op: CrewOp) {
        let Env { world, scope, .. } = self;
        let (poster, fetcher) = Poster::channel(op.capacity, &world.books);
        for _ in 0..op.producers {
            let held = world.books.task();
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
                Ok(env.world.books.returned())
            });
        }
        for _ in 0..op.consumers {
            let held = world.books.task();
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
                            Ok(counted) => batch.check(3, counted, &env.world.books),
                            Err(error) => {
                                env.ended(&fetcher, &error);
                                break;
                            }
                        }
                    }
                } else {
                    loop {
                        match fetcher.inner.recv(&env.cx).await {
                            Ok(parcel) => parcel.take(),
                            Err(error) => {
                                env.ended(&fetcher, &error);
                                break;
                            }
                        }
                    }
                }
                Ok(env.world.books.returned())
            });
        }
    }

    /// Waits until nobody receives, for a while.
    pub(super) async fn closed(&self, of: ClosedOf) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match of {
            ClosedOf::Unbounded => {
                world.unbounded.closed(cx).await?;
                world.books.expect(world.unbounded.is_closed(), "closed, and yet it is open");
            }
            ClosedOf::Tracked => {
                world.tracked.closed(cx).await?;
                world.books.expect(world.tracked.is_closed(), "closed, and yet it is open");
            }
            ClosedOf::Publisher => world.publisher.closed(cx).await?,
            ClosedOf::Reply => {
                let (reply, answer) = oneshot::<()>();
                world.thread(move |_| drop(answer));
                reply.closed(cx).await?;
                world.books.expect(reply.is_closed(), "closed, and yet it is open");
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
