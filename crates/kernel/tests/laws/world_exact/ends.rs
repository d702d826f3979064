//! Optional behaviour at the end: cleanup after an abort, and outcomes that are kept.

use super::*;

fn cleaning() -> W {
    World::new(Config { forced_cleanup: true, ..Config::default() })
}

/// Returns a waiting task with these entries on its cleanup stack.
fn deaf(w: &mut W, region: RegionId, entries: &[u32]) -> TaskId {
    let task = spawn(w, region);
    assert_eq!(poll(w, PollEnd::Pending), task);
    for entry in entries {
        w.push_cleanup(task, *entry).unwrap();
    }
    task
}

/// Polls an entry of a task's stack. Returns its number.
fn entry(w: &mut W, task: TaskId, how: PollEnd) -> u32 {
    let step = w.next(w.now(), &mut First);
    assert!(
        matches!(step, Ok(Step::Poll { task: polled, part: Part::Cleanup, .. }) if polled == task)
    );
    let payload = w.take_payload(task).unwrap();
    w.polled(task, payload, how).unwrap();
    w.check().unwrap();
    payload
}

#[test]
fn abort_ends_the_body_and_the_cleanup_stack_runs() {
    let mut w = cleaning();
    let task = deaf(&mut w, ROOT, &[1, 2]);
    w.close_region(ROOT, ask(Kind::User), Some(ms(5))).unwrap();
    log(&mut w);
    poll(&mut w, PollEnd::Pending);
    w.set_now(Time::ZERO + ms(5));
    w.expire();
    assert_eq!(log(&mut w), ["grace_expired region=1", "cleanup_overrun task=1 region=1 polls=0"]);
    assert_eq!(w.take_released(), [0], "the body");
    assert_eq!(w.task(task).unwrap().state, TaskState::CancelRequested);
    assert_eq!(entry(&mut w, task, PollEnd::Ready), 2);
    assert_eq!(entry(&mut w, task, failed()), 1);
    let view = w.task(task).unwrap();
    assert_eq!((view.state, view.overrun), (TaskState::Completed, true));
    assert_eq!(view.outcome.unwrap().severity(), Severity::Cancelled);
    assert!(view.cleanup_error.is_some());
    assert_eq!((w.cleanups_cut(), w.region(ROOT).unwrap().state), (0, RegionState::Closed));
}

#[test]
fn without_forced_cleanup_the_stack_is_dropped() {
    let mut w = world();
    let task = deaf(&mut w, ROOT, &[1, 2]);
    w.close_region(ROOT, ask(Kind::User), Some(ms(5))).unwrap();
    w.set_now(Time::ZERO + ms(5));
    w.expire();
    assert_eq!(w.task(task).unwrap().state, TaskState::Completed);
    assert_eq!((w.take_released(), w.cleanups_cut()), (vec![2, 1, 0], 2));
}

#[test]
fn cleanup_after_abort_is_bounded_by_the_grace_or_its_polls() {
    let mut w = cleaning();
    let waits = deaf(&mut w, ROOT, &[1, 2]);
    let runs = deaf(&mut w, ROOT, &[3]);
    w.close_region(ROOT, ask(Kind::Shutdown), Some(ms(5))).unwrap();
    w.set_now(Time::ZERO + ms(5));
    w.expire();
    w.take_released();
    assert_eq!(entry(&mut w, waits, PollEnd::Pending), 2);
    for _ in 0..50 {
        assert_eq!(entry(&mut w, runs, PollEnd::Pending), 3);
        w.wake(runs).unwrap();
    }
    assert_eq!(idle(&mut w), Some(Time::ZERO + ms(10)));
    assert_eq!((w.take_released(), w.cleanups_cut()), (vec![3], 1));
    assert_eq!(w.task(runs).unwrap().state, TaskState::Completed);
    w.set_now(Time::ZERO + ms(10));
    w.expire();
    assert_eq!((w.take_released(), w.cleanups_cut()), (vec![1, 2], 3));
    assert_eq!(w.region(ROOT).unwrap().state, RegionState::Closed);
}

#[test]
fn a_zero_grace_lets_runnable_cleanup_continue() {
    let mut w = cleaning();
    let cleans = deaf(&mut w, ROOT, &[1, 2]);
    w.defer(ROOT, 7).unwrap();
    w.close_region(ROOT, ask(Kind::User), Some(Duration::ZERO)).unwrap();
    assert_eq!(entry(&mut w, cleans, PollEnd::Ready), 2);
    assert_eq!(entry(&mut w, cleans, PollEnd::Pending), 1);
    let finalizer = begin(&mut w);
    assert_eq!(w.task(cleans).unwrap().state, TaskState::Completed);
    assert_eq!(w.cleanups_cut(), 1);
    end(&mut w, finalizer, PollEnd::Pending);
    assert_eq!(idle(&mut w), None);
    assert!(w.task(finalizer).unwrap().overrun);
    assert_eq!(w.region(ROOT).unwrap().state, RegionState::Closed);
}

#[test]
fn permits_on_the_stack_are_released_in_order() {
    let mut w = cleaning();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    let permit = w.try_reserve(Some(task), channel, true).unwrap();
    w.push_cleanup(task, 1).unwrap();
    w.close_region(ROOT, ask(Kind::User), Some(Duration::ZERO)).unwrap();
    w.expire();
    assert_eq!(w.channel_view(channel).unwrap().reserved, 1);
    assert_eq!(entry(&mut w, task, PollEnd::Ready), 1);
    assert_eq!(w.channel_view(channel).unwrap().reserved, 0);
    assert_eq!(w.permit(permit), Ok(PermitState::Leaked));
    assert_eq!(w.task(task).unwrap().state, TaskState::Completed);
}

#[test]
fn a_task_aborted_in_its_poll_ends_when_the_poll_returns() {
    let mut w = cleaning();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.push_cleanup(task, 1).unwrap();
    w.close_region(ROOT, ask(Kind::User), Some(Duration::ZERO)).unwrap();
    w.expire();
    w.expire();
    assert_ne!(w.task(task).unwrap().state, TaskState::Completed);
    assert_eq!(w.polled(task, 0, PollEnd::Pending), Ok(Some(0)));
    assert_eq!(entry(&mut w, task, PollEnd::Ready), 1);
    assert_eq!(w.task(task).unwrap().outcome.unwrap().severity(), Severity::Cancelled);
}

#[test]
fn retired_objects_are_stale_but_readable_until_released() {
    let mut w: W = World::new(Config { keep_ended: true, ..Config::default() });
    let outer = open(&mut w, ROOT);
    let inner = open(&mut w, outer);
    let channel = w.channel(Some(inner), 1).unwrap();
    let task = spawn(&mut w, inner);
    poll(&mut w, failed());
    w.end_region(inner).unwrap();
    assert!(w.task(task).is_ok() && w.region(inner).is_ok());
    w.end_region(outer).unwrap();
    w.check().unwrap();
    assert_eq!(w.task(task).map(drop), stale());
    assert_eq!(w.region(inner).map(drop), stale());
    assert_eq!((w.wake(task), w.defer(inner, 3)), (stale(), Err((Status::StaleHandle, 3))));
    assert_eq!(w.channel_view(channel), stale());
    let kept = w.kept_task(task).unwrap();
    assert_eq!(kept.outcome.unwrap().severity(), Severity::Err);
    assert_eq!(w.kept_region(inner).unwrap().outcome, Some(Severity::Err));
    assert_eq!(w.task_snapshot(task).mask(), TaskState::Completed.mask());
    w.release_region(outer).unwrap();
    w.check().unwrap();
    assert_eq!(w.kept_task(task).map(drop), stale());
    assert_eq!(w.kept_region(inner).map(drop), stale());
}

#[test]
fn reached_states_are_those_up_to_the_current_one() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    let reached = |w: &W| TaskState::ALL.map(|state| w.task_reached(task, state.mask()).unwrap());
    assert_eq!(reached(&w), [true, false, false, false, false, false]);
    poll(&mut w, PollEnd::Pending);
    assert_eq!(reached(&w), [true, true, false, false, false, false]);
    let region = RegionState::ALL.map(|state| w.region_reached(ROOT, state.mask()).unwrap());
    assert_eq!(region, [true, false, false, false, false]);
    w.wake(task).unwrap();
    poll(&mut w, PollEnd::Ready);
    assert_eq!(reached(&w), [true, true, false, false, false, true]);
    assert_eq!(
        (w.task_reached(TaskId(NOWHERE), 1), w.region_reached(RegionId(NOWHERE), 1)),
        (None, None)
    );
}

#[test]
fn without_a_journal_only_the_record_is_missing() {
    let mut w: W =
        World::new(Config { journal: false, when_full: WhenFull::Refuse, ..Config::default() });
    let task = spawn(&mut w, ROOT);
    assert_eq!(poll(&mut w, failed()), task);
    let journal = w.journal();
    assert!(journal.is_off());
    assert_eq!((journal.recorded(), journal.lost(), journal.events().len()), (0, 0, 0));
    assert_eq!(w.task(task).unwrap().outcome.unwrap().severity(), Severity::Err);
}
