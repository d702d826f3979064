//! Futures that know nothing of cancels, and `select!` over them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use asx::{assume_cancel_safe, select};

use super::loose::woken_by_hand;
use super::{Env, micros, run};
use crate::books::Value;
use crate::program::{Op, SelectHow, Stranger};
use crate::world::{Fail, Loose};

/// A future of somebody else's, whose end is seen.
struct Watched<'a> {
    end: End,
    future: Pin<Box<dyn Future<Output = Option<Value>> + Send + 'a>>,
}

/// Told when the future is dropped, before what it owns is.
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

/// Wakes itself, so often.
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
    /// The future, and whether it is gone.
    fn stranger<'a>(
        &'a self,
        stranger: Stranger,
        body: &'a [Op],
    ) -> (Watched<'a>, Arc<AtomicBool>) {
        let held = self.world.books.value();
        let gone = Arc::new(AtomicBool::new(false));
        let future = Box::pin(async move {
            held.look();
            match stranger {
                Stranger::Never => std::future::pending().await,
                Stranger::Polls(times) => Polls(times).await,
                Stranger::Thread => woken_by_hand(&self.world).await,
                Stranger::Body => drop(run(self, body).await),
            }
            (self.world.coin(3) > 0).then_some(held)
        });
        (Watched { end: End(gone.clone()), future }, gone)
    }

    pub(super) async fn abandon(&self, stranger: Stranger, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let (future, gone) = self.stranger(stranger, body);
        let mut waits = cx.abandon_on_cancel(future);
        let answer = Pin::new(&mut waits).await;
        // Before what awaited it is dropped.
        let over = gone.load(Ordering::Relaxed);
        world.books.expect(over, "what was given up is still there");
        if let Some(value) = answer? {
            value.look();
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
            SelectHow::Assumed(stranger) => {
                let (future, gone) = self.stranger(stranger, body);
                select! {
                    value = assume_cancel_safe(future) => drop(value),
                    slept = cx.sleep(time) => slept?,
                }
                world.books.expect(gone.load(Ordering::Relaxed), "a branch outlived its select");
            }
            SelectHow::Abandoned(stranger) => {
                let (future, gone) = self.stranger(stranger, body);
                select! {
                    // A pattern that matches some values only.
                    Ok(Some(value)) = cx.abandon_on_cancel(future) => value.look(),
                    Ok(()) = cx.sleep(time) => {}
                    else => {}
                }
                world.books.expect(gone.load(Ordering::Relaxed), "a branch outlived its select");
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
                        parcel = rx.inner.recv(cx) => match parcel {
                            Ok(parcel) => parcel.take(),
                            Err(_) => break,
                        },
                        notified = world.notify.notified(cx) => notified?,
                    }
                }
            }
            SelectHow::Refutable(nth) => {
                let Some(rx) = world.pools[nth].fetcher() else { return Ok(()) };
                let first = world.coin(2) == 0;
                let (future, gone) = self.stranger(Stranger::Polls(1), &[]);
                select! {
                    None = assume_cancel_safe(future), if first => {}
                    Ok(parcel) = rx.inner.recv(cx) => parcel.take(),
                    Ok(()) = cx.sleep(time) => {}
                    else => cx.checkpoint()?,
                }
                if first {
                    let over = gone.load(Ordering::Relaxed);
                    world.books.expect(over, "a branch outlived its select");
                }
            }
        }
        Ok(())
    }

    /// An operation as a future that belongs to nobody.
    pub(super) fn loose_op(&self, op: &Op) -> Loose {
        let env = self.clone();
        let op = op.clone();
        Box::pin(async move { drop(run(&env, std::slice::from_ref(&op)).await) })
    }
}
