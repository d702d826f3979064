//! Every refusal with its status, which leaves everything unchanged.

use super::*;

const NO_TASK: TaskId = TaskId(NOWHERE);
const NO_REGION: RegionId = RegionId(NOWHERE);
const NO_CHANNEL: ChannelId = ChannelId(NOWHERE);

#[test]
fn unknown_handles_are_stale_everywhere() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    unchanged(&mut w, |w| {
        let options = RegionOptions::default();
        assert_eq!(w.open_region(NO_REGION, options), stale());
        assert_eq!(w.end_region(NO_REGION), stale());
        assert_eq!(w.close_region(NO_REGION, ask(Kind::User), None), stale());
        assert_eq!(w.set_admission(NO_REGION, false), stale());
        assert_eq!(w.defer(NO_REGION, 7), Err((Status::StaleHandle, 7)));
        assert_eq!(w.spawn_finalizer(NO_REGION, 7), Err((Status::StaleHandle, 7)));
        assert_eq!(w.use_storage(NO_REGION, 1), stale());
        assert_eq!(w.release_region(NO_REGION), stale());
        assert_eq!(w.try_region(NO_REGION, RegionState::Closing), stale());
        assert_eq!(w.region(NO_REGION).map(drop), stale());
        assert_eq!(w.region_handle(NO_REGION).map(drop), stale());
        assert_eq!(w.oblige(NO_REGION), stale());
        assert_eq!(w.resolve(ObligationId(NOWHERE), Resolution::Commit), stale());
        assert_eq!(w.obligation(ObligationId(NOWHERE)), stale());
        assert_eq!(w.arm(NO_REGION, SleepUntil::After(ms(1)), None), stale());
        assert_eq!(w.channel(Some(NO_REGION), 1), stale());
    });
    unchanged(&mut w, |w| {
        let refused = w.spawn(NO_REGION, TaskOptions::default(), 7);
        assert_eq!(refused, Err((Status::StaleHandle, 7)));
        let error = TaskError { status: None, message: "".into() };
        assert_eq!(w.spawn_failed(NO_REGION, error), stale());
        assert_eq!(w.cancel_task(NO_TASK, ask(Kind::User)), stale());
        assert_eq!(w.release_task(NO_TASK), stale());
        assert_eq!(w.try_task(NO_TASK, TaskState::Running), stale());
        assert_eq!((w.task(NO_TASK).map(drop), w.checkpoint(NO_TASK)), (stale(), stale()));
        assert_eq!(w.task_handle(NO_TASK).map(drop), stale());
        assert_eq!(w.is_cancelled(NO_TASK), stale());
        assert_eq!((w.shield(NO_TASK), w.unshield(NO_TASK)), (stale(), stale()));
        assert_eq!(w.push_cleanup(NO_TASK, 7), Err((Status::StaleHandle, 7)));
        assert_eq!((w.spend(NO_TASK, 1), w.stopping(NO_TASK)), (stale(), stale()));
        assert_eq!(w.sleep(NO_TASK, SleepUntil::After(ms(1))), stale());
        assert_eq!(w.join(NO_TASK, task), stale());
        assert_eq!(w.closed(NO_TASK, ROOT), stale());
        assert_eq!(w.take_payload(task), None, "this task is not being polled");
        assert_eq!(w.polled(task, 7, PollEnd::Ready), Err((Status::InvalidArgument, 7)));
        assert!(!w.disarm(TimerHandle { id: 9, generation: 9 }));
    });
    unchanged(&mut w, |w| {
        assert_eq!(w.try_send(NO_CHANNEL, 7), Err((Status::StaleHandle, 7)));
        assert_eq!(w.evict(NO_CHANNEL, 7), Err((Status::StaleHandle, 7)));
        assert_eq!(w.try_recv(NO_CHANNEL), stale());
        assert_eq!(w.clone_sender(NO_CHANNEL), stale());
        assert_eq!((w.drop_sender(NO_CHANNEL), w.drop_receiver(NO_CHANNEL)), (stale(), stale()));
        assert_eq!(w.release_channel(NO_CHANNEL), stale());
        assert_eq!(w.channel_view(NO_CHANNEL), stale());
        assert_eq!(w.try_reserve(None, NO_CHANNEL, false), stale());
        let permit = PermitId(NOWHERE);
        assert_eq!(w.send(permit, 7), Err((Status::StaleHandle, 7)));
        assert_eq!((w.abort(permit), w.permit(permit)), (stale(), stale()));
        assert_eq!(w.drop_permit(permit, DropContext::User), stale());
    });
    log(&mut w);
    assert_eq!(w.wake(NO_TASK), stale());
    assert_eq!(log(&mut w), ["stale_wake task=99"]);
}

#[test]
fn a_completed_task_can_do_nothing() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    poll(&mut w, PollEnd::Ready);
    unchanged(&mut w, |w| {
        let over = Err(Status::InvalidTransition);
        assert_eq!((w.checkpoint(task), w.spend(task, 1)), (over, over));
        assert_eq!(w.is_cancelled(task).map(drop), over);
        assert_eq!(w.push_cleanup(task, 7), Err((Status::InvalidTransition, 7)));
        assert_eq!(w.sleep(task, SleepUntil::After(ms(1))).map(drop), over);
        assert_eq!(w.reserve(task, channel, false).map(drop), over);
        assert_eq!(w.try_reserve(Some(task), channel, false).map(drop), over);
        assert_eq!(w.recv(task, channel).map(drop), over);
        assert_eq!(w.join(task, task).map(drop), over);
        assert_eq!(w.closed(task, ROOT).map(drop), over);
        assert_eq!(w.stopping(task).map(drop), over);
        assert_eq!(w.unshield(task), over);
        assert_eq!(w.cancel_task(task, ask(Kind::User)), Ok(false));
        assert_eq!(w.try_task(task, TaskState::CancelRequested), over);
    });
    log(&mut w);
    assert_eq!(w.wake(task), Ok(()));
    assert_eq!(log(&mut w), ["stale_wake task=1 region=1"]);
}

#[test]
fn each_state_of_a_region_has_its_refusals() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(Some(region), 2).unwrap();
    let outer = w.try_reserve(None, channel, false).unwrap();
    let early = w.oblige(region).unwrap();
    w.defer(region, 0).unwrap();
    let task = spawn(&mut w, region);
    assert_eq!(w.spawn_finalizer(region, 7), Err((Status::InvalidTransition, 7)));
    let timer = w.arm(region, SleepUntil::After(ms(1)), None).unwrap();
    w.close_region(region, ask(Kind::User), None).unwrap();
    let shut = |w: &mut W| {
        let not_open = Status::RegionNotOpen;
        assert_eq!(w.spawn(region, TaskOptions::default(), 7), Err((not_open, 7)));
        let error = TaskError { status: None, message: "".into() };
        assert_eq!(w.spawn_failed(region, error), Err(not_open));
        assert_eq!(w.open_region(region, RegionOptions::default()), Err(not_open));
        assert_eq!(w.oblige(region), Err(not_open));
        assert_eq!(w.channel(Some(region), 1), Err(not_open));
        assert_eq!(w.channel(Some(region), 0), Err(Status::InvalidArgument));
        assert_eq!(w.defer(region, 7), Err((not_open, 7)));
        let until = SleepUntil::After(ms(1));
        assert_eq!(w.arm(region, until, None), Err(not_open));
        assert_eq!(w.update_timer(timer, region, until, None), Err(not_open));
    };
    unchanged(&mut w, |w| {
        shut(w);
        assert_eq!(w.spawn_finalizer(region, 7), Err((Status::InvalidTransition, 7)));
        assert_eq!(w.release_region(region), Err(Status::InvalidTransition));
        let finalizing = w.try_region(region, RegionState::Finalizing);
        assert_eq!(finalizing, Err(Status::IncompleteChildren));
    });
    assert_eq!(w.try_send(channel, 1), Ok(()), "channels remain usable while draining");
    assert_eq!(poll(&mut w, PollEnd::Ready), task);
    assert_eq!(w.region(region).unwrap().state, RegionState::Finalizing);
    unchanged(&mut w, |w| {
        shut(w);
        let gone = Status::Disconnected;
        assert_eq!(w.try_send(channel, 7), Err((gone, 7)));
        assert_eq!(w.evict(channel, 7), Err((gone, 7)));
        assert_eq!((w.try_recv(channel), w.clone_sender(channel)), (Err(gone), Err(gone)));
        assert_eq!(w.try_reserve(None, channel, false), Err(gone));
        let closed = w.try_region(region, RegionState::Closed);
        assert_eq!(closed, Err(Status::IncompleteChildren));
    });
    assert_eq!(w.send(outer, 7), Err((Status::Disconnected, 7)), "resolved, not queued");
    assert_eq!(w.permit(outer), Err(Status::ObligationAlreadyResolved));
    assert_eq!((w.use_storage(region, 3), w.set_admission(region, true)), (Ok(()), Ok(())));
    assert_eq!(w.resolve(early, Resolution::Abort), Ok(()));
    assert!(w.spawn_finalizer(region, 7).is_ok());
    poll(&mut w, PollEnd::Ready);
    assert_eq!(w.region(region).unwrap().state, RegionState::Finalizing);
    poll(&mut w, PollEnd::Ready);
    unchanged(&mut w, |w| {
        shut(w);
        assert_eq!(w.spawn_finalizer(region, 7), Err((Status::RegionClosed, 7)));
        assert_eq!(w.use_storage(region, 1), Err(Status::RegionClosed));
        assert_eq!(w.try_region(region, RegionState::Closed), Err(Status::InvalidTransition));
        assert_eq!(w.close_region(region, ask(Kind::Shutdown), Some(ms(1))), Ok(false));
        assert_eq!(w.end_region(region), Ok(()));
        let twice = w.resolve(early, Resolution::Abort);
        assert_eq!(twice, Err(Status::ObligationAlreadyResolved));
    });
    assert_eq!((w.release_region(region), w.region(region).map(drop)), (Ok(()), stale()));
    assert_eq!((w.task(task).map(drop), w.channel_view(channel)), (stale(), stale()));
    w.end_region(ROOT).unwrap();
    assert_eq!(w.release_region(ROOT), Err(Status::InvalidTransition), "the root is not released");
}

/// Asserts that the call is refused with an event in the journal and no other change.
fn exhausted<T>(w: &mut W, what: &str, call: impl FnOnce(&mut W) -> Result<T, Status>) {
    log(w);
    let before = look(w);
    assert_eq!(call(w).map(drop), Err(Status::ResourceExhausted), "{what}");
    assert_eq!(log(w), [format!("resource_exhausted what={what}")]);
    let after = look(w);
    assert_eq!((before.1, before.2, before.3), (after.1, after.2, after.3));
    w.check().unwrap();
}

#[test]
fn each_limit_admits_exactly_its_value() {
    let mut config = Config::default();
    config.limits.tasks = 2;
    config.limits.regions = 2;
    config.limits.obligations = 1;
    config.limits.channels = 1;
    config.wheel.limit = 1;
    let mut w: W = World::new(config);
    let until = SleepUntil::After(ms(1));
    let options = TaskOptions::default();
    let [a, _] = [0, 1].map(|_| spawn(&mut w, ROOT));
    exhausted(&mut w, "tasks", |w| w.spawn(ROOT, options, 0).map_err(|(status, _)| status));
    let region = open(&mut w, ROOT);
    exhausted(&mut w, "regions", |w| w.open_region(ROOT, RegionOptions::default()));
    let obligation = w.oblige(region).unwrap();
    exhausted(&mut w, "obligations", |w| w.oblige(ROOT));
    let channel = w.channel(None, 1).unwrap();
    exhausted(&mut w, "obligations", |w| w.try_reserve(None, channel, true));
    assert_eq!(w.channel_view(channel).unwrap().reserved, 0);
    exhausted(&mut w, "channels", |w| w.channel(None, 1));
    let timer = w.arm(region, until, None).unwrap();
    exhausted(&mut w, "timers", |w| w.arm(region, until, None));
    exhausted(&mut w, "timers", |w| w.sleep(a, until));
    let timer = w.update_timer(timer, region, until, Some(a)).unwrap();
    let far = SleepUntil::After(Duration::MAX);
    unchanged(&mut w, |w| {
        let refused = w.update_timer(timer, region, far, None);
        assert_eq!(refused, Err(Status::TimerDurationExceeded));
        assert_eq!(w.arm(region, far, None), Err(Status::TimerDurationExceeded));
    });
    w.resolve(obligation, Resolution::Commit).unwrap();
    w.drop_receiver(channel).unwrap();
    w.drop_sender(channel).unwrap();
    w.close_region(region, ask(Kind::User), None).unwrap();
    poll(&mut w, PollEnd::Ready);
    assert!(w.oblige(ROOT).is_ok() && w.channel(Some(ROOT), 1).is_ok());
    assert!(w.arm(ROOT, until, None).is_ok());
    spawn(&mut w, ROOT);
    open(&mut w, ROOT);
}

#[test]
fn a_region_limits_its_live_children() {
    let mut w = world();
    let options = RegionOptions { max_children: Some(2), ..RegionOptions::default() };
    let region = w.open_region(ROOT, options).unwrap();
    spawn(&mut w, region);
    let child = open(&mut w, region);
    exhausted(&mut w, "children", |w| w.open_region(region, RegionOptions::default()));
    w.end_region(child).unwrap();
    spawn(&mut w, region);
    w.set_admission(region, false).unwrap();
    unchanged(&mut w, |w| {
        let refused = w.spawn(region, TaskOptions::default(), 7);
        assert_eq!(refused, Err((Status::AdmissionClosed, 7)));
        assert_eq!(w.oblige(region), Err(Status::AdmissionClosed));
    });
    w.set_admission(region, true).unwrap();
    assert!(w.oblige(region).is_ok());
}

#[test]
fn queues_refuse_spawns_and_wakes_from_outside() {
    let mut config = Config::default();
    config.limits.ready_queue = 1;
    config.limits.timed_queue = 1;
    let mut w: W = World::new(config);
    let deadline = Some(Time::from_millis(1));
    let timed =
        TaskOptions { budget: Budget { deadline, ..Budget::INFINITE }, ..TaskOptions::default() };
    let parked = spawn(&mut w, ROOT);
    poll(&mut w, PollEnd::Pending);
    spawn(&mut w, ROOT);
    exhausted(&mut w, "ready_queue", |w| w.wake(parked));
    exhausted(&mut w, "ready_queue", |w| {
        w.spawn(ROOT, TaskOptions::default(), 0).map_err(|(status, _)| status)
    });
    w.spawn(ROOT, timed, 0).unwrap();
    exhausted(&mut w, "timed_queue", |w| w.spawn(ROOT, timed, 0).map_err(|(status, _)| status));
    let polled = begin(&mut w);
    assert_eq!(
        (w.wake(parked), w.wake(polled)),
        (Ok(()), Ok(())),
        "wakes by a task are not refused"
    );
    assert_eq!(w.queued_in(Lane::Ready), 2);
    end(&mut w, polled, PollEnd::Pending);
}

#[test]
fn the_memory_estimate_is_exact() {
    let mut config = Config::default();
    config.limits.memory = 256 + 256 + 64 + 64 + (256 + 2 * 64) + 10;
    let mut w: W = World::new(config.clone());
    assert_eq!(w.memory(), 256);
    spawn(&mut w, ROOT);
    w.oblige(ROOT).unwrap();
    let timer = w.arm(ROOT, SleepUntil::After(ms(1)), None).unwrap();
    exhausted(&mut w, "memory", |w| w.channel(None, 3));
    let channel = w.channel(None, 2).unwrap();
    exhausted(&mut w, "memory", |w| w.use_storage(ROOT, 11));
    w.use_storage(ROOT, 10).unwrap();
    assert_eq!(w.memory(), config.limits.memory);
    exhausted(&mut w, "memory", |w| w.oblige(ROOT));
    exhausted(&mut w, "memory", |w| w.open_region(ROOT, RegionOptions::default()));
    exhausted(&mut w, "memory", |w| w.arm(ROOT, SleepUntil::After(ms(1)), None));
    assert!(w.update_timer(timer, ROOT, SleepUntil::After(ms(2)), None).is_ok());
    let gone = TimerHandle { id: 77, generation: 77 };
    let until = SleepUntil::After(ms(1));
    exhausted(&mut w, "memory", |w| w.update_timer(gone, ROOT, until, None));
    w.drop_sender(channel).unwrap();
    w.drop_receiver(channel).unwrap();
    assert_eq!(w.memory(), config.limits.memory - (256 + 2 * 64));
    assert!(w.channel(None, 2).is_ok());
    let huge = World::<u32, u64>::new(Config::default()).channel(None, usize::MAX);
    assert_eq!(huge, Err(Status::ResourceExhausted));
}

#[test]
fn a_full_refusing_journal_refuses_new_work_only() {
    let mut config = Config { when_full: WhenFull::Refuse, ..Config::default() };
    config.journal_capacity = 2;
    let mut w: W = World::new(config);
    let task = spawn(&mut w, ROOT);
    unchanged(&mut w, |w| assert_eq!(w.oblige(ROOT), Err(Status::ResourceExhausted)));
    assert_eq!(w.cancel_task(task, ask(Kind::User)), Ok(true));
    assert_eq!(w.journal().lost(), 2);
    w.journal_mut().take();
    assert!(w.oblige(ROOT).is_ok());
}

#[test]
fn sides_of_a_channel_close_once() {
    let mut w = world();
    let channel = w.channel(None, 1).unwrap();
    w.clone_sender(channel).unwrap();
    w.drop_sender(channel).unwrap();
    w.try_send(channel, 5).unwrap();
    assert_eq!(w.try_send(channel, 6), Err((Status::Full, 6)));
    assert_eq!(w.evict(channel, 6), Ok(Some(5)));
    assert_eq!(w.quiescent().unwrap_err().all()[1], Status::ChannelNotDrained);
    w.drop_sender(channel).unwrap();
    unchanged(&mut w, |w| {
        let gone = Err(Status::Disconnected);
        assert_eq!((w.drop_sender(channel), w.clone_sender(channel)), (gone, gone));
        assert_eq!(w.release_channel(channel), Err(Status::InvalidTransition));
    });
    assert_eq!(w.channel_view(channel).unwrap().state, ChannelState::SenderClosed);
    w.drop_receiver(channel).unwrap();
    assert_eq!(w.take_dropped(), [6]);
    unchanged(&mut w, |w| {
        assert_eq!(w.drop_receiver(channel), Err(Status::Disconnected));
        assert_eq!(w.try_recv(channel), Err(Status::Disconnected));
    });
    let told = [
        "channel_opened channel=1 capacity=1",
        "sent channel=1 permit=null",
        "evicted channel=1",
        "sent channel=1 permit=null",
        "senders_gone channel=1",
        "receiver_gone channel=1 dropped=1",
    ];
    assert_eq!(log(&mut w)[1..], told);
    let empty = w.channel(None, 1).unwrap();
    assert_eq!(w.try_recv(empty), Err(Status::Empty));
}

#[test]
fn a_permit_is_resolved_once_and_its_obligation_with_it() {
    let mut w = world();
    let channel = w.channel(None, 9).unwrap();
    let take = |w: &mut W, tracked| w.try_reserve(None, channel, tracked).unwrap();
    let [sent, aborted, dropped, late] = [0, 1, 2, 3].map(|_| take(&mut w, true));
    let [plain, unwound] = [0, 1].map(|_| take(&mut w, false));
    log(&mut w);
    assert_eq!((w.permit(sent), w.send(sent, 1)), (Ok(PermitState::Live), Ok(())));
    assert_eq!(w.abort(aborted), Ok(()));
    assert_eq!(w.drop_permit(dropped, DropContext::Unwinding), Ok(false));
    assert_eq!(w.drop_permit(plain, DropContext::User), Ok(false));
    assert_eq!(w.abort(unwound), Ok(()));
    w.drop_receiver(channel).unwrap();
    assert_eq!(w.send(late, 7), Err((Status::Disconnected, 7)));
    assert_eq!(
        log(&mut w),
        [
            "sent channel=1 permit=1",
            "obligation_resolved region=1 obligation=1 to=Committed",
            "send_aborted channel=1 permit=2",
            "obligation_resolved region=1 obligation=2 to=Aborted",
            "send_aborted channel=1 permit=3",
            "obligation_resolved region=1 obligation=3 to=Leaked",
            "send_aborted channel=1 permit=5",
            "send_aborted channel=1 permit=6",
            "receiver_gone channel=1 dropped=1",
            "send_refused channel=1 permit=4",
            "obligation_resolved region=1 obligation=4 to=Committed",
        ]
    );
    unchanged(&mut w, |w| {
        let resolved = Status::ObligationAlreadyResolved;
        assert_eq!(w.send(sent, 7), Err((resolved, 7)));
        assert_eq!((w.abort(aborted), w.abort(plain)), (Err(resolved), Err(resolved)));
        assert_eq!(w.send(dropped, 7), Err((Status::ObligationLeaked, 7)));
        assert_eq!(w.drop_permit(sent, DropContext::User), Err(resolved));
    });
}

#[test]
fn a_tracked_permit_needs_an_open_region() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let channel = w.channel(None, 1).unwrap();
    let task = spawn(&mut w, region);
    begin(&mut w);
    w.shield(task).unwrap();
    w.close_region(region, ask(Kind::User), None).unwrap();
    let refused = unchanged(&mut w, |w| w.reserve(task, channel, true));
    assert_eq!(refused, Err(Status::RegionNotOpen));
    let permit = w.reserve(task, channel, false).unwrap();
    assert!(permit.is_ready());
    log(&mut w);
    end(&mut w, task, PollEnd::Ready);
    assert_eq!(log(&mut w)[0], "send_aborted task=1 channel=1 permit=1");
}
