//! Interactions of rules: waits and closing scopes, graces, precedence, releasing.

use super::*;

#[test]
fn a_refused_tracked_reserve_passes_its_slot_on() {
    let mut config = Config::default();
    config.limits.obligations = 0;
    let mut w: W = World::new(config);
    let channel = w.channel(None, 2).unwrap();
    w.try_send(channel, 1).unwrap();
    w.try_send(channel, 2).unwrap();
    let a = waiting_sender(&mut w, channel);
    let b = waiting_sender(&mut w, channel);
    assert_eq!((w.try_recv(channel), w.try_recv(channel)), (Ok(1), Ok(2)));
    assert_eq!(begin(&mut w), a);
    assert_eq!(w.reserve(a, channel, true), Err(Status::ResourceExhausted));
    end(&mut w, a, PollEnd::Pending);
    assert_eq!(begin(&mut w), b, "the second waiter was granted the slot");
    assert!(w.reserve(b, channel, false).unwrap().is_ready());
    end(&mut w, b, PollEnd::Pending);
}

#[test]
fn a_refused_tracked_reserve_may_close_the_senders() {
    let mut config = Config::default();
    config.limits.obligations = 0;
    let mut w: W = World::new(config);
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let a = waiting_sender(&mut w, channel);
    w.drop_sender(channel).unwrap();
    assert_eq!(w.try_recv(channel), Ok(1));
    assert_eq!(begin(&mut w), a);
    log(&mut w);
    assert_eq!(w.reserve(a, channel, true), Err(Status::ResourceExhausted));
    let told = ["resource_exhausted what=obligations", "senders_gone task=1 channel=1"];
    assert_eq!(log(&mut w), told);
}

#[test]
fn a_receiver_outside_the_region_is_woken_when_its_channel_closes() {
    for waiting_sender_too in [false, true] {
        let mut w = world();
        let region = open(&mut w, ROOT);
        let channel = w.channel(Some(region), 1).unwrap();
        let task = spawn(&mut w, ROOT);
        begin(&mut w);
        assert_eq!(w.recv(task, channel), Ok(Poll::Pending));
        end(&mut w, task, PollEnd::Pending);
        if waiting_sender_too {
            let permit = w.try_reserve(None, channel, false).unwrap();
            super::waiting_sender(&mut w, channel);
            w.abort(permit).unwrap();
        }
        w.close_region(region, ask(Kind::User), None).unwrap();
        assert_eq!(w.channel_view(channel).unwrap().state, ChannelState::FullyClosed);
        let sender = waiting_sender_too.then(|| poll(&mut w, PollEnd::Ready));
        assert_ne!(sender, Some(task));
        assert_eq!(begin(&mut w), task);
        assert_eq!(w.recv(task, channel), Err(Status::Disconnected));
        assert!(!w.dump().contains("waits"), "it no longer waits: {}", w.dump());
        end(&mut w, task, PollEnd::Ready);
    }
}

#[test]
fn closing_a_scope_ends_the_waits_of_its_senders() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(Some(region), 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let task = waiting_sender(&mut w, channel);
    w.close_region(region, ask(Kind::User), None).unwrap();
    assert_eq!(begin(&mut w), task);
    assert_eq!(w.reserve(task, channel, false), Err(Status::Disconnected));
    log(&mut w);
    end(&mut w, task, PollEnd::Ready);
    let told = log(&mut w);
    assert!(!told.iter().any(|text| text.contains("send_left")), "{told:?}");
}

#[test]
fn waits_end_with_the_part_of_the_task_that_waited() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.try_send(channel, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.reserve(task, channel, false), Ok(Poll::Pending));
    w.sleep(task, SleepUntil::After(ms(5))).unwrap();
    w.push_cleanup(task, 7).unwrap();
    end(&mut w, task, PollEnd::Ready);
    assert_eq!(w.channel_view(channel).unwrap().waiters, 0, "no waiter is blocked by it");
    assert_eq!(w.timers().len(), 0);
    begin(&mut w);
    w.push_cleanup(task, 8).unwrap();
    assert_eq!(w.reserve(task, channel, false), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Ready);
    assert_eq!(w.channel_view(channel).unwrap().waiters, 0);
    poll(&mut w, PollEnd::Ready);
    assert_eq!(w.task(task).unwrap().outcome, Some(Ok(())));
}

#[test]
fn a_stale_handle_is_reported_before_a_cancel_is_observed() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.cancel_task(task, ask(Kind::User)).unwrap();
    let stale = Err(Status::StaleHandle);
    unchanged(&mut w, |w| {
        assert_eq!(w.join(task, TaskId(NOWHERE)), stale);
        assert_eq!(w.closed(task, RegionId(NOWHERE)), stale);
        assert_eq!(w.reserve(task, ChannelId(NOWHERE), false).map(drop), Err(Status::StaleHandle));
        assert_eq!(w.recv(task, ChannelId(NOWHERE)).map(drop), Err(Status::StaleHandle));
    });
    assert_eq!(w.task(task).unwrap().state, TaskState::CancelRequested);
    end(&mut w, task, PollEnd::Ready);
    let answer = w.try_reserve(Some(task), ChannelId(NOWHERE), false);
    assert_eq!(answer, Err(Status::StaleHandle), "before the task's own state");
}

#[test]
fn an_unknown_worker_is_refused_without_any_change() {
    let mut w = world();
    let later = Time::from_millis(5);
    let answer = unchanged(&mut w, |w| w.next_on(1, later, &mut First));
    assert_eq!(answer, Err(Status::InvalidArgument));
    spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.next_on(1, later, &mut First), Err(Status::InvalidArgument));
    unchanged(&mut w, |w| {
        assert_eq!(w.next_on(0, later, &mut First), Err(Status::Reentrant));
        assert_eq!(w.next(later, &mut First), Err(Status::Reentrant));
    });
}

#[test]
fn only_the_worker_that_idles_is_parked() {
    let mut config = Config::default();
    config.scheduler.workers = 2;
    let mut w: W = World::new(config);
    let pinned = TaskOptions { pinned: true, ..TaskOptions::default() };
    for _ in 0..2 {
        let task = w.spawn(ROOT, pinned, 0).unwrap();
        w.cancel_task(task, ask(Kind::User)).unwrap();
    }
    let streak = |w: &W| w.scheduler().fairness(0).unwrap().streak();
    let Ok(Step::Poll { task, .. }) = w.next_on(0, Time::ZERO, &mut First) else { panic!() };
    w.polled(task, 0, PollEnd::Pending).unwrap();
    assert_eq!(streak(&w), 1);
    assert_eq!(w.next_on(1, Time::ZERO, &mut First), Ok(Step::Idle { until: None }));
    assert_eq!(streak(&w), 1, "the other worker has not parked");
    let Ok(Step::Poll { task, .. }) = w.next_on(0, Time::ZERO, &mut First) else { panic!() };
    w.polled(task, 0, PollEnd::Pending).unwrap();
    assert_eq!(streak(&w), 2);
    assert_eq!(w.next_on(0, Time::ZERO, &mut First), Ok(Step::Idle { until: None }));
    assert_eq!(streak(&w), 0);
}

#[test]
fn a_finalizers_cleanup_shares_its_allowance() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    w.defer(region, 0).unwrap();
    w.close_region(region, ask(Kind::Shutdown), None).unwrap();
    let task = begin(&mut w);
    w.push_cleanup(task, 0).unwrap();
    end(&mut w, task, PollEnd::Ready);
    for _ in 0..49 {
        begin(&mut w);
        w.wake(task).unwrap();
        end(&mut w, task, PollEnd::Pending);
    }
    log(&mut w);
    assert_eq!(idle(&mut w), None);
    assert_eq!(log(&mut w)[0], "cleanup_overrun task=1 region=2 polls=50");
}

#[test]
fn deep_trees_open_close_and_print() {
    let mut w = world();
    let mut region = ROOT;
    for _ in 0..2_000 {
        region = open(&mut w, region);
    }
    spawn(&mut w, region);
    let text = w.dump();
    let indents = text.lines().map(|line| line.len() - line.trim_start().len());
    assert_eq!((text.lines().count(), indents.max()), (2_002, Some(66)));
    w.close_region(ROOT, ask(Kind::Shutdown), Some(Duration::ZERO)).unwrap();
    let depth = |w: &W| w.region(region).unwrap().reason.unwrap().chain().count();
    assert_eq!(depth(&w), 16, "the chain of causes is cut");
    assert_eq!(idle(&mut w), None);
    assert_eq!(w.quiescent(), Ok(()));
}

#[test]
fn a_grace_ends_with_its_region() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let task = spawn(&mut w, region);
    w.close_region(region, ask(Kind::User), Some(ms(10))).unwrap();
    assert_eq!(w.next_wake(), Some(Time::from_millis(10)));
    assert_eq!(poll(&mut w, PollEnd::Ready), task);
    assert_eq!(idle(&mut w), None, "nothing is left to abort");
    w.shutdown(ms(7), None).unwrap();
    assert_eq!(idle(&mut w), Some(Time::from_millis(7)));
    w.close_region(ROOT, ask(Kind::User), Some(ms(9))).unwrap();
    assert_eq!(idle(&mut w), None);
    unchanged(&mut w, |w| w.shutdown(ms(7), Some(ms(1)))).unwrap();
}

#[test]
fn of_two_graces_of_a_region_the_shorter_applies() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    w.defer(region, 0).unwrap();
    let task = spawn(&mut w, region);
    for after in [20, 10, 10, 30] {
        w.close_region(region, ask(Kind::User), Some(ms(after))).unwrap();
    }
    poll(&mut w, PollEnd::Pending);
    assert_eq!(idle(&mut w), Some(Time::from_millis(10)));
    w.set_now(Time::from_millis(10));
    let finalizer = poll(&mut w, PollEnd::Pending);
    assert!(w.task(task).unwrap().overrun && !w.task(finalizer).unwrap().overrun);
    assert_eq!(idle(&mut w), Some(Time::from_millis(20)), "its own ten milliseconds");
    w.set_now(Time::from_millis(20));
    assert_eq!(idle(&mut w), None);
    assert!(w.task(finalizer).unwrap().overrun);
}

#[test]
fn a_leaked_obligation_is_kept_until_its_region_is_released() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, region);
    begin(&mut w);
    let permit = w.try_reserve(Some(task), channel, true).unwrap();
    assert_eq!(w.drop_permit(permit, DropContext::User), Ok(true));
    assert_eq!(w.permit(permit), Ok(PermitState::Leaked));
    assert_eq!(w.abort(permit), Err(Status::ObligationLeaked));
    end(&mut w, task, PollEnd::Ready);
    w.end_region(region).unwrap();
    let obligation = ObligationId(Key { generation: 1, index: 0 });
    assert_eq!(w.permit(permit), Ok(PermitState::Leaked));
    assert_eq!(w.obligation(obligation), Ok(ObligationState::Leaked));
    w.release_region(region).unwrap();
    assert_eq!(w.obligation(obligation), Err(Status::StaleHandle));
    assert_eq!(w.abort(permit), Err(Status::ObligationLeaked));
}

#[test]
fn a_deadline_cancels_once() {
    let mut w = world();
    let deadline = Some(Time::from_millis(3));
    let task = spawn_with(&mut w, ROOT, Budget { deadline, ..Budget::INFINITE });
    begin(&mut w);
    w.set_now(Time::from_millis(3));
    let answer = w.sleep(task, SleepUntil::After(ms(1)));
    assert_eq!(answer, Err(Status::BudgetExhausted));
    end(&mut w, task, PollEnd::Pending);
    log(&mut w);
    assert_eq!(begin(&mut w), task);
    assert_eq!(log(&mut w), Vec::<String>::new());
    assert_eq!(w.task(task).unwrap().witness.unwrap().reason.kind, Kind::Deadline);
}

#[test]
fn the_length_of_a_sleep_does_not_depend_on_its_start() {
    let mut w = world();
    let week = Duration::from_hours(7 * 24);
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.set_now(Time::from_millis(3));
    let longest = w.sleep(task, SleepUntil::After(week)).unwrap();
    let longer = w.sleep(task, SleepUntil::After(week + Duration::from_nanos(1)));
    assert_eq!(longer, Err(Status::TimerDurationExceeded));
    assert!(w.disarm(longest) && !w.disarm(longest));
}

#[test]
fn a_full_cancel_queue_refuses_only_new_entries() {
    let mut config = Config::default();
    config.limits.cancel_queue = 1;
    let mut w: W = World::new(config);
    let parked = spawn(&mut w, ROOT);
    assert_eq!(w.cancel_task(parked, ask(Kind::User)), Ok(true));
    poll(&mut w, PollEnd::Pending);
    let queued = spawn(&mut w, ROOT);
    assert_eq!(w.cancel_task(queued, ask(Kind::User)), Ok(true));
    assert_eq!(w.cancel_task(parked, ask(Kind::User)), Err(Status::ResourceExhausted));
    assert_eq!(w.cancel_task(queued, ask(Kind::Shutdown)), Ok(false));
    let third = spawn(&mut w, ROOT);
    assert_eq!(w.cancel_task(third, ask(Kind::User)), Err(Status::ResourceExhausted));
    assert_eq!(w.task(third).unwrap().state, TaskState::Created);
    assert_eq!(w.queued_in(Lane::Cancel), 1);
}

#[test]
fn completed_objects_can_be_released() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    assert_eq!(unchanged(&mut w, |w| w.release_task(task)), Err(Status::InvalidTransition));
    poll(&mut w, PollEnd::Ready);
    assert_eq!(w.release_task(task), Ok(()));
    assert_eq!(w.release_task(task), Err(Status::StaleHandle));
    assert_eq!(w.task(task).map(drop), Err(Status::StaleHandle));
    let next = spawn(&mut w, ROOT);
    assert_eq!((next.0.index, next.0.generation), (task.0.index, 2));
    let channel = w.channel(Some(ROOT), 1).unwrap();
    let answer = unchanged(&mut w, |w| w.release_channel(channel));
    assert_eq!(answer, Err(Status::InvalidTransition));
    w.drop_receiver(channel).unwrap();
    assert_eq!(w.release_channel(channel), Err(Status::InvalidTransition));
    w.drop_sender(channel).unwrap();
    assert_eq!(w.release_channel(channel), Ok(()));
    assert_eq!(w.release_channel(channel), Err(Status::StaleHandle));
    w.check().unwrap();
}

#[test]
fn timers_wake_into_the_global_queue_even_while_a_task_is_polled() {
    let mut w = world();
    let sleeper = spawn(&mut w, ROOT);
    begin(&mut w);
    w.sleep(sleeper, SleepUntil::After(ms(1))).unwrap();
    end(&mut w, sleeper, PollEnd::Pending);
    let polled = spawn(&mut w, ROOT);
    begin(&mut w);
    w.set_now(Time::from_millis(1));
    assert_eq!(w.expire(), 1);
    assert_eq!(w.scheduler().lanes(Source::Global).len(Lane::Ready), 1);
    w.spawn(ROOT, TaskOptions::default(), 0).unwrap();
    assert_eq!(w.scheduler().lanes(Source::Local(0)).len(Lane::Ready), 1, "from a worker");
    end(&mut w, polled, PollEnd::Pending);
}
