//! Blocking jobs: the thread that is to run one, and a cancel.

use std::sync::Arc;

use asx_kernel::cancel::Kind;

use super::*;
use crate::raw::BLOCKING;
use crate::raw::foreign_wakers::{self, Registration};
use crate::raw::outcome::TaskError;
use crate::spawn::make;

/// Guards that a job runs once and keeps its value, or was cancelled and never runs, whoever takes
/// which of its two entries first.
#[test]
fn a_job_runs_or_was_cancelled_before() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        let runs = Arc::new(AtomicUsize::new(0));
        let attrs = Some(Box::new(TaskAttrs { name: Some(name.clone()), ..TaskAttrs::default() }));
        let plan = Plan { pin: BLOCKING, attrs, ..Plan::default() };
        let counted = runs.clone();
        let job = |_| async move { Ok::<_, Fault>(counted.fetch_add(1, Relaxed)) };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&place.region, plan, job) };
        let entry = entry.unwrap_or_default().unwrap();
        let line = place.line.clone();
        let cancel = move || {
            let first = task.cancel("model");
            line.run_one();
            (task, first)
        };
        let ((mut task, first), polled) = race(swap, cancel, move || entry.run());
        assert_eq!(place.line.run_one(), None, "an entry too many");
        match task.outcome() {
            // On its own thread only: a worker must not block.
            Some(Ok(0)) => assert!(polled && runs.load(Relaxed) == 1),
            Some(Err(TaskError::Cancelled(_))) => assert!(first && runs.load(Relaxed) == 0),
            _ => panic!("it neither ran nor was cancelled"),
        }
        drop(task);
        place.finish();
        assert!(is_freed(&name));
    });
}

/// Guards that a job which leaves a waker of its own as a request comes is woken, or has seen it:
/// both change the task's word.
fn a_waker_that_a_job_leaves(request: fn(&Place, &Task<(), Fault>)) {
    let run = move |swap| {
        let (place, (wakes, waker)) = (Place::new(), Wakes::new());
        // Itself, if it has not seen the request, and what it left.
        let found = Arc::new(std::sync::Mutex::new((None, Registration::NONE)));
        let plan = Plan { pin: BLOCKING, ..Plan::default() };
        let own = found.clone();
        let job = |cx: Cx| async move {
            let mut found = own.lock().unwrap();
            found.0 = cx.checkpoint().is_ok().then(|| cx.clone());
            found.1.wait(cx.task(), &waker);
            Ok(())
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&place.region, plan, job) };
        let entry = entry.unwrap_or_default().unwrap();
        let asked = place.clone();
        let cancel = move || {
            request(&asked, &task);
            asked.line.run_one();
            task
        };
        let (task, _) = race(swap, cancel, move || entry.run());
        let (waits, registration) = std::mem::take(&mut *found.lock().unwrap());
        let asked = waits.is_some_and(|cx| cx.task().reason().is_some());
        assert!(!asked || wakes.count() > 0, "it would wait for ever");
        drop((registration, task));
        place.finish();
    };
    explore_race(run);
}

#[test]
fn a_request_to_a_job_and_a_waker_that_it_leaves_see_each_other() {
    a_waker_that_a_job_leaves(|_, task| _ = task.cancel("model"));
}

#[test]
fn a_request_to_a_region_and_a_waker_that_its_job_leaves_see_each_other() {
    a_waker_that_a_job_leaves(|place, _| place.region.close_as(Kind::User));
}

/// Guards that an operation which comes with another waker than before replaces the old one only
/// while it shares it with nobody.
#[test]
fn a_waker_that_two_operations_share_is_not_replaced_by_one() {
    explore_race(|swap| {
        let place = Place::new();
        let task = place.spawn(&name(), |_| std::future::pending::<Result<(), Fault>>());
        let ((one, old), (two, new)) = (Wakes::new(), Wakes::new());
        let task_ref = task.to_ref();
        let mine = task.to_ref();
        let other = task.to_ref();
        let mut first = Registration::NONE;
        first.wait(&mine, &old);
        let moves = move || {
            first.wait(&mine, &new);
            first
        };
        let shares = move || {
            let mut second = Registration::NONE;
            second.wait(&other, &old);
            second
        };
        let tickets = race(swap, moves, shares);
        foreign_wakers::notify(&task_ref);
        assert!(one.count() == 1 && two.count() == 1, "{} {}", one.count(), two.count());
        drop((tickets, task_ref, task));
        place.region.close_as(Kind::User);
        place.region.force_inside(true, false);
        place.line.run_all();
        assert!(place.region.poll_closed(Waker::noop()));
    });
}
