//! The task cell: wakes, polls, joins, cancels, and who frees what.

use std::sync::Arc;
use std::task::Poll;

use asx_kernel::cancel::Kind;
use loom::thread;

use super::*;
use crate::raw::claim_error;
use crate::raw::outcome::TaskError;

/// Guards the orderings of `wake`, `begin` and `end_poll_with`, and that a wake during a poll
/// makes the poller enqueue the task again.
#[test]
fn a_wake_reaches_a_task_that_is_being_polled() {
    explore_race(|swap| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let pass = gate.clone().pass();
        let mut task = place.spawn(&name, async move |_| {
            pass.await;
            Ok(7)
        });
        assert_eq!(place.line.run_one(), Some(true));
        // It waits. A first wake makes it run while the second one comes.
        let first = gate.waker();
        let second = gate.waker();
        first.wake();
        let line = place.line.clone();
        let other = place.line.clone();
        let poll = move || assert_ne!(line.run_one(), Some(false));
        race(swap, poll, move || {
            gate.open();
            second.wake();
            assert_ne!(other.run_one(), Some(false));
        });
        assert_eq!(place.line.run_all(), 0, "a wake made an entry too many");
        assert!(matches!(task.outcome(), Some(Ok(7))), "the wake was lost");
        drop(task);
        place.finish();
        assert!(is_freed(&name));
    });
}

/// Guards that of several wakes one makes the entry.
#[test]
fn two_wakes_at_once_make_one_entry() {
    explore(|| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let pass = gate.clone().pass();
        let mut task = place.spawn(&name, async move |_| {
            pass.await;
            Ok(7)
        });
        assert_eq!(place.line.run_one(), Some(true));
        let wakers = [gate.waker(), gate.waker()];
        gate.open();
        let threads = wakers.map(|waker| thread::spawn(move || waker.wake()));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(place.line.run_one(), Some(true));
        assert_eq!(place.line.run_one(), None);
        assert!(matches!(task.outcome(), Some(Ok(7))));
    });
}

/// Guards the hand-over of the join waker and the result: `give_waker`, `take_waker`, `complete`.
#[test]
fn a_join_is_woken_exactly_if_it_waits() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        let mut task = place.spawn(&name, async |_| Ok(7));
        let line = place.line.clone();
        let ((first, one), (second, two)) = (Wakes::new(), Wakes::new());
        let join = move || {
            let before = task.poll_end(&one);
            if before.is_ready() {
                return (task, before, false);
            }
            // As if the handle had moved to another task.
            let ended = task.poll_end(&two);
            (task, ended, true)
        };
        let ((mut task, ended, waited), _) = race(swap, join, move || line.run_one());
        let woken = (first.count(), second.count());
        match ended {
            Poll::Pending => {
                assert_eq!(woken, (0, 1));
                assert!(matches!(task.outcome(), Some(Ok(7))));
            }
            Poll::Ready(result) => {
                assert!(matches!(result, Ok(7)));
                // If it ended between the two polls the first waker was used, in vain.
                assert!(woken.0 <= usize::from(waited) && woken.1 == 0, "{woken:?}");
                let kept = [&first, &second].map(|wakes| Arc::strong_count(wakes) - 1);
                assert_eq!(kept, [0, 0], "no waker stays in the cell of a task that has ended");
            }
        }
        drop(task);
        assert!(is_freed(&name));
    });
}

/// Guards `complete` and `drop_handle`: the result is dropped once, by either.
#[test]
fn a_result_nobody_takes_is_dropped_once() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        let drops = Drops::default();
        let value = drops.clone();
        let mut kept = None;
        let task = place.spawn(&name, |cx| {
            kept = Some(cx);
            async move { Ok(value) }
        });
        let line = place.line.clone();
        race(swap, move || drop(task), move || line.run_one());
        // At once: not only with the cell, which somebody may keep for long.
        assert!(drops.count() == 1 && !is_freed(&name));
        drop(kept);
        assert!(is_freed(&name));
    });
}

/// Guards the claim of a failure: the handle and the scope both want it, and it is kept for either.
#[test]
fn a_failure_goes_to_the_handle_or_to_the_scope() {
    explore_race(|swap| {
        let place = Place::new().child(Policy::FailFast);
        let name = name();
        let drops = Drops::default();
        let error = drops.clone();
        let mut task = place.spawn(&name, async move |_| Err::<(), _>(Fault::Counted(error)));
        let line = place.line.clone();
        let region = place.region.clone();
        let handle = move || {
            let got = matches!(task.outcome(), Some(Err(TaskError::Err(Fault::Counted(_)))));
            drop(task);
            got
        };
        let scope = move || {
            line.run_all();
            let failed = region.take_failures()[0].take().unwrap();
            // SAFETY: the tasks of this region have this error type.
            let stop = unsafe { claim_error::<Fault>(&failed) };
            matches!(stop, Some(TaskError::Err(Fault::Counted(_))))
        };
        let (handle, scope) = race(swap, handle, scope);
        assert!(handle != scope, "by the handle: {handle}, by the scope: {scope}");
        assert_eq!(drops.count(), 1);
        // A failure cancels what is inside; the close is up to the author.
        place.region.end();
        assert!(place.region.poll_closed(Waker::noop()));
        assert!(is_freed(&name));
    });
}

/// Guards the orderings of `drop_reference`, and that every entry, waker and handle counts.
#[test]
fn a_cell_is_freed_once_after_all_have_let_go() {
    explore(|| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let pass = gate.clone().pass();
        let task = place.spawn(&name, async move |_| {
            pass.await;
            Ok(())
        });
        assert_eq!(place.line.run_one(), Some(true));
        let waker = gate.waker();
        gate.open();
        let wakes = thread::spawn(move || {
            waker.wake_by_ref();
            drop(waker);
        });
        let handles = thread::spawn(move || drop(task));
        place.line.run_all();
        wakes.join().unwrap();
        handles.join().unwrap();
        place.line.run_all();
        drop(gate);
        assert!(is_freed(&name));
    });
}

/// Guards the count of the extra entry a cancel makes for a task that stands in the line, and that
/// the end says what the body saw.
#[test]
fn a_cancel_finds_a_task_wherever_it_is() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        let task = place.spawn(&name, async move |cx: Cx| {
            // Woken while it is polled.
            cx.yield_now().await;
            Ok(cx.checkpoint().is_err())
        });
        let line = place.line.clone();
        let again = place.line.clone();
        // Not the kind that is said where no reason was noted.
        let reason = place.region.reason(Kind::Shutdown);
        let cancel = move || {
            let first = task.cancel_with(reason);
            again.run_one();
            (task, first)
        };
        let ((mut task, first), _) = race(swap, cancel, move || line.run_all());
        place.line.run_all();
        match task.outcome() {
            // It was cancelled too late to see it, or not at all.
            Some(Ok(false)) => {}
            Some(Err(TaskError::Cancelled(cancelled))) => {
                assert!(first);
                assert_eq!(cancelled.reason().kind, Kind::Shutdown);
            }
            _ => panic!("the end does not say what the body saw"),
        }
        drop(task);
        assert!(is_freed(&name));
    });
}

/// Guards that a request counts the reference of the entry it makes in the step that publishes the
/// request: nobody has a reference but the region and the entry in the line, which whoever runs it
/// finds dead as soon as the request can be seen.
#[test]
fn a_cancel_of_a_scope_meets_the_only_entry_of_a_task() {
    let cancels: [fn(&Arc<Region>); 2] =
        [|region| region.close_as(Kind::User), |region| region.fail(Kind::FailFast, 0)];
    for cancel in cancels {
        explore_race(move |swap| {
            let place = Place::new();
            let name = name();
            // Neither its handle nor its context is there any more.
            drop(place.spawn(&name, |_| async { Ok(()) }));
            let line = place.line.clone();
            let again = place.line.clone();
            let region = place.region.clone();
            let stop = move || {
                cancel(&region);
                again.run_one();
            };
            race(swap, stop, move || line.run_one());
            place.line.run_all();
            assert!(is_freed(&name));
            place.finish();
        });
    }
}

/// A place with a task that waits, and its waker, the only one: when it is used the task ends.
fn one_that_waits(name: &Arc<str>) -> (Place, Waker) {
    let place = Place::new();
    let gate = Gate::new();
    let pass = gate.clone().pass();
    drop(place.spawn(name, |_| async move {
        pass.await;
        Ok(())
    }));
    assert_eq!(place.line.run_one(), Some(true));
    let waker = gate.take_waker();
    gate.open();
    (place, waker)
}

/// Guards the same for a task that waits, whose waker is used up by the wake that queues it.
#[test]
fn a_cancel_of_a_scope_meets_a_wake_by_the_only_waker() {
    explore_race(|swap| {
        let name = name();
        let (place, waker) = one_that_waits(&name);
        let line = place.line.clone();
        let region = place.region.clone();
        let wake = move || {
            waker.wake();
            line.run_one();
        };
        race(swap, wake, move || region.close_as(Kind::User));
        place.line.run_all();
        assert!(is_freed(&name));
    });
}

/// Guards that who wakes a task keeps the host until it is out of it: the task may run, its region
/// close and the runtime end as soon as the entry is in the line.
#[test]
fn a_wake_by_value_is_out_of_the_host_before_that_is_gone() {
    explore_race(|swap| {
        let name = name();
        let (place, waker) = one_that_waits(&name);
        let runs = move || {
            place.line.run_one();
            // The runtime ends here, if the task has been woken.
            place.line.run_all();
            place.region.end();
            drop(place);
        };
        race(swap, move || waker.wake(), runs);
    });
}

/// Guards the references that a poll has in reserve: it hands wakers of its own task to another
/// thread, which uses or drops them as the poll ends, and nobody else has a reference.
#[test]
fn wakers_from_the_reserve_of_a_poll_outlive_it() {
    for uses in [Waker::wake as fn(Waker), drop] {
        explore_race(move |swap| {
            let place = Place::new();
            let name = name();
            let given = Arc::new(std::sync::Mutex::new(Vec::new()));
            let own = given.clone();
            let mut polls = 0;
            let body = std::future::poll_fn(move |cx| {
                polls += 1;
                if polls > 1 {
                    return Poll::Ready(Ok(()));
                }
                own.lock().unwrap().extend([cx.waker().clone(), cx.waker().clone()]);
                cx.waker().clone().wake();
                Poll::Pending
            });
            drop(place.spawn(&name, |_| body));
            let line = place.line.clone();
            let again = place.line.clone();
            let user = move || {
                let wakers = std::mem::take(&mut *given.lock().unwrap());
                wakers.into_iter().for_each(uses);
                again.run_one();
            };
            race(swap, move || line.run_all(), user);
            place.line.run_all();
            assert!(is_freed(&name));
        });
    }
}

/// Guards that force counts the poll it begins, or the entry it makes.
#[test]
fn force_meets_the_only_entry_of_a_task() {
    explore_race(|swap| {
        let place = Place::new();
        let name = name();
        drop(place.spawn(&name, |_| std::future::pending::<Result<(), Fault>>()));
        let line = place.line.clone();
        let region = place.region.clone();
        place.region.close_as(Kind::User);
        let force = move || {
            region.force_inside(true, false);
        };
        race(swap, force, move || line.run_all());
        place.region.force_inside(true, false);
        place.line.run_all();
        assert!(place.region.poll_closed(Waker::noop()));
        assert!(is_freed(&name));
    });
}

/// Guards the same with a task that waits and is woken, while two threads run entries.
#[test]
fn a_cancel_and_a_wake_leave_no_entry_behind() {
    explore(|| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let pass = gate.clone().pass();
        let mut task = place.spawn(&name, async move |cx: Cx| {
            pass.await;
            Ok(cx.checkpoint().is_err())
        });
        assert_eq!(place.line.run_one(), Some(true));
        let waker = gate.waker();
        gate.open();
        let line = place.line.clone();
        let waking = thread::spawn(move || {
            waker.wake();
            line.run_one();
        });
        let first = task.cancel("model");
        place.line.run_one();
        waking.join().unwrap();
        place.line.run_all();
        let outcome = task.outcome();
        assert!(match outcome {
            Some(Ok(saw)) => !saw,
            Some(Err(TaskError::Cancelled(_))) => first,
            _ => false,
        });
        drop((task, gate));
        assert!(is_freed(&name));
    });
}

/// Guards the lock bit of the cancel, and that one request is the first.
#[test]
fn of_two_cancels_one_is_first_and_the_stronger_stays() {
    explore(|| {
        let place = Place::new();
        let name = name();
        let task = Arc::new(place.spawn(&name, async move |cx: Cx| {
            let cancelled = cx.checkpoint().unwrap_err();
            assert!(cx.checkpoint().is_err(), "seen once, it stays");
            drop(cancelled);
            Ok(())
        }));
        let other = task.clone();
        let reason = |kind| place.region.reason(kind);
        let weak = reason(Kind::User);
        let strong = reason(Kind::Shutdown);
        let cancels = thread::spawn(move || other.cancel_with(strong));
        let first = [task.cancel_with(weak), cancels.join().unwrap()];
        assert!(first[0] != first[1], "first: {first:?}");
        place.line.run_all();
        let mut task = Arc::into_inner(task).unwrap();
        match task.outcome() {
            Some(Err(TaskError::Cancelled(cancelled))) => {
                assert_eq!(cancelled.reason().kind, Kind::Shutdown);
            }
            _ => panic!("it was cancelled and ended otherwise"),
        }
        drop(task);
        assert!(is_freed(&name));
    });
}

/// Guards that a further request leaves a task that waits as it is: it can be woken.
#[test]
fn a_task_that_was_cancelled_twice_can_still_be_woken() {
    explore_race(|swap| {
        let place = Place::new();
        let gate = Gate::new();
        let name = name();
        let pass = gate.clone().pass();
        let mut task = place.spawn(&name, async move |_| {
            pass.await;
            Ok(7)
        });
        task.cancel("model");
        place.line.run_all();
        let waker = gate.waker();
        let wake = move || {
            gate.open();
            waker.wake();
        };
        let cancel = move || {
            assert!(!task.cancel("model"), "it was asked before");
            task
        };
        ((), task) = race(swap, wake, cancel);
        assert_eq!(place.line.run_all(), 0);
        assert!(matches!(task.outcome(), Some(Ok(7))), "it is deaf");
    });
}
