//! Corner cases: queries, dumps, queues, pinning, the end of time.

use super::*;

#[test]
fn a_dump_describes_all_waits() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let empty = w.channel(None, 1).unwrap();
    w.oblige(region).unwrap();
    let a = spawn(&mut w, region);
    begin(&mut w);
    assert_eq!(w.reserve(a, channel, false), Ok(Poll::Pending));
    assert_eq!(w.recv(a, empty), Ok(Poll::Pending));
    assert_eq!(w.recv(a, empty), Ok(Poll::Pending));
    assert_eq!(w.join(a, a), Ok(Poll::Pending));
    assert_eq!(w.closed(a, ROOT), Ok(Poll::Pending));
    assert_eq!(w.stopping(a), Ok(Poll::Pending));
    w.sleep(a, SleepUntil::After(ms(2))).unwrap();
    end(&mut w, a, PollEnd::Pending);
    let b = spawn(&mut w, ROOT);
    begin(&mut w);
    w.push_cleanup(b, 0).unwrap();
    end(&mut w, b, failed());
    w.close_region(region, ask(Kind::User), None).unwrap();
    poll(&mut w, PollEnd::Pending);
    let text = "r1 Open\n  t2 Running polls=1 cleaning up after Err\n  \
        r2 Draining [User in r2 at 0ns] obligations=1\n    \
        t1 CancelRequested polls=2 unseen for 1 polls waits to send on c1 \
        waits to receive on c2 waits for t1 waits for r1 to close waits for the soft stop \
        sleeps until 2000000ns\n";
    assert_eq!(w.dump(), text);
    let failures = w.quiescent().unwrap_err();
    let counts = [
        (Status::TasksStillActive, 2),
        (Status::ObligationsUnresolved, 1),
        (Status::RegionsNotClosed, 2),
        (Status::TimersPending, 1),
        (Status::ChannelNotDrained, 1),
    ];
    assert_eq!(failures.counts(), counts);
}

#[test]
fn a_cancelled_waiter_leaves_and_the_next_is_woken() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let [a, b] = [0, 1].map(|_| waiting_sender(&mut w, channel));
    w.try_recv(channel).unwrap();
    w.cancel_task(a, ask(Kind::User)).unwrap();
    begin(&mut w);
    assert_eq!(w.reserve(a, channel, false), Err(Status::Cancelled));
    assert_eq!(w.task(b).unwrap().lane, Some(Lane::Ready));
    end(&mut w, a, PollEnd::Cancelled);
    begin(&mut w);
    let Ok(Poll::Ready(permit)) = w.reserve(b, channel, false) else { panic!() };
    w.drop_sender(channel).unwrap();
    log(&mut w);
    w.send(permit, 8).unwrap();
    let told = ["sent task=2 channel=1 permit=1", "senders_gone task=2 channel=1"];
    assert_eq!(log(&mut w), told);
    assert_eq!(w.recv(b, channel), Ok(Poll::Ready(8)));
    assert_eq!(w.recv(b, channel), Err(Status::Disconnected));
    assert_eq!(log(&mut w), ["received task=2 channel=1"]);
}

#[test]
fn a_cancelled_receiver_consumes_nothing() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Pending);
    w.cancel_task(task, ask(Kind::User)).unwrap();
    w.try_send(channel, 3).unwrap();
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Err(Status::Cancelled));
    w.shield(task).unwrap();
    assert_eq!(w.recv(task, channel), Ok(Poll::Ready(3)));
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    w.unshield(task).unwrap();
    end(&mut w, task, PollEnd::Ready);
    w.try_send(channel, 4).unwrap();
    assert_eq!(w.journal().events().filter(|e| e.kind.name() == "stale_wake").count(), 0);
}

#[test]
fn timers_fire_in_capped_batches_and_only_wake() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    poll(&mut w, PollEnd::Pending);
    let until = SleepUntil::At(Time::from_millis(1));
    for wakes in [None, Some(task), Some(task)] {
        w.arm(ROOT, until, wakes).unwrap();
    }
    w.set_now(Time::from_millis(1));
    w.set_now(Time::ZERO);
    assert_eq!(w.now(), Time::from_millis(1), "the time does not go back");
    log(&mut w);
    w.allow_timers(1);
    assert_eq!((w.expire(), w.expire(), w.task(task).unwrap().lane), (1, 0, None));
    w.allow_timers(9);
    assert_eq!((w.expire(), w.task(task).unwrap().lane), (2, Some(Lane::Ready)));
    let told = [1, 2, 3].map(|n| format!("timer_fired region=1 timer={n} deadline=1000000"));
    assert_eq!(log(&mut w), told);
    assert_eq!((w.expire(), w.scheduler().total()), (0, 1));
}

#[test]
fn a_pinned_task_stays_where_it_was_spawned() {
    let mut config = Config::default();
    config.scheduler.workers = 2;
    let mut w: W = World::new(config);
    let pinned = TaskOptions { pinned: true, ..TaskOptions::default() };
    let loose = spawn(&mut w, ROOT);
    let step = w.next_on(1, Time::ZERO, &mut First).unwrap();
    let part = Part::Body;
    assert_eq!(step, Step::Poll { worker: 1, task: loose, lane: Lane::Ready, part });
    let task = w.spawn(ROOT, pinned, 0).unwrap();
    w.polled(loose, 0, PollEnd::Ready).unwrap();
    let idle = Ok(Step::Idle { until: None });
    assert_eq!(w.next_on(0, Time::ZERO, &mut First), idle);
    assert!(matches!(w.next_on(1, Time::ZERO, &mut First), Ok(Step::Poll { .. })));
    w.polled(task, 0, PollEnd::Pending).unwrap();
    w.cancel_task(task, ask(Kind::User)).unwrap();
    assert_eq!(w.next_on(0, Time::ZERO, &mut First), idle, "also after a wake from outside");
    assert_eq!(w.scheduler().lanes(Source::Local(1)).len(Lane::Cancel), 1);
}

#[test]
fn a_task_that_failed_to_start_is_recorded() {
    let mut w = world();
    let options = RegionOptions { policy: Policy::FailFast, ..RegionOptions::default() };
    let region = w.open_region(ROOT, options).unwrap();
    log(&mut w);
    let error = TaskError { status: Some(Status::Internal), message: "no".into() };
    let task = w.spawn_failed(region, error.clone()).unwrap();
    let told = [
        "task_spawned task=1 region=2 priority=128 finalizer=false",
        "task_moved task=1 region=2 from=Created to=Completed",
        "task_ended task=1 region=2 outcome=Err",
    ];
    assert_eq!(log(&mut w), told);
    assert_eq!(w.task(task).unwrap().outcome, Some(Err(NoValue::Err(error))));
    assert!(w.region(region).unwrap().first_cause.is_some());
    let sibling = spawn(&mut w, region);
    w.spawn_failed(region, TaskError { status: None, message: "no".into() }).unwrap();
    w.check().unwrap();
    assert_eq!(w.task(sibling).unwrap().state, TaskState::Created, "only the first failure counts");
}

#[test]
fn the_last_sender_may_be_a_waiting_one() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let task = waiting_sender(&mut w, channel);
    w.drop_sender(channel).unwrap();
    w.cancel_task(task, ask(Kind::User)).unwrap();
    begin(&mut w);
    log(&mut w);
    assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
    let told = ["send_left task=1 channel=1", "senders_gone task=1 channel=1"];
    assert_eq!(log(&mut w)[2..], told);
}

#[test]
fn a_decision_is_recorded_before_its_effects() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    w.cancel_task(task, ask(Kind::User)).unwrap();
    w.journal_mut().take();
    begin(&mut w);
    let events = w.journal_mut().take();
    let seq = w.scheduler().chain().seq;
    let hash = w.scheduler().chain().hash;
    assert_eq!((events.len(), seq), (1, 1));
    let text = format!(
        "scheduler_step_decision task=1 region=1 worker=0 lane=cancel decision_seq=1 \
         decision_hash={hash} cancel_streak=0 limit=16 fallback=false"
    );
    assert!(events[0].to_string().ends_with(&text), "{} {text}", events[0]);
}

#[test]
fn budgets_and_priorities_meet_those_of_the_region() {
    let mut w = world();
    let tight = Budget { poll_quota: 5, priority: Priority(7), ..Budget::INFINITE };
    let options = RegionOptions { budget: tight, ..RegionOptions::default() };
    let outer = w.open_region(ROOT, options).unwrap();
    let loose = Budget { poll_quota: 9, cost_quota: Some(4), ..Budget::INFINITE };
    let options = RegionOptions { budget: loose, ..RegionOptions::default() };
    let inner = w.open_region(outer, options).unwrap();
    let expected = Budget { cost_quota: Some(4), ..tight };
    assert_eq!(w.region(inner).unwrap().budget, expected);
    let task = spawn(&mut w, inner);
    let default = Priority::DEFAULT;
    assert_eq!(w.task(task).unwrap().budget, Budget { priority: default, ..expected });
    for (asked, given) in [(3, 7), (200, 200)] {
        let options = TaskOptions { priority: Some(asked), ..TaskOptions::default() };
        let task = w.spawn(inner, options, 0).unwrap();
        assert_eq!(w.task(task).unwrap().budget.priority, Priority(given));
    }
}

#[test]
fn a_cancel_moves_a_queued_task_and_raises_its_priority() {
    let mut w = world();
    let options = TaskOptions { priority: Some(230), ..TaskOptions::default() };
    let proud = w.spawn(ROOT, options, 0).unwrap();
    let plain = spawn(&mut w, ROOT);
    w.cancel_task(plain, ask(Kind::User)).unwrap();
    w.cancel_task(proud, ask(Kind::User)).unwrap();
    assert_eq!((w.queued_in(Lane::Cancel), w.scheduler().total()), (2, 2));
    assert_eq!(poll(&mut w, PollEnd::Pending), proud);
    w.wake(proud).unwrap();
    w.cancel_task(plain, ask(Kind::Shutdown)).unwrap();
    assert_eq!(w.scheduler().total(), 2);
    assert_eq!(poll(&mut w, PollEnd::Pending), plain, "255 is more than 230");
}

#[test]
fn timers_and_budgets_work_at_the_end_of_time() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    w.defer(region, 0).unwrap();
    let deadline = Some(Time::MAX);
    let task = spawn_with(&mut w, region, Budget { deadline, ..Budget::INFINITE });
    poll(&mut w, PollEnd::Pending);
    w.close_region(region, ask(Kind::User), Some(Duration::MAX)).unwrap();
    poll(&mut w, PollEnd::Pending);
    assert_eq!(idle(&mut w), Some(Time::MAX));
    w.set_now(Time::MAX);
    assert_eq!(idle(&mut w), None);
    assert!(w.task(task).unwrap().overrun);
    assert_eq!(w.region(region).unwrap().state, RegionState::Closed);
    assert!(w.arm(ROOT, SleepUntil::After(ms(1)), None).is_ok());
    assert_eq!(w.expire(), 1);
}

#[test]
fn a_task_aborted_during_its_poll_returns_its_payload() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let task = spawn(&mut w, region);
    begin(&mut w);
    w.close_region(region, ask(Kind::User), Some(Duration::ZERO)).unwrap();
    assert_eq!(w.expire(), 0);
    assert_eq!(w.region(region).unwrap().state, RegionState::Closed);
    assert_eq!(w.checkpoint(task), Err(Status::InvalidTransition));
    w.release_region(region).unwrap();
    assert_eq!(w.polled(task, 9, PollEnd::Pending), Ok(Some(9)));
    assert_eq!((idle(&mut w), w.check()), (None, Ok(())));
}

#[test]
fn handles_carry_the_state() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    assert_eq!(w.task_handle(task).unwrap().mask(), TaskState::Created.mask());
    assert_eq!(w.region_handle(ROOT).unwrap().mask(), RegionState::Open.mask());
    assert_eq!(w.try_task(task, TaskState::Running), Ok(()));
    assert_eq!(w.try_region(ROOT, RegionState::Closing), Ok(()));
    let channel = w.channel(None, 3).unwrap();
    w.try_reserve(None, channel, false).unwrap();
    w.try_send(channel, 1).unwrap();
    let view = w.channel_view(channel).unwrap();
    let counts = (view.capacity, view.len, view.reserved, view.waiters, view.senders);
    assert_eq!((counts, view.state), ((3, 1, 1, 0, 1), ChannelState::Open));
    w.defer(ROOT, 0).unwrap();
    w.use_storage(ROOT, 5).unwrap();
    w.oblige(ROOT).unwrap();
    let view = w.region(ROOT).unwrap();
    let counts = (view.tasks, view.children, view.obligations, view.finalizers, view.storage);
    assert_eq!((counts, view.outcome), ((1, 0, 1, 1, 5), None));
}

#[test]
fn the_last_sender_wakes_the_receiver() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Pending);
    w.drop_sender(channel).unwrap();
    assert_eq!(begin(&mut w), task);
    assert_eq!(w.recv(task, channel), Err(Status::Disconnected));
}

#[test]
fn closing_the_receiver_wakes_every_waiting_sender() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let [a, b] = [0, 1].map(|_| waiting_sender(&mut w, channel));
    w.drop_receiver(channel).unwrap();
    for task in [a, b] {
        assert_eq!(begin(&mut w), task);
        assert_eq!(w.reserve(task, channel, false), Err(Status::Disconnected));
        end(&mut w, task, PollEnd::Pending);
    }
}

#[test]
fn a_given_worker_processes_timers_deadlines_and_graces_first() {
    let mut w = world();
    let deadline = Some(Time::from_millis(2));
    let task = spawn_with(&mut w, ROOT, Budget { deadline, ..Budget::INFINITE });
    poll(&mut w, PollEnd::Pending);
    let step = w.next_on(0, Time::from_millis(2), &mut First).unwrap();
    let part = Part::Body;
    assert_eq!(step, Step::Poll { worker: 0, task, lane: Lane::Cancel, part });
}

#[test]
fn a_queued_task_that_is_aborted_leaves_its_queue() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let task = spawn(&mut w, region);
    w.close_region(region, ask(Kind::User), Some(Duration::ZERO)).unwrap();
    assert_eq!(w.task(task).unwrap().lane, Some(Lane::Cancel));
    w.expire();
    assert_eq!((w.scheduler().total(), w.check()), (0, Ok(())));
    assert_eq!(w.take_released(), [0]);
}

#[test]
fn a_sender_that_asks_repeatedly_is_in_line_once() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    log(&mut w);
    for _ in 0..2 {
        assert_eq!(w.reserve(task, channel, false), Ok(Poll::Pending));
    }
    assert_eq!(log(&mut w), ["send_waiting task=1 channel=1"]);
    assert_eq!(w.channel_view(channel).unwrap().waiters, 1);
    assert_eq!(w.try_recv(channel), Ok(1));
    assert!(w.reserve(task, channel, false).unwrap().is_ready());
    let told = ["received task=1 channel=1", "send_reserved task=1 channel=1 permit=1"];
    assert_eq!(log(&mut w), told);
    end(&mut w, task, PollEnd::Ready);
    let told = log(&mut w);
    assert_eq!(told[0], "send_aborted task=1 channel=1 permit=1");
    assert!(told[1].starts_with("task_moved"), "it left the line when it got its slot: {told:?}");
}

#[test]
fn an_evicting_send_wakes_the_receiver_and_ends_its_wait() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Pending);
    assert_eq!(w.evict(channel, 2), Ok(None));
    assert_eq!(begin(&mut w), task);
    assert_eq!(w.recv(task, channel), Ok(Poll::Ready(2)));
    assert!(!w.dump().contains("waits"));
    log(&mut w);
    w.oblige(ROOT).unwrap();
    assert_eq!(log(&mut w), ["obligation_reserved region=1 obligation=1"]);
}

#[test]
fn a_receiver_is_woken_once_at_the_end() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(Some(region), 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    w.defer(region, 0).unwrap();
    w.close_region(region, ask(Kind::User), None).unwrap();
    assert_eq!(w.recv(task, channel), Err(Status::Disconnected));
    end(&mut w, task, PollEnd::Pending);
    poll(&mut w, PollEnd::Ready);
    assert_eq!(w.region(region).unwrap().state, RegionState::Closed);
    assert_eq!(idle(&mut w), None);
}

#[test]
fn an_abandoned_wait_leaves_the_line_or_the_receiver() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let first = waiting_sender(&mut w, channel);
    let second = waiting_sender(&mut w, channel);
    assert_eq!(w.try_recv(channel), Ok(1));
    assert_eq!(w.task(first).unwrap().lane, Some(Lane::Ready));
    log(&mut w);
    assert_eq!(w.abandon(first, channel), Ok(true));
    assert_eq!(w.abandon(first, channel), Ok(false));
    assert_eq!(log(&mut w).len(), 1, "it left once");
    let view = w.channel_view(channel).unwrap();
    assert_eq!((view.waiters, view.reserved), (0, 1));
    assert_eq!(
        w.task(second).unwrap().lane,
        Some(Lane::Ready),
        "the slot goes to the next in line"
    );
    assert_eq!(w.abandon(TaskId(NOWHERE), channel), Err(Status::StaleHandle));

    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
    assert_eq!(w.abandon(task, channel), Ok(true));
    end(&mut w, task, PollEnd::Pending);
    w.try_send(channel, 2).unwrap();
    assert_eq!(w.task(task).unwrap().lane, None, "an abandoned wait causes no wake");
}

#[test]
fn a_suggestion_reaches_the_scheduler() {
    let mut w = world();
    let late = Budget { deadline: Some(Time::from_millis(9)), ..Budget::INFINITE };
    let timed = spawn_with(&mut w, ROOT, late);
    let cancelled = spawn(&mut w, ROOT);
    w.cancel_task(cancelled, ask(Kind::User)).unwrap();
    w.suggest(Suggestion::MeetDeadlines);
    assert_eq!(begin(&mut w), timed);
    end(&mut w, timed, PollEnd::Ready);
    assert_eq!(begin(&mut w), cancelled);
}

#[test]
fn simultaneous_graces_all_expire() {
    let mut w = world();
    let regions = [open(&mut w, ROOT), open(&mut w, ROOT)];
    let tasks = regions.map(|region| spawn(&mut w, region));
    for region in regions {
        w.close_region(region, ask(Kind::User), Some(ms(5))).unwrap();
    }
    w.set_now(Time::from_millis(5));
    w.expire();
    assert!(tasks.iter().all(|task| w.task(*task).unwrap().overrun));
}

#[test]
fn a_permit_alone_prevents_quiescence() {
    let mut w = world();
    w.end_region(ROOT).unwrap();
    let channel = w.channel(None, 2).unwrap();
    let permit = w.try_reserve(None, channel, false).unwrap();
    assert_eq!(w.quiescent().unwrap_err().all(), [Status::ChannelNotDrained]);
    w.try_send(channel, 1).unwrap();
    assert_eq!(w.quiescent().unwrap_err().all(), [Status::ChannelNotDrained]);
    w.abort(permit).unwrap();
    assert_eq!(w.quiescent().unwrap_err().all(), [Status::ChannelNotDrained]);
    w.try_recv(channel).unwrap();
    assert_eq!(w.quiescent(), Ok(()));
}

#[test]
fn a_task_may_wait_in_two_lines_and_leaves_both() {
    let mut w = world();
    let channels = [0, 1].map(|_| w.channel(None, 1).unwrap());
    for channel in channels {
        w.try_send(channel, 1).unwrap();
    }
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    for channel in channels {
        assert_eq!(w.reserve(task, channel, false), Ok(Poll::Pending));
    }
    end(&mut w, task, PollEnd::Pending);
    let lines = |w: &W| channels.map(|channel| w.channel_view(channel).unwrap().waiters);
    assert_eq!(lines(&w), [1, 1]);
    w.cancel_task(task, ask(Kind::User)).unwrap();
    begin(&mut w);
    assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
    assert_eq!(lines(&w), [0, 0]);
}

#[test]
fn full_queues_admit_operations_that_add_no_entry() {
    let mut config = Config::default();
    (config.limits.ready_queue, config.limits.cancel_queue) = (1, 1);
    let mut w: W = World::new(config);
    let polled = spawn(&mut w, ROOT);
    begin(&mut w);
    let queued = spawn(&mut w, ROOT);
    assert_eq!(w.wake(queued), Ok(()), "it has an entry already");
    assert_eq!(w.cancel_task(queued, ask(Kind::User)), Ok(true));
    assert_eq!(w.queued_in(Lane::Cancel), 1);
    assert_eq!(w.cancel_task(polled, ask(Kind::User)), Ok(true), "it is being polled");
    end(&mut w, polled, PollEnd::Ready);
    assert_eq!(w.task(polled).unwrap().state, TaskState::Completed);
    let waiting = spawn(&mut w, ROOT);
    assert_eq!(w.wake(waiting), Ok(()), "it has an entry already, and no task is being polled");
}

#[test]
fn a_cancel_has_its_requester_and_message() {
    let mut w = world();
    let asks = spawn(&mut w, ROOT);
    let told = spawn(&mut w, ROOT);
    begin(&mut w);
    let said = Ask { kind: Kind::LinkedExit, message: Some("enough".into()) };
    w.cancel_task(told, said).unwrap();
    let reason = w.task(told).unwrap().witness.unwrap().reason;
    assert_eq!((reason.origin_task, reason.message.as_deref()), (Some(asks), Some("enough")));
    assert_eq!((reason.origin_region, reason.kind), (ROOT, Kind::LinkedExit));
}

#[test]
fn among_equal_outcomes_the_first_created_child_is_kept() {
    let error = |message: &str| TaskError { status: None, message: message.into() };
    let fail = |w: &mut W, message| poll(w, PollEnd::Failed(error(message)));
    let expected = |message| Some(Err(NoValue::Err(error(message))));
    let mut w = world();
    let region = open(&mut w, ROOT);
    // A task, a region and a task, which end in reverse order.
    let first = spawn(&mut w, region);
    let inner = open(&mut w, region);
    let inside = spawn(&mut w, inner);
    let last = spawn(&mut w, region);
    for _ in 0..3 {
        poll(&mut w, PollEnd::Pending);
    }
    w.wake(last).unwrap();
    fail(&mut w, "last");
    assert_eq!(w.region(region).unwrap().fold, expected("last"));
    w.wake(inside).unwrap();
    fail(&mut w, "inside");
    w.close_region(inner, ask(Kind::User), None).unwrap();
    assert_eq!(w.region(region).unwrap().fold, expected("inside"));
    w.wake(first).unwrap();
    fail(&mut w, "first");
    let view = w.region(region).unwrap();
    assert_eq!((view.fold, view.outcome), (expected("first"), None));
    w.close_region(region, ask(Kind::User), None).unwrap();
    assert_eq!(w.region(region).unwrap().outcome, Some(Severity::Err));
}

#[test]
fn of_two_graces_the_earlier_end_applies() {
    for (first, second) in [(10, 3), (3, 10)] {
        let mut w = world();
        let region = open(&mut w, ROOT);
        spawn(&mut w, region);
        w.close_region(region, ask(Kind::User), Some(ms(first))).unwrap();
        w.close_region(region, ask(Kind::User), Some(ms(second))).unwrap();
        poll(&mut w, PollEnd::Pending);
        assert_eq!(idle(&mut w), Some(Time::from_millis(3)));
    }
}

#[test]
fn a_second_cancel_does_not_move_a_queued_task() {
    let mut w = world();
    let [a, b] = [0, 1].map(|_| spawn(&mut w, ROOT));
    for task in [a, b, a] {
        w.cancel_task(task, ask(Kind::User)).unwrap();
    }
    // Still in line before `b`, though asked last; after it observes the cancel, nothing wakes it.
    assert_eq!(begin(&mut w), a);
    assert_eq!(w.checkpoint(a), Err(Status::Cancelled));
    end(&mut w, a, PollEnd::Pending);
    w.cancel_task(a, ask(Kind::Shutdown)).unwrap();
    assert_eq!(w.task(a).unwrap().lane, None);
    assert_eq!(begin(&mut w), b);
}

#[test]
fn only_finalizers_arm_timers_in_a_finalizing_region() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    w.defer(region, 7).unwrap();
    w.close_region(region, ask(Kind::User), None).unwrap();
    assert_eq!(w.region(region).unwrap().state, RegionState::Finalizing);
    let finalizer = begin(&mut w);
    assert!(w.arm(region, SleepUntil::After(ms(1)), None).is_ok());
    end(&mut w, finalizer, PollEnd::Pending);
    let outside = spawn(&mut w, ROOT);
    assert_eq!(begin(&mut w), outside);
    assert!(w.arm(region, SleepUntil::After(ms(1)), None).is_err());
}

#[test]
fn events_of_different_objects_are_not_confused() {
    let mut w = world();
    let [a, b, waiter] = [0, 1, 2].map(|_| spawn(&mut w, ROOT));
    for _ in [a, b] {
        poll(&mut w, PollEnd::Pending);
    }
    assert_eq!(begin(&mut w), waiter);
    for task in [a, b] {
        assert_eq!(w.join(waiter, task), Ok(Poll::Pending));
    }
    end(&mut w, waiter, PollEnd::Pending);
    w.wake(a).unwrap();
    poll(&mut w, failed());
    // A task that waited in time gets the outcome although the other task is gone.
    w.release_task(a).unwrap();
    assert_eq!(begin(&mut w), waiter);
    assert_eq!(w.join(waiter, b), Ok(Poll::Pending));
    assert_eq!(w.join(waiter, a), Ok(Poll::Ready(Severity::Err)));
}

#[test]
fn a_closed_channel_has_no_line_to_leave() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let sender = waiting_sender(&mut w, channel);
    w.drop_receiver(channel).unwrap();
    assert_eq!(begin(&mut w), sender);
    log(&mut w);
    end(&mut w, sender, PollEnd::Ready);
    let events = log(&mut w);
    assert!(!events.iter().any(|event| event.starts_with("send_left")), "{events:?}");
}
