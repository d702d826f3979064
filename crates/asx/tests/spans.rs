//! The spans of regions and tasks and their events, as a subscriber sees them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use asx::prelude::*;
use asx::{Policy, Runtime};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber, info, info_span, subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Records what it receives, with the thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(ThreadId, String)>>>);

impl Log {
    fn add(&self, line: String) {
        self.0.lock().unwrap().push((thread::current().id(), line));
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }
}

/// The name and number of a span.
struct Called(String);

/// Fields as text; `id` and the message are separate.
#[derive(Default)]
struct Text {
    id: String,
    message: String,
    rest: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "id" => self.id = format!(" {value:?}"),
            "message" => self.message = format!("{value:?}"),
            name => self.rest += &format!(" {name}={value:?}"),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut text = Text::default();
        attributes.record(&mut text);
        let span = context.span(id).unwrap();
        let called = format!("{}{}", span.name(), text.id);
        let around = span.parent().map_or("nothing".into(), |parent| {
            let extensions = parent.extensions();
            extensions.get::<Called>().unwrap().0.clone()
        });
        self.add(format!("open {called} in {around}:{}", text.rest));
        span.extensions_mut().insert(Called(called));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut text = Text::default();
        values.record(&mut text);
        let span = context.span(id).unwrap();
        self.add(format!("{}:{}", span.extensions().get::<Called>().unwrap().0, text.rest));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        self.add(format!("close {}", span.extensions().get::<Called>().unwrap().0));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = event.metadata().level().as_str().to_lowercase();
        let span = context.event_span(event);
        let around = span.map_or("nothing".into(), |span| {
            let extensions = span.extensions();
            extensions.get::<Called>().unwrap().0.clone()
        });
        self.add(format!("{level} in {around}: {}{}", text.message, text.rest));
    }
}

/// Returns the lines that a subscriber records of a program on one worker.
fn heard(program: impl AsyncFnOnce(Cx)) -> Vec<String> {
    let log = Log::default();
    subscriber::with_default(Registry::default().with(log.clone()), || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(async |cx: Cx| program(cx).await);
    });
    log.lines()
}

/// Adds the lines of the runtime before and after those of a program.
fn in_a_program(outcome: &str, lines: &[&str]) -> Vec<String> {
    let before = [
        "open region 1 in nothing: policy=CollectAll",
        "open region 2 in region 1: parent=1 policy=CollectAll",
        "open task 1 in region 2: priority=128",
    ];
    let outcome = format!("region 2: outcome={outcome:?}");
    let after = ["task 1: outcome=\"Ok\"", "close task 1", &outcome, "close region 2"];
    [&before[..], lines, &after[..]].concat().into_iter().map(String::from).collect()
}

/// Returns the lines up to the end of the program; the runtime is dropped after that.
fn of_program(mut lines: Vec<String>) -> Vec<String> {
    let end = lines.iter().position(|line| line == "close region 2").expect("an end");
    lines.truncate(end + 1);
    lines
}

#[test]
fn spans_nest_like_scopes_and_tasks_and_have_outcomes() {
    let lines = heard(async |cx: Cx| {
        let result: Result<(), Cancelled> = cx
            .scope(async |s| {
                let task = s.task("outer").priority(200).spawn(async |cx: Cx| {
                    info!("before");
                    let inner = cx.scope(async |s| {
                        s.spawn(async |_cx: Cx| {
                            info!(n = 1, "inside");
                            Ok(())
                        });
                        Ok::<_, Cancelled>(())
                    });
                    inner.await?;
                    info!("after");
                    Ok(())
                });
                let _ = task.await;
                Ok(())
            })
            .await;
        assert!(result.is_ok());
    });
    let expected = in_a_program(
        "Ok",
        &[
            "open region 3 in task 1: parent=2 policy=FailFast",
            "open task 2 in region 3: name=\"outer\" priority=200",
            "info in task 2: before",
            "open region 4 in task 2: parent=3 policy=FailFast",
            "open task 3 in region 4: priority=128",
            "info in task 3: inside n=1",
            "task 3: outcome=\"Ok\"",
            "close task 3",
            "region 4: outcome=\"Ok\"",
            "close region 4",
            "info in task 2: after",
            "task 2: outcome=\"Ok\"",
            "close task 2",
            "region 3: outcome=\"Ok\"",
            "close region 3",
        ],
    );
    assert_eq!(of_program(lines), expected);
}

#[test]
fn cancels_panics_and_leaks_are_events_in_their_spans() {
    let lines = heard(async |cx: Cx| {
        let settings = cx.scope_with(Policy::CollectAll);
        let result = settings
            .run(async |s: Scope<Cancelled>| {
                let waiting = s.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await));
                let panicking = s.spawn(async |_cx: Cx| -> Result<(), Cancelled> {
                    panic!("not today");
                });
                drop(cx.obligation());
                assert!(panicking.await.is_err());
                waiting.cancel("enough");
                assert!(waiting.await.is_err());
                s.cancel("all of it");
                Ok(())
            })
            .await;
        assert!(result.is_ok());
    });
    let expected = in_a_program(
        "Panicked",
        &[
            "open region 3 in task 1: parent=2 policy=CollectAll",
            "open task 2 in region 3: priority=128",
            "open task 3 in region 3: priority=128",
            "error in task 3: panicked panic=\"not today\"",
            "task 3: outcome=\"Panicked\"",
            "close task 3",
            "debug in task 2: cancel requested kind=\"User\" reason=\"enough\"",
            "trace in task 2: cancel seen kind=\"User\"",
            "task 2: outcome=\"Cancelled\"",
            "close task 2",
            "debug in region 3: cancel requested kind=\"User\" reason=\"all of it\"",
            "warn in region 3: obligation leaked obligation=1 task=1",
            "region 3: outcome=\"Panicked\"",
            "close region 3",
        ],
    );
    let place = format!(" at={}:", file!());
    let placed = lines.iter().filter(|line| line.contains(&place)).count();
    assert_eq!(placed, 1, "the leak names its location: {lines:#?}");
    let without_place = |line: String| line.split(&place).next().map(String::from);
    let lines = lines.into_iter().filter_map(without_place).collect();
    assert_eq!(of_program(lines), expected);
}

#[test]
fn a_shutdown_with_live_tasks_is_a_warning_that_names_them() {
    let log = Log::default();
    subscriber::with_default(Registry::default().with(log.clone()), || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (begin, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        thread::scope(|threads| {
            let runtime = &runtime;
            threads.spawn(move || {
                runtime.try_block_on(async move |_cx: Cx| {
                    begin.send(()).unwrap();
                    let _ = released.recv();
                })
            });
            begun.recv().unwrap();
            assert!(runtime.shutdown(Duration::ZERO).is_err());
            release.send(()).unwrap();
        });
    });
    let lines = log.lines();
    let start = "warn in nothing: the runtime was shut down and is not quiescent: \
                 TASKS_STILL_ACTIVE (1), REGIONS_NOT_CLOSED (2)\nregion r1 ";
    assert_eq!(lines.iter().filter(|line| line.starts_with(start)).count(), 1, "{lines:#?}");
}

#[test]
fn a_cleanup_that_overruns_and_a_grace_that_expires_are_warnings() {
    let lines = heard(async |cx: Cx| {
        let settings = cx.scope_with(Policy::CollectAll);
        let _ = settings
            .run(async |s: Scope<Cancelled>| {
                let endless = s.spawn(async |cx: Cx| -> Result<(), Cancelled> {
                    loop {
                        cx.is_cancelled();
                        cx.yield_now().await;
                    }
                });
                endless.cancel("now");
                assert!(endless.await.is_err());
                s.task("deaf").spawn(async |cx: Cx| -> Result<(), Cancelled> {
                    let never = async |_: &Cx| std::future::pending::<()>().await;
                    cx.shield(never).await;
                    Ok(())
                });
                s.stop_within(1.millis());
                Ok(())
            })
            .await;
    });
    let worth = |line: &&String| line.starts_with("warn") || line.contains("soft stop");
    let warnings: Vec<_> = lines.iter().filter(worth).collect();
    let expected = [
        "warn in task 2: cleanup overrun: ended by force polls=1000",
        "debug in region 3: soft stop",
        "warn in task 3: grace expired name=\"deaf\"",
        "warn in task 3: cleanup overrun: ended by force polls=0",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_scope_opened_in_a_user_span_is_inside_it() {
    let lines = heard(async |cx: Cx| {
        let request = info_span!("request", id = 7);
        let scope = cx.scope(async |s| {
            s.spawn(async |_cx: Cx| {
                info!("served");
                Ok(())
            });
            Ok::<_, Cancelled>(())
        });
        let result: Result<(), Cancelled> = tracing::Instrument::instrument(scope, request).await;
        assert!(result.is_ok());
    });
    let expected = in_a_program(
        "Ok",
        &[
            "open request 7 in task 1:",
            "open region 3 in request 7: parent=2 policy=FailFast",
            "open task 2 in region 3: priority=128",
            "info in task 2: served",
            "task 2: outcome=\"Ok\"",
            "close task 2",
            "region 3: outcome=\"Ok\"",
            "close region 3",
            "close request 7",
        ],
    );
    assert_eq!(of_program(lines), expected);
}

/// The worker of the first poll of a task is blocked during the second one.
#[test]
fn a_task_keeps_its_span_on_another_thread() {
    let log = Log::default();
    subscriber::set_global_default(Registry::default().with(log.clone())).unwrap();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let result: Result<(), Cancelled> = cx
            .scope(async |s| {
                let (go, mut gone) = channel::oneshot();
                let (began, begun) = mpsc::channel();
                let moving = s.task("moving").spawn(async move |cx: Cx| {
                    info!("first");
                    began.send(thread::current().id()).unwrap();
                    gone.recv(&cx).await.expect("a sender");
                    info!("second");
                    Ok(())
                });
                let first = begun.recv().unwrap();
                // Both workers are blocked, and the other one is released.
                let blocked: Vec<_> = (0..2)
                    .map(|_| {
                        let (release, released) = mpsc::channel::<()>();
                        let (began, begun) = mpsc::channel();
                        s.spawn(async move |_cx: Cx| {
                            began.send(thread::current().id()).unwrap();
                            let _ = released.recv();
                            Ok(())
                        });
                        (begun.recv().unwrap(), release)
                    })
                    .collect();
                let (held, other): (Vec<_>, Vec<_>) =
                    blocked.into_iter().partition(|(thread, _)| *thread == first);
                assert_eq!((held.len(), other.len()), (1, 1));
                drop(other);
                go.send(()).unwrap();
                assert!(moving.await.is_ok());
                drop(held);
                Ok(())
            })
            .await;
        assert!(result.is_ok());
    });
    let log = log.0.lock().unwrap();
    let on = |text: &str| log.iter().find(|(_, line)| line == text).map(|(thread, _)| *thread);
    let [first, second] = ["first", "second"].map(|text| on(&format!("info in task 2: {text}")));
    assert!(first.is_some() && second.is_some() && first != second, "{log:?}");
    // No span is left entered on either thread.
    assert!(tracing::Span::current().is_none());
}

/// Panics in the chosen callback.
#[derive(Clone)]
struct Angry {
    about: &'static str,
    panics: Arc<AtomicU64>,
}

impl Angry {
    fn hear(&self, of: &str) {
        if of == self.about {
            self.panics.fetch_add(1, Relaxed);
            panic!("a subscriber that panics");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Angry {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.hear("new");
    }

    fn on_record(&self, _: &Id, _: &Record<'_>, _: Context<'_, S>) {
        self.hear("record");
    }

    fn on_close(&self, _: Id, _: Context<'_, S>) {
        self.hear("close");
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.hear("event");
    }
}

#[test]
fn a_panicking_subscriber_is_contained() {
    for about in ["new", "record", "close", "event"] {
        let panics = Arc::new(AtomicU64::new(0));
        let angry = Angry { about, panics: panics.clone() };
        subscriber::with_default(Registry::default().with(angry), || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let result: Result<u32, Cancelled> = runtime.block_on(async |cx: Cx| {
                let scope = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
                    let cancelled = s.spawn(async |cx: Cx| cx.sleep(600.secs()).await);
                    cancelled.cancel("test");
                    assert!(cancelled.await.is_err());
                    let panics = s.spawn(async |_cx: Cx| -> Result<(), Cancelled> { panic!() });
                    assert!(panics.await.is_err());
                    Ok(s.spawn(async |_cx: Cx| Ok(7)).await.unwrap())
                });
                Ok(scope.await.unwrap())
            });
            assert_eq!(result, Ok(7));
            let (counted, heard) = (runtime.metrics().health.callback_panics, panics.load(Relaxed));
            assert!(counted > 0, "{about}");
            // The report of a panic is an event too, whose panic is not counted.
            assert!(counted == heard || about == "event" && counted < heard, "{about}");
        });
    }
}

#[test]
fn a_callback_that_panics_is_an_error() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let lines = heard(async |cx: Cx| {
        let result: Result<(), Cancelled> = cx
            .scope(async |s| {
                let mut task = s.spawn(async |_cx: Cx| Ok(7));
                let waker = Waker::from(Arc::new(Bad));
                let mut context = std::task::Context::from_waker(&waker);
                assert!(std::pin::pin!(&mut task).poll(&mut context).is_pending());
                cx.yield_now().await;
                assert_eq!(task.await.unwrap(), 7);
                Ok(())
            })
            .await;
        assert_eq!(result, Ok(()));
    });
    let told = lines.iter().filter(|line| line.contains("a callback panicked")).count();
    assert_eq!(told, 1, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("error") && line.contains("a waker")));
}

#[test]
fn an_unobserved_cancel_is_a_warning_once() {
    let lines = heard(async |cx: Cx| {
        let _ = cx
            .scope(async |s: Scope<Cancelled>| {
                let deaf = s.spawn(async |cx: Cx| {
                    for _ in 0..5000 {
                        cx.yield_now().await;
                    }
                    Ok(())
                });
                cx.yield_now().await;
                deaf.cancel("now");
                Ok(deaf.await.is_ok())
            })
            .await;
    });
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("warn")).collect();
    assert_eq!(warnings, ["warn in task 2: cancel unheeded polls=1001"]);
}

#[test]
fn an_unobserved_timeout_is_a_warning_once() {
    let lines = heard(async |cx: Cx| {
        // A foreign future: a thread wakes it when it is ready.
        let (begun, mut polls) = (cx.now(), 0);
        let deaf = poll_fn(move |context| {
            polls += 1;
            if polls == 1 {
                let waker = context.waker().clone();
                thread::spawn(move || {
                    thread::sleep(1200.millis());
                    waker.wake();
                });
            }
            let over = Cx::current().unwrap().now() > begun + 1200.millis();
            if over { Poll::Ready(7) } else { Poll::Pending }
        });
        let done = cx.timeout(1.millis(), async |_| Ok::<_, Cancelled>(deaf.await));
        assert_eq!(done.await, Ok(7));
    });
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("warn")).collect();
    assert!(matches!(&warnings[..], [one] if one.contains("timeout unheeded")), "{warnings:?}");
    assert!(warnings[0].contains(file!()) && warnings[0].contains("abandon_on_cancel"));
}

const CHILD: &str = "ASX_TEST_CHILD";

/// Drops the last reference to a runtime when it receives the report of a long poll.
struct DropsRuntime(Mutex<Option<Arc<Runtime>>>, mpsc::Sender<String>);

impl<S: Subscriber> Layer<S> for DropsRuntime {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        if text.message != "cancel unheeded in one poll" {
            return;
        }
        let runtime = self.0.lock().unwrap().take().expect("heard once");
        // The program borrows the runtime until its task has seen the count.
        while Arc::strong_count(&runtime) > 1 {
            thread::yield_now();
        }
        drop(runtime);
        self.1.send(format!("{:?}: {}", thread::current().name(), text.rest)).unwrap();
    }
}

/// In a separate process, because the threads of a runtime use a global subscriber only.
#[test]
fn child_drops_the_runtime_on_the_monitor_thread() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let limit = Some(5.millis());
    let runtime = Arc::new(Runtime::builder().workers(2).long_poll(limit).build().unwrap());
    let (sender, dropped) = mpsc::channel();
    let layer = DropsRuntime(Mutex::new(Some(runtime.clone())), sender);
    subscriber::set_global_default(Registry::default().with(layer)).unwrap();
    let handle = runtime.handle();
    runtime.block_on(async |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            let busy = s.spawn(async move |_| {
                while handle.metrics().health.long_polls == 0 {
                    thread::yield_now();
                }
                Ok(())
            });
            busy.cancel("enough");
            let _ = busy.await;
            Ok(())
        });
        let _ = scope.await;
    });
    drop(runtime);
    let told = dropped.recv_timeout(30.secs()).expect("the drop does not return");
    assert!(told.starts_with("Some(\"asx-polls\"):  inside="), "{told}");
    assert!(told.contains("spans.rs"), "{told}");
}

#[test]
fn a_runtime_can_be_dropped_on_its_monitor_thread() {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let test = "child_drops_the_runtime_on_the_monitor_thread";
    let output = command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
