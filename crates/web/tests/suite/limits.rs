//! Limits and orders that a page can set.

use std::cell::RefCell;
use std::error::Error as _;
use std::rc::Rc;
use std::time::Duration;

use asx_kernel::cancel::ChainLimits;
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_runtime::{CancelError, Cancelled, Cx, Limits, Recording, Scope, TimerError, channel};
use asx_web::page::Page;
use asx_web::{Config, Ended};

use super::limited;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How a sleep ends in a page with this configuration.
fn sleep(config: Config, span: Duration) -> Result<(), Cancelled> {
    let (page, runtime) = Page::open(config);
    let program = runtime.start(async move |cx: Cx| cx.sleep(span).await).unwrap();
    page.run(&runtime);
    match program.ended() {
        Some(Ended::Value(slept)) => slept,
        _ => panic!("the program gave no value"),
    }
}

#[test]
fn timer_beyond_seven_days_is_refused_unless_the_page_allows_it() {
    assert_eq!(sleep(Config::default(), 7 * DAY), Ok(()));
    let refused = sleep(Config::default(), 8 * DAY).unwrap_err();
    let source = refused.source().and_then(|error| error.downcast_ref());
    assert_eq!(source, Some(&TimerError::TooFar));
    assert!(refused.to_string().contains("max_timer_duration"), "{refused}");
    let mut config = Config::default();
    config.settings.wheel.max_timer_duration = 8 * DAY;
    config.settings.wheel.max_wheel_duration = DAY / 2;
    config.settings.chain = ChainLimits { depth: 2, bytes: 4096 };
    assert_eq!(sleep(config, 8 * DAY), Ok(()));
}

// Forbidden behaviour FB-100 (ready and timed queue) and FB-103 (memory, channels).
#[test]
fn public_operations_beyond_a_limit_are_refused() {
    for name in limited::ANY_WORKERS.into_iter().chain(limited::ONE_WORKER) {
        let mut config = Config::default();
        config.settings.limits = Some(limited::limits_of(name));
        let (page, runtime) = Page::open(config);
        let program = runtime.start(async move |cx: Cx| limited::run(name, cx).await).unwrap();
        page.run(&runtime);
        assert!(matches!(program.ended(), Some(Ended::Value(()))), "{name}");
    }
}

// Forbidden behaviour FB-104: exceeded trace.
#[test]
fn full_journal_refuses_new_work_and_lets_the_program_end() {
    let mut config = Config::default();
    config.settings.journal = Some(Recording::new(200, WhenFull::Refuse));
    let (page, runtime) = Page::open(config);
    let program = runtime.start(limited::full_journal).unwrap();
    page.run(&runtime);
    assert!(matches!(program.ended(), Some(Ended::Value(()))));
}

#[test]
fn cancel_by_handle_beyond_the_limit_is_refused() {
    let mut config = Config::default();
    config.settings.limits = Some(Limits { cancel_queue: 1, ..Limits::default() });
    let (page, runtime) = Page::open(config);
    let program = runtime
        .start(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let [first, second] = [1, 2].map(|_| s.spawn(async |_cx: Cx| Ok(())));
                let answers = [first.try_cancel("one"), second.try_cancel("two")];
                Ok((answers, second.cancel("three")))
            });
            scope.await.unwrap()
        })
        .unwrap();
    page.run(&runtime);
    let Some(Ended::Value(answers)) = program.ended() else { panic!("no value") };
    assert_eq!(answers, ([Ok(true), Err(CancelError::LimitReached)], false));
    assert_eq!(runtime.root().health().refused_cancels, 1);
}

/// Tasks that become runnable against the order of their ids: in which order they run.
fn order_of_wakes(tie_break: TieBreak) -> Vec<usize> {
    let mut config = Config::default();
    config.scheduler.tie_break = tie_break;
    let (page, runtime) = Page::open(config);
    let log = Rc::new(RefCell::new(Vec::new()));
    let ran = log.clone();
    let program = runtime
        .start(async move |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let mut wakes = Vec::new();
                for n in 0..4 {
                    let (wake, mut woken) = channel::oneshot();
                    wakes.push(wake);
                    let ran = ran.clone();
                    s.spawn_local(async move |cx: Cx| {
                        woken.recv(&cx).await.unwrap();
                        ran.borrow_mut().push(n);
                        Ok(())
                    });
                }
                cx.yield_now().await;
                wakes.into_iter().rev().for_each(|wake| wake.send(()).unwrap());
                Ok(())
            });
            scope.await.unwrap();
        })
        .unwrap();
    page.run(&runtime);
    assert!(program.is_over());
    log.take()
}

#[test]
fn task_key_order_runs_equal_tasks_by_their_ids() {
    assert_eq!(order_of_wakes(TieBreak::Fifo), [3, 2, 1, 0]);
    assert_eq!(order_of_wakes(TieBreak::TaskKey), [0, 1, 2, 3]);
}
