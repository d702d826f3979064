//! Nothing that is runnable in a page waits for long, whatever is cancelled or yields for ever.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use asx_kernel::journal::WhenFull;
use asx_runtime::{Cancelled, Cx, Recording, Scope};
use asx_web::page::Page;
use asx_web::{Capabilities, Capability, Config, Ended};

const HOUR: Duration = Duration::from_secs(3600);

fn value<T>(ended: Option<Ended<T>>) -> T {
    match ended {
        Some(Ended::Value(value)) => value,
        _ => panic!("the program gave no value"),
    }
}

/// Tasks that were cancelled while they waited go before another one at most as often as the streak
/// allows, with a journal and without: the entries they leave behind take no turn.
#[test]
fn entries_that_a_cancel_left_behind_take_no_turn() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    for journal in [false, true] {
        let mut config = Config::default();
        if journal {
            config.settings.journal = Some(Recording::new(1000, WhenFull::Overwrite));
        }
        let (page, runtime) = Page::open(config);
        let program = runtime
            .start(async |cx: Cx| {
                let ran = Arc::new(AtomicUsize::new(0));
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    let one = |_| {
                        let ran = ran.clone();
                        s.spawn(async move |cx: Cx| {
                            cx.cancelled().await;
                            ran.fetch_add(1, SeqCst);
                            Ok(())
                        })
                    };
                    let tasks: Vec<_> = (0..2000).map(one).collect();
                    tasks.iter().for_each(|task| _ = task.cancel("go"));
                    let ran = ran.clone();
                    let last = s.spawn(async move |_cx: Cx| Ok(ran.load(SeqCst)));
                    Ok(last.await.unwrap_or(usize::MAX))
                });
                scope.await.unwrap_or(usize::MAX)
            })
            .unwrap();
        page.run(&runtime);
        let before = value(program.ended());
        assert!(before <= 16, "journal {journal}: after {before}");
        assert_eq!(runtime.certificate().effective_exceedances, 0);
    }
}

/// A future that waits for its waker, and counts its polls.
#[derive(Clone, Default)]
struct Polled(Rc<RefCell<(u64, Option<Waker>)>>);

impl Polled {
    fn wait(&self) -> impl Future<Output = ()> + 'static {
        let polled = self.clone();
        std::future::poll_fn(move |cx| {
            *polled.0.borrow_mut() = (polled.polls() + 1, Some(cx.waker().clone()));
            Poll::Pending
        })
    }

    fn polls(&self) -> u64 {
        self.0.borrow().0
    }

    fn wake(&self) {
        let waker = self.0.borrow().1.clone();
        waker.expect("it was polled").wake();
    }
}

/// Page code runs between the drains of a turn, and wakes a task each time: its time counts, and
/// the turn ends when the allowance is used up.
#[test]
fn time_of_page_code_between_drains_counts_towards_the_turn() {
    let (page, runtime) = Page::open(Config::default());
    let task = Polled::default();
    let waits = task.wait();
    let _program = runtime.start(move |_| waits).unwrap();
    page.microtasks(&runtime);
    let page_code = |ms: u64| {
        page.set_time(page.time() + Duration::from_millis(ms));
        task.wake();
        page.microtasks(&runtime);
    };
    page_code(3);
    assert_eq!((task.polls(), page.waiting()), (2, (0, 0)));
    page_code(1);
    assert_eq!((task.polls(), page.waiting()), (2, (0, 1)), "4 ms are used up: a hand-off");
    page.settle(&runtime);
    assert_eq!(task.polls(), 3);
    // Another host turn of the page: a microtask will do again.
    page_code(3);
    assert_eq!((task.polls(), page.waiting()), (4, (0, 0)));
}

/// The same by steps: wakes from page code in one turn share its 256 steps.
#[test]
fn steps_of_all_drains_of_a_turn_are_counted_together() {
    let (page, runtime) = Page::open(Config::default());
    let task = Polled::default();
    let waits = task.wait();
    let _program = runtime.start(move |_| waits).unwrap();
    page.microtasks(&runtime);
    for _ in 0..1000 {
        task.wake();
        page.microtasks(&runtime);
    }
    assert_eq!((task.polls(), page.waiting()), (256, (0, 1)));
}

/// A step that releases page code ends the drain, which resumes in the same turn as long as its
/// allowance lasts.
#[test]
fn page_code_that_steps_release_runs_between_them() {
    for (micros, steps_per_turn) in [(0, 256), (1000, 4), (3000, 2), (10_000, 1)] {
        let (page, runtime) = Page::open(Config { host_events: 10_000, ..Config::default() });
        let (handle, clock) = (runtime.handle(), page.clone());
        let program = runtime
            .start(async move |cx: Cx| {
                for _ in 0..300 {
                    handle.yield_to_page();
                    clock.set_time(clock.time() + Duration::from_micros(micros));
                    cx.yield_now().await;
                }
            })
            .unwrap();
        page.run(&runtime);
        assert!(program.is_over());
        let mut turns = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        for event in runtime.host_events(0) {
            if event.kind == "scheduler_step_decision" {
                let (steps, last) = turns.entry(event.host_turn_id).or_default();
                assert!(event.microtask_batch_id > *last, "one step per drain");
                (*steps, *last) = (*steps + 1, event.microtask_batch_id);
            }
        }
        let most = turns.values().map(|(steps, _)| *steps).max();
        assert_eq!(most, Some(steps_per_turn), "pieces of {micros} us");
    }
}

/// Where no message may be posted the ends of turns are not reported. Work of separate turns is
/// not held up, and a task that page code wakes for ever is.
#[test]
fn without_messages_a_pause_ends_a_turn() {
    let mut granted = Capabilities::all();
    granted.revoke(Capability::Post);
    let (page, runtime) = Page::granting(Config::default(), granted);
    let task = Polled::default();
    let waits = task.wait();
    let _program = runtime.start(move |_| waits).unwrap();
    page.microtasks(&runtime);
    for nth in 2..100 {
        page.set_time(page.time() + Duration::from_millis(16));
        task.wake();
        page.microtasks(&runtime);
        assert_eq!(task.polls(), nth);
    }
    let before = task.polls();
    for _ in 0..100 {
        page.set_time(page.time() + Duration::from_millis(1));
        task.wake();
        page.microtasks(&runtime);
    }
    assert!(task.polls() <= before + 4, "{} polls", task.polls() - before);
    assert!(runtime.pump_info().stalled);
}

/// A task that always yields, with a far deadline or a high priority, leaves others their turns.
#[test]
fn a_task_that_always_yields_starves_nobody() {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    for timed in [false, true] {
        let (page, runtime) = Page::open(Config::default());
        let program = runtime
            .start(async move |cx: Cx| {
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    let stop = Arc::new(AtomicBool::new(false));
                    let task = s.task("special");
                    let task = if timed { task.within(HOUR) } else { task.priority(200) };
                    let stopped = stop.clone();
                    let special = task.spawn(async move |cx: Cx| {
                        let mut polls = 0;
                        while !stopped.load(SeqCst) {
                            polls += 1;
                            cx.yield_now().await;
                        }
                        Ok(polls)
                    });
                    for _ in 0..20 {
                        cx.yield_now().await;
                    }
                    stop.store(true, SeqCst);
                    Ok(special.await.unwrap_or(u64::MAX))
                });
                scope.await.unwrap_or(u64::MAX)
            })
            .unwrap();
        page.run(&runtime);
        let polls = value(program.ended());
        assert!(polls <= 23 * 65, "{polls} polls");
    }
}
