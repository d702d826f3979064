//! `select!`, through the public interface.

use crate::common;

use std::cell::Cell;
use std::future::{Future, Ready, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use asx::CancelSafe;
use asx::prelude::*;
use asx::time::MissedTicks;
use common::{Log, on_each};

/// A cancel-safe future that logs its drop.
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
fn conditions_enable_and_disable_branches() {
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
                // The future of a disabled branch is not created.
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
fn handlers_control_the_enclosing_function() {
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
fn a_borrowed_future_can_continue_later() {
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
                s.spawn(async move |cx: Cx| {
                    for n in 0..200 {
                        tx.send(&cx, n).await.unwrap();
                    }
                    Ok(())
                });
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

/// Counts how often it completed. It is neither cancel-safe nor `Unpin`.
async fn counted(cx: &Cx, ends: &Cell<u32>) -> u32 {
    for _ in 0..3 {
        cx.yield_now().await;
    }
    ends.set(ends.get() + 1);
    ends.get()
}

#[test]
fn any_borrowed_future_is_accepted_and_can_continue() {
    on_each(|rt| {
        let ends = Cell::new(0);
        let (turns, value) = rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let mut pinned = pin!(counted(&cx, &ends));
            let mut turns = 0;
            let value = loop {
                turns += 1;
                select! {
                    value = pinned.as_mut() => break value,
                    _ = Known(cx.yield_now(), log, "yield") => {}
                }
            };
            let mut boxed: Pin<Box<dyn Future<Output = u32>>> = Box::pin(counted(&cx, &ends));
            select! {
                _ = Known(ready(()), log, "ready") => {}
                _ = &mut boxed => unreachable!("it has yet to yield three times"),
            }
            assert_eq!(ends.get(), 1, "it waits");
            assert_eq!(boxed.await, 2);
            (turns, value)
        });
        assert_eq!((value, ends.get()), (1, 2));
        assert!(turns > 1, "it was left and taken up again");
    });
}

#[test]
fn a_branch_whose_pattern_does_not_match_is_disabled() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let known = |value: Option<u8>, name| Known(ready(value), log, name);
            let got = select! {
                Some(1 | 2) = known(None, "a") => 0,
                None = known(Some(3), "b") => 0,
                Some(mut n @ 1..=9) = known(Some(4), "c") => { n += 1; n }
                else => 99,
            };
            assert_eq!(got, 5);
            // The futures whose outputs do not match end at once, before others are polled.
            let expected = ["poll a", "drop a", "poll b", "drop b", "poll c", "drop c"];
            assert_eq!(log.take(), expected);
            let none = select! {
                Some(n) = known(None, "a") => n,
                None = known(Some(3), "b"), if cx.now() > asx::time::Time::ZERO => 0,
                else => 99,
            };
            assert_eq!(none, 99);
            // With a branch that always matches there is no `else`.
            let over = select! {
                Some(text) = Known(ready(None::<String>), log, "text") => text,
                over = cx.sleep(1.millis()) => format!("{over:?}"),
            };
            assert_eq!(over, "Ok(())");
        });
    });
}

#[test]
fn a_destructured_value_is_moved_not_copied() {
    struct Unclonable(String);
    on_each(|rt| {
        rt.block_on(async |_: Cx| {
            let log = &Log::default();
            let pair = (Unclonable("left".into()), Some(Unclonable("right".into())));
            let joined = select! {
                (Unclonable(mut left), Some(Unclonable(ref right))) =
                    Known(Box::pin(async { pair }), log, "pair") =>
                {
                    left.push_str(right);
                    left
                }
                else => String::new(),
            };
            assert_eq!(joined, "leftright");
        });
    });
}

#[test]
fn two_channels_deliver_every_message_until_both_end() {
    on_each(|rt| {
        let result: Result<(u32, u32), Cancelled> = rt.block_on(async |cx: Cx| {
            let (a, mut left) = channel::bounded(2);
            let (b, mut right) = channel::bounded(2);
            cx.scope(async |s| {
                for tx in [a, b] {
                    s.spawn(async move |cx: Cx| {
                        for n in 0..100 {
                            tx.send(&cx, n).await.unwrap();
                        }
                        Ok(())
                    });
                }
                let mut count = 0;
                let mut sum = 0;
                loop {
                    select! {
                        random(&cx);
                        Ok(n) = left.recv(&cx) => { count += 1; sum += n }
                        Ok(n) = right.recv(&cx) => { count += 1; sum += n }
                        else => break,
                    }
                }
                Ok((count, sum))
            })
            .await
        });
        assert_eq!(result, Ok((200, 9900)));
    });
}

#[test]
fn in_random_order_each_branch_is_first_at_times() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let mut first = [0; 3];
            for _ in 0..200 {
                let which = select! {
                    random(&cx);
                    _ = Known(ready(()), log, "a") => 0,
                    _ = Known(ready(()), log, "b") => 1,
                    _ = Known(ready(()), log, "c") => 2,
                };
                first[which] += 1;
                let polls = log.take().iter().filter(|event| event.starts_with("poll")).count();
                assert_eq!(polls, 1, "the order goes on from the one that is first");
            }
            assert!(first.iter().all(|count| *count > 20), "{first:?}");
            // The order is cyclic: branches before the first one are polled too.
            for _ in 0..20 {
                let got = select! {
                    random(&cx);
                    n = Known(ready(1), log, "a") => n,
                    _ = Known(std::future::pending::<u8>(), log, "b") => 0,
                    Some(n) = Known(ready(None), log, "c") => n,
                };
                assert_eq!(got, 1);
            }
        });
    });
}

#[cfg(feature = "lab")]
mod lab {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn the_lab_tries_each_branch_first() {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let firsts = seen.clone();
        let report = asx::lab::check(move |cx: Cx| {
            let firsts = firsts.clone();
            async move {
                let which = select! {
                    random(&cx);
                    _ = asx::assume_cancel_safe(ready(())) => 0,
                    _ = asx::assume_cancel_safe(ready(())) => 1,
                    _ = asx::assume_cancel_safe(ready(())) => 2,
                };
                firsts.lock().unwrap().insert(which);
                Ok::<_, Cancelled>(())
            }
        })
        .run();
        assert!(report.failure.is_none(), "{report:?}");
        assert_eq!(*seen.lock().unwrap(), BTreeSet::from([0, 1, 2]));
    }

    #[asx::test(seeds = 100, cancel = "every await")]
    async fn no_message_is_lost_between_two_channels(cx: &Cx) -> Result<(), Cancelled> {
        let (a, mut left) = channel::bounded(1);
        let (b, mut right) = channel::bounded(1);
        cx.scope(async |s| {
            let sent = [a, b].map(|tx| {
                s.spawn(async move |cx: Cx| {
                    let mut sent = 0;
                    while sent < 2 && tx.send(&cx, ()).await.is_ok() {
                        sent += 1;
                    }
                    Ok(sent)
                })
            });
            let mut got = 0;
            loop {
                select! {
                    random(cx);
                    Ok(()) = left.recv(cx) => got += 1,
                    Ok(()) = right.recv(cx) => got += 1,
                    else => break,
                }
            }
            // Messages that were sent and not taken are still there.
            while left.try_recv().is_ok() || right.try_recv().is_ok() {
                got += 1;
            }
            cx.checkpoint()?;
            let mut total = 0;
            for task in sent {
                let Ok(sent) = task.await else { return Ok(()) };
                total += sent;
            }
            assert_eq!(got, total);
            Ok(())
        })
        .await
    }
}
