use super::*;
use ParkKind::{Closed, Last, Sleep, Watch};
use asx_kernel::rng::DetRng;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize},
    thread,
};

/// Searches, finds nothing and parks.
fn park(idle: &Idle, worker: usize) -> ParkKind {
    idle.start_search();
    idle.prepare_park(worker)
}

/// Whether the worker was woken. Takes the token.
fn woken(idle: &Idle, worker: usize) -> bool {
    idle.parkers[worker].park(Some(Duration::ZERO)) == Woken::Notified
}

/// Who of so many workers was woken.
fn all_woken(idle: &Idle) -> Vec<usize> {
    (0..idle.parkers.len()).filter(|&worker| woken(idle, worker)).collect()
}

fn counts(active: u16, searching: u16, asleep: u16, watching: bool) -> Counts {
    Counts { active, searching, asleep, watching, timers_covered: false }
}

#[test]
fn counts_survive_packing() {
    let mut rng = DetRng::new(1, 0);
    for _ in 0..1000 {
        let word = rng.next_u64() & ((1 << 50) - 1);
        assert_eq!(Counts::unpack(word).pack(), word);
    }
    let max = MAX_WORKERS as u16;
    assert_eq!(counts(max, 0, 0, false), Counts::unpack(counts(max, 0, 0, false).pack()));
}

#[test]
#[should_panic(expected = "1 to 1024 workers, not 0")]
fn there_is_a_worker() {
    Idle::new(0);
}

#[test]
fn one_watches_the_others_sleep_the_last_has_the_timers() {
    let idle = Idle::new(4);
    assert_eq!([1, 2, 3, 0].map(|worker| park(&idle, worker)), [Watch, Sleep, Sleep, Last]);
    // The watcher finds that nobody is Active; the timers are covered.
    assert_eq!(idle.park(1, Some(Duration::ZERO)), Woken::TimedOut);
    assert_eq!(idle.prepare_park(1), Sleep);
    assert_eq!(idle.counts(), Counts { timers_covered: true, ..counts(0, 0, 4, false) });
}

#[test]
fn nobody_watches_searchers() {
    let idle = Idle::new(2);
    idle.start_search();
    idle.start_search();
    assert_eq!(idle.prepare_park(0), Sleep);
    assert_eq!(idle.prepare_park(1), Last);
}

#[test]
fn the_watch_is_passed_on() {
    let idle = Idle::new(3);
    assert_eq!([park(&idle, 1), park(&idle, 2)], [Watch, Sleep]);
    assert_eq!(idle.park(1, Some(Duration::ZERO)), Woken::TimedOut);
    assert!(idle.found_work());
    // Now nobody watches, so the next push wakes the sleeper, and it is the watcher.
    idle.notify_local();
    assert_eq!(idle.park(2, None), Woken::Notified);
    assert_eq!(idle.prepare_park(2), Watch);
}

#[test]
fn own_work_wakes_a_sleeper_only_if_nobody_looks() {
    let idle = Idle::new(3);
    idle.notify_local();
    assert_eq!(idle.counts(), counts(3, 0, 0, false));
    // A watcher looks.
    assert_eq!([park(&idle, 1), park(&idle, 2)], [Watch, Sleep]);
    idle.notify_local();
    assert!(all_woken(&idle).is_empty());
    // A searcher looks.
    idle.cancel_park(1);
    idle.notify_local();
    assert!(all_woken(&idle).is_empty());
    // Nobody does; the woken one is a searcher at once, so one is enough.
    assert!(idle.found_work());
    idle.notify_local();
    assert_eq!(idle.counts(), counts(2, 1, 0, false));
    idle.notify_local();
    assert_eq!(all_woken(&idle), [2]);
}

#[test]
fn global_work_wakes_the_watcher_first_then_who_slept_last() {
    let idle = Idle::new(4);
    idle.notify_remote();
    assert_eq!([1, 2, 3, 0].map(|worker| park(&idle, worker)), [Watch, Sleep, Sleep, Last]);
    for expected in [1, 0, 3, 2] {
        idle.notify_remote();
        idle.notify_remote();
        assert_eq!(all_woken(&idle), [expected], "a searcher is enough");
        assert!(idle.found_work());
    }
    idle.notify_remote();
    assert_eq!(all_woken(&idle), []);
    assert_eq!(idle.counts(), counts(4, 0, 0, false));
}

#[test]
fn only_the_last_searcher_looks_again() {
    let idle = Idle::new(3);
    idle.start_search();
    idle.start_search();
    assert_eq!([idle.found_work(), idle.found_work()], [false, true]);
}

#[test]
fn a_worker_is_woken_by_name_only_when_parked() {
    let idle = Idle::new(3);
    assert_eq!([park(&idle, 0), park(&idle, 1)], [Watch, Sleep]);
    idle.notify_worker(2);
    assert_eq!(all_woken(&idle), []);
    idle.notify_worker(1);
    idle.notify_worker(1);
    assert_eq!(all_woken(&idle), [1]);
    idle.notify_worker(0);
    assert_eq!(all_woken(&idle), [0]);
    assert_eq!(idle.counts(), counts(1, 2, 0, false));
}

#[test]
fn a_park_cancelled_after_the_wake_counts_once() {
    let idle = Idle::new(1);
    assert_eq!(park(&idle, 0), Last);
    idle.notify_remote();
    idle.cancel_park(0);
    assert_eq!(idle.counts(), counts(0, 1, 0, false));
    // The token is left over: the next park ends at once, and nothing is amiss.
    assert_eq!(idle.prepare_park(0), Last);
    assert_eq!(idle.park(0, None), Woken::Notified);
    assert_eq!(idle.counts(), counts(0, 1, 0, false));
}

#[test]
fn timers_pass_to_the_last_after_any_activity() {
    let idle = Idle::new(2);
    assert_eq!([park(&idle, 1), park(&idle, 0)], [Watch, Last]);
    // The watcher finds work, maybe arms timers, and sleeps: what worker 0 waits for is outdated.
    idle.cancel_park(1);
    assert!(idle.found_work());
    assert_eq!(park(&idle, 1), Last);
    // The old driver gets up: that does not uncover the timers.
    idle.cancel_park(0);
    assert_eq!(idle.prepare_park(0), Sleep);
    // The new driver does.
    idle.cancel_park(1);
    assert_eq!(idle.prepare_park(1), Last);
}

#[test]
fn a_timer_from_outside_reaches_who_waits_for_timers() {
    let idle = Idle::new(3);
    idle.notify_timers();
    idle.start_search();
    assert_eq!([park(&idle, 1), park(&idle, 0)], [Watch, Sleep]);
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [], "one still looks, and will be the last");
    assert_eq!(idle.prepare_park(2), Last);
    idle.cancel_park(1);
    assert_eq!(idle.prepare_park(1), Sleep);
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [2]);
    // It becomes Active: now somebody should watch.
    assert!(idle.found_work());
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [1]);
}

#[test]
fn shutdown_wakes_everybody_and_lets_nobody_park() {
    let idle = Idle::new(4);
    assert_eq!([1, 2, 3].map(|worker| park(&idle, worker)), [Watch, Sleep, Sleep]);
    idle.shutdown();
    assert_eq!(all_woken(&idle), [1, 2, 3]);
    assert_eq!(park(&idle, 0), Closed);
    assert_eq!(idle.counts(), counts(0, 4, 0, false));
    idle.shutdown();
    idle.notify_remote();
    assert_eq!(all_woken(&idle), []);
}

/// Threads that take from one queue and park whenever it is empty: all is taken.
#[test]
fn all_global_work_is_done_by_threads_that_park() {
    const ITEMS: usize = if cfg!(miri) { 100 } else { 20_000 };
    let idle = Idle::new(3);
    let left = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let take = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        for me in 0..3 {
            let idle = &idle;
            let left = &left;
            let done = &done;
            let take = &take;
            let stopped = &stopped;
            scope.spawn(move || {
                idle.start_search();
                loop {
                    if take() {
                        if idle.found_work() && left.load(Relaxed) > 0 {
                            idle.notify_remote();
                        }
                        done.fetch_add(1, Relaxed);
                        idle.start_search();
                    } else if idle.prepare_park(me) == Closed {
                        break stopped.store(true, Relaxed);
                    } else if left.load(Relaxed) > 0 {
                        idle.cancel_park(me);
                    } else {
                        idle.park(me, None);
                    }
                }
            });
        }
        for n in 0..ITEMS {
            left.fetch_add(1, Relaxed);
            idle.notify_remote();
            // In turns: all at once, or each after the last is done, when all are parking.
            while n / 100 % 2 == 0 && done.load(Relaxed) <= n {
                thread::yield_now();
            }
        }
        while done.load(Relaxed) < ITEMS {
            thread::yield_now();
        }
        assert!(!stopped.load(Relaxed));
        idle.shutdown();
    });
}
