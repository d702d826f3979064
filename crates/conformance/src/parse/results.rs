//! The types of results: how an expected value is written, and its one canonical form.

use super::words::{self, Read};
use crate::value::Value;
use asx_kernel::cancel::Kind;
use toml::de::DeValue;

/// Result keys with their types.
pub(crate) type Fields = &'static [(&'static str, Ty)];

/// The type of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ty {
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
    pub(crate) fn read(self, value: &DeValue<'_>) -> Read<Value> {
        if matches!(value, DeValue::String(text) if text == "none") {
            return Ok(Value::none());
        }
        Ok(match self {
            Ty::Flag => words::flag(value)?.into(),
            Ty::Number => words::number(value)?.into(),
            Ty::Numbers => numbers(value)?,
            Ty::Int => words::int(value)?.into(),
            Ty::Instant => words::instant(value)?.into(),
            Ty::Text => words::text(value)?.into(),
            Ty::Severity => words::severity(value)?.name().into(),
            Ty::Kind => words::kind(value)?.name().into(),
            Ty::Kinds => Value::texts(words::list(value, words::kind)?.into_iter().map(Kind::name)),
            Ty::Status => words::status(value)?.name().into(),
            Ty::Statuses => {
                let all = words::list(value, words::status)?;
                Value::texts(all.into_iter().map(|status| status.name()))
            }
            Ty::Lane => words::lane(value)?.name().into(),
            Ty::TaskState => words::task_state(value)?.name().into(),
            Ty::RegionState => words::region_state(value)?.name().into(),
            Ty::ObligationState => words::obligation_state(value)?.name().into(),
            Ty::Phase => words::phase(value)?.name().into(),
            Ty::Hex => format!("{:016x}", words::hex(value)?).into(),
            Ty::Budget => Value::budget(&words::budget(value)?),
            Ty::Level => match value {
                DeValue::Integer(_) => words::within(value, 0, 3)?.into(),
                _ => words::pick(value, &["ready", "overflow"], |word| word)?.into(),
            },
            Ty::Words(all) => words::pick(value, all, |word| word)?.into(),
        })
    }
}

fn numbers(value: &DeValue<'_>) -> Read<Value> {
    let all = words::list(value, words::number)?;
    Ok(Value::List(all.into_iter().map(Value::from).collect()))
}
