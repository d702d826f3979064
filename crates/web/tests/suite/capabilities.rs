//! Denied and revoked capabilities.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::pump::PumpConfig;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_runtime::{Cancelled, Cx, Scope, TimerError};
use asx_web::page::Page;
use asx_web::{Capabilities, Capability, Config, Ended, HostEvent, Runtime};

const HOUR: Duration = Duration::from_secs(3600);

fn value<T>(ended: Option<Ended<T>>) -> T {
    match ended {
        Some(Ended::Value(value)) => value,
        _ => panic!("the program gave no value"),
    }
}

///
#[test]
fn without_the_timer_capability_a_wait_for_a_time_fails_and_no_timer_is_set() {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Timer);
    let (page, runtime) = Page::granting(Config::default(), granted);
    let tried = runtime.start(async |cx: Cx| cx.try_sleep(cx.now() + TICK).map(drop)).unwrap();
    page.run(&runtime);
    assert_eq!(value(tried.ended()).map_err(Status::from), Err(Status::CapabilityDenied));
    let slept = runtime.start(async |cx: Cx| cx.sleep(TICK).await.unwrap_err()).unwrap();
    page.run(&runtime);
    is_for_want_of("timer", &value(slept.ended()));
    assert_eq!((page.counts().timers, page.timer()), (0, None));
    assert_eq!(denials(&runtime), ["timer: a task's timer", "timer: a task's timer"]);
    runtime.grant(Capability::Timer);
    let slept = runtime.start(async |cx: Cx| cx.sleep(TICK).await.is_ok()).unwrap();
    page.run(&runtime);
    assert!(value(slept.ended()));
}

///
#[test]
fn a_timer_capability_that_is_taken_away_ends_the_waits_that_are_under_way() {
    let (page, runtime) = Page::open(Config::default());
    let program = runtime.start(async |cx: Cx| cx.sleep(HOUR).await.unwrap_err()).unwrap();
    page.settle(&runtime);
    assert_eq!((runtime.core().live_timers(), program.is_over()), (1, false));
    runtime.revoke(Capability::Timer);
    page.settle(&runtime);
    is_for_want_of("timer", &value(program.ended()));
    assert_eq!(denials(&runtime), ["timer: a task's timer"]);
    assert_eq!(runtime.core().live_timers(), 0);
    // Where both are denied, the clock is reported; each grant counts separately.
    runtime.revoke(Capability::Clock);
    runtime.grant(Capability::Timer);
    let program = runtime.start(async |cx: Cx| cx.sleep(TICK).await.unwrap_err()).unwrap();
    page.settle(&runtime);
    is_for_want_of("clock", &value(program.ended()));
    runtime.grant(Capability::Clock);
    let program = runtime.start(async |cx: Cx| cx.sleep(TICK).await.is_ok()).unwrap();
    page.run(&runtime);
    assert!(value(program.ended()));
}

/// Time continues from its last value: a sleep lasts as long as the clock advances. The jump is
/// recorded.
#[test]
fn a_clock_that_goes_back_holds_up_no_sleep() {
    let (page, runtime) = Page::open(Config::default());
    page.set_time(Time::from_millis(1000));
    let program = runtime
        .start(async |cx: Cx| {
            let start = cx.now();
            cx.sleep(Duration::from_millis(50)).await.unwrap();
            cx.now() - start
        })
        .unwrap();
    page.settle(&runtime);
    page.turn_back(Duration::from_millis(900));
    // The clock was not read between the jump and the ring, so that time is lost.
    page.run_until(&runtime, Time::from_millis(200));
    let slept = value(program.ended());
    assert!(slept >= Duration::from_millis(50), "{slept:?}");
    let events = runtime.host_events(0);
    assert_eq!((events.len(), events[0].kind), (1, "scheduler_clock_went_back"));
    assert_eq!(events[0].detail, [("by_ns", "850000000".to_owned())]);
}

#[test]
fn without_the_clock_no_clock_is_read_and_time_stands_still() {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Clock);
    let (page, runtime) = Page::granting(Config::default(), granted);
    page.set_time(Time::from_millis(50));
    let program = runtime
        .start(async |cx: Cx| {
            cx.yield_now().await;
            cx.now()
        })
        .unwrap();
    page.run(&runtime);
    assert_eq!((value(program.ended()), page.counts().clock), (Time::ZERO, 0));
}

/// The recorded denials: capability and caller.
fn denials(runtime: &Runtime) -> Vec<String> {
    let is_denial = |event: &HostEvent| event.error_class == Some(Status::CapabilityDenied);
    let words = |event: HostEvent| {
        let values: Vec<_> = event.detail.iter().map(|(_, value)| value.as_str()).collect();
        values.join(": ")
    };
    runtime.host_events(0).into_iter().filter(is_denial).map(words).collect()
}

fn without_clock() -> (Arc<Page>, Runtime) {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Clock);
    Page::granting(Config::default(), granted)
}

#[track_caller]
fn is_for_want_of_the_clock(cancelled: &Cancelled) {
    is_for_want_of("clock", cancelled);
}

#[track_caller]
fn is_for_want_of(capability: &str, cancelled: &Cancelled) {
    assert_eq!(cancelled.kind(), Kind::ResourceUnavailable);
    let why = cancelled.to_string();
    assert!(why.contains(&format!("{capability} capability denied to a task's timer")), "{why}");
}

const READS: &str = "clock: a task's reading of the clock";
const WAITS: &str = "clock: a task's timer";
const TICK: Duration = Duration::from_millis(1);

/// Checks that a wait fails with the refusal, and that no host timer is set or retried.
fn wait_without_clock(wait: impl AsyncFnOnce(&Cx) -> Result<(), Cancelled> + 'static) {
    let (page, runtime) = without_clock();
    let program = runtime.start(async move |cx: Cx| wait(&cx).await.unwrap_err()).unwrap();
    page.run(&runtime);
    is_for_want_of_the_clock(&value(program.ended()));
    assert_eq!((page.counts().timers, page.counts().clock, page.timer()), (0, 0, None));
    assert_eq!(denials(&runtime), [READS, WAITS]);
}

#[test]
fn without_the_clock_a_wait_for_a_time_fails_and_says_who_was_denied_what() {
    wait_without_clock(async |cx| cx.sleep(TICK).await);
    wait_without_clock(async |cx| cx.interval(TICK).tick(cx).await.map(drop));
    wait_without_clock(async |cx| cx.timeout(TICK, async |cx| Err(cx.cancelled().await)).await);
    // Also inside a shield.
    wait_without_clock(async |cx| cx.shield(async |cx| cx.sleep(TICK).await).await);
    let (page, runtime) = without_clock();
    let program = runtime.start(async |cx: Cx| cx.try_sleep(cx.now() + TICK).map(drop)).unwrap();
    page.run(&runtime);
    assert_eq!(value(program.ended()), Err(TimerError::NoClock));
}

#[test]
fn a_clock_that_is_taken_away_ends_the_waits_that_are_under_way() {
    let (page, runtime) = Page::open(Config::default());
    let sleep = |runtime: &Runtime| runtime.start(async |cx: Cx| cx.sleep(HOUR).await).unwrap();
    let program = sleep(&runtime);
    page.settle(&runtime);
    assert_eq!((page.counts().timers, denials(&runtime)), (1, vec![]));
    runtime.revoke(Capability::Clock);
    page.settle(&runtime);
    is_for_want_of_the_clock(&value(program.ended()).unwrap_err());
    assert_eq!(denials(&runtime), [READS, WAITS]);
    // The host timer that was set still rings, without effect, and is not set again.
    page.run(&runtime);
    assert_eq!(page.counts().timers, 1);
    // Waits work again after the grant.
    runtime.grant(Capability::Clock);
    let program = sleep(&runtime);
    page.run(&runtime);
    assert!(value(program.ended()).is_ok());
    assert_eq!(denials(&runtime).len(), 2);
}

#[test]
fn a_deadline_waits_for_the_clock_without_trying_again() {
    let (page, runtime) = without_clock();
    let program = runtime
        .start(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let waits = s.task("waits").within(TICK);
                let waits = waits.spawn(async |cx: Cx| Err::<(), _>(cx.cancelled().await));
                Ok(waits.await.is_err())
            });
            scope.await.is_ok_and(|ended| ended)
        })
        .unwrap();
    page.run(&runtime);
    assert_eq!((page.counts().timers, program.is_over()), (0, false));
    assert_eq!(denials(&runtime), [READS, "clock: host timer"]);
    runtime.grant(Capability::Clock);
    page.run(&runtime);
    assert!(value(program.ended()));
}

#[test]
fn without_entropy_the_task_that_draws_is_cancelled_and_told_why() {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Entropy);
    let (page, runtime) = Page::granting(Config::default(), granted);
    let program = runtime
        .start(async |cx: Cx| {
            let drawn = cx.random();
            (drawn, cx.checkpoint().map_err(|cancelled| cancelled.to_string()))
        })
        .unwrap();
    page.run(&runtime);
    assert_eq!(page.counts().entropy, 0);
    let (drawn, checked) = value(program.ended());
    let why = checked.unwrap_err();
    assert_eq!(drawn, 0);
    assert!(why.contains("entropy capability denied to a task's random number"), "{why}");
    assert_eq!(runtime.host_events(0)[0].error_class, Some(Status::CapabilityDenied));
}

#[test]
fn a_capability_revoked_mid_run_stalls_the_pump_until_it_is_granted() {
    let (page, runtime) = Page::open(Config::default());
    let program = runtime
        .start(async |cx: Cx| {
            for _ in 0..600 {
                cx.yield_now().await;
            }
        })
        .unwrap();
    page.microtasks(&runtime);
    runtime.revoke(Capability::Post);
    page.run(&runtime);
    // The message that was on its way still arrives; the next one is denied.
    assert_eq!(runtime.certificate().ready, 512);
    assert!(runtime.pump_info().stalled && !program.is_over());
    assert_eq!(page.waiting(), (0, 0), "nothing else is called in its place");
    runtime.grant(Capability::Post);
    page.run(&runtime);
    assert!(program.is_over());
    assert!(denials(&runtime).contains(&"post: pump hand-off".to_owned()));
}

/// Yields until the task is cancelled. Returns the reason.
async fn yields(cx: &Cx) -> Cancelled {
    loop {
        cx.yield_now().await;
        if let Err(why) = cx.checkpoint() {
            return why;
        }
    }
}

/// The hand-off is needed only when the allowance is used up.
#[test]
fn without_messages_a_yield_fails_when_the_allowance_is_used_up() {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Post);
    let (page, runtime) = Page::granting(Config::default(), granted);
    let within = runtime.start(async |cx: Cx| {
        for _ in 0..100 {
            cx.yield_now().await;
        }
        cx.checkpoint().is_ok()
    });
    let within = within.unwrap();
    page.run(&runtime);
    assert!(value(within.ended()), "one turn has room for it");
    let programs = [(); 40].map(|()| runtime.start(async |cx: Cx| yields(&cx).await).unwrap());
    page.run(&runtime);
    for program in programs {
        let why = value(program.ended());
        assert_eq!(why.kind(), Kind::ResourceUnavailable);
        assert!(why.to_string().contains("post capability denied to pump hand-off"), "{why}");
    }
    assert_eq!((page.counts().handoffs, runtime.pump_info().stalled), (0, false));
    // The pump owes nothing: a later program runs, in another turn.
    page.set_time(page.time() + HOUR);
    let later = runtime.start(async |cx: Cx| cx.yield_now().await).unwrap();
    page.run(&runtime);
    assert!(later.is_over());
}

/// Work that does not yield waits for the grant, and so does a task that ignores the failure.
#[test]
fn without_messages_only_yields_fail_and_each_task_once() {
    let (page, runtime) = Page::open(Config {
        pump: PumpConfig { microtask_burst_limit: 4, ..PumpConfig::default() },
        ..Config::default()
    });
    runtime.revoke(Capability::Post);
    let deaf = runtime.start(async |cx: Cx| {
        for _ in 0..50 {
            cx.yield_now().await;
        }
        cx.checkpoint().is_ok()
    });
    let deaf = deaf.unwrap();
    let polls = Rc::new(Cell::new(0));
    let seen = polls.clone();
    let scope = runtime.start(async move |cx: Cx| {
        let scope = cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..10 {
                let seen = seen.clone();
                s.spawn_local(async move |_cx: Cx| {
                    seen.set(seen.get() + 1);
                    Ok(())
                });
            }
            Ok(())
        });
        scope.await.is_ok()
    });
    let scope = scope.unwrap();
    page.run(&runtime);
    assert!(polls.get() < 10 && !scope.is_over() && !deaf.is_over());
    assert!(runtime.pump_info().stalled);
    runtime.grant(Capability::Post);
    page.run(&runtime);
    assert_eq!(polls.get(), 10);
    assert!(value(scope.ended()), "what did not yield is not cancelled");
    assert!(!value(deaf.ended()));
}
