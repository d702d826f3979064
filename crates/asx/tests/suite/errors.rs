//! Conversions and uses of the errors of tasks and waits.

use crate::common;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use asx::cancel::Kind;
use asx::channel::Disconnected;
use asx::prelude::*;
use asx::{BlockOnError, Panic, Policy};
use common::on_each;

type Boxed = Box<dyn Error + Send + Sync>;

#[test]
fn outcomes_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Panic>();
    shared::<TaskError<Boxed>>();
    shared::<BlockOnError>();
}

#[test]
fn anyhow_converts_from_task_errors() {
    on_each(|rt| {
        let result: anyhow::Result<u32> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let two = s.spawn(async |_cx: Cx| Ok::<u32, anyhow::Error>("2".parse()?));
                let three = s.spawn(async |_cx: Cx| Ok("3".parse::<u32>()?));
                Ok(two.await? + three.value().await?)
            })
            .await
        });
        assert_eq!(result.unwrap(), 5);
        let result: anyhow::Result<()> = rt.block_on(async |cx: Cx| {
            let outcome = cx.scope_with(Policy::CollectAll).run(async |s| {
                let none = s.spawn(async |_cx: Cx| {
                    let none: u32 = "none".parse()?;
                    Ok::<_, anyhow::Error>(none)
                });
                let late = s.spawn(async |cx: Cx| Ok(cx.sleep(60.minutes()).await?));
                late.cancel("enough");
                let told = late.await.map_err(anyhow::Error::from).unwrap_err();
                assert!(told.to_string().contains("enough"), "{told}");
                none.await?;
                Ok(())
            });
            Ok(outcome.await?)
        });
        assert!(result.unwrap_err().to_string().contains("invalid digit"));
    });
}

#[test]
fn a_boxed_error_converts_from_task_errors() {
    async fn total(cx: &Cx) -> Result<u32, Boxed> {
        cx.scope(async |s| {
            let two = s.spawn(async |_cx: Cx| Ok::<u32, Boxed>("2".parse()?));
            let (tx, mut rx) = channel::bounded(1);
            let three = s.spawn(async move |cx: Cx| {
                tx.send(&cx, 3).await?;
                Ok(())
            });
            let three_sent: u32 = rx.recv(cx).await?;
            three.value().await?;
            Ok(two.await? + three_sent)
        })
        .await
    }
    on_each(|rt| assert_eq!(rt.block_on(async |cx: Cx| total(&cx).await).unwrap(), 5));
}

#[derive(Debug, PartialEq)]
enum Own {
    Cancelled(Kind),
    Alone,
    Refused(u32),
}

impl From<Cancelled> for Own {
    fn from(cancelled: Cancelled) -> Self {
        Own::Cancelled(cancelled.kind())
    }
}

impl From<Disconnected> for Own {
    fn from(_: Disconnected) -> Self {
        Own::Alone
    }
}

asx::wait_errors_into!(Own);

#[test]
fn value_returns_the_error_the_cancel_or_the_panic() {
    on_each(|rt| {
        let ends = |body: fn(&Scope<Own>) -> Task<u32, Own>| {
            let scope = async |cx: Cx| {
                let run = async |s: Scope<Own>| body(&s).value().await;
                match cx.scope_with(Policy::CollectAll).run(run).await {
                    Ok(value) => Ok(value),
                    Err(TaskError::Err(error)) => Err(error),
                    Err(TaskError::Cancelled(cancelled)) => Err(cancelled.into()),
                    Err(TaskError::Panicked(panic)) => panic.resume(),
                }
            };
            catch_unwind(AssertUnwindSafe(|| rt.block_on(scope)))
        };
        assert_eq!(ends(|s| s.spawn(async |_cx: Cx| Ok(7))).unwrap(), Ok(7));
        let refused = ends(|s| s.spawn(async |_cx: Cx| Err(Own::Refused(7))));
        assert_eq!(refused.unwrap(), Err(Own::Refused(7)));
        let cancelled = ends(|s| {
            let task = s.spawn(async |cx: Cx| {
                cx.sleep(60.minutes()).await?;
                Ok(0)
            });
            task.cancel("enough");
            task
        });
        assert_eq!(cancelled.unwrap(), Err(Own::Cancelled(Kind::User)));
        let panicked = ends(|s| s.spawn(async |_cx: Cx| panic!("mine")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"mine"));
    });
}

#[test]
fn a_broadcast_receive_that_skips_missed_messages_works_with_question_mark() {
    async fn second(cx: &Cx, rx: &mut channel::broadcast::Subscriber<u32>) -> Result<u32, Own> {
        rx.recv(cx).skip_lagged().await?;
        Ok(rx.recv(cx).skip_lagged().await?)
    }
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (tx, mut rx) = channel::broadcast(2);
            (0..5).for_each(|n| assert_eq!(tx.send(n), Ok(1)));
            assert_eq!(second(&cx, &mut rx).await, Ok(4));
            drop(tx);
            assert_eq!(second(&cx, &mut rx).await, Err(Own::Alone));
        });
    });
}

/// The first permit is used, the second is dropped unused, and a cancel is the only error.
#[test]
fn permits_are_granted_until_the_receiver_is_dropped() {
    async fn feed(cx: &Cx, tx: &channel::Sender<u32>) -> Result<u32, Own> {
        let mut sent = 0;
        while let Some(permit) = tx.next_permit(cx).await? {
            permit.send(sent);
            sent += 1;
        }
        Ok(sent)
    }
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (tx, mut rx) = channel::bounded(1);
            let take = async |cx: &Cx| {
                assert_eq!((rx.recv(cx).await, rx.recv(cx).await), (Ok(0), Ok(1)));
                drop(rx);
            };
            let (sent, ()) = join(&cx, async |cx| feed(cx, &tx).await, take).await;
            assert!(matches!(sent, Ok(2 | 3)), "{sent:?}");
            let (tx, rx) = channel::bounded(1);
            let late = cx.timeout(1.millis(), async |cx| feed(cx, &tx).await).await;
            assert_eq!(late, Err(Own::Cancelled(Kind::Timeout)));
            assert_eq!(rx.len(), 1, "a cancelled wait has taken nothing");
        });
    });
}

#[cfg(feature = "lab")]
#[asx::test(seeds = 100, cancel = "every await")]
async fn one_error_covers_every_wait(cx: &Cx) -> Result<(), Cancelled> {
    async fn ask(
        cx: &Cx,
        tx: &channel::Sender<channel::oneshot::Reply<u32>>,
        turns: &asx::sync::Semaphore,
    ) -> Result<u32, Own> {
        let _turn = turns.acquire(cx).await?;
        let (reply, mut answer) = channel::oneshot();
        tx.send(cx, reply).await?;
        Ok(answer.recv(cx).await?)
    }
    let (tx, mut rx) = channel::bounded(1);
    let turns = asx::sync::Semaphore::new(1);
    let serve = async |cx: &Cx| {
        if let Ok(Some(reply)) = rx.next(cx).await {
            let _ = channel::oneshot::Reply::send(reply, 7);
        }
        drop(rx);
    };
    let (answer, ()) = join(cx, async |cx| ask(cx, &tx, &turns).await, serve).await;
    match answer {
        Ok(7) => Ok(()),
        Err(Own::Cancelled(_) | Own::Alone) => cx.checkpoint(),
        other => panic!("{other:?}"),
    }
}
