//! What a runtime can still do after a program: tasks that nobody cancels hand messages to each
//! other until all have arrived, take turns at a lock, and notify each other. Somebody who is not
//! woken hangs here, where nothing ends the wait.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx::channel::{RecvError, bounded};
use asx::sync::{Mutex, Notify, OwnedMutexGuard, Semaphore};
use asx::{BlockOnError, Cx, Runtime};

use crate::books::Books;
use crate::parcel::Batch;
use crate::pool::{Either, Poster};
use crate::turns::Turns;
use crate::world::{Fail, PERMITS};

/// How many send, and how much each of them.
const PRODUCERS: usize = 2;
const MESSAGES: usize = 12;

/// Runs it. One receives one by one, one in batches, and one is cancelled over and over while it
/// waits.
pub(crate) fn run(runtime: &Runtime, books: &Arc<Books>, capacity: usize) -> Result<(), String> {
    let ran = runtime.try_block_on(async |cx| {
        take_turns(&cx, books).await?;
        pass_on(&cx).await?;
        hand_over(&cx, books, capacity).await
    });
    match ran {
        Ok(Ok(arrived)) if arrived == PRODUCERS * MESSAGES => Ok(()),
        Ok(Ok(arrived)) => {
            Err(format!("{arrived} of {} messages have arrived", PRODUCERS * MESSAGES))
        }
        Ok(Err(_)) => Err(String::from("somebody was cancelled by nobody")),
        Err(BlockOnError::ShutDown | BlockOnError::Ended(_)) => Ok(()),
        Err(error) => Err(format!("block_on: {error}")),
    }
}

async fn hand_over(cx: &Cx, books: &Arc<Books>, capacity: usize) -> Result<usize, Fail> {
    let arrived = Arc::new(AtomicUsize::new(0));
    let (poster, fetcher) = Poster::channel(Some(capacity), books);
    cx.scope(async |s| {
        for _ in 0..PRODUCERS {
            let poster = poster.clone();
            s.task("sends").spawn(async move |cx: Cx| {
                let Either::Bounded(tx) = &poster.sender else { return Ok(()) };
                let from = poster.account.sender();
                for _ in 0..MESSAGES / 2 {
                    let (parcel, receipt) = poster.account.parcel(from);
                    receipt.settle(tx.send(&cx, parcel).await);
                    // Slots that are not used are missed if they are not given back.
                    let all = tx.max_capacity();
                    let Ok(mut permits) = tx.reserve_many(&cx, all).await else { return Ok(()) };
                    let permit = permits.next().expect("a channel has a slot");
                    let (parcel, receipt) = poster.account.parcel(from);
                    receipt.settle(permit.try_send(parcel));
                }
                Ok(())
            });
        }
        drop(poster);
        let single = fetcher.clone();
        let count = arrived.clone();
        s.task("receives").spawn(async move |cx: Cx| {
            while let Ok(parcel) = single.inner.recv(&cx).await {
                parcel.take();
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
                    Ok(parcel) => {
                        parcel.take();
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

/// How often each task has its turn.
const TURNS: u32 = 4;

/// Tasks that share a lock and permits; waits for them are given up now and then.
async fn take_turns(cx: &Cx, books: &Arc<Books>) -> Result<(), Fail> {
    let mutex = Arc::new(Mutex::new(0));
    let semaphore = Arc::new(Semaphore::new(PERMITS));
    let turns = Arc::new(Turns::new(books));
    cx.scope(async |s| {
        for _ in 0..3 {
            let mutex = mutex.clone();
            let semaphore = semaphore.clone();
            let turns = turns.clone();
            s.task("takes turns").spawn(async move |cx: Cx| {
                for _ in 0..TURNS {
                    let limit = Duration::from_micros(cx.random_below(30));
                    let soon = cx.timeout(limit, |cx| mutex.lock(cx)).await;
                    drop(soon);
                    let soon = cx.timeout(limit, |cx| semaphore.acquire_many(cx, PERMITS)).await;
                    drop(soon);
                    let guard = mutex.lock_owned(&cx).await?;
                    let _visit = (turns.alone(), OwnedMutexGuard::map(guard, |count| count));
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
    books.expect(semaphore.available_permits() == PERMITS, "permits are missing after all turns");
    Ok(())
}

/// Each notification reaches somebody, also if the one it was meant for has given up waiting.
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
                    // What came is its own now, and must go on to the other one if it is cancelled.
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
        impatient.cancel("all have been heard");
        patient.cancel("all have been heard");
        Ok::<(), Fail>(())
    })
    .await
}
