//! The pure questions, a row each.

use super::keys::Keys;
use super::ops::{Place, Spec, spec};
use super::results::{Fields, Ty};
use super::words::{self, Read};
use crate::scenario::{End, Law, Op, Seen, Why};
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::Suggestion;
use asx_kernel::outcome::Severity;
use asx_kernel::time::Time;
use toml::de::DeValue;

const fn law(
    name: &'static str,
    read: fn(&mut Keys<'_, '_, '_>) -> Option<Op>,
    results: Fields,
) -> Spec {
    spec(name, Place::Both, read, results)
}

pub(super) const LAWS: &[Spec] = &[
    law("join_outcomes", |k| join_outcomes(k).map(Op::Law), JOINED),
    law(
        "strengthen",
        |k| Some(Op::Law(Law::Strengthen { reasons: k.req("reasons", |v| several(v, why))? })),
        STRONGEST,
    ),
    law("kind_info", |k| Some(Op::Law(Law::KindInfo { kind: k.req("kind", words::kind)? })), INFO),
    law(
        "meet",
        |k| Some(Op::Law(Law::Meet { of: k.req("of", |v| words::list(v, words::budget))? })),
        MET,
    ),
    law("consume", |k| consume(k).map(Op::Law), &[("left", Ty::Budget), ("kind", Ty::Kind)]),
    law("check_deadline", |k| check_deadline(k).map(Op::Law), &[("kind", Ty::Kind)]),
    law("wait_until", |k| wait_until(k).map(Op::Law), &[("until", Ty::Instant)]),
    law("task_move", |k| moves(k, words::task_state, |from, to| Law::TaskMove { from, to }), &[]),
    law(
        "region_move",
        |k| moves(k, words::region_state, |from, to| Law::RegionMove { from, to }),
        &[],
    ),
    law(
        "obligation_move",
        |k| moves(k, words::obligation_state, |from, to| Law::ObligationMove { from, to }),
        &[],
    ),
    law("phase_move", |k| moves(k, words::phase, |from, to| Law::PhaseMove { from, to }), &[]),
    law("validate_witness", |k| validate_witness(k).map(Op::Law), &[]),
    law("rng", |k| rng(k).map(Op::Law), &[("values", Ty::Numbers)]),
    law("steal_order", |k| steal_order(k).map(Op::Law), &[("order", Ty::Numbers)]),
    law("decide", |k| decide(k).map(Op::Law), DECIDED),
    law("certificates", |k| certificates(k).map(Op::Law), &[("equal", Ty::Flag)]),
];

const JOINED: Fields =
    &[("severity", Ty::Severity), ("rank", Ty::Number), ("kind", Ty::Kind), ("message", Ty::Text)];
const STRONGEST: Fields = &[
    ("kind", Ty::Kind),
    ("message", Ty::Text),
    ("at", Ty::Instant),
    ("severity", Ty::Number),
    ("winner", Ty::Number),
    ("polls", Ty::Number),
    ("priority", Ty::Number),
];
const INFO: Fields = &[
    ("severity", Ty::Number),
    ("polls", Ty::Number),
    ("priority", Ty::Number),
    ("class", Ty::Words(&["explicit", "time", "budget", "peer", "structural", "system"])),
];
const MET: Fields = &[
    ("equals", Ty::Budget),
    ("deadline", Ty::Instant),
    ("polls", Ty::Number),
    ("cost", Ty::Number),
    ("priority", Ty::Number),
];
const DECIDED: Fields =
    &[("lane", Ty::Lane), ("fallback", Ty::Flag), ("effective_limit", Ty::Number)];

/// A list with at least one item.
fn several<T>(value: &DeValue<'_>, item: impl Fn(&DeValue<'_>) -> Read<T>) -> Read<Vec<T>> {
    let items = words::list(value, item)?;
    if items.is_empty() { Err("a list with at least one item".to_owned()) } else { Ok(items) }
}

/// One item, or a list of them.
fn one_or_more<T>(value: &DeValue<'_>, item: impl Fn(&DeValue<'_>) -> Read<T>) -> Read<Vec<T>> {
    match value {
        DeValue::Array(_) => several(value, item),
        _ => item(value).map(|item| vec![item]),
    }
}

fn join_outcomes(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let fold = k.opt("fold", |v| words::pick(v, &["left", "right"], |word| word));
    Some(Law::JoinOutcomes {
        of: k.req("of", |v| words::list(v, end))?,
        right: fold == Some("right"),
    })
}

fn end(value: &DeValue<'_>) -> Read<End> {
    let (severity, table) = match value {
        DeValue::Table(table) => {
            let is = table.get("is").ok_or("an outcome with `is`, such as { is = \"Err\" }")?;
            (words::severity(is.get_ref())?, Some(table))
        }
        _ => (words::severity(value)?, None),
    };
    let mut why = Why { kind: Kind::User, at: Time::ZERO, message: None };
    for (key, value) in table.into_iter().flatten() {
        match key.get_ref().as_ref() {
            "is" => {}
            "kind" if severity == Severity::Cancelled => why.kind = words::kind(value.get_ref())?,
            other => reason_key(&mut why, other, value.get_ref())?,
        }
    }
    Ok(End { severity, why })
}

fn why(value: &DeValue<'_>) -> Read<Why> {
    let mut why = Why { kind: Kind::User, at: Time::ZERO, message: None };
    let DeValue::Table(table) = value else {
        return words::kind(value).map(|kind| Why { kind, ..why });
    };
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "kind" => why.kind = words::kind(value.get_ref())?,
            other => reason_key(&mut why, other, value.get_ref())?,
        }
    }
    Ok(why)
}

fn reason_key(why: &mut Why, key: &str, value: &DeValue<'_>) -> Read<()> {
    match key {
        "at" => why.at = words::instant(value)?,
        "message" => why.message = Some(words::text(value)?),
        other => return Err(format!("`is`, `kind`, `at`, `message` only, not `{other}`")),
    }
    Ok(())
}

fn consume(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let (polls, cost) = (k.opt("polls", words::number), k.opt("cost", words::number));
    let budget = k.req("budget", words::budget)?;
    match (polls, cost) {
        (Some(polls), None) => Some(Law::ConsumePolls { budget, polls }),
        (None, Some(cost)) => Some(Law::ConsumeCost { budget, cost }),
        _ => {
            k.reading.error(k.line, "polls", "op \"consume\" needs one of `polls` and `cost`");
            None
        }
    }
}

fn check_deadline(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let now = k.req("now", words::instant);
    Some(Law::CheckDeadline { budget: k.req("budget", words::budget)?, now: now? })
}

fn wait_until(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let (now, timeout) = (k.req("now", words::instant), k.req("timeout", words::duration));
    Some(Law::WaitUntil { budget: k.req("budget", words::budget)?, now: now?, timeout: timeout? })
}

fn moves<T>(
    k: &mut Keys<'_, '_, '_>,
    state: fn(&DeValue<'_>) -> Read<T>,
    law: fn(Vec<T>, Vec<T>) -> Law,
) -> Option<Op> {
    let to = k.req("to", |v| one_or_more(v, state));
    Some(Op::Law(law(k.req("from", |v| one_or_more(v, state))?, to?)))
}

fn validate_witness(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let next = k.req("next", seen);
    Some(Law::ValidateWitness { prev: k.req("prev", seen)?, next: next? })
}

fn seen(value: &DeValue<'_>) -> Read<Seen> {
    let DeValue::Table(table) = value else {
        return Err("a table of task, region, epoch, phase, kind".to_owned());
    };
    let (phase, kind) = (Phase::Requested, Kind::User);
    let mut seen = Seen { task: 1, region: 0, epoch: 1, phase, kind };
    for (key, value) in table {
        let value = value.get_ref();
        match key.get_ref().as_ref() {
            "task" => seen.task = words::within(value, 0, u32::MAX.into())? as u32,
            "region" => seen.region = words::within(value, 0, u32::MAX.into())? as u32,
            "epoch" => seen.epoch = words::number(value)?,
            "phase" => seen.phase = words::phase(value)?,
            "kind" => seen.kind = words::kind(value)?,
            other => return Err(format!("task, region, epoch, phase, kind only, not `{other}`")),
        }
    }
    Ok(seen)
}

fn rng(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let (seed, worker) = (k.opt("seed", words::number), k.opt("worker", words::number));
    let values = k.req("values", |v| words::list(v, words::number))?;
    Some(Law::Rng { seed, worker: worker.unwrap_or(0), count: values.len() })
}

fn steal_order(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let (seed, worker) = (k.opt("seed", words::number), k.opt("worker", words::size).unwrap_or(0));
    let workers = k.req("workers", |v| words::within(v, 1, 1024))? as usize;
    Some(Law::StealOrder { seed, worker, workers })
}

fn decide(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let suggestion = k.opt("suggestion", words::suggestion).unwrap_or(Suggestion::NoPreference);
    let limit = k.opt("limit", |v| words::within(v, 1, u32::MAX.into())).unwrap_or(16) as u32;
    let history = k.opt("history", |v| words::list(v, words::lane)).unwrap_or_default();
    let pending = k.req("pending", |v| words::list(v, words::lane))?;
    Some(Law::Decide { pending, suggestion, limit, history })
}

fn certificates(k: &mut Keys<'_, '_, '_>) -> Option<Law> {
    let right = k.req("right", |v| words::list(v, words::lane));
    Some(Law::Certificates { left: k.req("left", |v| words::list(v, words::lane))?, right: right? })
}
