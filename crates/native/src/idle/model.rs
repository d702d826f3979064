//! Every interleaving of those who make work and those who park. Work is a flag stored and loaded
//! relaxed: only the fences make it seen. A lost wakeup is a deadlock, which the model reports.

use super::*;
use crate::prim::{Arc, atomic::AtomicBool, race};
use crate::reactor::presence::{Presence, Tick};
use ParkKind::{Closed, Last, Sleep, Watch};
use loom::{model::Builder, thread};

/// Three threads with locks have too many interleavings for all of them to be tried; nearly all
/// mistakes need but two preemptions.
fn model_of_three(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}

/// A place for one piece of work. It is put there by a swap, since loom does not order a store
/// against the swap that takes it; what others see by `has` is as weak as after a store.
#[derive(Debug, Default)]
struct Place(AtomicBool);

impl Place {
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
    own: Place,
    global: Place,
}

fn shared(workers: usize) -> Arc<Shared> {
    Arc::new(Shared { idle: Idle::new(workers), own: Place::default(), global: Place::default() })
}

/// A worker that waits for global work for ever, with no timeouts; whoever finds it ends all.
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

/// Guards the fences in `prepare_park` and `notify_remote`, and the closing in `shutdown`.
#[test]
fn global_work_is_found_by_one_of_two_who_park() {
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

/// Guards the check for closing in `prepare_park`.
#[test]
fn shutdown_reaches_those_who_park_meanwhile() {
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

/// Two threads, one of them a worker, that share what `start` makes; `end` sees what is left.
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
fn a_worker_finds_what_is_in_its_inbox() {
    let put = |shared: &Shared| {
        shared.global.put();
        shared.idle.notify_worker(1);
    };
    model_of_two(|| shared(2), |shared| serve(shared, 1), put, |_, served| assert!(served));
}

/// [`model_of_two`] of which the worker is the last that searches while worker 1 sleeps: whatever
/// both do, worker 1 is woken.
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

/// Guards the fence in `found_work`: a searcher takes one piece of work while another comes, for
/// which nobody is woken because of it.
#[test]
fn the_last_searcher_sees_global_work_that_relied_on_it() {
    // The searcher has some work already, and is busy with it for ever.
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

/// Guards the watch: without any fence, who parks next to an Active worker is not asleep for good.
#[test]
fn own_work_is_taken_or_watched_even_without_a_fence() {
    let park = |shared: &Shared| {
        let Shared { idle, own, .. } = shared;
        idle.start_search();
        let kind = idle.prepare_park(1);
        if own.has() {
            idle.cancel_park(1);
            return own.take();
        }
        kind == Watch || idle.park(1, None) == Woken::Notified
    };
    let put = |shared: &Shared| {
        shared.own.put();
        shared.idle.notify_local();
    };
    model_of_two(|| shared(2), park, put, |_, taken_or_watched| assert!(taken_or_watched));
}

/// Guards the caller's fence before `notify_local`, and that in `found_work`: the watcher gets up
/// and finds other work just when worker 0 relies on it.
#[test]
fn own_work_is_not_left_by_a_watcher_that_found_other_work() {
    let start = || {
        let shared = shared(3);
        for (worker, kind) in [(1, Watch), (2, Sleep)] {
            shared.idle.start_search();
            assert_eq!(shared.idle.prepare_park(worker), kind);
        }
        shared
    };
    let watch = |shared: &Shared| {
        shared.idle.cancel_park(1); // its time is over
        if shared.idle.found_work() && shared.own.has() {
            shared.idle.notify_local();
        }
    };
    let put = |shared: &Shared| {
        shared.own.put();
        fence(SeqCst);
        shared.idle.notify_local();
    };
    model_of_two(start, watch, put, |shared, ()| {
        assert_eq!(shared.idle.park(2, None), Woken::Notified);
    });
}

/// Guards the order in `prepare_park`, registered then look at the timers, against an arming from
/// outside.
#[test]
fn a_timer_armed_while_the_last_parks_is_seen_by_it() {
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

/// The sources that only worker 0 of the next model takes from.
#[derive(Clone, Copy, Debug)]
enum Own {
    Pinned,
    Queue,
    Lanes,
    Timer,
}

/// Worker 0 has an entry of its own and chooses the global one, which goes first; worker 1 may take
/// that just then. Worker 0 finds its own entry all the same, though it does not decide again
/// before it parks, and no watch ends by itself. Guards each field of `Sources`.
#[test]
fn a_worker_that_lost_the_entry_it_chose_does_not_park_with_its_own() {
    for own in [Own::Pinned, Own::Queue, Own::Lanes, Own::Timer] {
        model_of_three(move || {
            let shared = shared(2);
            shared.own.put();
            shared.global.put();
            let other = shared.clone();
            let other = thread::spawn(move || {
                other.idle.start_search();
                if other.global.take() {
                    // It is busy with that for ever.
                    other.idle.found_work();
                } else {
                    let _ = other.idle.prepare_park(1);
                }
            });
            run_all(&shared, own);
            other.join().unwrap();
        });
    }
}

/// Worker 0: runs what it can until the entry of its own is done.
fn run_all(shared: &Shared, own: Own) {
    let Shared { idle, own: entry, global } = shared;
    idle.start_search();
    loop {
        let found = if global.has() {
            global.take().then_some(false)
        } else {
            entry.take().then_some(true)
        };
        if let Some(own) = found {
            idle.found_work();
            if own {
                return;
            }
            idle.start_search();
            continue;
        }
        assert_ne!(idle.prepare_park(0), Closed);
        let seen = Sources {
            pinned: matches!(own, Own::Pinned) && entry.has(),
            queue: matches!(own, Own::Queue) && entry.has(),
            lanes: matches!(own, Own::Lanes) && entry.has(),
            global: global.has(),
            others: false,
            timer: matches!(own, Own::Timer) && entry.has(),
        };
        if seen.keep_awake() {
            idle.cancel_park(0);
        } else {
            idle.park(0, None);
        }
    }
}

/// Guards the fences in `notify_timers` and `found_work`: a timer is armed from outside while a
/// worker searches, to which it is left; that worker finds a task, is the last to search, and is
/// held up by it for ever. The one that sleeps is woken.
#[test]
fn a_timer_armed_while_the_last_searcher_finds_work_is_seen() {
    let find = |shared: &Shared| {
        // As `Worker::call_others` does when nobody gets up for the timer by itself.
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

/// What the operating system does: it keeps an event, and threads that wait for one.
#[derive(Debug, Default)]
struct Poll {
    state: Mutex<PollState>,
    changed: crate::prim::Condvar,
    /// Whoever is in there, or looks.
    driver: Mutex<()>,
    sources: Place,
}

#[derive(Debug, Default)]
struct PollState {
    event: bool,
    interrupted: bool,
}

impl Poll {
    /// Waits for an event, or for an interrupt.
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

/// A worker that waits for the event for ever, and does other work that comes; whoever finds the
/// event ends all.
fn serve_events(poll: &Poll, idle: &Idle, work: &Place, me: usize) -> bool {
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

/// Guards that every worker that parks tries the reactor, and not only the last: one is in there
/// when the other does some work and is the last to park; then the first gets up for nothing, and
/// is not the last.
#[test]
fn an_event_is_seen_after_the_worker_in_the_reactor_got_up_for_nothing() {
    model_of_three(|| {
        let (poll, idle) = with_poll(2);
        let work = Arc::new(Place::default());
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

/// Guards the same where one worker has the lock for a look while the other parks without it.
#[test]
fn an_event_is_seen_though_one_worker_looked_while_the_other_parked() {
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
                serve_events(&poll, &idle, &Place::default(), me)
            })
        });
        poll.send_event();
        let served = workers.map(|worker| worker.join().unwrap());
        assert!(served[0] != served[1]);
    });
}

/// Guards the interrupt in `Parker::unpark`: work comes from outside while the worker parks in the
/// reactor, where no event ever comes.
#[test]
fn a_worker_in_the_reactor_is_woken_for_global_work() {
    for swap in [false, true] {
        loom::model(move || {
            let (poll, idle) = with_poll(1);
            poll.sources.put();
            let work = Arc::new(Place::default());
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

/// Guards the notification for the first source: the worker parks where it would not see events.
#[test]
fn the_first_source_brings_a_sleeper_into_the_reactor() {
    for swap in [false, true] {
        loom::model(move || {
            let (poll, idle) = with_poll(1);
            let worker = {
                let poll = poll.clone();
                let idle = idle.clone();
                move || serve_events(&poll, &idle, &Place::default(), 0)
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

/// Guards the fences of `Presence`: one worker leaves the reactor for a task that holds it up for
/// ever just when the other, which ticks, finds that it is in there. The next event is seen.
#[test]
fn an_event_is_seen_though_the_worker_in_the_reactor_left_for_good() {
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
                    // As `Worker::call_others` does.
                    if idle.found_work() && !presence.is_watched() {
                        idle.notify_local();
                    }
                }
            };
            let ticks = move || {
                loop {
                    match ticking.next() {
                        // The next tick is another time.
                        Tick::Again => thread::yield_now(),
                        Tick::Look => return,
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
