//! Futures that were given room in a channel, or a message, and are kept without being polled.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use asx_lab::check;
use asx_runtime::{Cancelled, Cx, Scope, channel};

use super::planted;

/// Polls something once: whether it is done.
async fn is_done<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

/// Asks for a slot, is given one, and asks for another without a look at the first.
async fn kept_slot<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        s.task("sender").spawn(async move |cx: Cx| {
            let _ = tx.send(&cx, 0).await;
            let mut first = Box::pin(tx.reserve(&cx));
            if is_done(first.as_mut()).await {
                return Ok(());
            }
            if !BUG {
                drop(first);
            }
            let _ = tx.send(&cx, 1).await;
            Ok(())
        });
        s.task("receiver").spawn(async move |cx: Cx| {
            while rx.next(&cx).await?.is_some() {}
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(kept_slot_is_found: kept_slot, Futurelock, 1, Proved);

/// Begins to send, and waits for an answer to that before it goes on with it.
async fn kept_question<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (ask, mut asked) = channel::bounded::<u32>(1);
        let (answer, mut answered) = channel::unbounded::<u32>();
        s.task("asker").spawn(async move |cx: Cx| {
            let _ = ask.send(&cx, 0).await;
            let mut second = pin!(ask.send(&cx, 1));
            if !is_done(second.as_mut()).await && !BUG {
                let _ = second.as_mut().await;
            }
            for _ in 0..2 {
                let _ = answered.recv(&cx).await;
            }
            Ok(())
        });
        s.task("answerer").spawn(async move |cx: Cx| {
            while let Some(question) = asked.next(&cx).await? {
                let _ = answer.send(question);
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(kept_question_is_found: kept_question, Futurelock, 1, Proved);

/// Waits for a message, and then for the sender to be done, which is not until there is room.
async fn kept_message<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let (done, mut is_over) = channel::oneshot::<()>();
        s.task("sender").spawn(async move |cx: Cx| {
            for number in 0..2 {
                let _ = tx.send(&cx, number).await;
            }
            let _ = done.send(());
            Ok(())
        });
        s.task("receiver").spawn(async move |cx: Cx| {
            let mut first = Box::pin(rx.recv(&cx));
            if !is_done(first.as_mut()).await && !BUG {
                let _ = first.as_mut().await;
            }
            let _ = is_over.recv(&cx).await;
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(kept_message_is_found: kept_message, Futurelock, 1, Proved);

/// The same, of a receiver that is one of several.
async fn kept_job<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (jobs, queue) = channel::mpmc::<u32>(1);
        let (done, mut is_over) = channel::oneshot::<()>();
        s.task("boss").spawn(async move |cx: Cx| {
            for job in 0..2 {
                let _ = jobs.send(&cx, job).await;
            }
            let _ = done.send(());
            Ok(())
        });
        s.task("worker").spawn(async move |cx: Cx| {
            let mut first = Box::pin(queue.recv(&cx));
            if !is_done(first.as_mut()).await && !BUG {
                let _ = first.as_mut().await;
            }
            let _ = is_over.recv(&cx).await;
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(kept_job_is_found: kept_job, Futurelock, 1, Proved);
