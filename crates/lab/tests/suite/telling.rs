//! What a report says: the right thing, of the right tasks, and no more than needs be.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use asx_lab::{Found, How, Kind, Report, check};
use asx_runtime::sync::{Mutex, Notify, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, channel, join};

fn failure(report: Report) -> Found {
    report.failure.expect("a bug")
}

/// Two look again and again whether the work is over, which a third does: polled long enough, each
/// run ends, however the two take turns.
async fn two_go_round(cx: Cx) -> Result<(), Cancelled> {
    let left = Arc::new(AtomicU32::new(4));
    cx.scope(async |s: Scope<Cancelled>| {
        for name in ["one", "two"] {
            let left = left.clone();
            s.task(name).spawn(async move |cx: Cx| {
                while left.load(Relaxed) > 0 {
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        s.task("worker").spawn(async move |cx: Cx| {
            while left.fetch_sub(1, Relaxed) > 1 {
                cx.yield_now().await;
            }
            Ok(())
        });
        Ok(())
    })
    .await
}

#[test]
fn two_that_go_round_do_not_keep_a_third_from_what_they_wait_for() {
    let report = check(two_go_round).steps(5000).run();
    assert!(report.failure.is_none(), "{report}");
}

/// A worker goes round until it is told to stop, which is after a second.
async fn until_told(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.task("worker").spawn(async |cx: Cx| {
            while !cx.is_stopping() {
                cx.yield_now().await;
            }
            Ok(())
        });
        cx.sleep(Duration::from_secs(1)).await?;
        s.stop();
        Ok(())
    })
    .await
}

#[test]
fn a_loop_that_a_timer_ends_is_no_livelock() {
    let report = check(until_told).runs(50).steps(1000).run();
    assert!(report.failure.is_none() && report.proof.is_none(), "{report}");
}

#[test]
fn an_error_is_made_small_whatever_numbers_it_tells() {
    let counted = async |cx: Cx| {
        let sum = Arc::new(AtomicU32::new(0));
        let all = sum.clone();
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..6 {
                let sum = sum.clone();
                s.spawn(async move |cx: Cx| {
                    for _ in 0..3 {
                        let before = sum.load(Relaxed);
                        cx.yield_now().await;
                        sum.store(before + 1, Relaxed);
                    }
                    Ok(())
                });
            }
            Ok(())
        });
        scope.await.expect("nobody is cancelled");
        let sum = all.load(Relaxed);
        if sum == 18 { Ok(()) } else { Err(format!("{sum} of 18")) }
    };
    let found = failure(check(counted).how(How::Random).run());
    assert!(found.schedule.deviations.len() <= 2, "{found}");
}

#[test]
fn a_leaked_guard_says_who_took_it() {
    let found = failure(
        check(async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let lock = Arc::new(Mutex::new(()));
                s.task("careless").spawn(async move |cx: Cx| {
                    std::mem::forget(lock.lock_owned(&cx).await?);
                    Ok(())
                });
                Ok(())
            })
            .await
        })
        .run(),
    );
    let finding = &found.failure.finding;
    assert_eq!(finding.message, "a lock or permit was never released");
    let taken = "taken by `careless (main/1)` at crates/lab/tests/suite/telling.rs:";
    assert!(finding.detail.starts_with(taken), "{found}");
}

/// Who is spawned last goes first, beside some who go round until another is done.
async fn last_comes_first(cx: Cx) -> Result<(), Cancelled> {
    let (first, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    cx.scope(async |s: Scope<Cancelled>| {
        for nth in 1..=4 {
            let (first, done) = (first.clone(), done.clone());
            s.spawn(async move |cx: Cx| {
                let _ = first.compare_exchange(0, nth, Relaxed, Relaxed);
                while done.load(Relaxed) == 0 && nth != 4 {
                    cx.yield_now().await;
                }
                cx.yield_now().await;
                done.store(1, Relaxed);
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_ne!(first.load(Relaxed), 4, "the last was first");
    Ok(())
}

#[test]
fn who_goes_round_does_not_keep_the_search_from_other_orders() {
    let found = failure(check(last_comes_first).run());
    assert!(found.run < 100 && found.schedule.deviations.len() <= 1, "{found}");
}

#[test]
fn a_check_inside_a_check_is_named_as_that() {
    let inner = async |_cx: Cx| {};
    let found = failure(check(async |_cx: Cx| drop(check(inner).run())).run());
    let message = &found.failure.finding.message;
    assert!(message.starts_with("a check inside a program that is being checked"), "{found}");
    let place = found.failure.place.as_deref().unwrap_or_default();
    assert!(place.starts_with("crates/lab/tests/suite/telling.rs:"), "{found}");
    // And it is over with it: the next check is one like any other.
    assert!(check(inner).run().failure.is_none());
}

/// Panics, and again when it is dropped.
struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("the second one");
    }
}

/// The process ends, so it is another one.
#[test]
fn a_panic_while_panicking_tells_both() {
    const NAME: &str = "telling::a_panic_while_panicking_tells_both";
    const INSIDE: &str = "ASX_LAB_TEST_PANICS_TWICE";
    if std::env::var_os(INSIDE).is_some() {
        let report = check(async |_cx: Cx| {
            let _again = PanicsAgain;
            assert!(std::env::var_os(INSIDE).is_none(), "the first one");
        })
        .run();
        unreachable!("{report}");
    }
    let program = std::env::current_exe().expect("this test");
    let mut test = std::process::Command::new(program);
    let output = test.args([NAME, "--exact"]).env(INSIDE, "1").output().expect("it runs");
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    let first = told.find(": the first one").unwrap_or_else(|| panic!("no first in {told}"));
    let second = told.find(": the second one").unwrap_or_else(|| panic!("no second in {told}"));
    assert!(first < second && told.contains("telling.rs:"), "{told}");
}

/// The lines that a report has below the one of this task, without columns.
fn below(found: &Found, task: &str) -> Vec<String> {
    let lines = found.failure.finding.lines();
    let head = format!("`{task}` (Running) waits for ");
    let at = lines.iter().position(|line| line.starts_with(&head));
    let at = at.unwrap_or_else(|| panic!("nothing of {task} in {found}"));
    let own = lines[at + 1..].iter().take_while(|line| line.starts_with("    "));
    own.map(|line| without_columns(line.trim_start())).collect()
}

/// `telling.rs:12:5` as `L12`.
fn without_columns(line: &str) -> String {
    let mut parts = line.split("crates/lab/tests/suite/telling.rs:");
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (row, rest) = part.split_once(':').expect("a column");
        text += &format!("L{row}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// Sends twice by a clone, and keeps the sender: who receives waits for ever. The lines at which
/// the sender is made, the scope opened, tasks spawned, and what they do.
async fn a_sender_is_kept(cx: Cx) -> Result<(), Cancelled> {
    let (tx, mut orders) = channel::bounded::<u32>(4);
    cx.scope(async |s: Scope<Cancelled>| {
        let feed = tx.clone();
        s.task("feed").spawn(async move |cx: Cx| {
            for number in 0..2 {
                let _ = feed.send(&cx, number).await;
            }
            Ok(())
        });
        s.task("consumer").spawn(async move |cx: Cx| {
            while let Ok(_order) = orders.recv(&cx).await {}
            Ok(())
        });
        Ok(())
    })
    .await?;
    drop(tx);
    Ok(())
}

/// The line on which this file first says so.
fn line_of(text: &str) -> usize {
    let lines = include_str!("telling.rs").lines();
    1 + lines.take_while(|line| !line.contains(text)).count()
}

#[test]
fn a_wait_for_a_message_tells_who_sent_last_and_who_could() {
    let found = failure(check(a_sender_is_kept).run());
    let sent = line_of("feed.send(&cx, number)");
    let made = line_of("let (tx, mut orders)");
    let spawned = line_of("s.task(\"consumer\")");
    let opened = made + 1;
    let expected = [
        format!("last sent by `feed (main/1)`, which has ended, at L{sent} (`feed.send`)"),
        format!("one sender is left: not used so far, made by `main` at L{made}"),
        format!("spawned at L{spawned}, in the scope opened at L{opened}"),
    ];
    assert_eq!(below(&found, "consumer (main/2)"), expected, "{found}");
}

#[test]
fn a_wait_for_room_tells_who_received_last_and_who_could() {
    let full = async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("sender").spawn(async move |cx: Cx| {
                for number in 0..4 {
                    let _ = tx.send(&cx, number).await;
                }
                Ok(())
            });
            s.task("receiver").spawn(async move |cx: Cx| {
                let _ = rx.recv(&cx).await;
                std::mem::forget(rx);
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let found = failure(check(full).run());
    let lines = below(&found, "sender (main/1)");
    let received = "last received by `receiver (main/2)`, which has ended, at L";
    assert!(lines[0].starts_with(received) && lines[0].ends_with(" (`rx.recv`)"), "{found}");
    let end =
        "one receiver is left: used by `receiver (main/2)`, which has ended, made by `main` at";
    assert!(lines[1].starts_with(end), "{found}");
}

#[test]
fn waits_for_signals_and_values_tell_who_gave_them_last() {
    let program = async |cx: Cx| {
        let notify = Arc::new(Notify::new());
        let (set, mut value) = channel::watch(0);
        let (publish, mut heard) = channel::broadcast::<u32>(4);
        let (reply, mut answer) = channel::oneshot::<u32>();
        cx.scope(async |s: Scope<Cancelled>| {
            let notified = notify.clone();
            s.task("notified").spawn(async move |cx: Cx| {
                notified.notified(&cx).await?;
                notified.notified(&cx).await
            });
            s.task("watches").spawn(async move |cx: Cx| {
                let _ = value.wait_for(&cx, |value| *value == 2).await;
                Ok(())
            });
            s.task("hears").spawn(async move |cx: Cx| {
                while heard.recv(&cx).await.is_ok() {}
                Ok(())
            });
            s.task("asks").spawn(async move |cx: Cx| {
                let _ = answer.recv(&cx).await;
                Ok(())
            });
            s.task("tells").spawn(async move |_cx: Cx| {
                notify.notify_one();
                let _ = set.send(1);
                let _ = publish.clone().send(1);
                std::mem::forget((set, publish, reply));
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let found = failure(check(program).run());
    let told = [
        ("notified (main/1)", "last notified by `tells (main/5)`", "notify.notify_one", "spawned"),
        (
            "watches (main/2)",
            "last set by `tells (main/5)`",
            "set.send",
            "one setter is left: used",
        ),
        ("hears (main/3)", "last sent by `tells (main/5)`", ".send", "one publisher is left: not"),
        ("asks (main/4)", "nothing was sent so far", "", "one sender is left: not used so far"),
    ];
    for (task, first, call, second) in told {
        let lines = below(&found, task);
        assert!(lines[0].starts_with(first) && lines[0].contains(call), "{task}: {found}");
        assert!(lines[1].starts_with(second), "{task}: {found}");
    }
    // The place is that of who waits, and not within `wait_for`.
    assert!(found.to_string().contains("(`value.wait_for`)"), "{found}");
}

#[test]
fn a_wait_is_told_with_the_parts_of_its_task_around_it() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let (other, mut unheard) = channel::bounded::<u32>(1);
        let both = join(
            &cx,
            async |cx| {
                let scope = cx.scope(async |_: Scope<Cancelled>| {
                    let _ = cx.shield(async |cx| rx.recv(cx).await).await;
                    Ok(())
                });
                scope.await
            },
            async |cx| unheard.recv(cx).await,
        );
        let _ = both.await;
        drop((tx, other));
    };
    let found = failure(check(program).run());
    let lines = below(&found, "main");
    let calls = ["one sender", "in `join`", "waits for a message", "one sender", "in `cx.shield`"];
    let calls = calls.into_iter().chain(["in `cx.scope`", "in `join`"]);
    let mut lines = lines.iter();
    for call in calls {
        let is_there = lines.any(|line| line.starts_with(call));
        assert!(is_there, "{call} in {found}");
    }
    // Those of asx itself are not among them.
    assert!(!found.to_string().contains("crates/task/"), "{found}");
}

/// Polls something once: whether it is done.
async fn is_done<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

#[test]
fn a_slot_that_is_kept_and_not_polled_is_told_as_that() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("sender").spawn(async move |cx: Cx| {
                let _ = tx.send(&cx, 0).await;
                let mut first = Box::pin(tx.reserve(&cx));
                if !is_done(first.as_mut()).await {
                    let _ = tx.send(&cx, 1).await;
                }
                Ok(())
            });
            s.task("receiver").spawn(async move |cx: Cx| {
                while rx.next(&cx).await?.is_some() {}
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let found = failure(check(program).run());
    let message = "`sender (main/1)` waits for room in a channel, which was given to a future of \
                   `sender (main/1)` that is not polled (asked for at ";
    assert!(found.failure.finding.message.starts_with(message), "{found}");
    let given = "`sender (main/1)` was given room in a channel for its wait at ";
    assert!(found.failure.finding.lines().iter().any(|line| line.starts_with(given)), "{found}");
}

#[test]
fn a_kept_slot_is_not_blamed_for_a_circle_that_it_has_no_part_in() {
    let program = async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let _ = tx.try_send(0);
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let [first, second] = [locks.clone(), locks];
        cx.scope(async |s: Scope<Cancelled>| {
            let keeps = tx.clone();
            s.task("one").spawn(async move |cx: Cx| {
                let mut slot = Box::pin(keeps.reserve(&cx));
                assert!(!is_done(slot.as_mut()).await, "it is full");
                let _own = first[0].lock(&cx).await?;
                cx.sleep(Duration::from_secs(1)).await?;
                let _other = first[1].lock(&cx).await?;
                Ok(())
            });
            s.task("two").spawn(async move |cx: Cx| {
                let _own = second[1].lock(&cx).await?;
                cx.sleep(Duration::from_secs(1)).await?;
                let _other = second[0].lock(&cx).await?;
                Ok(())
            });
            s.task("others").spawn(async move |cx: Cx| {
                cx.sleep(Duration::from_millis(1)).await?;
                let _ = rx.recv(&cx).await;
                let _ = tx.send(&cx, 1).await;
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let found = failure(check(program).exact_time().run());
    let finding = &found.failure.finding;
    assert_eq!(finding.kind, Kind::Deadlock, "{found}");
    assert_eq!(finding.message, "`one (main/1)` and `two (main/2)` wait for each other", "{found}");
    let given = "`one (main/1)` was given room in a channel for its wait at ";
    assert!(finding.lines().iter().any(|line| line.starts_with(given)), "{found}");
}

#[test]
fn a_wait_that_is_over_is_not_told() {
    let program = async |cx: Cx| {
        let (tx, mut first) = channel::bounded::<u32>(1);
        let (kept, mut second) = channel::bounded::<u32>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("waits").spawn(async move |cx: Cx| {
                let over = Box::pin(async { first.recv(&cx).await });
                let _ = over.await;
                let _ = second.recv(&cx).await;
                Ok(())
            });
            s.task("sends").spawn(async move |cx: Cx| {
                let _ = tx.send(&cx, 1).await;
                std::mem::forget(kept);
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let found = failure(check(program).run());
    let lines = below(&found, "waits (main/1)");
    assert_eq!(lines[0], "nothing was sent so far", "{found}");
    assert!(!lines.iter().any(|line| line.ends_with("as well")), "{found}");
}

/// A task in a scope in a task fails.
async fn fails_deep_inside(cx: Cx) -> Result<(), Failed> {
    cx.scope(async |s: Scope<Failed>| {
        s.task("outer").spawn(async move |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Failed>| {
                s.task("idle").spawn(async |cx: Cx| Ok(cx.sleep(Duration::from_secs(1)).await?));
                s.task("culprit").spawn(async |_cx: Cx| Err::<(), _>(Failed("no money")));
                Ok(())
            });
            scope.await
        });
        Ok(())
    })
    .await
}

#[derive(Debug)]
struct Failed(#[allow(dead_code, reason = "a report tells it")] &'static str);

impl From<Cancelled> for Failed {
    fn from(_: Cancelled) -> Self {
        Failed("asked to stop")
    }
}

#[test]
fn an_error_names_the_task_that_failed_first() {
    let found = failure(check(fails_deep_inside).run());
    assert_eq!(found.failure.task.as_deref(), Some("culprit (main/1/2)"), "{found}");
    assert!(found.to_string().contains(": Failed(\"no money\")\n"), "{found}");
    // A program that goes on after an error fails for another reason.
    let goes_on = async |cx: Cx| {
        let _ = fails_deep_inside(cx.clone()).await;
        cx.scope(async |_: Scope<Failed>| Err::<(), _>(Failed("no time"))).await
    };
    let found = failure(check(goes_on).run());
    assert_eq!(found.failure.task, None, "{found}");
    let first = "`culprit (main/1/2)` was the first task that ended with an error";
    assert_eq!(found.failure.finding.lines(), [first], "{found}");
}

/// Takes a permit again and again, which never waits, until another task sets a flag.
async fn a_loop_of_operations(cx: Cx) -> Result<(), Cancelled> {
    let is_set = Arc::new(AtomicU32::new(0));
    let permits = Arc::new(Semaphore::new(1));
    cx.scope(async |s: Scope<Cancelled>| {
        let looks = is_set.clone();
        s.task("loops").spawn(async move |cx: Cx| {
            while looks.load(Relaxed) == 0 {
                let _permit = permits.acquire(&cx).await;
            }
            Ok(())
        });
        s.task("sets").spawn(async move |cx: Cx| {
            cx.yield_now().await;
            is_set.store(1, Relaxed);
            Ok(())
        });
        Ok(())
    })
    .await
}

#[test]
fn a_loop_that_uses_up_its_operations_lets_others_go_on() {
    let report = check(a_loop_of_operations).run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn what_is_the_same_of_a_crowd_is_told_once() {
    let program = async |cx: Cx| {
        let (tx, rx) = channel::mpmc::<u32>(1);
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..50 {
                let rx = rx.clone();
                s.spawn(async move |cx: Cx| {
                    let _ = rx.recv(&cx).await;
                    Ok(())
                });
            }
            Ok(())
        });
        let _ = scope.await;
        drop(tx);
    };
    let found = failure(check(program).run());
    let lines = found.failure.finding.lines();
    let others = "    and the same of 49 others: `main/2`, `main/3`, `main/4`, ..";
    assert!(lines.iter().any(|line| line == others), "{found}");
    let scope =
        "`main` waits for a scope with `main/1`, `main/2`, `main/3` and 47 more in it to close";
    assert!(lines.iter().any(|line| line == scope), "{found}");
    assert!(lines.len() < 10, "{found}");
}

#[test]
fn an_overrun_names_its_task_and_where_it_waited() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("cleaner").spawn(async |cx: Cx| {
                cx.cancelled().await;
                cx.shield(async |cx: &Cx| cx.sleep(Duration::from_secs(20)).await).await
            });
            s.stop_within(Duration::from_secs(10));
            Ok(())
        })
        .await
    };
    let found = failure(check(program).run());
    let finding = found.failure.finding;
    assert_eq!(finding.kind, Kind::Overrun);
    let message = "`cleaner (main/1)` did not end within its cleanup allowance";
    assert_eq!(finding.message, message);
    let place = format!("`cleaner (main/1)` was ended by force while it waited at {}:", file!());
    assert!(finding.detail.starts_with(&place), "{}", finding.detail);
    assert!(finding.detail.ends_with(" (`cx.sleep`)\n"), "{}", finding.detail);
}

#[test]
fn a_leaked_obligation_names_its_origin() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            s.task("promiser").spawn(async |cx: Cx| {
                let kept = cx.obligation().expect("the scope is open");
                let broken = cx.obligation().expect("the scope is open");
                kept.commit().expect("the scope is open");
                drop(broken);
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let finding = failure(check(program).run()).failure.finding;
    assert_eq!(finding.message, "an obligation was neither committed nor aborted");
    let lines: Vec<_> = finding.detail.lines().collect();
    let [line] = lines[..] else { panic!("{lines:?}") };
    assert!(
        line.starts_with("reserved by `promiser (main/1)` at crates/lab/tests/suite/telling.rs:")
    );
    assert!(line.ends_with(" (`cx.obligation`)"), "{line}");
}

#[test]
fn a_forgotten_permit_names_its_origin() {
    let program = async |cx: Cx| {
        let (tx, _rx) = channel::bounded::<u32>(3);
        cx.scope(async |s: Scope<Cancelled>| {
            let sender = tx.clone();
            let reserves = s.task("forgetful").spawn(async move |cx: Cx| {
                std::mem::forget(sender.reserve(&cx).await);
                std::mem::forget(sender.try_reserve());
                // These are resolved, and no part of the report.
                sender.reserve(&cx).await.expect("a slot").send(1);
                drop(sender.try_reserve());
                Ok(())
            });
            reserves.await.expect("it ends");
            let _ = tx.send(&cx, 2).await;
            Ok(())
        })
        .await
    };
    let finding = failure(check(program).run()).failure.finding;
    assert_eq!(finding.kind, Kind::Deadlock);
    let is_reserved = |line: &&str| line.contains("a slot is reserved by");
    let lines: Vec<_> = finding.detail.lines().filter(is_reserved).collect();
    assert_eq!(lines.len(), 2, "{}", finding.detail);
    let origin = "a slot is reserved by `forgetful (main/1)`, which has ended, at crates/lab/tests";
    assert!(lines.iter().all(|line| line.contains(origin)), "{lines:?}");
    assert!(lines[0].ends_with(" (`sender.reserve`)"), "{lines:?}");
    assert!(lines[1].ends_with(" (`sender.try_reserve`)"), "{lines:?}");
}
