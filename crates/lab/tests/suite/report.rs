//! What a failing check says, and what it leaves behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use asx_kernel::journal::{Event, EventKind};
use asx_lab::{Found, Grain, How, Kind, Report, check, report};
use asx_report::notes::{LOCK_RELEASED, LOCK_TAKEN, TASK_GOES_ON, TASK_WAITS};
use asx_report::{Cause, TEARDOWN};
use asx_runtime::sync::Mutex;
use asx_runtime::time::DurationExt;
use asx_runtime::{Cancelled, Cx, Scope, channel};
use asx_trace::{Class, Header, HostEvent, Reader, Record, Value, verify};

/// Two tasks, one of which must be first.
async fn in_order(cx: Cx) -> Result<(), Cancelled> {
    let written = Arc::new(AtomicBool::new(false));
    cx.scope(async |s: Scope<Cancelled>| {
        let write = written.clone();
        s.task("writer").spawn(async move |_cx: Cx| {
            write.store(true, Relaxed);
            Ok(())
        });
        s.task("reader").spawn(async move |_cx: Cx| {
            assert!(written.load(Relaxed), "nothing to read");
            Ok(())
        });
        Ok(())
    })
    .await
}

/// A message that is taken out before it is safe.
async fn unsafe_when_cancelled(cx: Cx) -> Result<(), Cancelled> {
    let (taken, kept) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (took, keeps) = (taken.clone(), kept.clone());
    let result: Result<(), Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            s.task("mover").spawn(async move |cx: Cx| {
                took.fetch_add(1, Relaxed);
                cx.sleep(1.millis()).await?;
                keeps.fetch_add(1, Relaxed);
                Ok(())
            });
            Ok(())
        })
        .await;
    assert_eq!(taken.load(Relaxed), kept.load(Relaxed), "lost");
    result
}

fn failure(report: Report) -> Found {
    report.failure.expect("a failure")
}

/// What stands behind the tokens of `orders::in_order`, and of no other test.
const MARK: &str = "c11d";

#[test]
fn tasks_are_called_by_name_and_by_where_they_were_spawned() {
    let found = failure(check(in_order).name("orders::in_order").seed(9).run());
    assert_eq!(found.words, ["at step 2 run `reader (main/2)` instead of `writer (main/1)`"]);
    assert_eq!(found.failure.task.as_deref(), Some("reader (main/2)"));
    assert_eq!(found.failure.step, 2);
    let place = found.failure.place.as_deref().unwrap_or_default();
    assert!(place.starts_with("crates/lab/tests/suite/report.rs:"), "{place}");
    let text = found.to_string();
    let lines: Vec<_> = text.lines().collect();
    let token = &found.token;
    let expected = [
        format!("`orders::in_order` fails in run {} (strategy dpor, seed 9):", found.run),
        format!("panic at step 2 in `reader (main/2)` at {place}: nothing to read"),
        "when the usual order of polls is changed like this:".into(),
        "  at step 2 run `reader (main/2)` instead of `writer (main/1)`".into(),
    ];
    assert_eq!(lines[..expected.len()], expected);
    let command = format!("to see it again: ASX_REPLAY={token}.{MARK} cargo test ");
    assert!(lines[expected.len()..].len() == 1 && lines[4].starts_with(&command), "{text}");
}

/// A check can have a name that no test has: `cargo test NAME` would run nothing.
#[test]
fn replay_command_of_named_check_has_name_of_test() {
    let command_in_thread = |name: &str| {
        let run = || failure(check(in_order).name("orders::in_order").run()).to_string();
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let text = thread.unwrap().join().unwrap();
        String::from(text.lines().last().unwrap())
    };
    let mark = format!(".{MARK} cargo test");
    let in_test = command_in_thread("module::some_test");
    assert!(in_test.ends_with(&format!("{mark} module::some_test")), "{in_test}");
    let outside_tests = command_in_thread("main");
    assert!(outside_tests.ends_with(&format!("{mark} orders::in_order")), "{outside_tests}");
}

#[test]
fn a_cancel_is_said_as_what_it_is() {
    let found = failure(check(unsafe_when_cancelled).cancel_at_every_await().run());
    assert_eq!(found.words, ["cancel `main` before its poll 1"]);
    assert_eq!(
        found.failure.finding.message.lines().next(),
        Some("assertion `left == right` failed: lost")
    );
    let again = check(unsafe_when_cancelled).cancel_at_every_await().replay(&found.token);
    assert_eq!(again.map(failure).map(|again| again.failure), Ok(found.failure));
    assert!(check(unsafe_when_cancelled).run().failure.is_none());
}

#[test]
fn the_runs_without_cancels_come_first() {
    let found = failure(check(in_order).cancel_at_every_await().run());
    assert_eq!(found.words.len(), 1, "{found}");
    assert!(found.words[0].contains("instead of"), "{found}");
    let passing = check(async |cx: Cx| cx.sleep(1.millis()).await).cancel_at_every_await().run();
    assert!(passing.failure.is_none() && passing.proof.is_some(), "{passing}");
    assert_eq!(passing.cancels.map(|(tried, all)| tried == all), Some(true), "{passing}");
}

/// An error counts unless there was a cancel.
#[test]
fn without_a_cancel_an_error_fails_the_run_that_could_have_had_one() {
    let report = check(async |_cx: Cx| Err::<(), _>("no")).cancel_at_every_await().run();
    assert_eq!(failure(report).failure.finding.kind, Kind::Error);
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn records(found: &Found, dir: &str) -> Vec<Record> {
    written(found, dir).1
}

/// The trace of a failure, as it is in its file.
fn written(found: &Found, dir: &str) -> (Header, Vec<Record>) {
    let paths = report::write(found, &folder(dir)).expect("files");
    let trace = paths.iter().find(|path| path.extension().is_some_and(|it| it == "jsonl"));
    let bytes = std::fs::read(trace.expect("a trace")).expect("a file");
    let report = verify(&mut Reader::open(&bytes[..]).expect("a header"), true);
    assert!(report.holds(), "{:?}", report.violations);
    let reader = Reader::open(&bytes[..]).expect("a header");
    (reader.header().clone(), reader.map(|record| record.expect("a record")).collect())
}

/// Two who take two locks, one from the left and one from the right.
async fn two_locks(cx: Cx) -> Result<(), Cancelled> {
    let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
    cx.scope(async |s: Scope<Cancelled>| {
        for (name, first) in [("left", 0), ("right", 1)] {
            let locks = locks.clone();
            s.task(name).spawn(async move |cx: Cx| {
                let _one = locks[first].lock(&cx).await?;
                let _two = locks[1 - first].lock(&cx).await?;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}

#[test]
fn a_trace_says_why_the_run_failed_and_how_to_see_it_again() {
    let found = failure(check(two_locks).name("two_locks").run());
    let (header, _) = written(&found, "why");
    let cause = Cause::of(&header).expect("a cause");
    assert_eq!(cause.kind, "deadlock");
    assert_eq!(cause.message, "`left (main/1)` and `right (main/2)` wait for each other");
    assert_eq!(cause.step, Some(found.failure.step.to_string()));
    assert_eq!((cause.changes, cause.task), (found.words.clone(), None));
    let replay = cause.replay.expect("a command");
    assert!(replay.starts_with(&format!("ASX_REPLAY={}.", found.token)), "{replay}");
    assert!(replay.contains(" cargo test "), "{replay}");
    let first = "`left (main/1)` waits for what `right (main/2)` took at crates/lab/tests/";
    assert!(cause.detail[0].starts_with(first), "{:?}", cause.detail);
    let panics = failure(check(in_order).run());
    let cause = Cause::of(&written(&panics, "why").0).expect("a cause");
    assert_eq!((&*cause.kind, cause.task.as_deref()), ("panic", Some("reader (main/2)")));
    assert_eq!(cause.place, panics.failure.place);
}

#[test]
fn trace_names_the_decision_event_of_every_changed_decision() {
    for found in [failure(check(two_locks).run()), failure(check(in_order).run())] {
        let (header, records) = written(&found, "changed");
        let cause = Cause::of(&header).expect("a cause");
        assert!(!cause.changes.is_empty(), "{found}");
        assert_eq!(cause.changes.len(), cause.change_events.len(), "{cause:?}");
        for (change, seq) in cause.changes.iter().zip(&cause.change_events) {
            let decided = records.iter().find_map(|record| match record {
                Record::Event(event) if event.seq == *seq => Some(event),
                _ => None,
            });
            let decided = decided.expect("the event is in the trace");
            assert_eq!(decided.kind.name(), "scheduler_step_decision", "{change}");
            let label = records.iter().find_map(|record| match record {
                Record::Label(label) if Some(label.number) == decided.subject.task => {
                    Some(&label.text).filter(|_| label.class == Class::Task)
                }
                _ => None,
            });
            let run = format!("run `{}` instead of", label.expect("a name"));
            assert!(change.contains(&run), "{change}: {run}");
        }
    }
    let usual = failure(check(async |_cx: Cx| Err::<(), _>("no")).run());
    assert!(Cause::of(&written(&usual, "changed").0).expect("a cause").change_events.is_empty());
}

/// What was noted beside the events: kind, task, expression.
fn notes(records: &[Record]) -> Vec<(&str, u64, &str)> {
    let of = |host: &HostEvent, name: &str| {
        host.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let hosts = records.iter().filter_map(|record| match record {
        Record::Host(host) => Some(host),
        _ => None,
    });
    hosts
        .map(|host| {
            let Some(Value::Number(task)) = of(host, "task") else { panic!("{host:?}") };
            let what = host.fields.iter().find(|(known, _)| known == "what");
            let what = match what {
                Some((_, Value::Text(what))) => what.as_str(),
                _ => "",
            };
            (host.kind.as_str(), task, what)
        })
        .collect()
}

#[test]
fn waits_and_locks_are_noted_beside_the_events() {
    let found = failure(check(two_locks).name("two_locks").run());
    let records = records(&found, "noted");
    let seen = notes(&records);
    for (task, nth) in [(2, "locks[..].lock"), (3, "locks[..].lock")] {
        assert!(seen.contains(&(LOCK_TAKEN, task, nth)), "{seen:?}");
        assert!(seen.contains(&(TASK_WAITS, task, nth)), "{seen:?}");
    }
    assert!(seen.contains(&(TASK_WAITS, 1, "cx.scope")), "{seen:?}");
    // A wait that is over and a lock that is free again.
    let found = failure(
        check(async |cx: Cx| {
            let lock = Mutex::new(());
            let guard = lock.lock(&cx).await;
            cx.sleep(1.millis()).await.expect("nobody cancels");
            drop(guard);
            cx.yield_now().await;
            assert!(cx.is_stopping(), "over");
        })
        .run(),
    );
    let records = self::records(&found, "noted");
    let seen: Vec<_> = notes(&records).into_iter().map(|(kind, _, what)| (kind, what)).collect();
    let expected = [
        (TASK_WAITS, "cx.sleep"),
        (LOCK_TAKEN, "lock.lock"),
        (TASK_GOES_ON, ""),
        (LOCK_RELEASED, ""),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_panic_in_the_body_of_a_scope_is_where_its_task_was_polled() {
    let found = failure(
        check(async |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                s.task("other").spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await));
                cx.yield_now().await;
                assert!(cx.is_stopping(), "in the body");
                Ok(())
            })
            .await
        })
        .run(),
    );
    let records = records(&found, "body");
    let at = records.iter().position(|record| matches!(record, Record::Mark(_))).expect("a mark");
    let Record::Event(event) = &records[at - 1] else { panic!("{:?}", records[at - 1]) };
    assert_eq!(event.subject.task, Some(1), "not the other, which it cancels: {event:?}");
}

#[test]
fn what_the_lab_does_to_end_a_run_is_told_apart() {
    let stuck = failure(check(two_locks).run());
    let (header, records) = written(&stuck, "torn");
    let seq = header.meta.iter().find(|(name, _)| name == TEARDOWN).map(|(_, seq)| seq.parse());
    let Some(Ok(seq)) = seq else { panic!("{:?}", header.meta) };
    let events = records.iter().filter_map(|record| match record {
        Record::Event(event) => Some(event),
        _ => None,
    });
    let (before, after): (Vec<&Event>, Vec<&Event>) = events.partition(|event| event.seq < seq);
    assert!(matches!(after[0].kind, EventKind::SoftStop {}), "{:?}", after[0]);
    let forced = |kind: EventKind| matches!(kind, EventKind::GraceExpired {});
    assert!(!before.iter().any(|event| forced(event.kind)));
    assert!(after.iter().any(|event| forced(event.kind)));
    // A program that panics ends by itself.
    let (header, _) = written(&failure(check(in_order).run()), "torn");
    assert!(!header.meta.iter().any(|(name, _)| name == TEARDOWN), "{:?}", header.meta);
}

#[test]
fn files_of_checks_without_a_name_are_told_apart() {
    let fails =
        |text: &'static str| failure(check(move |_cx: Cx| async move { Err::<(), _>(text) }).run());
    let (one, other) = (fails("one"), fails("other"));
    assert_eq!(one.token, other.token, "in the same order");
    let dir = folder("unnamed");
    let [first, second] = [&one, &other].map(|found| report::write(found, &dir).expect("files"));
    assert_ne!(first, second);
    assert_eq!(report::write(&one, &dir).expect("files"), first, "again the same");
    let name = first[0].file_name().expect("a name").to_string_lossy();
    assert!(name.starts_with("report-files_of_checks_without_a_name_are_told_apart-"), "{name}");
}

#[test]
fn scopes_are_called_by_whose_they_are() {
    let records = records(&failure(check(two_locks).run()), "scopes");
    let names: Vec<_> = (records.iter())
        .filter_map(|record| match record {
            Record::Label(label) if label.class == Class::Region => Some(&*label.text),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["runtime", "program", "scope of main"]);
}

#[test]
fn the_trace_is_lawful_and_shows_names_choices_and_the_moment() {
    let found = failure(check(in_order).name("in_order").run());
    let records = records(&found, "named");
    let names: Vec<_> = (records.iter())
        .filter_map(|record| match record {
            Record::Label(label) if label.class == Class::Task => Some(&*label.text),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["main", "writer (main/1)", "reader (main/2)"]);
    let at = records.iter().position(|record| matches!(record, Record::Mark(_))).expect("a mark");
    let Record::Event(event) = &records[at - 1] else { panic!("{:?}", records[at - 1]) };
    assert!(matches!(event.kind, EventKind::TaskEnded { .. }), "{event:?}");
    assert_eq!(event.subject.task, Some(3));
    let choice = records.iter().find_map(|record| match record {
        Record::Choice(choice) => Some((&*choice.point, choice.subject, choice.count)),
        _ => None,
    });
    assert_eq!(choice, Some(("task", Some(3), 2)));
}

#[test]
fn traces_of_every_kind_of_failure_are_lawful() {
    let stuck = failure(check(async |cx: Cx| drop(cx.cancelled().await)).run());
    assert_eq!(stuck.failure.finding.kind, Kind::Deadlock);
    assert!(stuck.failure.finding.detail.starts_with("`main` (Running) waits for"), "{stuck}");
    async fn for_ever(cx: Cx) {
        loop {
            cx.yield_now().await;
        }
    }
    let endless = failure(check(for_ever).steps(20).run());
    assert_eq!((endless.failure.finding.kind, endless.failure.step), (Kind::Livelock, 20));
    let error = failure(check(async |_cx: Cx| Err::<(), _>("no")).run());
    let cancelled = failure(check(unsafe_when_cancelled).cancel_at_every_await().run());
    for (name, found) in
        [("stuck", stuck), ("endless", endless), ("error", error), ("cancelled", cancelled)]
    {
        let records = records(&found, name);
        assert!(records.iter().any(|record| matches!(record, Record::Mark(_))), "{name}");
    }
}

#[test]
fn a_damaged_token_is_refused_and_a_foreign_one_said_to_be() {
    let found = failure(check(in_order).run());
    assert!(check(in_order).replay(&found.token[1..]).is_err());
    let other = check(async |cx: Cx| cx.yield_now().await).replay(&found.token).expect("a token");
    assert_eq!((other.unused, other.failure.is_none()), (1, true));
    assert!(other.to_string().contains("the schedule does not fit: 1 of its changes"), "{other}");
    let same = check(in_order).replay(&found.token).expect("a token");
    assert_eq!((same.unused, same.failure.is_some()), (0, true));
}

/// Two tasks that yield, and something that depends on how often the program was run before.
async fn counted(cx: Cx, odd: impl Fn() -> bool + Send + Sync + 'static) {
    let odd = Arc::new(odd);
    let result: Result<(), Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                let odd = odd.clone();
                s.spawn(async move |cx: Cx| {
                    if odd() {
                        cx.yield_now().await;
                    }
                    cx.yield_now().await;
                    Ok(())
                });
            }
            Ok(())
        })
        .await;
    assert!(result.is_ok());
}

#[test]
fn a_first_run_that_is_not_the_same_again_is_a_failure_of_its_own() {
    let runs = Arc::new(AtomicU32::new(0));
    let report = check(move |cx: Cx| {
        let run = runs.fetch_add(1, Relaxed);
        counted(cx, move || run > 0)
    })
    .run();
    let found = failure(report);
    assert_eq!(found.failure.finding.kind, Kind::Nondeterminism, "{found}");
    // After one step of each task, the first task ends or continues.
    assert_eq!((found.run, found.failure.step), (1, 4), "{found}");
    let text = found.to_string();
    assert!(text.contains("not deterministic at step 4: the same decisions"), "{text}");
    assert!(text.contains("hash maps that are iterated"), "{text}");
}

#[test]
fn a_step_that_touches_something_else_is_noticed() {
    // With what the search itself wants to know of steps, and without.
    for how in [How::Mixed, How::Random] {
        let runs = AtomicU32::new(0);
        let report = check(|_cx: Cx| {
            let run = runs.fetch_add(1, Relaxed);
            async move {
                let (_one, mut one) = channel::bounded::<u32>(1);
                let (_two, mut two) = channel::bounded::<u32>(1);
                let _ = if run == 0 { one.try_recv() } else { two.try_recv() };
            }
        })
        .how(how)
        .grain(Grain::Poll)
        .run();
        let found = failure(report);
        assert_eq!((found.failure.finding.kind, found.failure.step), (Kind::Nondeterminism, 1));
        assert!(found.to_string().contains("touched other channels"), "{found}");
    }
}

#[test]
fn a_timer_that_few_orders_have_is_no_difference_between_equal_runs() {
    for seed in 0..16 {
        let report = check(async |cx: Cx| {
            let lock = Arc::new(Mutex::new(false));
            cx.scope(async |s: Scope<Cancelled>| {
                let first = lock.clone();
                s.spawn(async move |cx: Cx| {
                    *first.lock(&cx).await? = true;
                    Ok(())
                });
                s.spawn(async move |cx: Cx| {
                    let is_late = *lock.lock(&cx).await?;
                    if !is_late {
                        cx.sleep(1.millis()).await?;
                    }
                    Ok(())
                });
                Ok(())
            })
            .await
        })
        .how(How::Random)
        .transparent()
        .seed(seed)
        .runs(4)
        .run();
        assert!(report.failure.is_none(), "seed {seed}: {report}");
    }
}

#[test]
fn a_failure_that_does_not_come_again_is_not_deterministic() {
    let runs = AtomicU32::new(0);
    let found = failure(
        check(|_cx: Cx| {
            let run = runs.fetch_add(1, Relaxed);
            async move { assert_ne!(run, 5, "unlucky") }
        })
        .how(How::Random)
        .grain(Grain::Poll)
        .run(),
    );
    assert_eq!((found.failure.finding.kind, found.run), (Kind::Nondeterminism, 5), "{found}");
    let text = found.to_string();
    assert!(text.contains("it first failed, then passed"), "{text}");
    assert!(text.contains("it was found by a panic at step 1 in `main` at"), "{text}");
}

#[test]
fn a_search_that_is_led_astray_says_so() {
    for how in [How::Dfs, How::Dpor] {
        let runs = Arc::new(AtomicU32::new(0));
        // The first runs are as they should be.
        let report = check(move |cx: Cx| {
            let run = runs.fetch_add(1, Relaxed);
            counted(cx, move || run > 3 && run.is_multiple_of(2))
        })
        .how(how)
        .grain(Grain::Poll)
        .run();
        let found = failure(report);
        assert_eq!(found.failure.finding.kind, Kind::Nondeterminism, "{how}: {found}");
        assert!((2..10).contains(&found.run) && found.failure.step > 0, "{how}: {found}");
    }
}

#[test]
fn what_changes_slowly_is_noticed_at_the_end() {
    let runs = Arc::new(AtomicU32::new(0));
    let found = failure(
        check(move |cx: Cx| {
            let run = runs.fetch_add(1, Relaxed);
            counted(cx, move || run > 3)
        })
        .how(How::Random)
        .runs(10)
        .run(),
    );
    assert_eq!(found.failure.finding.kind, Kind::Nondeterminism, "{found}");
    assert_eq!((found.run, found.failure.step > 0), (10, true), "{found}");
}

#[test]
fn each_value_of_a_random_choice_is_tried() {
    let program = async |cx: Cx| assert_ne!(cx.random_below(3), 2, "unlucky");
    let found = failure(check(program).run());
    assert_eq!(found.words, ["in step 1 (`main`) entropy takes 2 of 0..3"]);
    let again = check(program).replay(&found.token).map(failure);
    assert_eq!(again.map(|again| again.failure), Ok(found.failure));
}

/// Else a swap of two polls would change what they do.
#[test]
fn random_numbers_that_nobody_varies_are_of_the_task_not_of_the_order() {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let all = seen.clone();
    let report = check(async |cx: Cx| {
        let seen = seen.clone();
        cx.scope(async |s: Scope<Cancelled>| {
            for n in 0..2 {
                let seen = seen.clone();
                s.spawn(async move |cx: Cx| {
                    seen.lock().unwrap().insert((n, cx.random(), cx.random()));
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    })
    .how(How::Dpor)
    .run();
    assert!(report.failure.is_none() && report.runs >= 2, "{report}");
    let all = all.lock().unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.iter().all(|(_, first, second)| first != second));
}

/// Two steps under a lock that are one, and a poll quota that is just enough for them.
#[test]
fn operations_one_by_one_do_not_use_up_what_is_counted_in_polls() {
    let report = check(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let lock = Arc::new(Mutex::new(0));
            let task = s.task("bounded").polls(1).spawn(async move |cx: Cx| {
                for _ in 0..20 {
                    *lock.lock(&cx).await? += 1;
                }
                Ok(())
            });
            assert!(task.await.is_ok(), "the quota was enough");
            Ok(())
        })
        .await
    })
    .run();
    assert!(report.failure.is_none(), "{report}");
}

/// A poll with more operations than a run may have polls is no livelock.
#[test]
fn operations_one_by_one_are_no_livelock() {
    let report = check(async |cx: Cx| {
        let lock = Mutex::new(0);
        for _ in 0..200 {
            *lock.lock(&cx).await? += 1;
        }
        Ok::<_, Cancelled>(())
    })
    .steps(100)
    .run();
    assert!(report.failure.is_none(), "{report}");
}

/// The report says how it was run, and its token is enough to run it again.
#[test]
fn a_failure_between_two_operations_says_so() {
    let program = async |cx: Cx| {
        let lock = Arc::new(Mutex::new(0));
        cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                let lock = lock.clone();
                s.spawn(async move |cx: Cx| {
                    let before = *lock.lock(&cx).await?;
                    *lock.lock(&cx).await? = before + 1;
                    Ok(())
                });
            }
            Ok(())
        })
        .await?;
        assert_eq!(*lock.lock(&cx).await?, 2);
        Ok::<_, Cancelled>(())
    };
    let found = check(program).run().failure.expect("an increment is lost");
    assert!(found.to_string().contains("at operation grain"), "{found}");
    assert!(check(program).replay(&found.token).expect("a token").failure.is_some());
    // Between the polls of a run nothing is lost.
    assert!(check(program).grain(Grain::Poll).run().failure.is_none());
}
