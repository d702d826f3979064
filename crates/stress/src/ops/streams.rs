//! Operations on streams that own their source.

use std::future::poll_fn;
use std::pin::Pin;

use asx::Cx;
use asx::channel::bounded;
use asx::channel::mpmc::mpmc;
use asx::channel::stream::{StreamMap, throttle};
use futures_core::Stream;
use futures_sink::Sink;

use super::{Env, micros};
use crate::memory::forget;
use crate::message::{Account, TrackedMessage};
use crate::program::{Fate, StreamHow};
use crate::world::{Leftover, SlotGuard};

impl Env {
    pub(super) async fn stream(&self, how: StreamHow, items: usize, fate: Fate) {
        let Env { world, cx, .. } = self;
        let account = Account::new(&world.ledger);
        match how {
            StreamHow::Messages => {
                let (tx, rx) = bounded(2);
                self.feed(tx, &account, items);
                let stream = account.receiver(rx).map(|rx| rx.into_stream(cx));
                let stream = self.parcels(stream, items).await;
                match world.coin(2) {
                    0 => self.leave(stream, fate).await,
                    _ => self.leave(stream.map(|stream| stream.into_inner()), fate).await,
                }
            }
            StreamHow::Shared => {
                let (tx, rx) = mpmc(2);
                self.feed(tx, &account, items);
                let one = account.receiver(rx);
                let other = one.clone().map(|rx| rx.into_stream(cx));
                let one = one.map(|rx| rx.into_stream(cx));
                let one = self.parcels(one, items / 2).await;
                let other = self.parcels(other, items / 2).await;
                self.leave(other, fate).await;
                drop(one);
            }
            StreamHow::Throttled(period) => {
                let (tx, rx) = bounded(2);
                self.feed(tx, &account, items);
                let stream = account.receiver(rx).map(|rx| rx.into_stream(cx));
                let slow = throttle(cx, micros(period), stream);
                let slow = self.parcels(slow, items.min(3)).await;
                match world.coin(2) {
                    0 => self.leave(slow, fate).await,
                    _ => self.leave(slow.into_inner(), fate).await,
                }
            }
            StreamHow::Map(count) => self.merged(count, items, fate).await,
            StreamHow::Heard => {
                let mut stream = world.publisher.subscribe().into_stream(cx);
                drop(world.publisher.send(world.ledger.value()));
                for _ in 0..items.min(2) {
                    match poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
                        Some(Ok(value)) => value.check(),
                        _ => break,
                    }
                }
                self.leave(stream, fate).await;
            }
            StreamHow::Snapshots => {
                let watcher = SlotGuard::take(world, 0, |world, _| &world.watcher);
                let watcher = watcher.map(|mut watches| watches.get().clone());
                let mut stream =
                    watcher.unwrap_or_else(|| world.setter.subscribe()).into_stream(cx);
                for _ in 0..items.min(3) {
                    match poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
                        Some(Ok(value)) => value.check(),
                        _ => break,
                    }
                }
                self.leave(stream, fate).await;
            }
            StreamHow::Ticks(period) => self.ticks(period, items, fate).await,
        }
    }

    /// Merges the streams of several channels.
    async fn merged(&self, count: usize, items: usize, fate: Fate) {
        let Env { world, cx, .. } = self;
        let mut map = StreamMap::new();
        for key in 0..count {
            let account = Account::new(&world.ledger);
            let (tx, rx) = bounded(1);
            self.feed(tx, &account, items);
            map.insert(key, account.receiver(rx).map(|rx| rx.into_stream(cx)));
        }
        for _ in 0..items {
            match poll_fn(|context| Pin::new(&mut map).poll_next(context)).await {
                Some((key, Ok(message))) => {
                    message.take();
                    if world.coin(8) == 0 {
                        drop(map.remove(&key));
                    }
                }
                Some((_, Err(_))) => {}
                None => {
                    world.ledger.expect(map.is_empty(), "an empty map has streams");
                    break;
                }
            }
        }
        self.leave(map, fate).await;
    }

    /// Takes ticks of an interval.
    async fn ticks(&self, period: u64, items: usize, fate: Fate) {
        let Env { world, cx, .. } = self;
        let mut ticks = cx.interval(micros(period + 1)).into_stream(cx);
        for _ in 0..items {
            match poll_fn(|context| Pin::new(&mut ticks).poll_next(context)).await {
                Some(Ok(due)) => {
                    world.ledger.expect(world.in_time(cx, due), "a tick was early");
                }
                _ => break,
            }
            if world.coin(3) == 0 {
                ticks.reset();
            }
        }
        match world.coin(2) {
            0 => self.leave(ticks, fate).await,
            _ => drop(ticks.into_inner()),
        }
    }

    /// Starts a task that sends this many messages and then ends, or closes its sink.
    fn feed(
        &self,
        tx: asx::channel::Sender<TrackedMessage>,
        account: &std::sync::Arc<Account>,
        items: usize,
    ) {
        let world = self.world.clone();
        let account = account.clone();
        let held = world.ledger.task();
        self.scope.spawn(async move |cx: Cx| {
            let _held = held;
            let from = account.sender();
            let mut sink = tx.into_sink(&cx);
            for _ in 0..items {
                if poll_fn(|context| Pin::new(&mut sink).poll_ready(context)).await.is_err() {
                    break;
                }
                let (message, receipt) = account.message_for(from);
                receipt.settle(Pin::new(&mut sink).start_send(message));
            }
            if world.coin(2) == 0 {
                drop(poll_fn(|context| Pin::new(&mut sink).poll_close(context)).await);
            }
            Ok(world.ledger.returned())
        });
    }

    /// Takes up to `most` messages out of a stream.
    async fn parcels<S, E>(&self, mut stream: S, most: usize) -> S
    where
        S: Stream<Item = Result<TrackedMessage, E>> + Unpin,
    {
        for _ in 0..most {
            match poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
                Some(Ok(message)) => message.take(),
                _ => break,
            }
        }
        stream
    }

    /// Leaves a value in this way.
    pub(super) async fn leave<T: Send + 'static>(&self, leftover: T, fate: Fate) {
        match fate {
            Fate::Drop => drop(leftover),
            Fate::Forget => forget(leftover),
            Fate::Bag => self.world.put(Leftover::Future(Box::pin(async move { drop(leftover) }))),
            Fate::ToThread => self.world.thread(move |_| drop(leftover)),
            Fate::Finish => {
                self.cx.yield_now().await;
                drop(leftover);
            }
        }
    }
}
