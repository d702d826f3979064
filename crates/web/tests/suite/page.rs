//! A page without a browser: what the event loop sees of a runtime, and what bad use comes to.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::{Certificate, Lane};
use asx_kernel::pump::{MAX_DELAY_MS, PumpState};
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_runtime::{Cancelled, Cx, Grace, Recording, Scope};
use asx_web::page::Page;
use asx_web::{Capability, Config, Ended, HostCall, PumpConfig, Pumped, Runtime, WebError};

const HOUR: Duration = Duration::from_secs(3600);

fn open() -> (Arc<Page>, Runtime) {
    Page::open(Config { host_events: 100_000, ..Config::default() })
}

fn value<T>(ended: Option<Ended<T>>) -> T {
    match ended {
        Some(Ended::Value(value)) => value,
        _ => panic!("the program gave no value"),
    }
}

fn kinds(runtime: &Runtime) -> Vec<&'static str> {
    runtime.host_events(0).iter().map(|event| event.kind).collect()
}

/// A future that is ready when told, and counts its polls.
#[derive(Clone, Default)]
struct Bell(Rc<RefCell<(bool, u64, Option<Waker>)>>);

impl Bell {
    fn wait(&self) -> impl Future<Output = ()> + 'static {
        let bell = self.clone();
        std::future::poll_fn(move |cx| {
            let mut bell = bell.0.borrow_mut();
            bell.1 += 1;
            bell.2 = Some(cx.waker().clone());
            if bell.0 { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    fn waker(&self) -> Waker {
        self.0.borrow().2.clone().expect("it was polled")
    }

    fn polls(&self) -> u64 {
        self.0.borrow().1
    }
}

#[test]
fn a_program_begins_with_a_microtask_and_is_over_when_what_it_started_is() {
    let (page, runtime) = open();
    let program = runtime
        .start(async |cx: Cx| {
            let sum: Result<_, Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    let task = s.spawn(async |cx: Cx| {
                        cx.sleep(Duration::from_millis(30)).await?;
                        Ok(20)
                    });
                    Ok(task.await.map_or(0, |got| got + 1))
                })
                .await;
            sum.unwrap_or(0)
        })
        .unwrap();
    assert_eq!(page.waiting(), (1, 0));
    page.microtasks(&runtime);
    assert!(!program.is_over());
    page.run(&runtime);
    assert_eq!(page.time(), Time::from_millis(30));
    assert_eq!(value(program.ended()), 21);
    assert!(program.ended().is_none(), "it is told once");
    assert_eq!(runtime.pump_info().state, PumpState::Idle);
    assert_eq!(runtime.dump().tasks(), 0);
}

#[test]
fn ends_are_told_in_the_order_in_which_they_come_and_may_start_programs() {
    let (page, runtime) = open();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let start = |name: &'static str, millis: u64| {
        let program = runtime.start(async move |cx| {
            let _ = cx.sleep(Duration::from_millis(millis)).await;
            name
        });
        program.unwrap()
    };
    for (name, millis) in [("third", 3), ("first", 1), ("second", 2)] {
        let (seen, again) = (seen.clone(), runtime.clone());
        start(name, millis).on_end(move |ended| {
            seen.borrow_mut().push(value(Some(ended)));
            let inside = seen.clone();
            let next = again.start(async |_| "next").unwrap();
            next.on_end(move |ended| inside.borrow_mut().push(value(Some(ended))));
        });
    }
    page.run(&runtime);
    let expected = ["first", "next", "second", "next", "third", "next"];
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn ends_of_one_drain_are_told_in_their_order() {
    let (page, runtime) = open();
    let seen = Rc::new(RefCell::new(Vec::new()));
    for n in [3, 1, 2] {
        let (told, program) = (
            seen.clone(),
            runtime.start(async move |cx| {
                let _ = cx.sleep(Duration::from_millis(5)).await;
                n
            }),
        );
        program.unwrap().on_end(move |ended| told.borrow_mut().push(value(Some(ended))));
    }
    page.run(&runtime);
    assert_eq!(*seen.borrow(), [3, 1, 2]);
}

#[test]
fn who_waits_is_told_once_when_the_runtime_dies_while_another_is_told() {
    let (page, runtime) = open();
    let (deadly, waiting) = (runtime.clone(), Rc::new(Cell::new(0)));
    let one = runtime.start(async |_| ()).unwrap();
    one.on_end(move |_| {
        let _ = deadly.trap("in between");
    });
    for _ in 0..3 {
        let (program, waiting) = (runtime.start(async |cx| cx.cancelled().await), waiting.clone());
        program.unwrap().on_end(move |ended| {
            assert!(matches!(ended, Ended::Lost(WebError::Trapped(_))));
            waiting.set(waiting.get() + 1);
        });
    }
    page.run(&runtime);
    assert_eq!(waiting.get(), 3);
    assert!(matches!(runtime.start(async |_| ()), Err(WebError::Trapped(_))));
}

#[test]
fn a_burst_ends_at_its_steps_and_goes_on_by_message_not_by_microtask() {
    let (page, runtime) = open();
    let program = runtime
        .start(async |cx: Cx| {
            for _ in 0..1000 {
                cx.yield_now().await;
            }
        })
        .unwrap();
    page.microtasks(&runtime);
    assert_eq!(runtime.certificate().ready, 256);
    assert_eq!((page.waiting(), page.counts().handoffs), ((0, 1), 1));
    assert_eq!(runtime.pump_info().outstanding, Some(HostCall::MessagePost));
    page.run(&runtime);
    assert!(program.is_over());
    assert_eq!(runtime.certificate().ready, 1001);
    assert_eq!((page.counts().microtasks, page.counts().handoffs), (1, 3));
    let limits = |kind: &&&str| **kind == "scheduler_burst_limit_reached";
    assert_eq!(kinds(&runtime).iter().filter(limits).count(), 3);
}

#[test]
fn a_burst_ends_at_its_time_and_the_clock_is_read_rarely() {
    // Each poll takes 100 us: 4 ms are 40 polls, noticed at the latest 32 polls late.
    let (page, runtime) = open();
    let clock = page.clone();
    let program = runtime
        .start(async move |cx: Cx| {
            for _ in 0..1000 {
                clock.set_time(clock.time() + Duration::from_micros(100));
                cx.yield_now().await;
            }
        })
        .unwrap();
    page.microtasks(&runtime);
    let steps = runtime.certificate().ready;
    assert!((40..=41).contains(&steps), "{steps} steps of 100 us in a burst of 4 ms");
    page.run(&runtime);
    assert!(program.is_over());
    let (readings, drains) = (page.counts().clock, runtime.pump_info().batch);
    assert!(readings < 1001 / 3 + drains * 3, "{readings} readings in {drains} drains");
}

#[test]
fn without_a_message_channel_a_zero_timeout_is_used_and_nothing_else() {
    let pump = PumpConfig { has_message_channel: false, ..PumpConfig::default() };
    let (page, runtime) = Page::open(Config { pump, ..Config::default() });
    let _program = runtime
        .start(async |cx: Cx| {
            for _ in 0..300 {
                cx.yield_now().await;
            }
        })
        .unwrap();
    page.microtasks(&runtime);
    assert_eq!(runtime.pump_info().outstanding, Some(HostCall::TimeoutZero));
    runtime.revoke(Capability::Timer);
    page.run(&runtime);
    assert_eq!(runtime.queued(Lane::Ready), 0);
}

#[test]
fn a_million_duplicate_wakes_are_one_entry_and_one_poll() {
    let (page, runtime) = Page::open(Config::default());
    let bell = Bell::default();
    let waits = bell.wait();
    let program = runtime.start(move |_| waits).unwrap();
    page.settle(&runtime);
    let (waker, before) = (bell.waker(), page.counts());
    for _ in 0..1_000_000 {
        waker.wake_by_ref();
    }
    assert_eq!(runtime.queued(Lane::Ready), 1);
    assert_eq!(page.waiting(), (1, 0));
    page.settle(&runtime);
    assert_eq!(bell.polls(), 2);
    assert_eq!(page.counts().microtasks - before.microtasks, 1);
    bell.0.borrow_mut().0 = true;
    waker.wake();
    page.settle(&runtime);
    assert!(program.is_over());
    assert_eq!(bell.polls(), 3);
}

#[test]
fn a_day_of_sleeping_and_waking_with_gaps_loses_no_timer() {
    let (page, runtime) = Page::open(Config::default());
    let woken = Rc::new(Cell::new(0_u64));
    let count = woken.clone();
    let program = runtime
        .start(async move |cx: Cx| {
            // One sleep every 7 s, all day, each counted from the one before.
            let mut at = cx.now();
            for _ in 0..(24 * 3600 / 7) {
                at = at + Duration::from_secs(7);
                cx.sleep_until(at).await.unwrap();
                assert!(cx.now() >= at, "never early");
                count.set(count.get() + 1);
            }
        })
        .unwrap();
    page.settle(&runtime);
    let mut rounds = 0_u64;
    while !program.is_over() {
        // A tab that is sometimes asleep for 20 minutes, whatever timers it has.
        rounds += 1;
        match rounds % 5 {
            0 => page.set_time(page.time() + Duration::from_secs(1200)),
            _ => page.set_time(page.timer().expect("a timer is set").0),
        }
        page.settle(&runtime);
        assert!(rounds < 20_000);
    }
    assert_eq!(woken.get(), 24 * 3600 / 7);
    assert!(page.time() >= Time::ZERO + Duration::from_secs(24 * 3600 / 7 * 7));
    assert_eq!(runtime.core().live_timers(), 0);
}

#[test]
fn after_a_gap_timers_are_caught_up_in_batches_with_turns_between_and_in_order() {
    let (page, runtime) = open();
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = order.clone();
    let program = runtime
        .start(async move |cx: Cx| {
            let _: Result<_, Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    for n in 0..1000_u64 {
                        let seen = seen.clone();
                        let _task = s.spawn_local(async move |cx: Cx| {
                            cx.sleep(Duration::from_millis(1000 - n)).await?;
                            seen.borrow_mut().push(n);
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await;
        })
        .unwrap();
    page.settle(&runtime);
    page.set_time(page.time() + HOUR);
    assert!(page.ring(&runtime));
    assert_eq!(order.borrow().len(), 64, "one batch, then the page");
    assert_eq!(page.waiting(), (0, 1));
    page.settle(&runtime);
    assert!(program.is_over());
    assert_eq!(*order.borrow(), (0..1000).rev().collect::<Vec<_>>());
    let batches = runtime
        .host_events(0)
        .into_iter()
        .filter(|event| event.detail.contains(&("limit", "timers".to_owned())));
    assert_eq!(batches.count(), 15);
}

#[test]
fn a_huge_timer_is_chunked_and_kept() {
    let mut config = Config::default();
    config.settings.wheel.max_timer_duration = Duration::MAX;
    let (page, runtime) = Page::open(config);
    let program = runtime
        .start(async |cx: Cx| {
            let year = 24 * 365 * HOUR;
            cx.sleep(year).await.unwrap();
            cx.now()
        })
        .unwrap();
    page.run(&runtime);
    let counts = page.counts();
    assert_eq!(counts.longest_ms, MAX_DELAY_MS);
    assert_eq!(counts.timers, 15, "a year is 14 whole chunks and a rest");
    assert_eq!(value(program.ended()), Time::ZERO + 24 * 365 * HOUR);
}

#[test]
fn one_host_timer_stands_for_all_and_never_rings_early() {
    let (page, runtime) = Page::open(Config::default());
    let program = runtime
        .start(async |cx: Cx| {
            let _: Result<_, Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    for n in 1..=100_u64 {
                        let _task = s.spawn(async move |cx: Cx| {
                            let until = cx.now() + Duration::from_micros(n * 100);
                            cx.sleep_until(until).await?;
                            assert!(cx.now() >= until);
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await;
        })
        .unwrap();
    page.run(&runtime);
    assert!(program.is_over());
    let timers = page.counts().timers;
    assert!(timers <= 11, "{timers} host timers for 100 sleeps in 10 ms");
}

#[test]
fn a_pump_call_inside_a_task_is_noted_and_made_good_in_a_later_turn() {
    let (page, runtime) = open();
    let inside = runtime.clone();
    let answers = Rc::new(RefCell::new(Vec::new()));
    let told = answers.clone();
    let program = runtime
        .start(async move |_cx: Cx| {
            let batch = inside.pump_info().batch;
            told.borrow_mut().push(inside.pump());
            assert_eq!(inside.pump_info().batch, batch, "nothing ran");
        })
        .unwrap();
    assert_eq!(runtime.pump(), Ok(Pumped::Drained));
    assert_eq!(*answers.borrow(), [Ok(Pumped::Deferred)]);
    assert!(program.is_over());
    assert!(kinds(&runtime).contains(&"scheduler_reentrancy_deferred"));
    page.settle(&runtime);
    assert_eq!(runtime.pump(), Ok(Pumped::NotScheduled));
}

#[test]
fn a_forged_message_and_a_forged_or_late_timer_are_typed_errors_on_the_record() {
    let (page, runtime) = open();
    let program = runtime
        .start(async |cx: Cx| {
            let _ = cx.sleep(Duration::from_millis(5)).await;
        })
        .unwrap();
    for token in [0, 77, u32::MAX] {
        assert_eq!(runtime.called(token), Err(WebError::Forged { token }));
    }
    assert_eq!(runtime.certificate().ready, 0, "nothing ran");
    page.settle(&runtime);
    let (_, token) = page.timer().unwrap();
    assert_eq!(runtime.rang(token + 1), Err(WebError::Forged { token: token + 1 }));
    page.run(&runtime);
    assert!(program.is_over());
    assert_eq!(runtime.rang(token), Err(WebError::StaleTimer { token }));
    // An old token of a call that was made is no crime: it finds nothing to do.
    assert_eq!(runtime.called(1), Ok(()));
    let classes: Vec<_> = runtime.host_events(0).iter().filter_map(|e| e.error_class).collect();
    let forged = Status::InvalidArgument;
    assert_eq!(classes, [forged, forged, forged, forged, Status::StaleHandle]);
}

#[test]
fn a_drain_that_did_not_come_back_is_found_out_and_the_runtime_is_dead_with_a_diagnosis() {
    let (page, runtime) = open();
    let inside = runtime.clone();
    let told = Rc::new(Cell::new(None));
    let program = runtime
        .start(async move |_cx: Cx| {
            // What a trap leaves behind: the pump is running, and the event loop calls again.
            let answer = inside.called(1);
            assert!(matches!(answer, Err(WebError::Trapped(_))));
        })
        .unwrap();
    let tell = told.clone();
    program.on_end(move |ended| {
        tell.set(Some(matches!(ended, Ended::Lost(WebError::Trapped(_)))));
    });
    page.microtasks(&runtime);
    assert_eq!(told.get(), Some(true), "whoever waited was told");
    let trapped = runtime.trapped().expect("it is dead");
    assert_eq!((trapped.site, trapped.steps), ("a drain did not come back", 1));
    assert_eq!(runtime.called(1), Err(WebError::Trapped(trapped)));
    assert_eq!(runtime.pump(), Err(WebError::Trapped(trapped)));
    let again = runtime.start(async |_cx: Cx| ()).unwrap_err();
    assert_eq!((again, again.status()), (WebError::Trapped(trapped), Status::Internal));
    assert!(kinds(&runtime).contains(&"scheduler_trapped"));
}

#[test]
fn dropping_a_runtime_ends_what_lives_in_it() {
    struct Loud(Rc<Cell<u32>>);
    impl Drop for Loud {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let (page, runtime) = Page::open(Config::default());
    let (dropped, ended) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let loud = Loud(dropped.clone());
    let program = runtime
        .start(async move |cx: Cx| {
            let _loud = loud;
            // It looks at no cancel: only force ends it.
            cx.shield(async |_| std::future::pending::<()>().await).await;
        })
        .unwrap();
    let tell = ended.clone();
    program.on_end(move |end| tell.set(matches!(end, Ended::Stopped(_))));
    page.settle(&runtime);
    assert_eq!(dropped.get(), 0);
    drop(runtime);
    assert_eq!((dropped.get(), ended.get()), (1, true));
}

#[test]
fn a_shutdown_in_grace_ends_a_program_and_refuses_the_next() {
    let (page, runtime) = open();
    let program = runtime
        .start(async |cx: Cx| cx.sleep(HOUR).await.map_err(|cancelled| cancelled.kind()))
        .unwrap();
    page.settle(&runtime);
    runtime.shutdown(Grace { soft: Duration::ZERO, hard: Duration::from_secs(1) });
    page.run(&runtime);
    assert!(value(program.ended()).is_err());
    let late = runtime.start(async |_cx: Cx| ()).unwrap_err();
    assert!(matches!(late, WebError::Refused(_)), "{late}");
    assert_eq!(runtime.started_twice(), WebError::AlreadyStarted);
    assert_eq!(WebError::AlreadyStarted.status(), Status::InvalidTransition);
}

#[test]
fn limits_can_be_changed_while_it_runs() {
    let (page, runtime) = open();
    let _program = runtime
        .start(async |cx: Cx| {
            for _ in 0..100 {
                cx.yield_now().await;
            }
        })
        .unwrap();
    assert!(runtime.configure(PumpConfig { microtask_burst_limit: 10, ..runtime.pump_config() }));
    page.microtasks(&runtime);
    assert_eq!(runtime.certificate().ready, 10);
    page.run(&runtime);
    assert_eq!(runtime.certificate().ready, 101);
}

#[test]
fn the_same_program_leaves_the_same_digest_whatever_the_bursts_are() {
    let digest = |steps: u32| {
        let mut config = Config { seed: Some(7), ..Config::default() };
        config.settings.journal = Some(Recording::new(100_000, WhenFull::Overwrite));
        config.pump.microtask_burst_limit = steps;
        config.pump.burst_time_limit = None;
        let (page, runtime) = Page::open(config);
        let program = runtime.start(pressure).unwrap();
        page.run(&runtime);
        assert!(program.is_over());
        (runtime.recorded().unwrap().digest, runtime.certificate())
    };
    assert_eq!(digest(1), digest(256));
    assert_eq!(digest(3), digest(u32::MAX));
}

#[test]
fn the_order_of_polls_is_the_same_whether_steps_are_on_record_or_not() {
    let order = |host_events| {
        let (page, runtime) = Page::open(Config { host_events, ..Config::default() });
        let seen = Rc::new(RefCell::new(Vec::new()));
        let to = seen.clone();
        let program = runtime.start(async move |cx: Cx| mixed(&cx, to).await).unwrap();
        page.run(&runtime);
        assert!(program.is_over());
        // An entry that finds nothing to run is a ready step where there are two of a task.
        (seen.take(), Certificate { ready: 0, ..runtime.certificate() })
    };
    let (plain, recorded) = (order(0), order(1_000_000));
    assert!(plain.0.len() > 500);
    assert_eq!(plain, recorded);
}

#[test]
fn leaks_are_counted_and_reported_once_for_each_place() {
    // As shipped: no journal, no host events.
    let (page, runtime) = Page::open(Config::default());
    let program = runtime
        .start(async |cx: Cx| {
            for _ in 0..3 {
                let ended = cx.scope(async |s: Scope<Cancelled>| {
                    s.task("clerk").spawn(async |cx: Cx| {
                        drop(cx.obligation().expect("the scope is open"));
                        Ok(())
                    });
                    Ok(())
                });
                assert!(ended.await.is_ok());
            }
            cx.handle().health().leaked_obligations
        })
        .unwrap();
    page.run(&runtime);
    assert_eq!(value(program.ended()), 3);
    let reports = page.reports();
    let [line] = &reports[..] else { panic!("{reports:#?}") };
    let start =
        concat!("asx: obligation o1 leaked: task t2 \"clerk\" reserved it at ", file!(), ":");
    assert!(line.starts_with(start), "{line}");
    assert!(line.ends_with(", and region r3 closed before it was committed or aborted"), "{line}");
}

#[test]
fn quiescence_lists_what_is_alive_until_a_shutdown_is_complete() {
    let (page, runtime) = open();
    let program = runtime.start(async |cx: Cx| cx.sleep(HOUR).await.is_ok()).unwrap();
    page.settle(&runtime);
    let alive = runtime.quiescence().unwrap_err();
    let counts =
        [(Status::TasksStillActive, 1), (Status::RegionsNotClosed, 2), (Status::TimersPending, 1)];
    assert_eq!(alive.counts(), counts, "{alive}");
    assert_eq!(alive.timers[0].due_in, HOUR);
    let text = alive.to_string();
    assert!(text.contains("task t1 \"main\" Running, waits for a point in time at "), "{text}");
    runtime.shutdown(Grace { soft: Duration::ZERO, hard: HOUR });
    page.run(&runtime);
    assert!(program.is_over() && runtime.quiescence().is_ok());
    assert!(page.reports().is_empty(), "{:?}", page.reports());
}

/// Ready work, priorities, deadlines, sleeps and cancels by turns: the lanes fill and empty.
async fn mixed(cx: &Cx, seen: Rc<RefCell<Vec<u64>>>) {
    let _: Result<(), Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            for n in 0..60_u64 {
                let seen = seen.clone();
                let body = async move |cx: Cx| {
                    for turn in 0..10 {
                        seen.borrow_mut().push(n);
                        match (n + turn) % 7 {
                            0 => cx.sleep(Duration::from_millis(n % 3)).await?,
                            1 => cx.checkpoint()?,
                            _ => cx.yield_now().await,
                        }
                    }
                    Ok(())
                };
                let task = match n % 11 {
                    3 => s.task("urgent").priority(200).spawn_local(body),
                    5 => s.task("timed").within(HOUR).spawn_local(body),
                    _ => s.spawn_local(body),
                };
                if n % 6 == 5 {
                    cx.yield_now().await;
                    task.cancel("enough");
                }
            }
            Ok(())
        })
        .await;
}

/// Cancels in the midst of other work.
async fn pressure(cx: Cx) {
    let _: Result<_, Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            let sleepers: Vec<_> =
                (0..40).map(|_| s.spawn(async |cx: Cx| cx.sleep(HOUR).await)).collect();
            let _busy = s.spawn(async |cx: Cx| {
                for _ in 0..50 {
                    cx.yield_now().await;
                }
                Ok(())
            });
            cx.yield_now().await;
            for task in &sleepers {
                task.cancel("enough");
            }
            Ok(())
        })
        .await;
}
