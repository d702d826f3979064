//! What a runtime can still do after a program: tasks that nobody cancels hand messages to each
//! other until all have arrived. Somebody who is not woken hangs here, where nothing ends the wait.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx::channel::RecvError;
use asx::{BlockOnError, Cx, Runtime};

use crate::books::Books;
use crate::parcel::Batch;
use crate::pool::{Either, Poster};
use crate::world::Fail;

/// How many send, and how much each of them.
const PRODUCERS: usize = 2;
const MESSAGES: usize = 12;

/// Runs it. One receives one by one, one in batches, and one is cancelled over and over while it waits.
pub(crate) fn run(runtime: &Runtime, books: &Arc<Books>, capacity: usize) -> Result<(), String> {
    let ran = runtime.try_block_on(async |cx| hand_over(&cx, books, capacity).await);
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
