//! Answers to pure questions: straight from the kernel's laws, on every host.

use crate::host::Reply;
use crate::parse::words::{OneOrMore, Word};
use crate::scenario::{End, JoinOrder, Law, Seen, Why};
use crate::value::Value;
use asx_kernel::arena::Key;
use asx_kernel::budget::{Budget, Exhausted};
use asx_kernel::cancel::{Kind, Phase, Reason, Witness};
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::lanes::{
    Certificate, Fairness, FairnessConfig, Lane, Pending, Suggestion, steal_order,
};
use asx_kernel::outcome::{Lattice, NoValue, Outcome};
use asx_kernel::rng::DetRng;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use std::sync::Arc;

/// The answer; `seed` is the run's.
pub fn answer(law: &Law, seed: u64) -> Reply {
    match law {
        Law::JoinOutcomes { of, fold } => join(of, *fold),
        Law::Strengthen { reasons } => strengthen(reasons),
        Law::KindInfo { kind: Word(kind) } => Reply::ok()
            .with("severity", kind.severity())
            .with("polls", kind.cleanup().polls)
            .with("priority", kind.cleanup().priority)
            .with("class", kind.class()),
        Law::Meet { of } => {
            let budget = of.iter().copied().reduce(Budget::meet).unwrap_or_default();
            Reply::ok()
                .with("equals", Value::budget(&budget))
                .with("deadline", Value::maybe(budget.deadline))
                .with("polls", budget.poll_quota)
                .with("cost", Value::maybe(budget.cost_quota))
                .with("priority", budget.priority.0)
        }
        Law::ConsumePolls { budget, polls } => {
            let mut budget = *budget;
            let result = consume_polls(&mut budget, *polls);
            exhausted(result).with("left", Value::budget(&budget))
        }
        Law::ConsumeCost { budget, cost } => {
            let mut budget = *budget;
            let result = budget.consume_cost(*cost);
            exhausted(result).with("left", Value::budget(&budget))
        }
        Law::CheckDeadline { budget, now } => exhausted(budget.check_deadline(*now)),
        Law::WaitUntil { budget, now, timeout } => {
            let until = budget.wait_until(*now, *timeout);
            exhausted(until.map(drop)).with("until", Value::maybe(until.ok()))
        }
        Law::TaskMove { from, to } => pairs(from, to, |from, to| from.check(to)),
        Law::RegionMove { from, to } => pairs(from, to, |from, to| from.check(to)),
        Law::ObligationMove { from, to } => pairs(from, to, |from, to| from.check(to)),
        Law::PhaseMove { from, to } => pairs(from, to, phase_move),
        Law::ValidateWitness { prev, next } => witness(prev).validate(&witness(next)).into(),
        Law::Rng { seed: own, worker, values } => {
            let mut rng = DetRng::new(own.unwrap_or(seed), *worker);
            let values = values.iter().map(|_| rng.next_u64().into()).collect();
            Reply::ok().with("values", Value::List(values))
        }
        Law::StealOrder { seed: own, worker, workers } => {
            steal_scan(own.unwrap_or(seed), *worker, *workers)
        }
        Law::Decide { pending, suggestion, limit, history } => {
            decide(pending, suggestion.0, *limit, history)
        }
        Law::Certificates { left, right } => {
            let equal = certificate(left).witness_hash() == certificate(right).witness_hash();
            Reply::ok().with("equal", equal)
        }
    }
}

fn exhausted(result: Result<(), Exhausted>) -> Reply {
    let kind = result.err().map(|error| error.kind().name());
    Reply::from(result).with("kind", Value::maybe(kind))
}

/// All of so many polls or none: what is left before the last one decides.
fn consume_polls(budget: &mut Budget, polls: u64) -> Result<(), Exhausted> {
    let Some(others) = polls.checked_sub(1).filter(|_| budget.poll_quota < u64::MAX) else {
        return Ok(());
    };
    let mut last = Budget { poll_quota: budget.poll_quota.saturating_sub(others), ..*budget };
    last.consume_poll()?;
    *budget = last;
    Ok(())
}

fn region() -> RegionId {
    RegionId(Key { generation: 1, index: 0 })
}

fn reason(kind: Kind, at: Time, message: Option<&str>) -> Reason {
    let reason = Reason::new(kind, region(), at);
    match message {
        Some(message) => reason.with_message(message),
        None => reason,
    }
}

type Joined = Outcome<(), Option<Arc<str>>>;

fn outcome(end: &End) -> Joined {
    use asx_kernel::outcome::Severity;
    let text = end.message.as_deref();
    let message = text.map(Arc::from);
    match end.severity.0 {
        Severity::Ok => Ok(()),
        Severity::Err => Err(NoValue::Err(message)),
        Severity::Cancelled => Err(NoValue::Cancelled(reason(
            end.kind.map_or(Kind::User, |kind| kind.0),
            end.at,
            text,
        ))),
        Severity::Panicked => Err(NoValue::Panicked(message.unwrap_or_else(|| "".into()))),
    }
}

fn join(of: &[End], fold: JoinOrder) -> Reply {
    let mut ends = of.iter().map(outcome);
    let joined = if fold == JoinOrder::Right {
        ends.rev().reduce(|right, left| left.join(right))
    } else {
        ends.by_ref().reduce(Joined::join)
    };
    let joined = joined.unwrap_or(Ok(()));
    let (kind, message) = match &joined {
        Ok(()) => (None, None),
        Err(NoValue::Err(message)) => (None, message.as_deref()),
        Err(NoValue::Cancelled(reason)) => (Some(reason.kind.name()), reason.message.as_deref()),
        Err(NoValue::Panicked(message)) => (None, Some(&**message).filter(|text| !text.is_empty())),
    };
    Reply::ok()
        .with("severity", joined.severity().name())
        .with("rank", joined.severity() as u64)
        .with("kind", Value::maybe(kind))
        .with("message", Value::maybe(message))
}

fn strengthen(reasons: &[Why]) -> Reply {
    let Some((first, rest)) = reasons.split_first() else { return Status::InvalidArgument.into() };
    let of = |why: &Why| reason(why.kind.0, why.at, why.message.as_deref());
    let mut kept = of(first);
    let mut winner = 0u64;
    let mut cleanup = first.kind.0.cleanup();
    for (index, why) in rest.iter().enumerate() {
        let new = of(why);
        cleanup = cleanup.combine(why.kind.0.cleanup());
        if kept.weaker_than(&new) {
            winner = index as u64 + 1;
        }
        kept = kept.strengthen(new);
    }
    Reply::ok()
        .with("kind", kept.kind.name())
        .with("message", Value::maybe(kept.message.as_deref()))
        .with("at", kept.timestamp)
        .with("severity", kept.kind.severity())
        .with("winner", winner)
        .with("polls", cleanup.polls)
        .with("priority", cleanup.priority)
}

/// Tries every pair; all must answer the same.
fn pairs<T: Copy + core::fmt::Debug>(
    OneOrMore(from): &OneOrMore<T>,
    OneOrMore(to): &OneOrMore<T>,
    check: impl Fn(T, T) -> Result<(), Status>,
) -> Reply {
    let mut first: Option<(T, T, Reply)> = None;
    for &Word(from) in from {
        for &Word(to) in to {
            let reply = Reply::from(check(from, to));
            match &first {
                None => first = Some((from, to, reply)),
                Some((a, b, one)) if *one != reply => {
                    let one = one.status.name();
                    let two = reply.status.name();
                    let note = format!("{a:?} -> {b:?} answers {one}, {from:?} -> {to:?} {two}");
                    return Reply::status(Status::Internal).note(note);
                }
                Some(_) => {}
            }
        }
    }
    first.map_or(Reply::status(Status::InvalidArgument), |(.., reply)| reply)
}

/// The law of phases is that of witnesses: rank never decreases.
fn phase_move(from: Phase, to: Phase) -> Result<(), Status> {
    let seen = |phase| witness(&Seen { phase: Word(phase), ..Seen::default() });
    seen(from).validate(&seen(to)).map_err(|_| Status::InvalidTransition)
}

fn witness(seen: &Seen) -> Witness {
    let key = |index| Key { generation: 1, index };
    let region = RegionId(key(seen.region));
    Witness {
        task: TaskId(key(seen.task)),
        region,
        epoch: seen.epoch,
        phase: seen.phase.0,
        reason: Reason::new(seen.kind.0, region, Time::ZERO),
    }
}

fn steal_scan(seed: u64, worker: usize, workers: usize) -> Reply {
    let start = DetRng::new(seed, worker as u64).below(workers.saturating_sub(1));
    let order = steal_order(worker, workers, start).map(Value::from);
    Reply::ok().with("order", Value::List(order.collect()))
}

const EVERYTHING: Pending = Pending { cancel: true, timed: true, ready: true };

fn pending(lanes: &[Word<Lane>]) -> Pending {
    let has = |lane| lanes.contains(&Word(lane));
    Pending { cancel: has(Lane::Cancel), timed: has(Lane::Timed), ready: has(Lane::Ready) }
}

fn decide(
    lanes: &[Word<Lane>],
    suggestion: Suggestion,
    limit: u32,
    history: &[Word<Lane>],
) -> Reply {
    let mut fairness =
        Fairness::new(FairnessConfig { cancel_streak_limit: limit, ..FairnessConfig::default() });
    let effective = fairness.limit(suggestion);
    for lane in history {
        let verdict =
            asx_kernel::lanes::Verdict { lane: lane.0, fallback: false, limit: effective };
        fairness.record(verdict, EVERYTHING);
    }
    let verdict = fairness.decide(pending(lanes), suggestion);
    Reply::ok()
        .with("lane", Value::maybe(verdict.map(|verdict| verdict.lane.name())))
        .with("fallback", verdict.is_some_and(|verdict| verdict.fallback))
        .with("effective_limit", effective)
}

fn certificate(lanes: &[Word<Lane>]) -> Certificate {
    let mut fairness = Fairness::new(FairnessConfig::default());
    let mut certificate = Certificate::default();
    for lane in lanes {
        let limit = fairness.limit(Suggestion::NoPreference);
        let base = fairness.base_limit();
        let verdict = asx_kernel::lanes::Verdict { lane: lane.0, fallback: false, limit };
        certificate.record(verdict, fairness.streak(), base, EVERYTHING);
        fairness.record(verdict, EVERYTHING);
    }
    certificate
}
