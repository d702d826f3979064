//! Regions: the last task, the end, the close and the force, all at once.

use asx_kernel::cancel::Kind;
use loom::thread;

use super::*;
use crate::raw::outcome::TaskError;

/// Has a counting waker told of the close of a region.
fn watch_close(region: &Region) -> Arc<Wakes> {
    let (wakes, waker) = Wakes::new();
    assert!(!region.poll_closed(&waker));
    wakes
}

/// Guards that the last of several to finish closes the region, once, and tells the waiter and the
/// parent.
#[test]
fn the_last_task_the_end_and_a_close_close_once() {
    explore(|| {
        let parent = Place::new();
        let place = parent.child(Policy::CollectAll);
        let name = name();
        drop(place.spawn(&name, async |_| Ok(())));
        let closed = watch_close(&place.region);
        let around = watch_close(&parent.region);
        let line = place.line.clone();
        let region = place.region.clone();
        let runs = thread::spawn(move || line.run_all());
        let closes = thread::spawn(move || region.close_as(Kind::User));
        place.region.end();
        runs.join().unwrap();
        closes.join().unwrap();
        place.line.run_all();
        assert!(place.region.poll_closed(Waker::noop()));
        assert_eq!((closed.count(), around.count()), (1, 0));
        parent.finish();
        assert_eq!((closed.count(), around.count()), (1, 1));
        assert!(is_freed(&name));
    });
}

/// Guards that who asks for the close while it happens hears of it.
#[test]
fn who_waits_for_a_close_is_told() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        drop(place.spawn(&name, async |_| Ok(())));
        place.region.end();
        let line = place.line.clone();
        let region = place.region.clone();
        let (wakes, waker) = Wakes::new();
        let wait = move || region.poll_closed(&waker);
        let (closed, _) = race(swap, wait, move || line.run_all());
        assert_eq!(wakes.count(), usize::from(!closed));
        assert!(place.region.poll_closed(Waker::noop()));
    });
}

/// Guards that admission and the walk through the tasks are under one lock.
#[test]
fn a_task_is_refused_or_cancelled_when_its_region_closes() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        let closing = place.clone();
        let spawning = place.clone();
        let named = name.clone();
        let close = move || closing.region.close_as(Kind::User);
        let spawn = move || spawning.spawn(&named, async |cx: Cx| Ok(cx.checkpoint().is_err()));
        let ((), mut task) = race(swap, close, spawn);
        assert!(task.is_finished() || !place.region.poll_closed(Waker::noop()));
        place.line.run_all();
        assert!(matches!(task.outcome(), Some(Err(TaskError::Cancelled(_)))));
        drop(task);
        place.finish();
        assert!(is_freed(&name));
    });
}

/// Guards that who departs is taken off once, and that the end of the region waits for all of them.
#[test]
fn tasks_that_depart_while_the_region_ends_are_gone_when_it_is_closed() {
    explore(|| {
        let place = Place::new();
        place.region.meet();
        let names = [name(), name()];
        names.iter().for_each(|name| drop(place.spawn(name, async |_| Ok(()))));
        let closed = watch_close(&place.region);
        let line = place.line.clone();
        let runs = thread::spawn(move || line.run_all());
        place.line.run_one();
        place.region.end();
        runs.join().unwrap();
        place.line.run_all();
        assert!(place.region.poll_closed(Waker::noop()));
        assert_eq!(closed.count(), 1);
        assert!(names.iter().all(is_freed));
    });
}

/// Guards that places are used again only when they are empty, and that who finds none left takes
/// off all the others.
#[test]
fn whoever_looks_while_tasks_depart_takes_each_of_them_off_once() {
    explore_race(|swap| {
        let place = Place::new();
        place.region.meet();
        let names = [name(), name(), name(), name()];
        names.iter().for_each(|name| drop(place.spawn(name, async |_| Ok(()))));
        let one = place.clone();
        let other = place.clone();
        let run = move || {
            one.line.run_one();
            one.region.lock().word.live_tasks()
        };
        let run_more = move || {
            other.line.run_one();
            other.line.run_one();
            other.line.run_one();
        };
        let (live, ()) = race(swap, run, run_more);
        assert!(live < 4, "its own task has ended");
        assert_eq!(place.region.lock().word.live_tasks(), 0);
        assert!(names.iter().all(is_freed));
        place.finish();
    });
}

/// Guards the same for regions inside, and that what closes inside reaches the region around.
#[test]
fn a_region_is_refused_or_closed_when_the_one_around_closes() {
    explore_race(|swap| {
        let place = Place::new();
        let closing = place.clone();
        let opening = place.clone();
        let close = move || closing.region.close_as(Kind::User);
        let open = move || opening.region.open_child(Policy::CollectAll, Budget::INFINITE, None);
        let ((), opened) = race(swap, close, open);
        if let Ok(inner) = opened {
            assert!(inner.body_cancel(false).is_some());
            assert!(inner.poll_closed(Waker::noop()));
        }
        assert!(place.region.poll_closed(Waker::noop()));
    });
}

/// Guards the order in a scope: the body's waker is noted before the body looks.
#[test]
fn a_close_reaches_a_body_that_is_about_to_wait() {
    explore_race(|swap| {
        let place = Place::new();
        let region = place.region.clone();
        let (wakes, waker) = Wakes::new();
        let watched = place.region.clone();
        let body = move || {
            watched.watch_body(&waker);
            watched.body_cancel(true).is_some()
        };
        let close = move || region.close_as(Kind::User);
        let (seen, ()) = race(swap, body, close);
        assert!(seen || wakes.count() == 1, "the body waits and nobody tells it");
        assert!(place.region.body_cancel(true).is_some());
    });
}

/// Guards the entry a force makes, and that a task is ended by one: its own end or the force.
#[test]
fn a_force_and_an_end_of_its_own_end_a_task_once() {
    explore_race(|swap| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let drops = Drops::default();
        let pass = gate.clone().pass();
        let held = drops.clone();
        let mut task = place.spawn(&name, async move |_| {
            let _held = held;
            pass.await;
            Ok(7)
        });
        let closed = watch_close(&place.region);
        place.region.close_as(Kind::User);
        place.line.run_all();
        let waker = gate.waker();
        gate.open();
        let line = place.line.clone();
        let forced = place.clone();
        let end = move || {
            waker.wake();
            line.run_one();
        };
        let force = move || {
            forced.region.force_inside(true, true);
            forced.line.run_one();
        };
        race(swap, end, force);
        place.line.run_all();
        assert!(matches!(task.outcome(), Some(Ok(7) | Err(TaskError::Cancelled(_)))));
        assert_eq!(drops.count(), 1);
        assert_eq!(closed.count(), 1);
        drop((task, gate));
        assert!(is_freed(&name));
    });
}
