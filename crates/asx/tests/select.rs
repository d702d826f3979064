//! `select!`, from the outside.

mod common;

use std::cell::Cell;
use std::future::{Future, Ready, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use asx::CancelSafe;
use asx::prelude::*;
use asx::time::MissedTicks;
use common::{Log, on_each};

/// A future that may be dropped, and says when it is.
struct Known<'a, F>(F, &'a Log, &'static str);

impl<F: Future + Unpin> Future for Known<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.add(format!("poll {}", self.2));
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<F: Future + Unpin> CancelSafe for Known<'_, F> {}

impl<F> Drop for Known<'_, F> {
    fn drop(&mut self) {
        self.1.add(format!("drop {}", self.2));
    }
}

#[test]
fn branches_are_polled_in_order_and_dropped_before_the_handler() {
    on_each(|rt| {
        rt.block_on(async |_| {
            let log = &Log::default();
            let known = |value: Option<u8>, name| {
                let (done, never) = (value.map(ready), std::future::pending());
                let future: Pin<Box<dyn Future<Output = u8>>> = match done {
                    Some(done) => Box::pin(done),
                    None => Box::pin(never),
                };
                Known(future, log, name)
            };
            let got = select! {
                _ = known(None, "a") => 0,
                got = known(Some(1), "b") => { log.add("handler"); got }
                got = known(Some(2), "c") => got,
            };
            let mut events = log.take();
            events[2..5].sort();
            let expected = ["poll a", "poll b", "drop a", "drop b", "drop c", "handler"];
            assert_eq!((got, events), (1, expected.map(String::from).into()));
        });
    });
}

#[test]
fn conditions_decide_which_branches_count() {
    on_each(|rt| {
        rt.block_on(async |_| {
            let log = &Log::default();
            for (a, b, expected) in
                [(true, true, "a"), (false, true, "b"), (true, false, "a"), (false, false, "else")]
            {
                let got = select! {
                    _ = Known(ready(()), log, "a"), if a => "a",
                    _ = Known(ready(()), log, "b"), if b => "b",
                    else => "else",
                };
                assert_eq!(got, expected);
                // What does not count is not made.
                assert_eq!(log.take().iter().any(|event| event == "drop b"), b);
            }
            let free = select! {
                _ = Known(ready(()), log, "a"), if false => "a",
                _ = Known(ready(()), log, "b") => "b",
            };
            assert_eq!(free, "b");
        });
    });
}

fn known(log: &Log, value: u32) -> Known<'_, Ready<Result<u32, u32>>> {
    let value = if value.is_multiple_of(10) { Err(value) } else { Ok(value) };
    Known(ready(value), log, "value")
}

#[test]
fn handlers_steer_the_function_around() {
    async fn steer(log: &Log, from: u32) -> Result<&'static str, u32> {
        let mut at = from;
        loop {
            at += 1;
            let even = select! {
                value = known(log, at) => {
                    let value = value?;
                    if value % 7 == 0 {
                        break;
                    }
                    if value % 6 == 0 {
                        return Ok("six");
                    }
                    if value % 2 == 1 {
                        continue;
                    }
                    value
                }
            };
            assert_eq!(even % 2, 0);
        }
        Ok("seven")
    }
    on_each(|rt| {
        rt.block_on(async |_| {
            let log = &Log::default();
            assert_eq!(steer(log, 8).await, Err(10));
            assert_eq!(steer(log, 10).await, Ok("six"));
            assert_eq!(steer(log, 12).await, Ok("seven"));
        });
    });
}

#[test]
fn handlers_may_use_what_the_futures_borrowed() {
    on_each(|rt| {
        let sum = rt.block_on(async |cx: Cx| {
            let (tx, mut rx) = channel::bounded(8);
            for n in [1, 2] {
                tx.try_send(n).unwrap();
            }
            drop(tx);
            let mut sum = 0;
            loop {
                select! {
                    first = rx.recv(&cx) => match first {
                        Ok(first) => sum += first + rx.try_recv().unwrap_or(0),
                        Err(_) => break sum,
                    },
                    _ = cx.sleep(60.minutes()) => unreachable!(),
                }
            }
        });
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_borrowed_future_goes_on_later() {
    on_each(|rt| {
        let result: Result<u32, Cancelled> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let (tx, mut rx) = channel::oneshot();
                let mut task = s.spawn(async move |cx: Cx| {
                    rx.recv(&cx).await.unwrap();
                    Ok(5)
                });
                select! {
                    _ = &mut task => unreachable!("it waits for us"),
                    _ = cx.sleep(1.millis()) => tx.send(()).unwrap(),
                }
                let mut hour = pin!(cx.sleep(60.minutes()));
                Ok(select! {
                    five = &mut task => five.unwrap(),
                    _ = hour.as_mut() => 0,
                })
            })
            .await
        });
        assert_eq!(result, Ok(5));
    });
}

#[test]
fn no_message_is_lost_by_losing() {
    on_each(|rt| {
        let result: Result<Vec<u32>, Cancelled> = rt.block_on(async |cx: Cx| {
            let (tx, mut rx) = channel::bounded(1);
            cx.scope(async |s| {
                drop(s.spawn(async move |cx: Cx| {
                    for n in 0..200 {
                        tx.send(&cx, n).await.unwrap();
                    }
                    Ok(())
                }));
                let mut got = Vec::new();
                let mut fast = cx.interval(1.micros()).missed(MissedTicks::Delay);
                loop {
                    select! {
                        tick = fast.tick(&cx) => { tick?; }
                        number = rx.recv(&cx) => match number {
                            Ok(number) => got.push(number),
                            Err(_) => break,
                        },
                    }
                }
                Ok(got)
            })
            .await
        });
        assert_eq!(result, Ok(Vec::from_iter(0..200)));
    });
}

#[test]
fn ticks_come_at_their_times_and_none_is_lost_by_losing() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            let first = cx.now();
            let mut interval = cx.interval_at(first, 20.micros());
            let lost = Cell::new(0);
            for n in 0..50_u32 {
                let due = loop {
                    select! {
                        _ = cx.sleep(5.micros()) => lost.set(lost.get() + 1),
                        due = interval.tick(&cx) => break due?,
                    }
                };
                assert_eq!(due, first + 20.micros() * n);
                assert!(due <= cx.now());
            }
            Ok::<_, Cancelled>(())
        });
        assert_eq!(result, Ok(()));
    });
}
