//! The complete journals of the protocols, poll by poll.

use super::*;

#[test]
fn the_events_of_a_cancel() {
    let mut w = world();
    let full = w.channel(None, 1).unwrap();
    let other = w.channel(None, 1).unwrap();
    w.try_send(full, 1).unwrap();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.push_cleanup(task, 5).unwrap();
    let permit = w.try_reserve(Some(task), other, true).unwrap();
    w.push_cleanup(task, 6).unwrap();
    w.sleep(task, SleepUntil::After(ms(9))).unwrap();
    assert_eq!(w.reserve(task, full, false), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Pending);
    log(&mut w);
    assert_eq!(w.cancel_task(task, ask(Kind::User)), Ok(true));
    assert_eq!(w.cancel_task(task, ask(Kind::Timeout)), Ok(false));
    assert_eq!(w.task(task).unwrap().lane, Some(Lane::Cancel));
    begin(&mut w);
    assert_eq!(w.is_cancelled(task), Ok(true));
    assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
    end(&mut w, task, failed());
    let Ok(Step::Poll { part, .. }) = w.next(w.now(), &mut First) else { panic!() };
    assert_eq!((part, w.take_payload(task)), (Part::Cleanup, Some(6)));
    assert_eq!(w.checkpoint(task), Ok(()), "cleanup is not cancelled");
    w.cancel_task(task, ask(Kind::Shutdown)).unwrap();
    end(&mut w, task, PollEnd::Ready);
    assert_eq!(w.permit(permit), Err(Status::ObligationAlreadyResolved));
    poll(&mut w, PollEnd::Ready);
    let view = w.task(task).unwrap();
    let Some(Err(NoValue::Cancelled(reason))) = view.outcome else { panic!() };
    assert_eq!((reason.kind, view.polls, view.polls_since_request), (Kind::Shutdown, 4, 1));
    let witness = view.witness.unwrap();
    assert_eq!((witness.epoch, witness.phase), (1, Phase::Completed));
    assert!(view.cleanup_error.is_some() && !view.overrun);
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=1 region=1 from=Running to=CancelRequested",
            "witness task=1 region=1 epoch=1 phase=Requested kind=User polls=1000",
            "witness task=1 region=1 epoch=1 phase=Requested kind=Timeout polls=500 more",
            "task_moved task=1 region=1 from=CancelRequested to=Cancelling",
            "witness task=1 region=1 epoch=1 phase=Cancelling kind=Timeout polls=500",
            "send_left task=1 channel=1",
            "timer_cancelled task=1 timer=1",
            "cleanup_error task=1 region=1",
            "task_moved task=1 region=1 from=Cancelling to=Finalizing",
            "witness task=1 region=1 epoch=1 phase=Finalizing kind=Timeout polls=500",
            "witness task=1 region=1 epoch=1 phase=Finalizing kind=Shutdown polls=50 more",
            "send_aborted task=1 channel=2 permit=1",
            "obligation_resolved region=1 obligation=1 to=Aborted",
            "task_moved task=1 region=1 from=Finalizing to=Completed",
            "witness task=1 region=1 epoch=1 phase=Completed kind=Shutdown polls=49",
            "task_ended task=1 region=1 outcome=Cancelled",
        ]
    );
}

#[test]
fn a_tree_closes_from_the_leaves() {
    let mut w = world();
    let a = open(&mut w, ROOT);
    let b = open(&mut w, a);
    let c = open(&mut w, a);
    let channel = w.channel(Some(a), 2).unwrap();
    w.try_send(channel, 1).unwrap();
    w.try_reserve(None, channel, true).unwrap();
    w.arm(a, SleepUntil::After(ms(50)), None).unwrap();
    let leaked = [w.oblige(a).unwrap(), w.oblige(a).unwrap()];
    for (region, payload) in [(a, 1), (a, 2), (b, 3)] {
        w.defer(region, payload).unwrap();
    }
    w.use_storage(a, 10).unwrap();
    let t1 = spawn(&mut w, b);
    let t2 = spawn(&mut w, a);
    let memory = w.memory();
    log(&mut w);
    assert_eq!(w.close_region(a, ask(Kind::Shutdown), None), Ok(true));
    assert_eq!(w.close_region(a, ask(Kind::User), None), Ok(false));
    assert_eq!(w.region(c).unwrap().state, RegionState::Closed);
    let left = |w: &W, task| w.task(task).unwrap().polls_left.unwrap();
    assert_eq!((left(&w, t1), left(&w, t2)), (50, 50));
    assert_eq!(
        log(&mut w),
        [
            "region_cancelled region=2 kind=Shutdown",
            "region_moved region=2 from=Open to=Closing",
            "region_moved region=2 from=Closing to=Draining",
            "task_moved task=2 region=2 from=Created to=CancelRequested",
            "witness task=2 region=2 epoch=1 phase=Requested kind=ParentCancelled polls=50",
            "region_cancelled region=3 kind=ParentCancelled",
            "region_moved region=3 from=Open to=Closing",
            "region_moved region=3 from=Closing to=Draining",
            "task_moved task=1 region=3 from=Created to=CancelRequested",
            "witness task=1 region=3 epoch=1 phase=Requested kind=ParentCancelled polls=50",
            "region_cancelled region=4 kind=ParentCancelled",
            "region_moved region=4 from=Open to=Closing",
            "region_moved region=4 from=Closing to=Finalizing",
            "region_moved region=4 from=Finalizing to=Closed",
            "region_outcome region=4 outcome=Ok",
            "region_cancelled region=2 kind=User more",
            "witness task=2 region=2 epoch=1 phase=Requested kind=ParentCancelled polls=50 more",
            "region_cancelled region=3 kind=ParentCancelled more",
            "witness task=1 region=3 epoch=1 phase=Requested kind=ParentCancelled polls=50 more",
        ]
    );
    assert_eq!(poll(&mut w, PollEnd::Cancelled), t2);
    assert_eq!(poll(&mut w, PollEnd::Ready), t1);
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=2 region=2 from=CancelRequested to=Cancelling",
            "witness task=2 region=2 epoch=1 phase=Cancelling kind=ParentCancelled polls=50",
            "task_moved task=2 region=2 from=Cancelling to=Finalizing",
            "witness task=2 region=2 epoch=1 phase=Finalizing kind=ParentCancelled polls=50",
            "task_moved task=2 region=2 from=Finalizing to=Completed",
            "witness task=2 region=2 epoch=1 phase=Completed kind=ParentCancelled polls=50",
            "task_ended task=2 region=2 outcome=Cancelled",
            "task_moved task=1 region=3 from=CancelRequested to=Completed",
            "task_ended task=1 region=3 outcome=Ok",
            "region_moved region=3 from=Draining to=Finalizing",
            "task_spawned task=3 region=3 priority=255 finalizer=true",
        ]
    );
    let finalizer = begin(&mut w);
    assert!(w.task(finalizer).unwrap().finalizer);
    w.close_region(a, ask(Kind::User), None).unwrap();
    assert_eq!(w.cancel_task(finalizer, ask(Kind::User)), Ok(false));
    assert_eq!(w.arm(b, SleepUntil::After(ms(5)), None).map(drop), Ok(()));
    end(&mut w, finalizer, PollEnd::Ready);
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=3 region=3 from=Created to=Running",
            "region_cancelled region=2 kind=User more",
            "region_cancelled region=3 kind=ParentCancelled more",
            "timer_armed region=3 timer=2 deadline=5000000",
            "task_moved task=3 region=3 from=Running to=Completed",
            "task_ended task=3 region=3 outcome=Ok",
            "timer_cancelled region=3 timer=2",
            "region_moved region=3 from=Finalizing to=Closed",
            "region_outcome region=3 outcome=Ok",
            "region_moved region=2 from=Draining to=Finalizing",
            "task_spawned task=4 region=2 priority=255 finalizer=true",
        ]
    );
    let last = begin(&mut w);
    w.resolve(leaked[0], Resolution::Commit).unwrap();
    end(&mut w, last, failed());
    poll(&mut w, PollEnd::Ready);
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=4 region=2 from=Created to=Running",
            "obligation_resolved region=2 obligation=2 to=Committed",
            "task_moved task=4 region=2 from=Running to=Completed",
            "task_ended task=4 region=2 outcome=Err",
            "task_spawned task=5 region=2 priority=255 finalizer=true",
            "task_moved task=5 region=2 from=Created to=Running",
            "task_moved task=5 region=2 from=Running to=Completed",
            "task_ended task=5 region=2 outcome=Ok",
            "timer_cancelled region=2 timer=1",
            "send_aborted region=2 channel=1 permit=1",
            "obligation_resolved region=2 obligation=1 to=Aborted",
            "receiver_gone region=2 channel=1 dropped=1",
            "senders_gone region=2 channel=1",
            "obligation_resolved region=2 obligation=3 to=Leaked",
            "unresolved_obligations region=2 count=1",
            "region_moved region=2 from=Finalizing to=Closed",
            "region_outcome region=2 outcome=Cancelled",
        ]
    );
    assert_eq!(w.obligation(leaked[0]), Err(Status::ObligationAlreadyResolved));
    assert_eq!(w.obligation(leaked[1]), Ok(ObligationState::Leaked));
    assert_eq!(w.resolve(leaked[1], Resolution::Abort), Err(Status::ObligationLeaked));
    assert_eq!(w.region(a).unwrap().outcome, Some(Severity::Cancelled));
    assert_eq!((w.region(b).map(drop), w.task(t1).map(drop)), (stale(), stale()));
    assert!(w.region(a).is_ok(), "kept until released");
    let freed = 2 * 256 + 3 * 256 + 3 * 64 + 64 + (256 + 2 * 64) + 10;
    assert_eq!(memory - w.memory(), freed);
    assert_eq!((w.take_released(), w.take_dropped()), (vec![], vec![1]));
}

#[test]
fn each_kind_allows_exactly_its_polls() {
    for kind in Kind::ALL {
        let mut w = world();
        let task = spawn(&mut w, ROOT);
        w.cancel_task(task, ask(kind)).unwrap();
        begin(&mut w);
        assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
        assert_eq!(w.task(task).unwrap().polls_left, Some(kind.cleanup().polls));
        w.wake(task).unwrap();
        end(&mut w, task, PollEnd::Pending);
        for _ in 0..kind.cleanup().polls {
            assert_eq!(begin(&mut w), task);
            w.wake(task).unwrap();
            w.polled(task, 0, PollEnd::Pending).unwrap();
        }
        log(&mut w);
        assert_eq!(idle(&mut w), None);
        let polls = kind.cleanup().polls;
        let told = [
            format!("cleanup_overrun task=1 region=1 polls={polls}"),
            "task_moved task=1 region=1 from=Cancelling to=Completed".into(),
            format!("witness task=1 region=1 epoch=1 phase=Completed kind={} polls=0", kind.name()),
            "task_ended task=1 region=1 outcome=Cancelled".into(),
        ];
        assert_eq!(log(&mut w), told);
        assert!(w.task(task).unwrap().overrun);
    }
}

#[test]
fn cleanup_after_a_natural_end_is_bounded() {
    for (cancelled, end_of_body, polls, outcome) in [
        (false, PollEnd::Ready, 1000, Severity::Cancelled),
        (true, failed(), 50, Severity::Cancelled),
        (false, PollEnd::Panicked("ouch".into()), 1000, Severity::Panicked),
    ] {
        let mut w = world();
        let budget = Budget { poll_quota: 1, cost_quota: Some(1), ..Budget::INFINITE };
        let deadline = Some(Time::from_millis(1));
        let task = spawn_with(&mut w, ROOT, Budget { deadline, ..budget });
        begin(&mut w);
        w.push_cleanup(task, 0).unwrap();
        if cancelled {
            w.cancel_task(task, ask(Kind::Shutdown)).unwrap();
        }
        end(&mut w, task, end_of_body);
        let view = w.task(task).unwrap();
        let lane = if cancelled { Lane::Cancel } else { Lane::Ready };
        assert_eq!((view.budget.poll_quota, view.lane), (polls, Some(lane)));
        assert_eq!((view.budget.deadline, view.budget.cost_quota), (None, None));
        assert_eq!(w.next_wake(), None);
        for _ in 0..polls {
            begin(&mut w);
            assert_eq!((w.spend(task, 9), w.checkpoint(task)), (Ok(()), Ok(())));
            w.wake(task).unwrap();
            w.polled(task, 0, PollEnd::Pending).unwrap();
        }
        assert_eq!(idle(&mut w), None);
        let view = w.task(task).unwrap();
        assert_eq!((view.outcome.unwrap().severity(), view.overrun), (outcome, true));
        assert_eq!(view.witness.is_some(), cancelled);
    }
}

#[test]
fn errors_and_panics_in_cleanup() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.push_cleanup(task, 0).unwrap();
    w.push_cleanup(task, 0).unwrap();
    end(&mut w, task, PollEnd::Ready);
    log(&mut w);
    poll(&mut w, failed());
    assert_eq!(log(&mut w), ["cleanup_error task=1 region=1"]);
    poll(&mut w, PollEnd::Cancelled);
    let view = w.task(task).unwrap();
    assert_eq!((view.outcome, view.cleanup_error.is_some()), (Some(Ok(())), true));
    let task = spawn(&mut w, ROOT);
    begin(&mut w);
    w.push_cleanup(task, 0).unwrap();
    w.cancel_task(task, ask(Kind::User)).unwrap();
    end(&mut w, task, PollEnd::Cancelled);
    assert_eq!(w.task(task).unwrap().state, TaskState::Finalizing);
    poll(&mut w, PollEnd::Panicked("ouch".into()));
    let outcome = w.task(task).unwrap().outcome;
    assert_eq!(outcome, Some(Err(NoValue::Panicked("ouch".into()))));
    let task = spawn(&mut w, ROOT);
    poll(&mut w, PollEnd::Cancelled);
    let Some(Err(NoValue::Err(error))) = w.task(task).unwrap().outcome else { panic!() };
    assert_eq!(error.status, Some(Status::Cancelled));
}

#[test]
fn an_unobserved_cancel_keeps_the_natural_outcome() {
    let mut w = world();
    let task = spawn(&mut w, ROOT);
    w.cancel_task(task, ask(Kind::User)).unwrap();
    log(&mut w);
    begin(&mut w);
    w.shield(task).unwrap();
    w.shield(task).unwrap();
    w.unshield(task).unwrap();
    assert_eq!((w.checkpoint(task), w.is_cancelled(task)), (Ok(()), Ok(false)));
    end(&mut w, task, failed());
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=1 region=1 from=CancelRequested to=Completed",
            "task_ended task=1 region=1 outcome=Err",
        ]
    );
    assert_eq!(w.task(task).unwrap().witness.unwrap().phase, Phase::Requested);
}

#[test]
fn a_quota_of_two_polls_runs_two() {
    let mut w = world();
    let budget = Budget { poll_quota: 2, ..Budget::INFINITE };
    let task = spawn_with(&mut w, ROOT, budget);
    for _ in 0..2 {
        begin(&mut w);
        w.wake(task).unwrap();
        end(&mut w, task, PollEnd::Pending);
    }
    log(&mut w);
    assert_eq!(begin(&mut w), task);
    let told = [
        "budget_exhausted task=1 region=1 kind=PollQuota",
        "task_moved task=1 region=1 from=Running to=CancelRequested",
        "witness task=1 region=1 epoch=1 phase=Requested kind=PollQuota polls=300",
    ];
    assert_eq!(log(&mut w), told);
    w.wake(task).unwrap();
    end(&mut w, task, PollEnd::Pending);
    begin(&mut w);
    assert_eq!(log(&mut w), Vec::<String>::new(), "reported once; it runs on until it observes it");
    assert_eq!(w.task(task).unwrap().polls_since_request, 2);
    end(&mut w, task, PollEnd::Cancelled);
    assert_eq!(w.task(task).unwrap().outcome.unwrap().severity(), Severity::Cancelled);
}

#[test]
fn cost_is_consumed_completely_or_not_at_all() {
    let mut w = world();
    let task = spawn_with(&mut w, ROOT, Budget { cost_quota: Some(5), ..Budget::INFINITE });
    begin(&mut w);
    assert_eq!(w.spend(task, 3), Ok(()));
    log(&mut w);
    assert_eq!(w.spend(task, 3), Err(Status::BudgetExhausted));
    assert_eq!(w.task(task).unwrap().budget.cost_quota, Some(2));
    assert_eq!(log(&mut w)[0], "budget_exhausted task=1 region=1 kind=CostBudget");
    assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
    assert_eq!(w.spend(task, u64::MAX), Ok(()), "lifted by the acknowledgement");
}

#[test]
fn a_deadline_cancels_at_its_instant() {
    let mut w = world();
    let deadline = Some(Time::from_millis(5));
    let region = w
        .open_region(
            ROOT,
            RegionOptions {
                budget: Budget { deadline, ..Budget::INFINITE },
                ..RegionOptions::default()
            },
        )
        .unwrap();
    let task = spawn(&mut w, region);
    assert_eq!(w.task(task).unwrap().lane, Some(Lane::Timed));
    begin(&mut w);
    let nap = w.sleep(task, SleepUntil::After(ms(9))).unwrap();
    assert_eq!(w.slept(task, nap), Ok(Poll::Pending));
    end(&mut w, task, PollEnd::Pending);
    assert_eq!(idle(&mut w), deadline);
    w.set_now(Time::from_nanos(4_999_999));
    assert_eq!(idle(&mut w), deadline);
    w.set_now(Time::from_millis(5));
    log(&mut w);
    begin(&mut w);
    let told = [
        "timer_fired task=1 timer=1 deadline=5000000",
        "budget_exhausted task=1 region=2 kind=Deadline",
        "task_moved task=1 region=2 from=Running to=CancelRequested",
        "witness task=1 region=2 epoch=1 phase=Requested kind=Deadline polls=500",
    ];
    assert_eq!(log(&mut w), told);
    assert_eq!(w.sleep(task, SleepUntil::After(ms(1))), Err(Status::Cancelled));
    assert_eq!(w.task(task).unwrap().budget.deadline, None);
    let nap = w.sleep(task, SleepUntil::After(ms(1)));
    assert_eq!(nap, Err(Status::Cancelled), "cleanup must shield its waits");
    w.shield(task).unwrap();
    assert!(w.sleep(task, SleepUntil::At(Time::ZERO)).is_ok());
}

#[test]
fn a_checked_operation_detects_the_deadline_itself() {
    let mut w = world();
    let deadline = Some(Time::from_millis(5));
    let task = spawn_with(&mut w, ROOT, Budget { deadline, ..Budget::INFINITE });
    begin(&mut w);
    w.set_now(Time::from_millis(5));
    assert_eq!(w.checkpoint(task), Err(Status::Cancelled));
    assert_eq!(w.task(task).unwrap().state, TaskState::Cancelling);
    assert_eq!(w.next_wake(), None);
}

#[test]
fn soft_stop_then_cancel_then_abort() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    w.defer(region, 0).unwrap();
    let polite = spawn(&mut w, ROOT);
    let deaf = spawn(&mut w, region);
    begin(&mut w);
    assert_eq!(w.stopping(polite), Ok(Poll::Pending));
    assert_eq!(w.stopping(polite), Ok(Poll::Pending));
    end(&mut w, polite, PollEnd::Pending);
    begin(&mut w);
    w.push_cleanup(deaf, 4).unwrap();
    let channel = w.channel(None, 1).unwrap();
    w.try_reserve(Some(deaf), channel, true).unwrap();
    end(&mut w, deaf, PollEnd::Pending);
    log(&mut w);
    w.shutdown(ms(10), Some(ms(20))).unwrap();
    assert_eq!(begin(&mut w), polite);
    assert_eq!(w.stopping(polite), Ok(Poll::Ready(())));
    end(&mut w, polite, PollEnd::Ready);
    assert_eq!(idle(&mut w), Some(Time::from_millis(10)));
    assert_eq!(
        log(&mut w),
        [
            "soft_stop",
            "task_moved task=1 region=1 from=Running to=Completed",
            "task_ended task=1 region=1 outcome=Ok",
        ]
    );
    w.set_now(Time::from_millis(10));
    assert_eq!(poll(&mut w, PollEnd::Pending), deaf);
    assert_eq!(idle(&mut w), Some(Time::from_millis(30)));
    assert_eq!(
        log(&mut w),
        [
            "region_cancelled region=1 kind=Shutdown",
            "region_moved region=1 from=Open to=Closing",
            "region_moved region=1 from=Closing to=Draining",
            "region_cancelled region=2 kind=ParentCancelled",
            "region_moved region=2 from=Open to=Closing",
            "region_moved region=2 from=Closing to=Draining",
            "task_moved task=2 region=2 from=Running to=CancelRequested",
            "witness task=2 region=2 epoch=1 phase=Requested kind=ParentCancelled polls=50",
        ]
    );
    w.set_now(Time::from_millis(30));
    let finalizer = poll(&mut w, PollEnd::Pending);
    assert_eq!(idle(&mut w), Some(Time::from_millis(50)), "the rest of the grace");
    assert_eq!(
        log(&mut w),
        [
            "grace_expired region=1",
            "send_aborted task=2 channel=1 permit=1",
            "obligation_resolved region=2 obligation=1 to=Leaked",
            "cleanup_overrun task=2 region=2 polls=0",
            "task_moved task=2 region=2 from=CancelRequested to=Completed",
            "witness task=2 region=2 epoch=1 phase=Completed kind=ParentCancelled polls=50",
            "task_ended task=2 region=2 outcome=Cancelled",
            "region_moved region=2 from=Draining to=Finalizing",
            "task_spawned task=3 region=2 priority=255 finalizer=true",
            "task_moved task=3 region=2 from=Created to=Running",
        ]
    );
    assert_eq!(w.take_released(), [4, 0]);
    w.set_now(Time::from_millis(50));
    assert_eq!(idle(&mut w), None);
    assert_eq!(
        log(&mut w),
        [
            "grace_expired region=1",
            "cleanup_overrun task=3 region=2 polls=1",
            "task_moved task=3 region=2 from=Running to=Completed",
            "task_ended task=3 region=2 outcome=Cancelled",
            "region_moved region=2 from=Finalizing to=Closed",
            "region_outcome region=2 outcome=Cancelled",
            "region_moved region=1 from=Draining to=Finalizing",
            "region_moved region=1 from=Finalizing to=Closed",
            "region_outcome region=1 outcome=Cancelled",
        ]
    );
    assert_eq!(w.task(finalizer).map(drop), stale());
    assert_eq!(w.quiescent(), Ok(()));
}

#[test]
fn the_first_failure_cancels_the_siblings() {
    let mut w = world();
    let options = RegionOptions { policy: Policy::FailFast, ..RegionOptions::default() };
    let region = w.open_region(ROOT, options).unwrap();
    let inner = open(&mut w, region);
    let [a, b, c] = [region, region, inner].map(|region| spawn(&mut w, region));
    let outside = spawn(&mut w, ROOT);
    log(&mut w);
    assert_eq!(poll(&mut w, failed()), a);
    assert_eq!(
        log(&mut w),
        [
            "task_moved task=1 region=2 from=Created to=Running",
            "task_moved task=1 region=2 from=Running to=Completed",
            "task_ended task=1 region=2 outcome=Err",
            "task_moved task=2 region=2 from=Created to=CancelRequested",
            "witness task=2 region=2 epoch=1 phase=Requested kind=FailFast polls=200",
            "region_cancelled region=3 kind=FailFast",
            "region_moved region=3 from=Open to=Closing",
            "region_moved region=3 from=Closing to=Draining",
            "task_moved task=3 region=3 from=Created to=CancelRequested",
            "witness task=3 region=3 epoch=1 phase=Requested kind=ParentCancelled polls=200",
        ]
    );
    assert_eq!(w.region(region).unwrap().state, RegionState::Open);
    assert_eq!(w.task(outside).unwrap().state, TaskState::Created);
    assert_eq!(poll(&mut w, PollEnd::Panicked("later".into())), b);
    assert_eq!(poll(&mut w, PollEnd::Cancelled), c);
    w.end_region(region).unwrap();
    let view = w.region(region).unwrap();
    assert_eq!(view.outcome, Some(Severity::Panicked), "the fold");
    assert_eq!(view.first_cause.unwrap().severity(), Severity::Err);
    let relaxed = open(&mut w, ROOT);
    let [_, sibling] = [0, 1].map(|_| spawn(&mut w, relaxed));
    poll(&mut w, PollEnd::Ready);
    poll(&mut w, failed());
    assert_eq!(w.task(sibling).unwrap().state, TaskState::Created);
}

#[test]
fn a_scope_ends_when_its_last_child_has() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let task = spawn(&mut w, region);
    w.end_region(region).unwrap();
    begin(&mut w);
    assert!(w.spawn(region, TaskOptions::default(), 0).is_ok(), "still open");
    end(&mut w, task, PollEnd::Ready);
    log(&mut w);
    assert_eq!(poll(&mut w, PollEnd::Ready).ordinal(), 2);
    let told = [
        "task_moved task=2 region=2 from=Created to=Running",
        "task_moved task=2 region=2 from=Running to=Completed",
        "task_ended task=2 region=2 outcome=Ok",
        "region_moved region=2 from=Open to=Closing",
        "region_moved region=2 from=Closing to=Finalizing",
        "region_moved region=2 from=Finalizing to=Closed",
        "region_outcome region=2 outcome=Ok",
    ];
    assert_eq!(log(&mut w), told);
    let watcher = spawn(&mut w, ROOT);
    begin(&mut w);
    assert_eq!(w.closed(watcher, region), Ok(Poll::Ready(Severity::Ok)));
    assert_eq!(w.join(watcher, task), Ok(Poll::Ready(Severity::Ok)));
}

#[test]
fn watchers_are_woken_in_registration_order() {
    let mut w = world();
    let region = open(&mut w, ROOT);
    let target = spawn(&mut w, region);
    let [a, b, c] = [0, 1, 2].map(|_| spawn(&mut w, ROOT));
    let join = |w: &mut W, task| {
        w.wake(task).unwrap();
        assert_eq!(begin(w), task);
        assert_eq!(w.join(task, target), Ok(Poll::Pending));
        assert_eq!(w.closed(task, region), Ok(Poll::Pending));
        end(w, task, PollEnd::Pending);
    };
    for _ in 0..4 {
        poll(&mut w, PollEnd::Pending);
    }
    for task in [c, a, b] {
        join(&mut w, task);
    }
    w.cancel_task(a, ask(Kind::User)).unwrap();
    poll(&mut w, PollEnd::Cancelled);
    w.wake(target).unwrap();
    poll(&mut w, PollEnd::Ready);
    assert_eq!([begin(&mut w)], [c]);
    assert_eq!(w.join(c, target), Ok(Poll::Ready(Severity::Ok)));
    end(&mut w, c, PollEnd::Ready);
    assert_eq!(poll(&mut w, PollEnd::Pending), b);
    w.end_region(region).unwrap();
    assert_eq!(poll(&mut w, PollEnd::Pending), b, "the second event it waits for");
}
