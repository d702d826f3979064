//! Whole programs: `#[asx::main]`, and several features together.

use crate::common;

use std::thread;

use asx::channel::{RecvError, SendError};
use asx::prelude::*;
use common::Log;

#[asx::main]
async fn plain() -> &'static str {
    "no context"
}

#[asx::main(workers = 2, name = "two")]
async fn borrowed(cx: &Cx) -> Result<Vec<Option<String>>, Cancelled> {
    cx.scope(async |s| {
        let names = [(); 2]
            .map(|()| s.spawn(async |_cx: Cx| Ok(thread::current().name().map(String::from))));
        let mut found = Vec::new();
        for name in names {
            found.push(name.await.unwrap());
        }
        Ok(found)
    })
    .await
}

#[asx::main(current_thread)]
async fn owned(cx: Cx) -> Result<thread::ThreadId, Cancelled> {
    cx.scope(async |s| {
        let task = s.spawn(async |_cx: Cx| Ok(thread::current().id()));
        Ok(task.await.unwrap())
    })
    .await
}

#[test]
fn main_takes_a_context_or_none() {
    assert_eq!(plain(), "no context");
    assert_eq!(owned(), Ok(thread::current().id()));
    for name in borrowed().unwrap() {
        assert!(matches!(name.as_deref(), Some("two-0" | "two-1")), "{name:?}");
    }
}

#[derive(Debug)]
enum AppError {
    Cancelled,
    Closed,
    Refused(u32),
}

impl From<Cancelled> for AppError {
    fn from(_: Cancelled) -> Self {
        AppError::Cancelled
    }
}

impl From<SendError<()>> for AppError {
    fn from(error: SendError<()>) -> Self {
        match error {
            SendError::Cancelled((), _) => AppError::Cancelled,
            SendError::Disconnected(()) => AppError::Closed,
        }
    }
}

/// Handles orders up to one that is refused.
#[asx::main(workers = 2)]
async fn orders(cx: &Cx) -> (Result<(), AppError>, Vec<String>) {
    let log = std::sync::Arc::new(Log::default());
    let (tx, mut rx) = channel::bounded::<u32>(4);
    let handle = async |cx: &Cx, order: u32| {
        cx.timeout(60.minutes(), async |cx| {
            let slow = async |cx: &Cx| Err(AppError::from(cx.cancelled().await));
            let fast =
                async |_: &Cx| if order == 3 { Err(AppError::Refused(order)) } else { Ok(()) };
            race(cx, slow, fast).await
        })
        .await
    };
    let flush = log.clone();
    let result = cx
        .scope(async |s| {
            s.task("feed").spawn(async move |cx: Cx| {
                for order in 0.. {
                    let permit = tx.reserve(&cx).await?;
                    permit.send(order);
                }
                Ok(())
            });
            s.defer(async move |_cx: Cx| flush.add("flushed")).unwrap();
            loop {
                match rx.recv(cx).await {
                    Ok(order) => handle(cx, order).await?,
                    Err(RecvError::Cancelled(cancelled)) => return Err(cancelled.into()),
                    Err(RecvError::Disconnected) => return Ok(()),
                }
                log.add("handled");
            }
        })
        .await;
    (result, log.take())
}

#[test]
fn a_program_fails_with_its_first_cause_and_leaves_nothing_behind() {
    let (result, log) = orders();
    assert!(matches!(result, Err(AppError::Refused(3))), "{result:?}");
    assert_eq!(log, ["handled", "handled", "handled", "flushed"]);
}
