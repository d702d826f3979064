//! Explores every interleaving of producers and parking workers. Work is a flag with relaxed stores
//! and loads: only the fences make it visible. A lost wakeup is a deadlock, which loom reports.

use super::*;
use crate::prim::{Arc, atomic::AtomicBool, race};
use crate::reactor::presence::{Presence, Tick};
use ParkKind::{Closed, Last, Sleep, Watch};
use loom::{model::Builder, thread};

/// Checks a model with three threads and at most three preemptions. Exploring all interleavings of
/// three threads with locks takes too long, and nearly all mistakes show with two preemptions.
fn model_of_three(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}

/// Space for one piece of work. `put` is a swap because loom does not order a store against the
/// swap in `take`. For `has` it is as weak as a store.
#[derive(Debug, Default)]
struct Work(AtomicBool);

impl Work {
    fn put(&self) {
        self.0.swap(true, Relaxed);
    }

    fn has(&self) -> bool {
        self.0.load(Relaxed)
    }

    fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}

struct Shared {
    idle: Idle,
    local: Work,
    global: Work,
}

fn shared(workers: usize) -> Arc<Shared> {
    Arc::new(Shared { idle: Idle::new(workers), local: Work::default(), global: Work::default() })
}

/// A worker that waits for global work without timeouts. The one that finds it shuts down.
fn serve(shared: &Shared, me: usize) -> bool {
    let Shared { idle, global, .. } = shared;
    idle.start_search();
    loop {
        if global.take() {
            idle.found_work();
            idle.shutdown();
            return true;
        }
        if idle.prepare_park(me) == Closed {
            return false;
        }
        if global.has() {
            idle.cancel_park(me);
        } else {
            idle.park(me, None);
        }
    }
}

/// Guards the fences in `prepare_park` and `notify_remote`, and the wakeups of `shutdown`.
#[test]
fn global_work_is_found_by_one_of_two_parking_workers() {
    model_of_three(|| {
        let shared = shared(2);
        let workers = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || serve(&shared, me))
        });
        shared.global.put();
        shared.idle.notify_remote();
        let served = workers.map(|worker| worker.join().unwrap());
        assert!(served[0] != served[1]);
    });
}

/// Guards the check of `closed` in `prepare_park`.
#[test]
fn shutdown_reaches_workers_that_are_parking() {
    model_of_three(|| {
        let shared = shared(2);
        let workers = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || serve(&shared, me))
        });
        shared.idle.shutdown();
        assert_eq!(workers.map(|worker| worker.join().unwrap()), [false, false]);
    });
}

/// Runs a worker and another thread on the state that `start` makes; `end` checks what is left.
fn model_of_two<R: 'static>(
    start: fn() -> Arc<Shared>,
    worker: fn(&Shared) -> R,
    other: fn(&Shared),
    end: fn(&Shared, R),
) {
    for swap in [false, true] {
        loom::model(move || {
            let shared = start();
            let [one, two] = [shared.clone(), shared.clone()];
            let (result, ()) = race(swap, move || worker(&one), move || other(&two));
            end(&shared, result);
        });
    }
}

/// Guards the fences in `prepare_park` and `notify_worker`.
#[test]
fn a_worker_finds_work_in_its_inbox() {
    let put = |shared: &Shared| {
        shared.global.put();
        shared.idle.notify_worker(1);
    };
    model_of_two(|| shared(2), |shared| serve(shared, 1), put, |_, served| assert!(served));
}

/// [`model_of_two`] in which the worker is the last searcher while worker 1 sleeps. Worker 1 must
/// be woken.
fn model_of_a_sleeper(last_searcher: fn(&Shared), other: fn(&Shared)) {
    let start = || {
        let shared = shared(2);
        shared.idle.start_search();
        shared.idle.start_search();
        assert_eq!(shared.idle.prepare_park(1), Sleep);
        shared
    };
    model_of_two(start, last_searcher, other, |shared, ()| {
        assert_eq!(shared.idle.park(1, None), Woken::Notified);
    });
}

/// Guards the fence in `found_work`: a searcher takes one piece of work while another arrives, for
/// which no worker is woken because of that searcher.
#[test]
fn the_last_searcher_sees_global_work_that_relied_on_it() {
    // The searcher already has work, which never ends.
    let find = |shared: &Shared| {
        if shared.idle.found_work() && shared.global.has() {
            shared.idle.notify_remote();
        }
    };
    let put = |shared: &Shared| {
        shared.global.put();
        shared.idle.notify_remote();
    };
    model_of_a_sleeper(find, put);
}

/// Guards the watch: without any fence, a worker that parks beside an Active one watches.
#[test]
fn local_work_is_taken_or_watched_without_a_fence() {
    let park = |shared: &Shared| {
        let Shared { idle, local, .. } = shared;
        idle.start_search();
        let kind = idle.prepare_park(1);
        if local.has() {
            idle.cancel_park(1);
            return local.take();
        }
        kind == Watch || idle.park(1, None) == Woken::Notified
    };
    let put = |shared: &Shared| {
        shared.local.put();
        shared.idle.notify_local();
    };
    model_of_two(|| shared(2), park, put, |_, taken_or_watched| assert!(taken_or_watched));
}

/// Guards the fence of the caller before `notify_local`, and that in `found_work`: the watcher
/// wakes and finds other work just when worker 0 relies on it.
#[test]
fn local_work_is_noticed_when_the_watcher_finds_other_work() {
    let start = || {
        let shared = shared(3);
        for (worker, kind) in [(1, Watch), (2, Sleep)] {
            shared.idle.start_search();
            assert_eq!(shared.idle.prepare_park(worker), kind);
        }
        shared
    };
    let watch = |shared: &Shared| {
        shared.idle.cancel_park(1); // its timeout has passed
        if shared.idle.found_work() && shared.local.has() {
            shared.idle.notify_local();
        }
    };
    let put = |shared: &Shared| {
        shared.local.put();
        fence(SeqCst);
        shared.idle.notify_local();
    };
    model_of_two(start, watch, put, |shared, ()| {
        assert_eq!(shared.idle.park(2, None), Woken::Notified);
    });
}

/// Guards the order in `prepare_park` (register, then check the timers) against a timer that is
/// armed by another thread.
#[test]
fn a_timer_armed_while_the_last_worker_parks_is_seen_by_it() {
    let park = |shared: &Shared| {
        let Shared { idle, global: timer, .. } = shared;
        idle.start_search();
        assert_eq!(idle.prepare_park(0), Last);
        timer.has() || idle.park(0, None) == Woken::Notified
    };
    let arm = |shared: &Shared| {
        shared.global.put();
        shared.idle.notify_timers();
    };
    model_of_two(|| shared(1), park, arm, |_, seen| assert!(seen));
}

/// The sources from which only worker 0 of the next model takes.
#[derive(Clone, Copy, Debug)]
enum LocalSource {
    Pinned,
    Queue,
    Lanes,
    Timer,
}

/// Worker 0 has a local entry and chooses the global one, which goes first; worker 1 may take that
/// at the same time. Worker 0 finds its local entry although it does not decide again before it
/// parks, and no watch ends by itself. Guards each field of `Sources`.
#[test]
fn a_worker_that_lost_the_chosen_entry_does_not_park_with_local_work() {
    for local in [LocalSource::Pinned, LocalSource::Queue, LocalSource::Lanes, LocalSource::Timer] {
        model_of_three(move || {
            let shared = shared(2);
            shared.local.put();
            shared.global.put();
            let other = shared.clone();
            let other = thread::spawn(move || {
                other.idle.start_search();
                if other.global.take() {
                    // That work never ends.
                    other.idle.found_work();
                } else {
                    let _ = other.idle.prepare_park(1);
                }
            });
            run_all(&shared, local);
            other.join().unwrap();
        });
    }
}

/// Worker 0: runs entries until its local entry is done.
fn run_all(shared: &Shared, local: LocalSource) {
    let Shared { idle, local: entry, global } = shared;
    idle.start_search();
    loop {
        let found = if global.has() {
            global.take().then_some(false)
        } else {
            entry.take().then_some(true)
        };
        if let Some(local) = found {
            idle.found_work();
            if local {
                return;
            }
            idle.start_search();
            continue;
        }
        assert_ne!(idle.prepare_park(0), Closed);
        let seen = Sources {
            pinned: matches!(local, LocalSource::Pinned) && entry.has(),
            queue: matches!(local, LocalSource::Queue) && entry.has(),
            lanes: matches!(local, LocalSource::Lanes) && entry.has(),
            global: global.has(),
            others: false,
            timer: matches!(local, LocalSource::Timer) && entry.has(),
        };
        if seen.keep_awake() {
            idle.cancel_park(0);
        } else {
            idle.park(0, None);
        }
    }
}

/// Guards the fences in `notify_timers` and `found_work`: another thread arms a timer while a
/// worker searches, and leaves the timer to that worker. The worker finds a task that never ends
/// and is the last searcher. The sleeping worker is woken.
#[test]
fn a_timer_armed_while_the_last_searcher_finds_work_is_seen() {
    let find = |shared: &Shared| {
        // As `Worker::notify_others` does when no worker wakes for the timer by itself.
        if shared.idle.found_work() && shared.global.has() {
            shared.idle.notify_local();
        }
    };
    let arm = |shared: &Shared| {
        shared.global.put();
        shared.idle.notify_timers();
    };
    model_of_a_sleeper(find, arm);
}

/// A model of the operating system's selector: one event, and threads that wait for it.
#[derive(Debug, Default)]
struct Poll {
    state: Mutex<PollState>,
    changed: crate::prim::Condvar,
    /// Held by the thread that waits or polls.
    driver: Mutex<()>,
    sources: Work,
}

#[derive(Debug, Default)]
struct PollState {
    event: bool,
    interrupted: bool,
}

impl Poll {
    /// Waits for an event or an interrupt.
    fn wait(&self) {
        let mut state = lock(&self.state);
        while !state.event && !state.interrupted {
            state = self.changed.wait(state).unwrap();
        }
        state.interrupted = false;
    }

    fn take_event(&self) -> bool {
        std::mem::take(&mut lock(&self.state).event)
    }

    fn send_event(&self) {
        lock(&self.state).event = true;
        self.changed.notify_all();
    }
}

impl Interrupt for Poll {
    fn interrupt(&self) {
        lock(&self.state).interrupted = true;
        self.changed.notify_all();
    }
}

fn with_poll(workers: usize) -> (std::sync::Arc<Poll>, Arc<Idle>) {
    let poll = std::sync::Arc::new(Poll::default());
    let interrupt: std::sync::Arc<dyn Interrupt> = poll.clone();
    (poll, Arc::new(Idle::with_interrupt(workers, &interrupt)))
}

/// A worker that waits for the event and does other work that arrives. The one that finds the event
/// shuts down.
fn serve_events(poll: &Poll, idle: &Idle, work: &Work, me: usize) -> bool {
    idle.start_search();
    loop {
        if work.take() {
            idle.found_work();
            idle.start_search();
        }
        if idle.prepare_park(me) == Closed {
            return false;
        }
        if work.has() {
            idle.cancel_park(me);
            continue;
        }
        let driver = if poll.sources.has() { poll.driver.try_lock().ok() } else { None };
        let found = match driver {
            Some(driver) => {
                idle.rest_in(me, || poll.wait());
                let found = poll.take_event();
                drop(driver);
                found
            }
            None => {
                idle.rest(me, None);
                false
            }
        };
        idle.cancel_park(me);
        if found {
            idle.found_work();
            idle.shutdown();
            return true;
        }
    }
}

/// Guards that every parking worker tries the reactor, not only the last one: one worker is in the
/// reactor while the other does some work and is the last to park. Then the first wakes without a
/// reason, and is not the last.
#[test]
fn an_event_is_seen_after_a_spurious_wakeup_in_the_reactor() {
    model_of_three(|| {
        let (poll, idle) = with_poll(2);
        let work = Arc::new(Work::default());
        poll.sources.put();
        let workers = [0, 1].map(|me| {
            let poll = poll.clone();
            let idle = idle.clone();
            let work = work.clone();
            thread::spawn(move || serve_events(&poll, &idle, &work, me))
        });
        work.put();
        idle.notify_worker(1);
        poll.interrupt();
        poll.send_event();
        let served = workers.map(|worker| worker.join().unwrap());
        assert!(served[0] != served[1]);
    });
}

/// Guards the same if one worker holds the lock to poll while the other parks without it.
#[test]
fn an_event_is_seen_when_one_worker_polled_while_the_other_parked() {
    model_of_three(|| {
        let (poll, idle) = with_poll(2);
        poll.sources.put();
        let workers = [0, 1].map(|me| {
            let poll = poll.clone();
            let idle = idle.clone();
            thread::spawn(move || {
                let look = |driver| {
                    let found = poll.take_event();
                    drop(driver);
                    found
                };
                if me == 0 && poll.driver.try_lock().is_ok_and(look) {
                    idle.shutdown();
                    return true;
                }
                serve_events(&poll, &idle, &Work::default(), me)
            })
        });
        poll.send_event();
        let served = workers.map(|worker| worker.join().unwrap());
        assert!(served[0] != served[1]);
    });
}

/// Guards the interrupt in `Parker::unpark`: work arrives while the worker is parked in the
/// reactor, where no event follows.
#[test]
fn a_worker_in_the_reactor_is_woken_for_global_work() {
    for swap in [false, true] {
        loom::model(move || {
            let (poll, idle) = with_poll(1);
            poll.sources.put();
            let work = Arc::new(Work::default());
            let worker = {
                let poll = poll.clone();
                let idle = idle.clone();
                let work = work.clone();
                move || {
                    idle.start_search();
                    while !work.take() {
                        let _ = idle.prepare_park(0);
                        if !work.has() {
                            let driver = poll.driver.try_lock().unwrap();
                            idle.rest_in(0, || poll.wait());
                            drop(driver);
                        }
                        idle.cancel_park(0);
                    }
                }
            };
            let other = move || {
                work.put();
                idle.notify_remote();
            };
            race(swap, worker, other);
        });
    }
}

/// Guards the notification for the first source: the worker is parked outside the reactor.
#[test]
fn the_first_source_moves_a_sleeper_into_the_reactor() {
    for swap in [false, true] {
        loom::model(move || {
            let (poll, idle) = with_poll(1);
            let worker = {
                let poll = poll.clone();
                let idle = idle.clone();
                move || serve_events(&poll, &idle, &Work::default(), 0)
            };
            let register = move || {
                poll.sources.put();
                idle.notify_remote();
                poll.send_event();
            };
            let (served, ()) = race(swap, worker, register);
            assert!(served);
        });
    }
}

/// Guards the fences of `Presence`: one worker leaves the reactor for a task that never ends, just
/// when the other, which ticks, finds it in the reactor. The next event is seen.
#[test]
fn an_event_is_seen_when_the_worker_in_the_reactor_left_permanently() {
    for swap in [false, true] {
        loom::model(move || {
            let idle = Arc::new(Idle::new(2));
            let presence: &'static Presence = Box::leak(Box::default());
            idle.start_search();
            idle.start_search();
            assert_eq!(idle.prepare_park(0), Sleep);
            assert_eq!(idle.prepare_park(1), Last);
            let inside = presence.enter();
            let mut ticking = presence.tick().unwrap();
            let leaves = {
                let idle = idle.clone();
                move || {
                    drop(inside);
                    idle.cancel_park(0);
                    // As `Worker::notify_others` does.
                    if idle.found_work() && !presence.is_watched() {
                        idle.notify_local();
                    }
                }
            };
            let ticks = move || {
                loop {
                    match ticking.next() {
                        // The next tick is later.
                        Tick::Continue => thread::yield_now(),
                        Tick::Enter => return,
                        Tick::Stop => {
                            drop(ticking);
                            assert_eq!(idle.park(1, None), Woken::Notified);
                            return;
                        }
                    }
                }
            };
            race(swap, leaves, ticks);
        });
    }
}
