use super::*;
use ParkKind::{Closed, Last, Sleep, Watch};
use asx_kernel::rng::DetRng;
use std::{
    sync::atomic::{AtomicBool, AtomicUsize},
    thread,
};

/// Starts a search and prepares to park.
fn park(idle: &Idle, worker: usize) -> ParkKind {
    idle.start_search();
    idle.prepare_park(worker)
}

/// Returns true if the worker was woken. Takes the token.
fn woken(idle: &Idle, worker: usize) -> bool {
    idle.parkers[worker].park(Some(Duration::ZERO)) == Woken::Notified
}

/// Returns the workers that were woken.
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
fn new_without_workers_panics() {
    Idle::new(0);
}

#[test]
fn one_worker_watches_the_others_sleep_and_the_last_covers_timers() {
    let idle = Idle::new(4);
    assert_eq!([1, 2, 3, 0].map(|worker| park(&idle, worker)), [Watch, Sleep, Sleep, Last]);
    // The watcher finds that no worker is Active; the timers are covered.
    assert_eq!(idle.park(1, Some(Duration::ZERO)), Woken::TimedOut);
    assert_eq!(idle.prepare_park(1), Sleep);
    assert_eq!(idle.counts(), Counts { timers_covered: true, ..counts(0, 0, 4, false) });
}

#[test]
fn no_worker_watches_while_others_only_search() {
    let idle = Idle::new(2);
    idle.start_search();
    idle.start_search();
    assert_eq!(idle.prepare_park(0), Sleep);
    assert_eq!(idle.prepare_park(1), Last);
}

#[test]
fn another_worker_watches_after_the_watcher_found_work() {
    let idle = Idle::new(3);
    assert_eq!([park(&idle, 1), park(&idle, 2)], [Watch, Sleep]);
    assert_eq!(idle.park(1, Some(Duration::ZERO)), Woken::TimedOut);
    assert!(idle.found_work());
    // No worker watches now, so the next push wakes the sleeper, which becomes the watcher.
    idle.notify_local();
    assert_eq!(idle.park(2, None), Woken::Notified);
    assert_eq!(idle.prepare_park(2), Watch);
}

#[test]
fn notify_local_wakes_a_sleeper_only_without_watcher_and_searcher() {
    let idle = Idle::new(3);
    idle.notify_local();
    assert_eq!(idle.counts(), counts(3, 0, 0, false));
    // With a watcher.
    assert_eq!([park(&idle, 1), park(&idle, 2)], [Watch, Sleep]);
    idle.notify_local();
    assert!(all_woken(&idle).is_empty());
    // With a searcher.
    idle.cancel_park(1);
    idle.notify_local();
    assert!(all_woken(&idle).is_empty());
    // With neither. The woken worker counts as a searcher at once, so one wakeup is enough.
    assert!(idle.found_work());
    idle.notify_local();
    assert_eq!(idle.counts(), counts(2, 1, 0, false));
    idle.notify_local();
    assert_eq!(all_woken(&idle), [2]);
}

#[test]
fn notify_remote_wakes_the_watcher_first_then_the_newest_sleeper() {
    let idle = Idle::new(4);
    idle.notify_remote();
    assert_eq!([1, 2, 3, 0].map(|worker| park(&idle, worker)), [Watch, Sleep, Sleep, Last]);
    for expected in [1, 0, 3, 2] {
        idle.notify_remote();
        idle.notify_remote();
        assert_eq!(all_woken(&idle), [expected], "one searcher is enough");
        assert!(idle.found_work());
    }
    idle.notify_remote();
    assert_eq!(all_woken(&idle), []);
    assert_eq!(idle.counts(), counts(4, 0, 0, false));
}

#[test]
fn found_work_is_true_for_the_last_searcher_only() {
    let idle = Idle::new(3);
    idle.start_search();
    idle.start_search();
    assert_eq!([idle.found_work(), idle.found_work()], [false, true]);
}

#[test]
fn notify_worker_wakes_parked_workers_only() {
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
fn cancel_park_after_a_wakeup_counts_the_worker_once() {
    let idle = Idle::new(1);
    assert_eq!(park(&idle, 0), Last);
    idle.notify_remote();
    idle.cancel_park(0);
    assert_eq!(idle.counts(), counts(0, 1, 0, false));
    // The token is left over: the next park returns immediately.
    assert_eq!(idle.prepare_park(0), Last);
    assert_eq!(idle.park(0, None), Woken::Notified);
    assert_eq!(idle.counts(), counts(0, 1, 0, false));
}

#[test]
fn timers_are_covered_by_the_last_worker_to_sleep_after_activity() {
    let idle = Idle::new(2);
    assert_eq!([park(&idle, 1), park(&idle, 0)], [Watch, Last]);
    // The watcher finds work, may arm timers, and sleeps: the deadline of worker 0 is outdated.
    idle.cancel_park(1);
    assert!(idle.found_work());
    assert_eq!(park(&idle, 1), Last);
    // The previous timer worker wakes, which leaves the timers covered.
    idle.cancel_park(0);
    assert_eq!(idle.prepare_park(0), Sleep);
    // The current timer worker wakes, which does not.
    idle.cancel_park(1);
    assert_eq!(idle.prepare_park(1), Last);
}

#[test]
fn notify_timers_wakes_the_worker_that_waits_for_timers() {
    let idle = Idle::new(3);
    idle.notify_timers();
    idle.start_search();
    assert_eq!([park(&idle, 1), park(&idle, 0)], [Watch, Sleep]);
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [], "a searcher will be the last to park");
    assert_eq!(idle.prepare_park(2), Last);
    idle.cancel_park(1);
    assert_eq!(idle.prepare_park(1), Sleep);
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [2]);
    // It becomes Active: another worker should watch now.
    assert!(idle.found_work());
    idle.notify_timers();
    assert_eq!(all_woken(&idle), [1]);
}

#[test]
fn shutdown_wakes_all_workers_and_prevents_parking() {
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

/// Threads take from one queue and park whenever it is empty; every item is taken.
#[test]
fn global_work_is_completed_by_threads_that_park() {
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
            // Alternates between bursts and single items, for which all threads are parking.
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
