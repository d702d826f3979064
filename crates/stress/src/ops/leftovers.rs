//! Leftovers: futures polled by hand, threads, and the bag.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use asx::Cx;

use super::{Env, drop_outcome, micros, receiver, sockets};
use crate::memory::forget;
use crate::program::{Fate, Half, ThreadDoes, Where};
use crate::waker::{block_on, poll_some};
use crate::world::{DetachedFuture, Leftover, SlotGuard, World};

/// How long a thread waits for a future from the bag.
const PATIENCE: Duration = Duration::from_millis(3);

impl Env {
    pub(super) fn thread(&self, place: Where, does: ThreadDoes) {
        let scope = self.scope.clone();
        let act = move |world: &Arc<World>| match does {
            ThreadDoes::CancelScope => scope.cancel("from a thread"),
            ThreadDoes::StopScope => scope.stop(),
            ThreadDoes::Notify => world.notify.notify_one(),
            ThreadDoes::Send(nth) => world.sent(world.senders[nth].try_send(world.ledger.value())),
            ThreadDoes::Publish => drop(world.publisher.send(world.ledger.value())),
            ThreadDoes::Set => drop(world.setter.send(world.ledger.value())),
            ThreadDoes::FromBag => {
                if let Some(leftover) = world.find() {
                    use_leftover(world, leftover);
                }
            }
            ThreadDoes::Spawn => {
                let held = (world.ledger.task(), world.ledger.value());
                let own = world.clone();
                let task = scope.spawn(async move |cx: Cx| {
                    let _held = held;
                    cx.yield_now().await;
                    Ok(own.ledger.returned())
                });
                use_leftover(world, Leftover::Task(task));
            }
        };
        match place {
            Where::Thread => self.world.thread(act),
            // On the worker itself, where waiting is not allowed.
            Where::Here if does == ThreadDoes::FromBag => {}
            Where::Here => act(&self.world),
        }
    }

    /// Returns a future of this task that is not yet owned by a task.
    pub(super) fn leftovers(&self, half: Half) -> DetachedFuture {
        let Env { world, cx, .. } = self;
        let world = world.clone();
        let cx = cx.clone();
        match half {
            Half::Sleep => Box::pin(async move { drop(cx.sleep(micros(300)).await) }),
            Half::Send(nth) => Box::pin(async move {
                let sent = world.senders[nth].send(&cx, world.ledger.value()).await;
                world.sent(sent);
            }),
            Half::Recv(nth) => Box::pin(async move {
                let Some(mut inbox) = receiver(&world, nth) else { return };
                if let Ok(value) = inbox.get().receiver.recv(&cx).await {
                    world.received(value);
                }
            }),
            Half::Lock => Box::pin(async move {
                if let Ok(guard) = world.mutex.lock(&cx).await {
                    guard.check();
                }
            }),
            Half::Acquire => Box::pin(async move { drop(world.semaphore.acquire(&cx).await) }),
            Half::Notified => Box::pin(async move { drop(world.notify.notified(&cx).await) }),
            Half::Barrier => Box::pin(async move { drop(world.barrier.wait(&cx).await) }),
            Half::Listen => Box::pin(async move {
                let Some(mut listens) = SlotGuard::take(&world, 0, |world, _| &world.subscriber)
                else {
                    return;
                };
                drop(listens.get().recv(&cx).await);
            }),
            Half::Changed => Box::pin(async move {
                let Some(mut watches) = SlotGuard::take(&world, 0, |world, _| &world.watcher)
                else {
                    return;
                };
                drop(watches.get().changed(&cx).await);
            }),
            Half::Join => match world.find() {
                Some(Leftover::Task(task)) => Box::pin(async move { drop_outcome(task.await) }),
                other => {
                    if let Some(other) = other {
                        world.put(other);
                    }
                    Box::pin(async move { cx.yield_now().await })
                }
            },
            Half::Cancelled => Box::pin(async move { drop(cx.cancelled().await) }),
        }
    }

    pub(super) async fn half_poll(&self, half: Half, times: usize, fate: Fate) {
        self.poll_and_leave(self.leftovers(half), times, fate).await;
    }

    /// Polls a future a few times, and leaves it in this way.
    pub(super) async fn poll_and_leave(
        &self,
        mut future: DetachedFuture,
        times: usize,
        fate: Fate,
    ) {
        let world = &self.world;
        if poll_some(&world.ledger, &mut future, times).is_some() {
            return;
        }
        match fate {
            Fate::Drop => drop(future),
            Fate::Forget => forget(future),
            Fate::Bag => world.put(Leftover::Future(future)),
            Fate::ToThread => {
                world.thread(move |world| use_leftover(world, Leftover::Future(future)))
            }
            Fate::Finish => self.finish(future).await,
        }
    }

    /// Polls a future from the bag for a while. If it has another task's context, no cancel of this
    /// task reaches it, so it is dropped after a time limit.
    pub(super) async fn finish(&self, mut future: DetachedFuture) {
        let mut limit = pin!(self.cx.sleep(micros(500)));
        poll_fn(|cx| {
            if future.as_mut().poll(cx).is_ready() || limit.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    pub(super) async fn rummage(&self) {
        let Env { world, cx, .. } = self;
        if world.coin(8) == 0 {
            world.put(Leftover::Cx(cx.clone()));
        }
        match world.find() {
            Some(Leftover::Future(future)) => self.finish(future).await,
            Some(Leftover::Task(task)) => {
                self.finish(Box::pin(async move { drop_outcome(task.await) })).await;
            }
            Some(Leftover::Cx(other)) => {
                let other = other;
                let _ = (other.checkpoint(), other.is_cancelled());
                self.finish(Box::pin(async move { drop(other.sleep(micros(100)).await) })).await;
            }
            Some(Leftover::Tcp(conn)) => self.found(conn).await,
            Some(Leftover::Unix(conn)) => self.found(conn).await,
            Some(leftover) => use_leftover(world, leftover),
            None => {}
        }
    }
}

/// Uses a leftover where awaiting is not possible, such as on a thread.
pub(super) fn use_leftover(world: &Arc<World>, leftover: Leftover) {
    match leftover {
        Leftover::Task(mut task) => match world.coin(4) {
            0 => drop(task.cancel("found it")),
            1 => task.outcome().into_iter().for_each(drop_outcome),
            2 => drop(task),
            _ => {
                let mut joins = Box::pin(task);
                if let Some(outcome) = block_on(&world.ledger, &mut joins, PATIENCE) {
                    drop_outcome(outcome);
                }
            }
        },
        Leftover::Future(mut future) => match world.coin(3) {
            0 => drop(future),
            _ => drop(block_on(&world.ledger, &mut future, PATIENCE)),
        },
        Leftover::Reply(reply) => match world.coin(4) {
            0 => drop(reply),
            _ => world.sent(reply.send(world.ledger.value())),
        },
        Leftover::Permit(permit) => match world.coin(3) {
            0 => drop(permit),
            1 => permit.abort(),
            _ => world.sent(permit.try_send(world.ledger.value())),
        },
        Leftover::Scope(scope) => match world.coin(3) {
            0 => scope.cancel("found it"),
            1 => scope.stop(),
            _ => {
                let held = (world.ledger.task(), world.ledger.value());
                let own = world.clone();
                scope.spawn(async move |cx: Cx| {
                    let _held = held;
                    cx.yield_now().await;
                    Ok(own.ledger.returned())
                });
            }
        },
        Leftover::Cx(cx) => {
            let _ = (cx.id(), cx.is_cancelled(), cx.checkpoint());
        }
        Leftover::Tcp(conn) => sockets::end(world, conn),
        Leftover::Unix(conn) => sockets::end(world, conn),
    }
}

/// Waits for a thread that wakes by value, at about the time of the poll.
pub(super) async fn woken_by_hand(world: &Arc<World>) {
    let woken = Arc::new(AtomicBool::new(false));
    let mut told = false;
    poll_fn(|cx| {
        if woken.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        if !told {
            told = true;
            let woken = woken.clone();
            let waker = cx.waker().clone();
            world.thread(move |_| {
                woken.store(true, Ordering::SeqCst);
                waker.wake();
            });
        }
        Poll::Pending
    })
    .await;
}
