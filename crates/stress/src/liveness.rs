//! A liveness check of a runtime after a program: uncancelled tasks send messages to each other
//! until all have arrived, share a lock, and notify each other. A lost wakeup hangs here, because
//! no cancel ends the wait.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx::channel::{RecvError, bounded};
use asx::sync::{Mutex, Notify, OwnedMutexGuard, Semaphore};
use asx::{BlockOnError, Cx, Runtime};

use crate::ledger::Ledger;
use crate::lock_monitor::LockMonitor;
use crate::message::Batch;
use crate::pool::{Either, PoolSender};
use crate::world::{Fail, PERMITS};

/// The number of senders, and of messages of each.
const PRODUCERS: usize = 2;
const MESSAGES: usize = 12;

/// Runs the check. One task receives single messages, one receives batches, and one is cancelled
/// repeatedly while it waits.
pub(crate) fn run(runtime: &Runtime, ledger: &Arc<Ledger>, capacity: usize) -> Result<(), String> {
    let ran = runtime.try_block_on(async |cx| {
        take_turns(&cx, ledger).await?;
        pass_on(&cx).await?;
        hand_over(&cx, ledger, capacity).await
    });
    match ran {
        Ok(Ok(arrived)) if arrived == PRODUCERS * MESSAGES => Ok(()),
        Ok(Ok(arrived)) => {
            Err(format!("{arrived} of {} messages have arrived", PRODUCERS * MESSAGES))
        }
        Ok(Err(_)) => Err(String::from("a task was cancelled without a request")),
        Err(BlockOnError::ShutDown | BlockOnError::Ended(_)) => Ok(()),
        Err(error) => Err(format!("block_on: {error}")),
    }
}

async fn hand_over(cx: &Cx, ledger: &Arc<Ledger>, capacity: usize) -> Result<usize, Fail> {
    let arrived = Arc::new(AtomicUsize::new(0));
    let (poster, fetcher) = PoolSender::channel(Some(capacity), ledger);
    cx.scope(async |s| {
        for _ in 0..PRODUCERS {
            let poster = poster.clone();
            s.task("sends").spawn(async move |cx: Cx| {
                let Either::Bounded(tx) = &poster.sender else { return Ok(()) };
                let from = poster.account.sender();
                for _ in 0..MESSAGES / 2 {
                    let (message, receipt) = poster.account.message_for(from);
                    receipt.settle(tx.send(&cx, message).await);
                    // Unused slots that are not released would be missing here.
                    let all = tx.max_capacity();
                    let Ok(mut permits) = tx.reserve_many(&cx, all).await else { return Ok(()) };
                    let permit = permits.next().expect("a channel has a slot");
                    let (message, receipt) = poster.account.message_for(from);
                    receipt.settle(permit.try_send(message));
                }
                Ok(())
            });
        }
        drop(poster);
        let single = fetcher.clone();
        let count = arrived.clone();
        s.task("receives").spawn(async move |cx: Cx| {
            while let Ok(message) = single.inner.recv(&cx).await {
                message.take();
                count.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        let impatient = fetcher.clone();
        let count = arrived.clone();
        s.task("is cancelled").spawn(async move |cx: Cx| {
            loop {
                let limit = Duration::from_micros(cx.random_below(40));
                match cx.timeout(limit, |cx| impatient.inner.recv(cx)).await {
                    Ok(message) => {
                        message.take();
                        count.fetch_add(1, Relaxed);
                    }
                    Err(RecvError::Cancelled(_)) => cx.checkpoint()?,
                    Err(RecvError::Disconnected) => return Ok(()),
                }
            }
        });
        let count = arrived.clone();
        s.task("batches").spawn(async move |cx: Cx| {
            loop {
                let mut batch = Batch::default();
                let Ok(taken) = fetcher.inner.recv_many(&cx, &mut batch.0, 3).await else {
                    return Ok(());
                };
                count.fetch_add(taken, Relaxed);
            }
        });
        Ok::<(), Fail>(())
    })
    .await?;
    Ok(arrived.load(Relaxed))
}

/// How often each task takes the lock.
const TURNS: u32 = 4;

/// Tasks share a lock and permits, and abandon some of their waits.
async fn take_turns(cx: &Cx, ledger: &Arc<Ledger>) -> Result<(), Fail> {
    let mutex = Arc::new(Mutex::new(0));
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    let lock_monitor = Arc::new(LockMonitor::new(ledger));
    cx.scope(async |s| {
        for _ in 0..3 {
            let mutex = mutex.clone();
            let semaphore = semaphore.clone();
            let lock_monitor = lock_monitor.clone();
            s.task("takes turns").spawn(async move |cx: Cx| {
                for _ in 0..TURNS {
                    let limit = Duration::from_micros(cx.random_below(30));
                    let soon = cx.timeout(limit, |cx| mutex.lock(cx)).await;
                    drop(soon);
                    let soon = cx.timeout(limit, |cx| semaphore.acquire_many(cx, PERMITS)).await;
                    drop(soon);
                    let guard = mutex.lock_owned(&cx).await?;
                    let _visit =
                        (lock_monitor.exclusive(), OwnedMutexGuard::map(guard, |count| count));
                    let Ok(mut permits) = semaphore.acquire_many(&cx, PERMITS).await else {
                        return Err(Fail::Cancelled);
                    };
                    let one = permits.split(1);
                    cx.yield_now().await;
                    drop(one);
                }
                Ok(())
            });
        }
        Ok::<(), Fail>(())
    })
    .await?;
    ledger.expect(semaphore.available_permits() == PERMITS, "permits are missing after all rounds");
    Ok(())
}

/// Each notification reaches a waiter, even if its first recipient abandons the wait.
async fn pass_on(cx: &Cx) -> Result<(), Fail> {
    let notify = Arc::new(Notify::new());
    let (told, mut heard) = bounded(1);
    cx.scope(async |s| {
        let tell = told.clone();
        let wait = notify.clone();
        let impatient = s.task("gives up").spawn(async move |cx: Cx| {
            while !cx.is_cancelled() {
                let limit = Duration::from_micros(cx.random_below(30));
                let waits = cx.timeout(limit, async |cx| {
                    let mut waits = wait.notified(cx);
                    waits.enable();
                    cx.yield_now().await;
                    // A notification received here must be passed on if the wait is cancelled.
                    waits.enable();
                    waits.await
                });
                if waits.await.is_ok() {
                    drop(tell.send(&cx, ()).await);
                }
            }
            Ok(())
        });
        let wait = notify.clone();
        let patient = s.task("waits").spawn(async move |cx: Cx| {
            while !cx.is_cancelled() {
                let mut waits = wait.notified_owned(&cx);
                waits.enable();
                if waits.await.is_ok() {
                    drop(told.send(&cx, ()).await);
                }
            }
            Ok(())
        });
        for _ in 0..TURNS {
            notify.notify_one();
            if heard.recv(cx).await.is_err() {
                return Err(Fail::Cancelled);
            }
        }
        impatient.cancel("all notifications have arrived");
        patient.cancel("all notifications have arrived");
        Ok::<(), Fail>(())
    })
    .await
}
