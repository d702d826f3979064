use super::*;
use crate::status::{Coded, Status};
use std::format;
use std::string::ToString;

fn config(steps: u32) -> PumpConfig {
    PumpConfig {
        microtask_burst_limit: steps,
        burst_time_limit: None,
        timer_batch_limit: 3,
        has_message_channel: true,
        clock_check_every: 1,
    }
}

/// Returns a pump inside its first drain.
fn running(config: PumpConfig, now: Option<Time>) -> Pump {
    let mut pump = Pump::new(config, Capabilities::all());
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert_eq!(pump.enter(now), Enter::Begin { turn: 1, batch: 1 });
    pump
}

fn without(capability: Capability) -> Capabilities {
    let mut set = Capabilities::all();
    set.revoke(capability);
    set
}

fn kick(call: HostCall, reached: Option<Limit>, steps: u32) -> Leave {
    Leave::Kick(Handoff { call, reached, steps })
}

#[test]
fn defaults_are_the_documented_ones() {
    let d = PumpConfig::default();
    assert_eq!((d.microtask_burst_limit, d.timer_batch_limit), (256, 64));
    assert_eq!(d.burst_time_limit, Some(Duration::from_millis(4)));
    assert_eq!((d.clock_check_every, d.has_message_channel), (1, true));
}

#[test]
fn limits_of_zero_count_as_one() {
    let zero = PumpConfig { timer_batch_limit: 0, clock_check_every: 0, ..config(0) };
    let one = PumpConfig { timer_batch_limit: 1, clock_check_every: 1, ..config(1) };
    assert_eq!(*Pump::new(zero, Capabilities::none()).config(), one);
}

#[test]
fn wakes_before_the_drain_share_one_microtask() {
    let mut pump = Pump::new(config(4), Capabilities::all());
    assert_eq!((pump.state(), pump.outstanding()), (PumpState::Idle, None));
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert_eq!(pump.state(), PumpState::Scheduled);
    assert_eq!(pump.outstanding(), Some(HostCall::Microtask));
    for _ in 0..3 {
        assert_eq!(pump.wake(), Ok(None));
    }
    assert!(!pump.pending());
    assert_eq!(pump.enter(None), Enter::Begin { turn: 1, batch: 1 });
    assert_eq!((pump.state(), pump.outstanding()), (PumpState::Running, None));
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.enter(None), Enter::NotScheduled);
    assert_eq!(pump.microtask_batch_id(), 1);
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
}

#[test]
fn a_pump_call_inside_a_drain_is_deferred_and_changes_nothing_else() {
    let mut pump = running(config(4), None);
    assert!(pump.may_step(None));
    let mut expected = pump.clone();
    let deferred = ReentrancyDeferred { turn: 1, batch: 1 };
    assert_eq!(pump.enter(Some(Time::MAX)), Enter::Deferred(deferred));
    assert_eq!(deferred.status(), Status::Reentrant);
    assert_eq!(expected.wake(), Ok(None)); // notes the same, changes the same
    assert_eq!(pump, expected);
    assert!(pump.pending());
    assert_eq!(pump.leave(false), kick(HostCall::MessagePost, None, 1));
}

#[test]
fn only_a_granted_step_clears_earlier_wakes() {
    let mut pump = running(config(2), None);
    assert!(pump.may_step(None));
    assert_eq!(pump.wake(), Ok(None));
    assert!(pump.may_step(None));
    assert!(!pump.pending());
    assert_eq!(pump.clone().leave(false), Leave::Idle);
    assert_eq!(pump.wake(), Ok(None));
    assert!(!pump.may_step(None));
    assert!(pump.pending());
    assert_eq!(pump.leave(false), kick(HostCall::MessagePost, Some(Limit::Steps), 2));
}

#[test]
fn a_drain_takes_exactly_its_limit_and_hands_off_the_rest() {
    let mut pump = running(config(3), None);
    for taken in 0..3 {
        assert_eq!(pump.steps(), taken);
        assert!(pump.may_step(None));
    }
    assert!(!pump.may_step(None) && !pump.may_step(None));
    assert_eq!(pump.steps(), 3);
    assert_eq!(pump.clone().leave(false), Leave::Idle);
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Steps), 3));
    assert_eq!((pump.state(), pump.steps()), (PumpState::Scheduled, 0));
    assert_eq!(pump.outstanding(), Some(HostCall::MessagePost));
    assert_eq!(pump.wake(), Ok(None));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 2, batch: 2 });
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, None, 1));
}

#[test]
fn turns_count_macrotasks_and_batches_count_drains() {
    let mut pump = running(config(1), None);
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 1, batch: 2 });
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.host_turn(), Ok(2));
    assert_eq!((pump.host_turn_id(), pump.microtask_batch_id()), (2, 2));
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert_eq!(pump.host_turn(), Ok(3));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 3, batch: 3 });
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, None, 0));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 4, batch: 4 });
}

#[test]
fn a_zero_timeout_is_used_only_if_messages_cannot_be_posted() {
    let no_channel = PumpConfig { has_message_channel: false, ..config(1) };
    let mut pump = running(no_channel, None);
    assert_eq!(pump.leave(true), kick(HostCall::TimeoutZero, None, 0));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 2, batch: 2 });
    pump.revoke(Capability::Timer);
    let denied = Denied { capability: Capability::Timer, provenance: "pump hand-off" };
    assert_eq!(pump.leave(true), Leave::Stalled { denied, reached: None });

    // Timers are granted, and messages exist but are denied: no call is made instead.
    let mut pump = running(config(1), None);
    pump.revoke(Capability::Post);
    assert!(pump.may_step(None) && !pump.may_step(None));
    let denied = Denied { capability: Capability::Post, ..denied };
    assert_eq!(pump.leave(true), Leave::Stalled { denied, reached: Some(Limit::Steps) });
    assert_eq!((pump.state(), pump.stalled()), (PumpState::Idle, true));
    assert_eq!(pump.stalled_by(), Some(denied));
    assert!(pump.grant(Capability::Post).is_some());
    assert_eq!(pump.stalled_by(), None);
}

#[test]
fn a_denied_call_is_owed_and_made_by_the_grant_or_a_later_wake() {
    let denied = Denied { capability: Capability::Microtask, provenance: "pump kick" };
    let mut pump = Pump::new(config(1), without(Capability::Microtask));
    assert!(!pump.stalled());
    for _ in 0..2 {
        assert_eq!(pump.wake(), Err(Refused::Denied(denied)));
        assert_eq!((pump.state(), pump.stalled()), (PumpState::Idle, true));
        assert_eq!(pump.enter(None), Enter::NotScheduled);
        assert_eq!(pump.grant(Capability::Clock), None);
    }
    assert_eq!(pump.grant(Capability::Microtask), Some(HostCall::Microtask));
    assert_eq!(pump.outstanding(), Some(HostCall::Microtask));
    assert!(!pump.stalled());
    assert_eq!(pump.grant(Capability::Microtask), None);
}

#[test]
fn an_owed_hand_off_is_never_replaced_by_a_microtask() {
    let mut pump = running(config(1), None);
    pump.revoke(Capability::Post);
    let Leave::Stalled { denied, .. } = pump.leave(true) else { panic!("not stalled") };
    assert_eq!(pump.wake(), Err(Refused::Denied(denied)));
    let mut by_wake = pump.clone();
    by_wake.capabilities.grant(Capability::Post);
    assert_eq!(by_wake.wake(), Ok(Some(HostCall::MessagePost)));
    assert_eq!(pump.grant(Capability::Post), Some(HostCall::MessagePost));
    pump.revoke(Capability::Post); // too late: the call is on its way
    assert_eq!(pump.enter(None), Enter::Begin { turn: 2, batch: 2 });
    assert_eq!(pump.leave(false), Leave::Idle);
    assert!(!pump.stalled() && !pump.capabilities().has(Capability::Post));
}

#[test]
fn expired_timers_are_collected_in_capped_batches_in_separate_turns() {
    let mut pump = running(config(2), None);
    assert_eq!(pump.timer_batch(), 3);
    pump.timers_fired(1, false);
    assert_eq!(pump.timer_batch(), 2);
    pump.timers_fired(2, true);
    assert_eq!((pump.timer_batch(), pump.check()), (0, Ok(())));
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), kick(HostCall::MessagePost, Some(Limit::Timers), 1));
    pump.timers_fired(1, true); // outside a drain: nothing
    assert_eq!(pump.timer_batch(), 0);
    assert_eq!(pump.enter(None), Enter::Begin { turn: 2, batch: 2 });
    assert_eq!(pump.timer_batch(), 3);
    pump.timers_fired(2, true);
    pump.timers_fired(1, false);
    assert_eq!(pump.clone().leave(false), Leave::Idle);
    pump.timers_fired(0, true);
    while pump.may_step(None) {}
    assert_eq!(pump.leave(false), kick(HostCall::MessagePost, Some(Limit::Steps), 2));
}

#[test]
fn a_trap_is_terminal_and_keeps_its_first_diagnosis() {
    let mut pump = running(config(5), None);
    assert!(pump.may_step(None) && pump.may_step(None));
    let first = pump.trap("poll");
    let expected = Trapped { site: "poll", state: PumpState::Running, turn: 1, batch: 1, steps: 2 };
    assert_eq!(first, expected);
    assert_eq!(pump.trap("again"), first);
    assert_eq!(pump.trapped(), Some(first));
    assert_eq!(pump.wake(), Err(Refused::Trapped(first)));
    assert_eq!(pump.enter(None), Enter::Trapped(first));
    assert_eq!(pump.leave(true), Leave::Trapped(first));
    assert_eq!(pump.host_turn(), Err(first));
    assert_eq!(pump.grant(Capability::Post), None);
    assert!(!pump.may_step(None) && !pump.wants_clock());
    assert_eq!((pump.state(), pump.steps(), pump.host_turn_id()), (PumpState::Idle, 0, 1));
    assert_eq!(first.status(), Status::Internal);
    let text = "the runtime trapped (poll) while Running: turn 1, drain 1, step 2";
    assert_eq!(first.to_string(), text);
}

#[test]
fn a_host_turn_inside_a_drain_shows_that_the_drain_was_killed() {
    let mut pump = running(config(5), None);
    assert!(pump.may_step(None));
    let trapped = pump.host_turn().unwrap_err();
    assert_eq!((trapped.state, trapped.steps, trapped.turn), (PumpState::Running, 1, 1));
    assert_eq!(pump.trapped(), Some(trapped));
    let mut idle = Pump::new(config(1), Capabilities::none());
    assert_eq!((idle.trapped(), idle.trap("x").state), (None, PumpState::Idle));
    assert_eq!(idle.trap("x").steps, 0);
}

#[test]
fn refusals_carry_the_code_and_text_of_their_cause() {
    let denied = Denied { capability: Capability::Post, provenance: "p" };
    let trapped = Pump::new(config(1), Capabilities::none()).trap("x");
    for (refused, status, text) in [
        (Refused::Denied(denied), Status::CapabilityDenied, denied.to_string()),
        (Refused::Trapped(trapped), Status::Internal, trapped.to_string()),
    ] {
        assert_eq!((refused.status(), format!("{refused}")), (status, text));
    }
}

#[test]
fn host_calls_name_their_capability() {
    let all = [HostCall::Microtask, HostCall::MessagePost, HostCall::TimeoutZero];
    let needs = [Capability::Microtask, Capability::Post, Capability::Timer];
    assert_eq!(all.map(HostCall::capability), needs);
}

#[test]
fn the_host_timer_needs_its_capability() {
    let pump = Pump::new(config(1), Capabilities::all());
    let due = Some(Time::from_millis(5));
    let timer = HostTimer { after_ms: 5, chunked: false };
    assert_eq!(pump.plan_timer(Time::ZERO, due), Ok(Some(timer)));
    let pump = Pump::new(config(1), without(Capability::Timer));
    let denied = Denied { capability: Capability::Timer, provenance: "host timer" };
    assert_eq!(pump.plan_timer(Time::ZERO, due), Err(denied));
    assert_eq!(pump.plan_timer(Time::ZERO, None), Ok(None));
}

fn timed(limit: u64, spacing: u32) -> PumpConfig {
    let burst_time_limit = Some(Duration::from_nanos(limit));
    PumpConfig { burst_time_limit, clock_check_every: spacing, ..config(1000) }
}

/// Runs one drain over polls of these lengths. Returns how many ran, after how many polls the clock
/// was read, and the limit that ended it.
fn drain(config: PumpConfig, polls: &[u64]) -> (usize, std::vec::Vec<usize>, Option<Limit>) {
    let mut clock = 100;
    let mut ran = 0;
    let mut reads = std::vec::Vec::new();
    let mut pump = running(config, Some(Time::from_nanos(clock)));
    while ran < polls.len() {
        let now = pump.wants_clock().then(|| Time::from_nanos(clock));
        reads.extend(now.map(|_| ran));
        if !pump.may_step(now) {
            break;
        }
        assert_eq!(pump.check(), Ok(()));
        clock += polls[ran];
        ran += 1;
    }
    let reached = match pump.leave(true) {
        Leave::Kick(handoff) => handoff.reached,
        other => panic!("{other:?}"),
    };
    (ran, reads, reached)
}

#[test]
fn the_time_limit_ends_the_drain_at_the_first_reading_at_or_after_it() {
    assert_eq!(drain(timed(10, 1), &[9, 5, 5]), (2, [1, 2].into(), Some(Limit::Time)));
    assert_eq!(drain(timed(10, 1), &[5, 5, 5]), (2, [1, 2].into(), Some(Limit::Time)));
    assert_eq!(drain(timed(10, 1), &[5, 4, 5]), (3, [1, 2].into(), None));
    assert_eq!(drain(timed(0, 1), &[0, 0]), (1, [1].into(), Some(Limit::Time)));
    assert_eq!(drain(config(9), &[1 << 40; 9]).1, []);
}

#[test]
fn readings_are_spaced_while_polls_are_short_and_close_near_the_limit() {
    // Doubling up to the spacing.
    assert_eq!(drain(timed(1000, 4), &[1; 18]).1, [1, 3, 7, 11, 15]);
    // Bounded by the slowest mean: 30 left after one poll of 10, so 2, then 1 left.
    assert_eq!(drain(timed(40, 32), &[10; 9]), (4, [1, 3, 4].into(), Some(Limit::Time)));
    // 7 in 2 polls counts as 4 each: 21 - 8 = 13 left, so 3 more before reading.
    assert_eq!(drain(timed(21, 32), &[1, 3, 4, 3, 3, 3, 9]).1, [1, 3, 6]);
    // An unmeasurably short poll counts as one tick.
    assert_eq!(drain(timed(3, 32), &[0; 9]).1, [1, 3, 6]);
}

#[test]
fn a_drain_that_takes_over_starts_with_the_spacing_of_the_previous_one() {
    /// Runs a drain over polls of these lengths. Returns after how many of them the clock was read.
    fn reads(pump: &mut Pump, clock: &mut u64, polls: &[u64]) -> std::vec::Vec<usize> {
        let _ = pump.enter(Some(Time::from_nanos(*clock)));
        let mut reads = std::vec::Vec::new();
        for (nth, poll) in polls.iter().enumerate() {
            let now = pump.wants_clock().then(|| Time::from_nanos(*clock));
            reads.extend(now.map(|_| nth));
            if !pump.may_step(now) {
                break;
            }
            *clock += poll;
        }
        reads
    }
    let mut pump = Pump::new(timed(1000, 8), Capabilities::all());
    let mut clock = 0;
    let _ = pump.wake();
    assert_eq!(reads(&mut pump, &mut clock, &[1; 24]), [1, 3, 7, 15, 23]);
    let _ = pump.leave(true);
    assert_eq!(reads(&mut pump, &mut clock, &[1; 24]), [8, 16]);
    // A smaller spacing takes effect immediately.
    let _ = pump.leave(true);
    pump.configure(timed(1000, 4));
    assert_eq!(reads(&mut pump, &mut clock, &[1; 10]), [4, 8]);
    // Slow polls are noticed in this and the next drain.
    let _ = pump.leave(true);
    assert_eq!(reads(&mut pump, &mut clock, &[200; 9]), [4, 5]);
    let _ = pump.leave(true);
    assert_eq!(reads(&mut pump, &mut clock, &[1; 4]), [1, 3]);
    // A drain with an unknown start knows no spacing; its successor starts anew.
    let _ = pump.leave(true);
    let _ = pump.enter(None);
    assert!(pump.may_step(None) && pump.wants_clock());
    let _ = pump.leave(true);
    let _ = reads(&mut pump, &mut clock, &[1; 8]);
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.end_turn(), Ok(()));
    let _ = pump.wake();
    assert_eq!(reads(&mut pump, &mut clock, &[1; 4]), [1, 3]);
}

fn at(n: u64) -> Option<Time> {
    Some(Time::from_nanos(n))
}

/// Begins a drain that a wake requested by a microtask.
fn enter_by_microtask(pump: &mut Pump, now: Option<Time>) -> (u64, u64) {
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    match pump.enter(now) {
        Enter::Begin { turn, batch } => (turn, batch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn drains_of_one_turn_share_its_steps() {
    let mut pump = running(config(3), None);
    assert!(pump.may_step(None) && pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(enter_by_microtask(&mut pump, None), (1, 2));
    assert_eq!(pump.steps(), 0);
    assert!(pump.may_step(None) && !pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    // The steps are used up: the next drain of this turn takes no step and hands off.
    assert_eq!(enter_by_microtask(&mut pump, None), (1, 3));
    assert!(!pump.may_step(None));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Steps), 0));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 2, batch: 4 });
    assert!(pump.may_step(None));
}

#[test]
fn time_between_the_drains_of_a_turn_counts() {
    let mut pump = running(timed(10, 32), at(100));
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    // Page code ran for 9, and then for 1 more.
    assert_eq!(enter_by_microtask(&mut pump, at(109)), (1, 2));
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(enter_by_microtask(&mut pump, at(110)), (1, 3));
    assert!(!pump.may_step(at(110)));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Time), 0));
    assert_eq!(pump.enter(at(110)), Enter::Begin { turn: 2, batch: 4 });
    assert!(pump.may_step(None));
}

#[test]
fn a_later_drain_without_a_reading_hands_off() {
    let mut pump = running(timed(10, 32), at(0));
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    let _ = enter_by_microtask(&mut pump, None);
    assert!(!pump.may_step(at(1)));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Clock), 0));
}

#[test]
fn the_end_of_a_turn_renews_the_allowance_and_numbers_the_next_drain() {
    let mut pump = running(config(1), None);
    assert_eq!(pump.watch_turn(), None, "no drain has ended");
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.watch_turn(), Some(HostCall::MessagePost));
    assert_eq!(pump.watch_turn(), None, "the call is outstanding");
    assert_eq!((pump.end_turn(), pump.host_turn_id()), (Ok(()), 1));
    assert_eq!(pump.watch_turn(), None, "nothing is used");
    assert_eq!(enter_by_microtask(&mut pump, None), (2, 2));
    assert!(pump.may_step(None));
    assert_eq!(pump.leave(false), Leave::Idle);
    // A turn that ends while a hand-off is outstanding is counted once.
    assert_eq!(enter_by_microtask(&mut pump, None), (2, 3));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Steps), 0));
    assert_eq!(pump.end_turn(), Ok(()));
    assert_eq!(pump.enter(None), Enter::Begin { turn: 3, batch: 4 });
    let trapped = pump.end_turn().unwrap_err();
    assert_eq!((trapped.state, pump.trapped()), (PumpState::Running, Some(trapped)));
}

#[test]
fn page_code_runs_between_two_steps_of_a_turn_and_its_time_counts() {
    let mut pump = running(timed(10, 32), at(0));
    assert!(pump.may_step(None));
    pump.yield_to_page();
    assert!(!pump.wants_clock() && !pump.may_step(None));
    assert_eq!(pump.leave(true), Leave::Resume(HostCall::Microtask));
    assert_eq!(pump.outstanding(), Some(HostCall::Microtask));
    assert_eq!(pump.enter(at(4)), Enter::Begin { turn: 1, batch: 2 });
    assert!(pump.may_step(None));
    pump.yield_to_page();
    assert_eq!(pump.clone().leave(false), Leave::Idle);
    assert_eq!(pump.leave(true), Leave::Resume(HostCall::Microtask));
    assert_eq!(pump.enter(at(12)), Enter::Begin { turn: 1, batch: 3 });
    assert!(!pump.may_step(None));
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Time), 0));
}

#[test]
fn a_pause_without_remaining_allowance_hands_off() {
    let mut pump = running(config(1), None);
    assert!(pump.may_step(None));
    pump.yield_to_page();
    assert_eq!(pump.clone().leave(true), kick(HostCall::MessagePost, Some(Limit::Steps), 1));
    pump.timers_fired(3, true);
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Steps), 1));
    let mut pump = running(config(9), None);
    pump.timers_fired(3, true);
    pump.yield_to_page();
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Timers), 0));
    // A pause without the microtask capability owes the call like any other.
    let mut pump = running(config(9), None);
    assert!(pump.may_step(None));
    pump.yield_to_page();
    pump.revoke(Capability::Microtask);
    let denied = Denied { capability: Capability::Microtask, provenance: "pump kick" };
    assert_eq!(pump.leave(true), Leave::Stalled { denied, reached: None });
    assert_eq!(pump.grant(Capability::Microtask), Some(HostCall::Microtask));
    pump.yield_to_page(); // outside a drain: nothing
    assert_eq!(pump.enter(None), Enter::Begin { turn: 1, batch: 2 });
    assert!(pump.may_step(None));
}

#[test]
fn handoff_denied_reports_what_leave_would_return() {
    let denied = Denied { capability: Capability::Post, provenance: "pump hand-off" };
    let mut pump = running(config(2), None);
    assert_eq!(pump.handoff_denied(), None, "it is granted");
    pump.revoke(Capability::Post);
    assert_eq!(pump.handoff_denied(), Some(denied));
    assert!(pump.may_step(None));
    pump.yield_to_page();
    assert_eq!(pump.handoff_denied(), None, "the drain resumes in a microtask");
    assert_eq!(pump.leave(true), Leave::Resume(HostCall::Microtask));
    assert_eq!(pump.handoff_denied(), None, "no drain runs");
    assert!(matches!(pump.enter(None), Enter::Begin { .. }) && pump.may_step(None));
    pump.yield_to_page();
    assert_eq!(pump.handoff_denied(), Some(denied), "no steps are left");
    assert_eq!(pump.wake(), Ok(None));
    let stalled = Leave::Stalled { denied, reached: Some(Limit::Steps) };
    assert_eq!(pump.clone().leave(false), stalled, "a wake is owed");
    pump.step_overtime();
    assert_eq!(pump.leave(false), Leave::Idle);
    pump.step_overtime(); // outside a drain: no effect
}

#[test]
fn a_long_pause_ends_a_turn_that_is_not_reported() {
    let mut pump = Pump::new(timed(10, 1), without(Capability::Post));
    assert_eq!(enter_by_microtask(&mut pump, at(0)), (1, 1));
    assert!(pump.may_step(None) && pump.may_step(at(5)));
    assert_eq!((pump.leave(false), pump.watch_turn()), (Leave::Idle, None));
    assert_eq!(enter_by_microtask(&mut pump, at(14)), (1, 2));
    assert!(!pump.may_step(None));
    assert_eq!((pump.leave(false), pump.watch_turn()), (Leave::Idle, None));
    assert_eq!(enter_by_microtask(&mut pump, at(24)), (2, 3));
    assert!(pump.may_step(None));
    // Without a time limit pauses cannot be recognized: each idle drain ends a turn.
    let mut pump = Pump::new(config(1), without(Capability::Post));
    for nth in 1..4 {
        assert_eq!(enter_by_microtask(&mut pump, None), (nth, nth));
        assert!(pump.may_step(None));
        assert_eq!((pump.leave(false), pump.watch_turn()), (Leave::Idle, None));
    }
}

#[test]
fn a_missing_reading_ends_the_drain_after_one_poll() {
    let now = Some(Time::ZERO);
    let mut pump = running(timed(10, 1), None);
    assert!(pump.may_step(None) && !pump.may_step(None));
    assert!(!pump.may_step(now)); // refused stays refused
    assert_eq!(pump.leave(true), kick(HostCall::MessagePost, Some(Limit::Clock), 1));
    let mut pump = running(timed(10, 1), None);
    assert!(pump.may_step(now) && !pump.may_step(now));
    let mut pump = running(timed(10, 1), now);
    assert!(pump.may_step(now) && pump.may_step(now) && !pump.may_step(None));
    assert!(!pump.may_step(now)); // a reading that comes after all is too late
}

#[test]
fn every_drain_gets_its_first_step_even_if_it_is_late() {
    let mut pump = running(timed(10, 1), Some(Time::ZERO));
    assert!(pump.may_step(Some(Time::MAX)) && !pump.may_step(Some(Time::MAX)));
}

#[test]
fn a_clock_that_goes_back_counts_as_standing_still() {
    let at = |n| Some(Time::from_nanos(n));
    let mut pump = running(timed(10, 1), at(100));
    assert!(pump.may_step(None) && pump.may_step(at(109)) && pump.may_step(at(50)));
    assert!(!pump.may_step(at(110)) && !pump.may_step(at(50)));
    // The mean after the clock went back is computed from the furthest reading.
    let mut pump = running(timed(100, 32), at(0));
    assert!(pump.may_step(None) && pump.may_step(at(2)) && pump.may_step(at(0)));
    assert!(!pump.wants_clock());
    assert!(pump.may_step(at(3)));
    let State::Running(burst) = pump.state else { panic!("not running") };
    assert_eq!(format!("{burst:?}").split("slowest: ").nth(1), Some("2 }"));
}

#[test]
fn the_clock_is_wanted_only_under_a_time_limit() {
    let mut pump = Pump::new(timed(10, 1), Capabilities::all());
    assert!(!pump.wants_clock());
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert!(pump.wants_clock());
    assert_eq!(pump.enter(Some(Time::ZERO)), Enter::Begin { turn: 1, batch: 1 });
    assert!(!pump.wants_clock());
    assert!(pump.may_step(None) && pump.wants_clock());

    let mut pump = Pump::new(config(3), Capabilities::all());
    assert_eq!(pump.wake(), Ok(Some(HostCall::Microtask)));
    assert!(!pump.wants_clock());
    assert!(matches!(pump.enter(None), Enter::Begin { .. }));
    assert!(pump.may_step(None) && pump.may_step(None) && !pump.wants_clock());
}

#[test]
fn check_reports_every_account_beyond_its_limit() {
    let broken = |config: PumpConfig, change: fn(&mut Burst)| {
        let mut pump = running(config, Some(Time::ZERO));
        let State::Running(burst) = &mut pump.state else { panic!("not running") };
        change(burst);
        pump.check().is_err()
    };
    assert!(!broken(config(2), |b| b.steps = 2));
    assert!(broken(config(2), |b| b.steps = 3));
    assert!(!broken(config(2), |b| b.timers = 3));
    assert!(broken(config(2), |b| b.timers = 4));
    assert!(!broken(timed(10, 1), |b| *b = overdue(1)));
    assert!(broken(timed(10, 1), |b| *b = overdue(2)));
    assert!(!broken(config(2), |b| *b = overdue(2)));
    let mut pump = running(config(1), None);
    pump.batch = 0;
    assert!(pump.check().is_err());
    assert_eq!(pump.leave(false), Leave::Idle);
    assert_eq!(pump.check(), Ok(()));
}

/// Returns a burst that took `steps` steps without reading the clock.
fn overdue(steps: u32) -> Burst {
    let mut burst = Burst::new(None, 1);
    (0..steps).for_each(|_| assert!(burst.step(&config(9), None)));
    burst
}

#[test]
fn limits_can_be_changed_between_drains_and_are_at_least_one() {
    let limit = |steps| PumpConfig { microtask_burst_limit: steps, ..PumpConfig::default() };
    let mut pump = Pump::new(limit(5), Capabilities::all());
    let _ = pump.wake();
    pump.configure(limit(0));
    assert_eq!(pump.config().microtask_burst_limit, 1);
    assert_eq!(pump.outstanding(), Some(HostCall::Microtask), "nothing else changes");
}
