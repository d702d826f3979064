//! Foreign futures: abandoned on a cancel, and reported when they delay one.

use crate::common;

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use asx::cancel::Kind;
use asx::prelude::*;
use asx::{Budget, Policy, Runtime, assume_cancel_safe};
use common::on_each;

/// A foreign future waits for this to be filled.
#[derive(Clone, Default)]
struct Mailbox(Arc<Mutex<(Option<u32>, Option<Waker>)>>);

impl Mailbox {
    fn put(&self, letter: u32) {
        let waker = {
            let mut inner = self.0.lock().unwrap();
            inner.0 = Some(letter);
            inner.1.take()
        };
        waker.inspect(Waker::wake_by_ref);
    }

    /// Returns a foreign future, which is cancel-safe.
    fn get(&self) -> impl Future<Output = u32> + Send + use<> {
        let inner = self.0.clone();
        poll_fn(move |context| {
            let mut inner = inner.lock().unwrap();
            inner.1 = Some(context.waker().clone());
            inner.0.take().map_or(Poll::Pending, Poll::Ready)
        })
    }
}

/// Counts the polls and the drops of a future.
struct Counted<F>(Pin<Box<F>>, Arc<Counts>);

#[derive(Default)]
struct Counts {
    polls: AtomicUsize,
    drops: AtomicUsize,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.1.polls.fetch_add(1, SeqCst);
        self.0.as_mut().poll(context)
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        self.1.drops.fetch_add(1, SeqCst);
    }
}

fn counted<F: Future>(future: F) -> (Counted<F>, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    (Counted(Box::pin(future), counts.clone()), counts)
}

fn unheeded(rt: &Runtime) -> u64 {
    rt.metrics().health.unheeded_timeouts
}

#[test]
fn a_timeout_drops_an_abandoned_future() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (future, counts) = counted(pending::<u32>());
            let mut answered = None;
            let late = cx
                .timeout(1.millis(), async |cx| {
                    let answer = cx.abandon_on_cancel(future).await;
                    // It has been dropped by now.
                    answered = Some(counts.drops.load(SeqCst));
                    answer
                })
                .await;
            assert_eq!((late.unwrap_err().kind(), answered), (Kind::Timeout, Some(1)));
            let done = cx.timeout(60.minutes(), async |cx| cx.abandon_on_cancel(async { 7 }).await);
            assert_eq!(done.await, Ok(7));
        });
        assert_eq!(unheeded(rt), 0);
    });
}

#[test]
fn a_cancel_a_lost_race_and_a_deadline_drop_an_abandoned_future() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let forever = async |cx: Cx| cx.abandon_on_cancel(pending::<()>()).await;
            let ended = cx.scope(async |s| {
                let task = s.spawn(forever);
                cx.sleep(2.millis()).await?;
                task.cancel("enough");
                assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
                Ok::<_, Cancelled>(())
            });
            ended.await.unwrap();
            let first = race(
                &cx,
                async |cx| cx.abandon_on_cancel(pending::<()>()).await.map(|()| 0),
                async |cx| cx.sleep(1.millis()).await.map(|()| 1),
            );
            assert_eq!(first.await, Ok(1));
            let deadline = Some(cx.now() + 2.millis());
            let budget = Budget { deadline, ..Budget::INFINITE };
            let late = cx.scope_with(Policy::CollectAll).budget(budget).run(async |s| {
                match s.spawn(forever).await {
                    Err(TaskError::Cancelled(cancelled)) => Ok::<_, Cancelled>(cancelled.kind()),
                    other => panic!("{other:?}"),
                }
            });
            match late.await {
                Ok(kind) => assert_eq!(kind, Kind::Deadline),
                Err(TaskError::Cancelled(cancelled)) => {
                    assert_eq!(cancelled.kind(), Kind::Deadline);
                }
                other => panic!("{other:?}"),
            }
        });
    });
}

#[test]
fn an_abandoned_future_is_not_polled_after_a_cancel() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (future, counts) = counted(async { 7 });
                let task = s.spawn(async move |cx: Cx| {
                    let cancelled = cx.cancelled().await;
                    assert_eq!(cx.abandon_on_cancel(future).await, Err(cancelled));
                    Ok(())
                });
                task.cancel("enough");
                let _ = task.await;
                assert_eq!((counts.polls.load(SeqCst), counts.drops.load(SeqCst)), (0, 1));
                Ok::<_, Cancelled>(())
            })
            .await
            .unwrap();
        });
    });
}

#[test]
fn a_shield_keeps_it_from_being_abandoned() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let mailbox = Mailbox::default();
            let letter = mailbox.get();
            let late = cx.timeout(1.millis(), async |cx| {
                let read = cx.shield(async |cx| cx.abandon_on_cancel(letter).await);
                let post = async |_: &Cx| {
                    let slow = mailbox.clone();
                    thread::spawn(move || {
                        thread::sleep(20.millis());
                        slow.put(7);
                    });
                    Ok::<_, Cancelled>(())
                };
                let (letter, ()) = asx::try_join(cx, |_| read, post).await?;
                assert_eq!(letter, 7);
                cx.checkpoint()
            });
            assert_eq!(late.await.unwrap_err().kind(), Kind::Timeout);
        });
    });
}

#[test]
fn a_borrowed_future_survives_an_abandon() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let mailbox = Mailbox::default();
            let mut letter = pin!(mailbox.get());
            for _ in 0..3 {
                let late: Result<u32, Cancelled> = cx
                    .timeout(1.millis(), async |cx| cx.abandon_on_cancel(letter.as_mut()).await)
                    .await;
                assert!(late.is_err());
            }
            mailbox.put(7);
            assert_eq!(letter.await, 7);
        });
    });
}

#[test]
fn a_future_assumed_cancel_safe_may_lose_in_select() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let mailbox = Mailbox::default();
            let late = select! {
                _ = assume_cancel_safe(mailbox.get()) => false,
                _ = cx.abandon_on_cancel(mailbox.get()) => false,
                over = cx.sleep(1.millis()) => over.is_ok(),
            };
            assert!(late);
            mailbox.put(7);
            let letter = select! {
                letter = assume_cancel_safe(mailbox.get()) => letter,
                _ = cx.sleep(60.minutes()) => 0,
            };
            assert_eq!(letter, 7);
        });
    });
}

/// A future that is dropped or leaked before it is ready, or panics in a poll or in its destructor.
#[test]
fn dropped_leaked_and_panicking_futures_leave_nothing() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the destructor");
        }
    }

    on_each(|rt| {
        let panics = |body: fn(Cx) -> asx::BoxFuture<'static, Result<(), Cancelled>>| {
            let caught = catch_unwind(AssertUnwindSafe(|| rt.block_on(body)));
            caught.unwrap_err().downcast_ref::<&str>().copied()
        };
        let in_poll = panics(|cx| {
            Box::pin(async move { cx.abandon_on_cancel(async { panic!("in the poll") }).await })
        });
        assert_eq!(in_poll, Some("in the poll"));
        let in_drop = panics(|cx| {
            Box::pin(async move {
                let bomb = Bomb;
                let waits = async move {
                    pending::<()>().await;
                    drop(bomb);
                };
                cx.timeout(1.millis(), |cx| cx.abandon_on_cancel(waits)).await
            })
        });
        assert_eq!(in_drop, Some("in the destructor"));
        rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let task = s.spawn(async |cx: Cx| {
                    for forgets in [false, true] {
                        let mut half = Box::pin(cx.abandon_on_cancel(pending::<()>()));
                        let once = poll_fn(|context| Poll::Ready(half.as_mut().poll(context)));
                        assert!(once.await.is_pending());
                        if forgets { mem::forget(half) } else { drop(half) }
                    }
                    cx.abandon_on_cancel(pending::<()>()).await
                });
                cx.sleep(2.millis()).await?;
                task.cancel("enough");
                assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
                Ok::<_, Cancelled>(())
            })
            .await
            .unwrap();
        });
    });
}

/// The future ends only when the timeout was reported: otherwise the test would not end.
#[test]
fn an_unobserved_timeout_is_reported_once() {
    on_each(|rt| {
        let mailbox = Mailbox::default();
        let post = mailbox.clone();
        thread::scope(|threads| {
            threads.spawn(move || {
                while unheeded(rt) == 0 {
                    thread::sleep(1.millis());
                }
                post.put(7);
            });
            let late = rt.block_on(async |cx: Cx| {
                cx.timeout(1.millis(), async |_| Ok::<_, Cancelled>(mailbox.get().await)).await
            });
            // The cancel of the timeout was not observed.
            assert_eq!(late, Ok(7));
        });
        assert_eq!(unheeded(rt), 1);
    });
}

#[cfg(feature = "lab")]
mod lab {
    use super::*;
    use asx::lab::check;

    /// Each letter is taken once, whichever of its receivers is abandoned, and when.
    #[asx::test(seeds = 200, cancel = "every await")]
    async fn no_letter_is_lost_by_abandoning(cx: &Cx) -> Result<(), Cancelled> {
        let mailbox = Mailbox::default();
        let post = mailbox.clone();
        cx.scope(async |s| {
            let got = s.spawn({
                let mailbox = mailbox.clone();
                async move |cx: Cx| Ok(cx.abandon_on_cancel(mailbox.get()).await.ok())
            });
            let posted = s.spawn(async move |cx: Cx| {
                cx.yield_now().await;
                post.put(7);
                Ok(())
            });
            let posted = posted.await.is_ok();
            if !posted {
                got.cancel("nothing comes");
            }
            let got = got.await;
            cx.checkpoint()?;
            let left = mailbox.0.lock().unwrap().0.take();
            match got {
                Ok(Some(7)) => assert_eq!(left, None),
                Ok(None) | Err(_) => assert_eq!(left.is_some(), posted),
                other => panic!("{other:?}"),
            }
            Ok(())
        })
        .await
    }

    #[test]
    fn an_unobserved_timeout_fails_a_check() {
        let report = check(async |cx: Cx| {
            let mailbox = Mailbox::default();
            let slow = async |cx: &Cx| {
                cx.sleep(5.secs()).await?;
                mailbox.put(7);
                Ok(0)
            };
            let deaf = async |cx: &Cx| {
                cx.timeout(1.secs(), async |_| Ok::<_, Cancelled>(mailbox.get().await)).await
            };
            asx::try_join(&cx, slow, deaf).await.map(drop)
        })
        .run();
        let failure = report.failure.expect("it is deaf");
        let message = failure.failure.finding.message;
        assert!(message.contains("nothing in the timeout at"), "{message}");
        assert!(message.contains(file!()), "{message}");
    }

    #[test]
    fn observed_timeouts_may_have_long_cleanup() {
        let report = check(async |cx: Cx| {
            let slow = async |cx: &Cx| {
                let over = cx.sleep(60.minutes()).await;
                let _ = cx.shield(async |cx| cx.sleep(5.secs()).await).await;
                over
            };
            // A shield from the start, and a cancel that is observed further inside.
            let shielded = async |cx: &Cx| {
                let _ = cx.shield(async |cx| cx.sleep(5.secs()).await).await;
                cx.checkpoint()
            };
            let inner = async |cx: &Cx| cx.timeout(500.millis(), slow).await;
            let late = [
                cx.timeout(1.secs(), slow).await,
                cx.timeout(1.secs(), shielded).await,
                cx.timeout(1.secs(), inner).await,
                cx.timeout(1.secs(), |cx| cx.abandon_on_cancel(pending())).await,
            ];
            assert!(late.iter().all(Result::is_err), "{late:?}");
            Ok::<_, Cancelled>(())
        })
        .exact_time()
        .run();
        assert!(report.failure.is_none(), "{:?}", report.failure);
    }
}
