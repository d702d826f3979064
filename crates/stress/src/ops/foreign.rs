//! Foreign futures, which do not observe cancellation, and `select!` with them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use asx::{assume_cancel_safe, select};

use super::leftovers::woken_by_hand;
use super::{Env, micros, run};
use crate::ledger::Value;
use crate::program::{ForeignFuture, Op, SelectHow};
use crate::world::{DetachedFuture, Fail};

/// A foreign future with a tracked drop.
struct Watched<'a> {
    end: End,
    future: Pin<Box<dyn Future<Output = Option<Value>> + Send + 'a>>,
}

/// Set when the future is dropped, before its contents are dropped.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Future for Watched<'_> {
    type Output = Option<Value>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Value>> {
        let _ = &self.end;
        self.future.as_mut().poll(context)
    }
}

/// Wakes itself this many times.
struct Polls(usize);

impl Future for Polls {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Env {
    /// Returns the future, and a flag that is set when it is dropped.
    fn foreign_future<'a>(
        &'a self,
        foreign_future: ForeignFuture,
        body: &'a [Op],
    ) -> (Watched<'a>, Arc<AtomicBool>) {
        let held = self.world.ledger.value();
        let gone = Arc::new(AtomicBool::new(false));
        let future = Box::pin(async move {
            held.check();
            match foreign_future {
                ForeignFuture::Never => std::future::pending().await,
                ForeignFuture::Polls(times) => Polls(times).await,
                ForeignFuture::Thread => woken_by_hand(&self.world).await,
                ForeignFuture::Body => drop(run(self, body).await),
            }
            (self.world.coin(3) > 0).then_some(held)
        });
        (Watched { end: End(gone.clone()), future }, gone)
    }

    pub(super) async fn abandon(
        &self,
        foreign_future: ForeignFuture,
        body: &[Op],
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let (future, gone) = self.foreign_future(foreign_future, body);
        let mut waits = cx.abandon_on_cancel(future);
        let answer = Pin::new(&mut waits).await;
        // Checked before the awaiting future is dropped.
        let over = gone.load(Ordering::Relaxed);
        world.ledger.expect(over, "an abandoned future was not dropped");
        if let Some(value) = answer? {
            value.check();
        }
        Ok(())
    }

    pub(super) async fn select_of(
        &self,
        how: SelectHow,
        time: u64,
        body: &[Op],
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let time = micros(time);
        match how {
            SelectHow::Assumed(foreign_future) => {
                let (future, gone) = self.foreign_future(foreign_future, body);
                select! {
                    value = assume_cancel_safe(future) => drop(value),
                    slept = cx.sleep(time) => slept?,
                }
                world.ledger.expect(gone.load(Ordering::Relaxed), "a branch outlives its select");
            }
            SelectHow::Abandoned(foreign_future) => {
                let (future, gone) = self.foreign_future(foreign_future, body);
                select! {
                    // A pattern that matches only some values.
                    Ok(Some(value)) = cx.abandon_on_cancel(future) => value.check(),
                    Ok(()) = cx.sleep(time) => {}
                    else => {}
                }
                world.ledger.expect(gone.load(Ordering::Relaxed), "a branch outlives its select");
            }
            SelectHow::Resumed => {
                let mut goes_on = run(self, body);
                let mut done = None;
                for _ in 0..3 {
                    select! {
                        ended = &mut goes_on => {
                            done = Some(ended);
                            break;
                        }
                        slept = cx.sleep(time) => drop(slept),
                    }
                }
                match done {
                    Some(ended) => ended?,
                    None => goes_on.await?,
                }
            }
            SelectHow::Random(nth) => {
                let Some(rx) = world.pools[nth].fetcher() else { return Ok(()) };
                let mut sleep = cx.sleep(time);
                for _ in 0..3 {
                    select! {
                        random(cx);
                        slept = &mut sleep => {
                            slept?;
                            break;
                        }
                        message = rx.inner.recv(cx) => match message {
                            Ok(message) => message.take(),
                            Err(_) => break,
                        },
                        notified = world.notify.notified(cx) => notified?,
                    }
                }
            }
            SelectHow::Refutable(nth) => {
                let Some(rx) = world.pools[nth].fetcher() else { return Ok(()) };
                let first = world.coin(2) == 0;
                let (future, gone) = self.foreign_future(ForeignFuture::Polls(1), &[]);
                select! {
                    None = assume_cancel_safe(future), if first => {}
                    Ok(message) = rx.inner.recv(cx) => message.take(),
                    Ok(()) = cx.sleep(time) => {}
                    else => cx.checkpoint()?,
                }
                if first {
                    let over = gone.load(Ordering::Relaxed);
                    world.ledger.expect(over, "a branch outlives its select");
                }
            }
        }
        Ok(())
    }

    /// Returns an operation as a future that is not yet owned by a task.
    pub(super) fn detached_op(&self, op: &Op) -> DetachedFuture {
        let env = self.clone();
        let op = op.clone();
        Box::pin(async move { drop(run(&env, std::slice::from_ref(&op)).await) })
    }
}
