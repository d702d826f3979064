//! Timers while workers are inside long polls.

use std::error::Error as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use asx_kernel::cancel::Kind;
use asx_kernel::status::{Coded as _, Status};
use asx_native::Runtime;
use asx_runtime::{BoxFuture, Cancelled, Cx, Scope, TimerError, channel, join};

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Arms a timer, and blocks until it has fired.
fn wait_in_place(cx: &Cx, span: Duration) {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let mut sleep = pin!(cx.sleep(span));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // A sleeper needs much less: only timers that are not checked take longer.
    let patience = Instant::now() + Duration::from_secs(30);
    while !flag.0.load(Ordering::Acquire) {
        assert!(Instant::now() < patience, "the timers are not checked");
        std::thread::yield_now();
    }
}

#[test]
fn a_timer_fires_while_its_worker_is_in_a_long_poll() {
    for workers in [2, 4] {
        let rt = Runtime::builder().workers(workers).build().unwrap();
        rt.block_on(async |cx: Cx| {
            for _ in 0..5 {
                // The other workers go to sleep meanwhile.
                cx.sleep(Duration::from_millis(30)).await.unwrap();
                wait_in_place(&cx, Duration::from_millis(1));
            }
        });
    }
}

/// The same while a sleeper waits for a timer that is far away.
#[test]
fn an_earlier_timer_fires_while_a_sleeper_waits_for_a_later_one() {
    let rt = Runtime::builder().workers(3).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let mut far = pin!(cx.sleep(Duration::from_secs(3600)));
        assert!(far.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        for _ in 0..5 {
            cx.sleep(Duration::from_millis(30)).await.unwrap();
            wait_in_place(&cx, Duration::from_millis(1));
        }
    });
}

/// Only its own checkpoints can find that: timers are not fired while the only worker polls.
#[test]
fn a_loop_of_checkpoints_observes_its_time_limit() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let spin = async |cx: &Cx| -> Result<(), Cancelled> {
            loop {
                cx.checkpoint()?;
            }
        };
        let limit = Duration::from_millis(2);
        let ended = cx.timeout(limit, spin).await.unwrap_err();
        assert_eq!(ended.kind(), Kind::Timeout);
        let past = cx.now();
        let ended = cx.deadline(past, spin).await.unwrap_err();
        assert_eq!(ended.kind(), Kind::Deadline);
        // One part runs checkpoints, the other waits. Both observe the cancel, code outside does
        // not.
        let both = cx.timeout(limit, async |cx| {
            let (_tx, mut rx) = channel::bounded::<()>(1);
            let waits = async |cx: &Cx| rx.recv(cx).await.map_err(|_| ());
            let (spun, waited) = join(cx, spin, waits).await;
            assert!(spun.is_err() && waited.is_err());
            Ok::<_, Cancelled>(())
        });
        assert_eq!(both.await.unwrap_err().kind(), Kind::Timeout);
        assert!(cx.checkpoint().is_ok());
    });
}

#[test]
fn a_shield_hides_a_time_limit_that_has_passed() {
    let rt = Runtime::builder().workers(1).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let past = cx.now();
        let result: Result<(), Cancelled> = cx
            .deadline(past, async |cx| {
                cx.shield(async |cx| {
                    cx.checkpoint().expect("the shield hides the cancel");
                    cx.yield_now().await;
                    cx.sleep(Duration::from_millis(1)).await.expect("the shield hides the cancel");
                })
                .await;
                cx.checkpoint()
            })
            .await;
        assert_eq!(result.unwrap_err().kind(), Kind::Deadline);
    });
}

#[test]
fn a_wait_whose_timer_is_refused_fails() {
    // The journal is small and refuses further events: at some point no timer can be recorded.
    let runtime = Runtime::builder().whole_journal(60).build().unwrap();
    let ended = runtime.block_on(async |cx: Cx| {
        loop {
            if let Err(cancelled) = cx.sleep(Duration::from_micros(1)).await {
                return cancelled;
            }
        }
    });
    assert_eq!(ended.kind(), Kind::ResourceUnavailable);
}

#[test]
fn a_panicking_waker_does_not_end_a_worker() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a third-party waker");
        }
    }
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let value = runtime.block_on(async |cx: Cx| {
        let mut sleep = pin!(cx.sleep(Duration::from_millis(1)));
        let waker = Waker::from(Arc::new(Bad));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        cx.sleep(Duration::from_millis(5)).await.map(|()| 7)
    });
    assert_eq!(value, Ok(7));
}

/// A thread waits with the context of a program that ends meanwhile. Its timer is later than one of
/// the program, so that no worker was woken for it. The thread that leaves has to ensure that.
#[test]
fn a_timer_armed_with_the_context_of_an_ended_program_fires() {
    for workers in [2, 4] {
        for _ in 0..5 {
            let rt = Runtime::builder().workers(workers).build().unwrap();
            let (lend, lent) = std::sync::mpsc::channel::<Cx>();
            let (done, over) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                let cx = lent.recv().unwrap();
                let slept = asx_native::wait(cx.sleep(Duration::from_millis(60)));
                done.send(slept.is_ok()).unwrap();
            });
            rt.block_on(async |cx: Cx| {
                lend.send(cx.clone()).unwrap();
                cx.sleep(Duration::from_millis(20)).await.unwrap();
            });
            // A sleeper needs much less.
            over.recv_timeout(Duration::from_secs(30)).expect("the timers are not checked");
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_wait_beyond_the_longest_is_refused_without_leaks() {
    let longest = Duration::from_secs(3600);
    let rt = Runtime::builder().max_timer_duration(longest).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let far = cx.now() + 2 * longest;
        assert_eq!(cx.try_sleep(far).err(), Some(TimerError::TooFar));
        assert!(cx.try_sleep(cx.now() + longest).is_ok());
        assert!(cx.sleep(Duration::from_millis(1)).await.is_ok());
        let refused = cx.sleep(2 * longest).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::ResourceUnavailable);
        assert_eq!(source(&refused), Some(TimerError::TooFar));
        assert!(refused.to_string().contains("max_timer_duration"), "{refused}");
    });
    // Also where no cancel is observed, and for a timeout.
    rt.block_on(async |cx: Cx| {
        let hidden = cx.shield(async |cx| cx.sleep(2 * longest).await);
        assert_eq!(hidden.await.unwrap_err().kind(), Kind::ResourceUnavailable);
    });
    rt.block_on(async |cx: Cx| {
        let body = async |cx: &Cx| Err::<(), _>(cx.cancelled().await);
        let limited = cx.timeout(2 * longest, body).await;
        assert_eq!(limited.unwrap_err().kind(), Kind::ResourceUnavailable);
    });
}

/// Returns the typed error of a refused wait.
fn source(cancelled: &Cancelled) -> Option<TimerError> {
    cancelled.source()?.downcast_ref().copied()
}

#[test]
fn timer_beyond_seven_days_is_refused_by_default() {
    const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let rt = Runtime::builder().workers(1).build().unwrap();
    rt.block_on(async |cx: Cx| {
        assert!(cx.try_sleep(cx.now() + WEEK).is_ok());
        let far = cx.now() + WEEK + Duration::from_secs(60);
        let error = cx.try_sleep(far).unwrap_err();
        assert_eq!((error, error.status()), (TimerError::TooFar, Status::TimerDurationExceeded));
        assert!(error.to_string().contains("max_timer_duration"), "{error}");
        let refused = cx.sleep(Duration::MAX).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::ResourceUnavailable);
        assert_eq!(source(&refused), Some(error));
        assert!(refused.to_string().contains("max_timer_duration"), "{refused}");
    });
    // A deadline is not a timer, and limits the sleeps of its task.
    let outcome = rt.block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let task = s.task("slow").within(10 * WEEK).spawn(async |cx: Cx| {
                cx.yield_now().await;
                Ok(7)
            });
            Ok(task.await.unwrap())
        });
        scope.await
    });
    assert_eq!(outcome, Ok(7));
    // Without the limit, any time is allowed.
    let rt = Runtime::builder().workers(1).max_timer_duration(Duration::MAX).build().unwrap();
    rt.block_on(async |cx: Cx| assert!(cx.try_sleep(cx.now() + 1000 * WEEK).is_ok()));
}

/// The limit is relative to now, however long ago the wheel was last advanced.
#[test]
fn timer_limit_is_measured_from_the_current_time() {
    let longest = Duration::from_millis(200);
    let rt = Runtime::builder().workers(1).max_timer_duration(longest).build().unwrap();
    rt.block_on(async |cx: Cx| {
        assert!(cx.try_sleep(cx.now() + longest).is_ok());
        std::thread::sleep(2 * longest);
        assert!(cx.try_sleep(cx.now() + longest).is_ok());
        assert_eq!(cx.try_sleep(cx.now() + 3 * longest).err(), Some(TimerError::TooFar));
    });
}

#[test]
fn wheel_range_and_cause_chain_are_settings_of_the_builder() {
    let builder = Runtime::builder().workers(1).max_wheel_duration(Duration::ZERO);
    let rt = builder.cancel_chain(2, 4096).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let start = cx.now();
        cx.sleep(Duration::from_millis(2)).await.unwrap();
        assert!(cx.now() - start >= Duration::from_millis(2));
        let (tx, mut rx) = channel::bounded(1);
        let outer = cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| nested(&cx, 3, tx).await);
            // Until all of them wait.
            for _ in 0..20 {
                cx.yield_now().await;
            }
            s.cancel("enough");
            Ok(())
        });
        let _ = outer.await;
        let seen: Cancelled = rx.try_recv().unwrap();
        let links: Vec<_> = seen.reason().chain().map(|link| link.truncated).collect();
        assert_eq!(links, [false, true], "{seen}");
    });
}

/// Nested scopes, of which the innermost returns its cancel.
fn nested(
    cx: &Cx,
    depth: u32,
    tx: channel::Sender<Cancelled>,
) -> BoxFuture<'_, Result<(), Cancelled>> {
    Box::pin(async move {
        if depth == 0 {
            let why = cx.cancelled().await;
            let _ = tx.try_send(why.clone());
            return Err(why);
        }
        let inside = cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| nested(&cx, depth - 1, tx).await);
            Ok(())
        });
        inside.await
    })
}

#[test]
fn one_timer_too_many_is_refused_until_another_has_ended() {
    let rt = Runtime::builder().max_timers(2).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let far = cx.now() + Duration::from_secs(3600);
        let first = cx.try_sleep(far).unwrap();
        let _second = cx.try_sleep(far).unwrap();
        assert_eq!(cx.try_sleep(far).err(), Some(TimerError::LimitReached));
        drop(first);
        assert!(cx.sleep(Duration::from_millis(1)).await.is_ok());
        let _third = cx.try_sleep(far).unwrap();
        let refused = cx.sleep(Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::ResourceUnavailable);
    });
}

/// Without coalescing, the program would take an hour.
#[test]
fn coalesced_timers_of_one_window_fire_together() {
    let hour = Duration::from_secs(3600);
    for workers in [1, 2] {
        let builder = Runtime::builder().workers(workers).coalesce_timers(1000 * hour, 3);
        let rt = builder.build().unwrap();
        rt.block_on(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                for n in 1..=3 {
                    let _task = s.spawn(async move |cx: Cx| cx.sleep(n * hour).await);
                }
                Ok(())
            });
            scope.await.unwrap();
            // Too few timers for a group.
            let far = cx.timeout(hour, async |cx| cx.sleep(2 * hour).await);
            let mut far = pin!(far);
            assert!(far.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            for _ in 0..100 {
                cx.yield_now().await;
            }
            assert!(far.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        });
    }
}
