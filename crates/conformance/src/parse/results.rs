//! The results that can be expected: how each is written, and its one canonical form.

use super::node::{Node, Wrong};
use super::words::{self, Hex, Vocabulary, Word};
use crate::scenario::Checked;
use crate::value::Value;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use serde::Deserialize;
use toml::de::DeValue;

/// Result keys with their types.
pub(super) type Fields = &'static [(&'static str, Ty)];

/// The type of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ty {
    Flag,
    Number,
    Numbers,
    Int,
    Instant,
    Text,
    Severity,
    Kind,
    Kinds,
    Status,
    Statuses,
    Lane,
    TaskState,
    RegionState,
    ObligationState,
    Phase,
    Hex,
    Budget,
    Level,
    Words(&'static [&'static str]),
}

impl Ty {
    /// Reads an expected value; every type but text takes `"none"`.
    pub(super) fn read(self, node: Node<'_>) -> Result<Value, Wrong> {
        if matches!(node.value, DeValue::String(text) if text == "none") {
            return Ok(Value::none());
        }
        Ok(match self {
            Ty::Flag => bool::deserialize(node)?.into(),
            Ty::Number => u64::deserialize(node)?.into(),
            Ty::Numbers => {
                let numbers: Vec<u64> = Vec::deserialize(node)?;
                Value::List(numbers.into_iter().map(Value::from).collect())
            }
            Ty::Int => i64::deserialize(node)?.into(),
            Ty::Instant => words::time(node)?.into(),
            Ty::Text => String::deserialize(node)?.into(),
            Ty::Severity => name::<Severity>(node)?,
            Ty::Kind => name::<Kind>(node)?,
            Ty::Kinds => names::<Kind>(node)?,
            Ty::Status => name::<Status>(node)?,
            Ty::Statuses => names::<Status>(node)?,
            Ty::Lane => name::<Lane>(node)?,
            Ty::TaskState => name::<TaskState>(node)?,
            Ty::RegionState => name::<RegionState>(node)?,
            Ty::ObligationState => name::<ObligationState>(node)?,
            Ty::Phase => name::<Phase>(node)?,
            Ty::Hex => format!("{:016x}", Hex::deserialize(node)?.0).into(),
            Ty::Budget => Value::budget(&words::budget(node)?),
            Ty::Level => match node.value {
                DeValue::Integer(_) => words::within::<_, u64, 0, 3>(node)?.into(),
                _ => node.one_of(&["ready", "overflow"])?.into(),
            },
            Ty::Words(all) => node.one_of(all)?.into(),
        })
    }
}

/// The name of a word, as the kernel writes it.
fn name<T: Vocabulary>(node: Node<'_>) -> Result<Value, Wrong> {
    Ok(Word::<T>::deserialize(node)?.name().into())
}

fn names<T: Vocabulary>(node: Node<'_>) -> Result<Value, Wrong> {
    let words: Vec<Word<T>> = Vec::deserialize(node)?;
    Ok(Value::texts(words.into_iter().map(Word::name)))
}

/// What a look at the cancel can tell.
pub(super) const SEEN: Fields =
    &[("value", Ty::Flag), ("kind", Ty::Kind), ("message", Ty::Text), ("polls_left", Ty::Number)];
pub(super) const FIRST: Fields = &[("first", Ty::Flag)];
pub(super) const OUTCOME: Fields = &[("outcome", Ty::Severity)];
pub(super) const PROOF: Fields = &[("proof", Ty::Words(&["Committed", "Aborted"]))];
pub(super) const VALUE: Fields = &[("value", Ty::Int)];
pub(super) const STEPPED: Fields = &[("steps", Ty::Number)];
pub(super) const STEP: Fields = &[("task", Ty::Text), ("lane", Ty::Lane), ("idle", Ty::Flag)];
pub(super) const ANSWER: Fields = &[("answer", Ty::Words(&["begin", "deferred", "not_scheduled"]))];
pub(super) const JOINED: Fields =
    &[("severity", Ty::Severity), ("rank", Ty::Number), ("kind", Ty::Kind), ("message", Ty::Text)];
pub(super) const STRONGEST: Fields = &[
    ("kind", Ty::Kind),
    ("message", Ty::Text),
    ("at", Ty::Instant),
    ("severity", Ty::Number),
    ("winner", Ty::Number),
    ("polls", Ty::Number),
    ("priority", Ty::Number),
];
pub(super) const KIND: Fields = &[
    ("severity", Ty::Number),
    ("polls", Ty::Number),
    ("priority", Ty::Number),
    ("class", Ty::Words(&["explicit", "time", "budget", "peer", "structural", "system"])),
];
pub(super) const MET: Fields = &[
    ("equals", Ty::Budget),
    ("deadline", Ty::Instant),
    ("polls", Ty::Number),
    ("cost", Ty::Number),
    ("priority", Ty::Number),
];
pub(super) const CONSUMED: Fields = &[("left", Ty::Budget), ("kind", Ty::Kind)];
pub(super) const DECIDED: Fields =
    &[("lane", Ty::Lane), ("fallback", Ty::Flag), ("effective_limit", Ty::Number)];

/// What can be checked of a subject.
pub(super) fn of_check(subject: &Checked) -> Fields {
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
