//! Checks and explicit moves: ops with exactly one subject.

use super::keys::Keys;
use super::ops::{Place, Spec, spec};
use super::results::{Fields, Ty};
use super::words;
use crate::pattern::Named;
use crate::scenario::{Checked, Move, Op};

pub(super) const CHECKS: &[Spec] =
    &[spec("check", Place::Both, check, &[]), spec("try_move", Place::Both, try_move, &[])];

/// Subjects that are named.
const NAMED: &[(&str, Named)] = &[
    ("task", Named::Task),
    ("region", Named::Region),
    ("obligation", Named::Obligation),
    ("channel", Named::Channel),
    ("permit", Named::Permit),
    ("timer", Named::Timer),
];
/// Subjects of which there is one.
const SINGLE: &[(&str, Checked)] = &[
    ("timers", Checked::Timers),
    ("lanes", Checked::Lanes),
    ("journal", Checked::Journal),
    ("clock", Checked::Clock),
    ("pump", Checked::Pump),
];

fn check(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    // `region` is also a field of a task, so a task comes first.
    for (key, kind) in NAMED {
        if k.has(key) {
            let name = k.name(*kind, key)?;
            return Some(Op::Check(match kind {
                Named::Task => Checked::Task(name),
                Named::Region => Checked::Region(name),
                Named::Obligation => Checked::Obligation(name),
                Named::Channel => Checked::Channel(name),
                Named::Permit => Checked::Permit(name),
                Named::Timer | Named::Definition => Checked::Timer(name),
            }));
        }
    }
    for (key, subject) in SINGLE {
        if k.has(key) {
            k.raw(key);
            return Some(Op::Check(subject.clone()));
        }
    }
    if k.has("certificate") {
        return Some(Op::Check(Checked::Certificate(k.req("certificate", words::size)?)));
    }
    let what = "op \"check\" needs one subject: task, region, obligation, channel, permit, timer, \
                timers, lanes, certificate, journal, clock or pump";
    k.reading.error(k.line, "check", what);
    None
}

/// What can be checked of a subject.
pub(super) fn fields(subject: &Checked) -> Fields {
    match subject {
        Checked::Task(_) => TASK,
        Checked::Region(_) => REGION,
        Checked::Obligation(_) => &[("state", Ty::ObligationState)],
        Checked::Channel(_) => CHANNEL,
        Checked::Permit(_) => &[("state", Ty::Words(&["Live", "Sent", "Aborted", "Leaked"]))],
        Checked::Timer(_) => TIMER,
        Checked::Timers => {
            &[("active", Ty::Number), ("next", Ty::Instant), ("storage", Ty::Number)]
        }
        Checked::Lanes => LANES,
        Checked::Certificate(_) => CERTIFICATE,
        Checked::Journal => {
            &[("recorded", Ty::Number), ("lost", Ty::Number), ("retained", Ty::Number)]
        }
        Checked::Clock => &[("now", Ty::Instant), ("next_wake", Ty::Instant)],
        Checked::Pump => PUMP,
    }
}

const TASK: Fields = &[
    ("state", Ty::TaskState),
    ("outcome", Ty::Severity),
    ("message", Ty::Text),
    ("status", Ty::Status),
    ("kind", Ty::Kind),
    ("chain", Ty::Kinds),
    ("truncated", Ty::Flag),
    ("epoch", Ty::Number),
    ("phase", Ty::Phase),
    ("polls_left", Ty::Number),
    ("overrun", Ty::Flag),
    ("error", Ty::Text),
    ("lane", Ty::Lane),
    ("polls", Ty::Number),
    ("polls_since_request", Ty::Number),
    ("priority", Ty::Number),
    ("deadline", Ty::Instant),
    ("quota", Ty::Number),
    ("cost", Ty::Number),
    ("region", Ty::Text),
    ("finalizer", Ty::Flag),
];

const REGION: Fields = &[
    ("state", Ty::RegionState),
    ("outcome", Ty::Severity),
    ("first_cause", Ty::Severity),
    ("tasks", Ty::Number),
    ("children", Ty::Number),
    ("obligations", Ty::Number),
    ("finalizers", Ty::Number),
    ("kind", Ty::Kind),
    ("message", Ty::Text),
    ("chain", Ty::Kinds),
    ("memory", Ty::Number),
];

const CHANNEL: Fields = &[
    ("state", Ty::Words(&["Open", "SenderClosed", "ReceiverClosed", "FullyClosed"])),
    ("capacity", Ty::Number),
    ("len", Ty::Number),
    ("reserved", Ty::Number),
    ("waiters", Ty::Number),
    ("senders", Ty::Number),
];

const TIMER: Fields = &[
    ("active", Ty::Flag),
    ("deadline", Ty::Instant),
    ("level", Ty::Level),
    ("id", Ty::Number),
    ("generation", Ty::Number),
];

const LANES: Fields =
    &[("cancel", Ty::Number), ("timed", Ty::Number), ("ready", Ty::Number), ("total", Ty::Number)];

const CERTIFICATE: Fields = &[
    ("cancel", Ty::Number),
    ("timed", Ty::Number),
    ("ready", Ty::Number),
    ("fallback", Ty::Number),
    ("base_exceedances", Ty::Number),
    ("effective_exceedances", Ty::Number),
    ("max_limit", Ty::Number),
    ("hash", Ty::Hex),
];

const PUMP: Fields = &[
    ("state", Ty::Words(&["Idle", "Scheduled", "Running"])),
    ("turn", Ty::Number),
    ("batch", Ty::Number),
    ("outstanding", Ty::Words(&["microtask", "message", "timeout"])),
    ("pending", Ty::Flag),
    ("stalled", Ty::Flag),
    ("deferred", Ty::Number),
    ("stale_timers", Ty::Number),
    ("macrotasks", Ty::Number),
    ("microtasks", Ty::Number),
];

fn try_move(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let op = if k.has("task") {
        Move::Task(k.name(Named::Task, "task")?, k.req("to", words::task_state)?)
    } else if k.has("obligation") {
        Move::Obligation(
            k.name(Named::Obligation, "obligation")?,
            k.req("to", words::obligation_state)?,
        )
    } else {
        Move::Region(k.name(Named::Region, "region")?, k.req("to", words::region_state)?)
    };
    Some(Op::TryMove(op))
}
