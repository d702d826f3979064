//! Operations on channels.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use asx::channel::{ChannelExt, oneshot};
use asx::select;
use futures_core::Stream;
use futures_sink::Sink;

use super::{Env, micros, receiver};
use crate::ledger::Value;
use crate::program::{
    ListenHow, Op, RecvHow, ReplyBy, SendHow, SetHow, TrackedHow, WatchHow, Where,
};
use crate::world::{Fail, Leftover, PendingReply, SlotGuard, Taken};

impl Env {
    pub(super) async fn message(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match op {
            Op::Send(nth, how) => self.send(*nth, *how).await?,
            Op::Recv(nth, how) => self.recv(*nth, *how).await,
            Op::SendUnbounded => world.sent(world.unbounded.send(world.ledger.value())),
            Op::RecvUnbounded(drops) => {
                let inbox = SlotGuard::take(world, 0, |world, _| &world.unbounded_rx);
                let Some(mut inbox) = inbox else { return Ok(()) };
                if *drops {
                    drop(inbox.keep());
                } else if let Ok(value) = inbox.get().receiver.recv(cx).await {
                    world.received(value);
                }
            }
            Op::Tracked(how) => self.tracked(*how).await,
            Op::RecvTracked => {
                let inbox = SlotGuard::take(world, 0, |world, _| &world.tracked_rx);
                let Some(mut inbox) = inbox else { return Ok(()) };
                if let Ok(value) = inbox.get().receiver.recv(cx).await {
                    world.received(value);
                }
            }
            Op::Ask(by, patience) => self.ask(*by, *patience).await?,
            Op::Publish => drop(world.publisher.send(world.ledger.value())),
            Op::Listen(how) => self.listen(*how).await,
            Op::Set(how) => self.set(*how).await,
            Op::Watch(how) => self.watch(*how).await,
            Op::RegionChannel(capacity) => {
                let Ok((tx, mut rx)) = cx.channel(*capacity) else { return Ok(()) };
                drop(tx.try_send(world.ledger.value()));
                let permit = tx.try_reserve_owned();
                drop(rx.recv(cx).await);
                drop((permit, tx, rx));
            }
            op => self.composed(op).await?,
        }
        Ok(())
    }

    pub(super) async fn send(&self, nth: usize, how: SendHow) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let tx = &world.senders[nth];
        let value = world.ledger.value();
        match how {
            SendHow::Send => world.sent(tx.send(cx, value).await),
            SendHow::ReserveSend | SendHow::ReserveAbort | SendHow::ReserveDrop => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                cx.yield_now().await;
                match how {
                    SendHow::ReserveSend => world.sent(permit.try_send(value)),
                    SendHow::ReserveAbort => permit.abort(),
                    _ => drop(permit),
                }
            }
            SendHow::Owned(place) => {
                let Ok(permit) = tx.reserve_owned(cx).await else { return Ok(cx.checkpoint()?) };
                match place {
                    Where::Here => world.put(Leftover::Permit(permit)),
                    Where::Thread => world.thread(move |world| world.sent(permit.try_send(value))),
                }
            }
            SendHow::Try => world.sent(tx.try_send(value)),
            SendHow::TryReserve => {
                if let Ok(permit) = tx.try_reserve() {
                    world.sent(permit.try_send(value));
                }
            }
            SendHow::Sink => {
                let mut sink = pin!(tx.sink(cx));
                if poll_fn(|context| sink.as_mut().poll_ready(context)).await.is_ok() {
                    world.sent(sink.as_mut().start_send(value));
                }
            }
            SendHow::Several => {
                let count = tx.max_capacity().min(2);
                let Ok(mut permits) = tx.reserve_many(cx, count).await else {
                    return Ok(cx.checkpoint()?);
                };
                cx.yield_now().await;
                // The others are released.
                if let Some(permit) = permits.next() {
                    world.sent(permit.try_send(value));
                }
            }
            SendHow::Closed => select! {
                closed = tx.closed(cx) => closed?,
                slept = cx.sleep(Duration::ZERO) => slept?,
            },
            SendHow::Evict => match tx.send_evict_oldest(value) {
                Ok(evicted) => {
                    world.sent(Ok::<_, ()>(()));
                    let count = evicted.iter().len();
                    world.ledger.reported.fetch_add(count, Ordering::Relaxed);
                }
                Err(back) => drop(back),
            },
        }
        Ok(())
    }

    pub(super) async fn recv(&self, nth: usize, how: RecvHow) {
        let Env { world, cx, .. } = self;
        let Some(mut inbox) = receiver(world, nth) else { return };
        let rx = &mut inbox.get().receiver;
        match how {
            RecvHow::Recv => {
                if let Ok(value) = rx.recv(cx).await {
                    world.received(value);
                }
            }
            RecvHow::Next => {
                if let Ok(Some(value)) = rx.next(cx).await {
                    world.received(value);
                }
            }
            RecvHow::Stream => {
                let mut stream = pin!(rx.stream(cx));
                let next = poll_fn(|context| stream.as_mut().poll_next(context)).await;
                if let Some(Ok(value)) = next {
                    world.received(value);
                }
            }
            RecvHow::Try => {
                if let Ok(value) = rx.try_recv() {
                    world.received(value);
                }
            }
            RecvHow::Many => {
                let mut taken = Taken { values: Vec::new(), ledger: &world.ledger };
                drop(rx.recv_many(cx, &mut taken.values, 3).await);
            }
            RecvHow::Refuse => rx.close(),
            RecvHow::Close => inbox.get().close(),
            RecvHow::DropIt => drop(inbox.keep()),
        }
    }

    pub(super) async fn tracked(&self, how: TrackedHow) {
        let Env { world, cx, .. } = self;
        if how == TrackedHow::Try {
            if let Ok(permit) = world.tracked.try_reserve() {
                let (_proof, sent) = permit.try_send(world.ledger.value());
                world.sent(sent);
            }
            return;
        }
        let Ok(permit) = world.tracked.reserve(cx).await else { return };
        match how {
            TrackedHow::Send | TrackedHow::Try => {
                let (_proof, sent) = permit.try_send(world.ledger.value());
                world.sent(sent);
            }
            TrackedHow::Abort => drop(permit.abort()),
            TrackedHow::Leak => drop(permit),
        }
    }

    pub(super) async fn ask(&self, by: ReplyBy, patience: u64) -> Result<(), Fail> {
        let Env { world, cx, scope } = self;
        let (reply, answer) = oneshot();
        let mut expected = PendingReply { answer, ledger: world.ledger.clone() };
        match by {
            ReplyBy::Nobody => drop(reply),
            ReplyBy::Bag => world.put(Leftover::Reply(reply)),
            ReplyBy::Thread => {
                world.thread(move |world| world.sent(reply.send(world.ledger.value())));
            }
            ReplyBy::Task => {
                let held = world.ledger.task();
                let own = world.clone();
                scope.spawn(move |_| async move {
                    let _held = held;
                    own.sent(reply.send(own.ledger.value()));
                    Ok(own.ledger.returned())
                });
            }
        }
        let answer = cx.timeout(micros(patience), async |cx| {
            if let Ok(value) = expected.answer.recv(cx).await {
                world.received(value);
            }
            Ok(())
        });
        let _: Result<(), Fail> = answer.await;
        Ok(cx.checkpoint()?)
    }

    pub(super) async fn listen(&self, how: ListenHow) {
        let Env { world, cx, .. } = self;
        if how == ListenHow::Subscribe {
            return world.subscriber.replace(world.publisher.subscribe());
        }
        let Some(mut listens) = SlotGuard::take(world, 0, |world, _| &world.subscriber) else {
            return;
        };
        match how {
            ListenHow::Recv => drop(listens.get().recv(cx).await),
            ListenHow::SkipLagged => drop(listens.get().recv(cx).skip_lagged().await),
            ListenHow::Resubscribe => {
                let mut again = listens.get().resubscribe();
                let _ = (again.len(), again.is_empty(), again.is_closed());
                drop(world.publisher.send(world.ledger.value()));
                drop(again.recv(cx).await);
                drop(listens.get().try_recv());
            }
            _ => drop(listens.get().try_recv()),
        }
    }

    pub(super) async fn set(&self, how: SetHow) {
        let Env { world, cx, .. } = self;
        match how {
            SetHow::Send => drop(world.setter.send(world.ledger.value())),
            SetHow::Replace => drop(world.setter.send_replace(world.ledger.value())),
            SetHow::Modify => world.setter.send_modify(|value| *value = world.ledger.value()),
            SetHow::IfModified(modifies) => {
                let told = world.setter.send_if_modified(|value| {
                    if modifies {
                        *value = world.ledger.value();
                    }
                    modifies
                });
                world.ledger.expect(told == modifies, "the reported change does not match");
            }
            SetHow::Closed => drop(world.setter.closed(cx).await),
        }
    }

    pub(super) async fn watch(&self, how: WatchHow) {
        let Env { world, cx, .. } = self;
        if how == WatchHow::Subscribe {
            return world.watcher.replace(world.setter.subscribe());
        }
        let Some(mut watches) = SlotGuard::take(world, 0, |world, _| &world.watcher) else {
            return;
        };
        match how {
            WatchHow::Changed => drop(watches.get().changed(cx).await),
            WatchHow::WaitFor => {
                let mut looks = 0;
                let wanted = |value: &Value| {
                    value.check();
                    looks += 1;
                    looks > 2
                };
                drop(watches.get().wait_for(cx, wanted).await);
            }
            WatchHow::Marks => {
                let watches = watches.get();
                watches.mark_changed();
                world.ledger.expect(watches.has_changed(), "the mark of a change is lost");
                if watches.changed(cx).await.is_ok() {
                    watches.borrow_and_update().check();
                }
                watches.mark_unchanged();
            }
            _ => watches.get().borrow().check(),
        }
    }
}
