//! Reading single values: each function answers the value or what it expected instead.

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::lanes::{Lane, Priority, Suggestion};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::pump::Capability;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use core::time::Duration;
use toml::de::DeValue;

/// A value, or what was expected.
pub(crate) type Read<T> = Result<T, String>;

/// A duration string in nanoseconds: numbers with units, added up.
pub(crate) fn span(text: &str) -> Read<u64> {
    let wrong = || format!("a duration such as \"10ms\" or \"1h30m\", not \"{text}\"");
    let mut rest = text.trim();
    let mut total = 0u64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let scale = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "" if total == 0 && tail.is_empty() => 1,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(scale);
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| format!("a duration below 584 years, not \"{text}\""))?;
        rest = tail;
    }
    Ok(total)
}

/// A duration.
pub(crate) fn duration(value: &DeValue<'_>) -> Read<Duration> {
    match value {
        DeValue::String(text) => span(text).map(Duration::from_nanos),
        DeValue::Integer(_) => number(value).map(Duration::from_nanos),
        _ => Err(format!("a duration such as \"10ms\", not {}", kind_of(value))),
    }
}

/// An instant.
pub(crate) fn instant(value: &DeValue<'_>) -> Read<Time> {
    duration(value).map(|span| Time::ZERO + span)
}

/// A number from 0 to 2^64 - 1.
pub(crate) fn number(value: &DeValue<'_>) -> Read<u64> {
    let wrong = || "a number from 0 to 18446744073709551615, or \"max\"".to_owned();
    match value {
        DeValue::Integer(int) => {
            u64::from_str_radix(int.as_str(), int.radix()).map_err(|_| wrong())
        }
        DeValue::String(text) => match text.strip_prefix("max") {
            Some("") => Ok(u64::MAX),
            Some(less) => less
                .strip_prefix('-')
                .and_then(|n| n.trim().parse::<u64>().ok())
                .and_then(|n| u64::MAX.checked_sub(n))
                .ok_or_else(wrong),
            None => text.trim().parse().map_err(|_| wrong()),
        },
        _ => Err(format!("{}, not {}", wrong(), kind_of(value))),
    }
}

/// A number within bounds.
pub(crate) fn within(value: &DeValue<'_>, low: u64, high: u64) -> Read<u64> {
    let n = number(value).map_err(|_| format!("a number from {low} to {high}"))?;
    if (low..=high).contains(&n) { Ok(n) } else { Err(format!("a number from {low} to {high}")) }
}

/// A size.
pub(crate) fn size(value: &DeValue<'_>) -> Read<usize> {
    number(value).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// A signed integer.
pub(crate) fn int(value: &DeValue<'_>) -> Read<i64> {
    match value {
        DeValue::Integer(int) => i64::from_str_radix(int.as_str(), int.radix())
            .map_err(|_| "an integer of 64 bits".to_owned()),
        _ => Err(format!("an integer, not {}", kind_of(value))),
    }
}

/// A yes or no.
pub(crate) fn flag(value: &DeValue<'_>) -> Read<bool> {
    match value {
        DeValue::Boolean(b) => Ok(*b),
        _ => Err(format!("true or false, not {}", kind_of(value))),
    }
}

/// A string.
pub(crate) fn text(value: &DeValue<'_>) -> Read<String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err(format!("a string, not {}", kind_of(value))),
    }
}

/// A list of something.
pub(crate) fn list<T>(value: &DeValue<'_>, item: impl Fn(&DeValue<'_>) -> Read<T>) -> Read<Vec<T>> {
    match value {
        DeValue::Array(items) => items.iter().map(|value| item(value.get_ref())).collect(),
        _ => Err(format!("a list, not {}", kind_of(value))),
    }
}

/// One of some words, whatever their case.
pub(crate) fn pick<T: Copy>(
    value: &DeValue<'_>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Read<T> {
    let names: Vec<&str> = all.iter().map(|item| name(*item)).collect();
    let expected = || format!("one of {}", names.join(", "));
    let DeValue::String(text) = value else {
        return Err(format!("{}, not {}", expected(), kind_of(value)));
    };
    let found = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    found.map(|at| all[at]).ok_or_else(|| {
        let near = super::suggest::near(text, names.iter().copied());
        format!("{}, not \"{text}\"{near}", expected())
    })
}

pub(crate) fn kind(value: &DeValue<'_>) -> Read<Kind> {
    pick(value, &Kind::ALL, Kind::name)
}

pub(crate) fn severity(value: &DeValue<'_>) -> Read<Severity> {
    pick(value, &Severity::ALL, Severity::name)
}

pub(crate) fn task_state(value: &DeValue<'_>) -> Read<TaskState> {
    pick(value, &TaskState::ALL, TaskState::name)
}

pub(crate) fn region_state(value: &DeValue<'_>) -> Read<RegionState> {
    pick(value, &RegionState::ALL, RegionState::name)
}

pub(crate) fn obligation_state(value: &DeValue<'_>) -> Read<ObligationState> {
    pick(value, &ObligationState::ALL, ObligationState::name)
}

pub(crate) fn phase(value: &DeValue<'_>) -> Read<Phase> {
    pick(value, &Phase::ALL, Phase::name)
}

pub(crate) fn lane(value: &DeValue<'_>) -> Read<Lane> {
    pick(value, &Lane::ALL, Lane::name)
}

pub(crate) fn suggestion(value: &DeValue<'_>) -> Read<Suggestion> {
    pick(value, &Suggestion::ALL, |mode| match mode {
        Suggestion::NoPreference => "no_preference",
        Suggestion::MeetDeadlines => "meet_deadlines",
        Suggestion::DrainObligations => "drain_obligations",
        Suggestion::DrainRegions => "drain_regions",
    })
}

pub(crate) fn capability(value: &DeValue<'_>) -> Read<Capability> {
    pick(value, &Capability::ALL, Capability::name)
}

pub(crate) fn status(value: &DeValue<'_>) -> Read<Status> {
    let DeValue::String(text) = value else {
        return Err(format!("a status name such as \"FULL\", not {}", kind_of(value)));
    };
    let found = Status::ALL.iter().find(|status| status.name().eq_ignore_ascii_case(text));
    found.copied().ok_or_else(|| {
        let near = super::suggest::near(text, Status::ALL.iter().map(|status| status.name()));
        format!("a status name such as \"FULL\", not \"{text}\"{near}")
    })
}

/// 16 hex digits.
pub(crate) fn hex(value: &DeValue<'_>) -> Read<u64> {
    let digits = text(value).ok().filter(|text| text.len() == 16);
    digits
        .and_then(|text| u64::from_str_radix(&text, 16).ok())
        .ok_or_else(|| "16 hex digits in quotes".to_owned())
}

/// A budget: a word or a table.
pub(crate) fn budget(value: &DeValue<'_>) -> Read<Budget> {
    let expected = "\"INFINITE\", \"ZERO\" or a table of deadline, polls, cost, priority";
    match value {
        DeValue::String(text) if text.eq_ignore_ascii_case("INFINITE") => Ok(Budget::INFINITE),
        DeValue::String(text) if text.eq_ignore_ascii_case("ZERO") => Ok(Budget::ZERO),
        DeValue::Table(table) => {
            let mut budget = Budget::INFINITE;
            for (key, value) in table {
                let value = value.get_ref();
                let none = matches!(value, DeValue::String(text) if text == "none");
                match key.get_ref().as_ref() {
                    "deadline" | "cost" if none => {}
                    "deadline" => budget.deadline = Some(instant(value)?),
                    "polls" => budget.poll_quota = number(value)?,
                    "cost" => budget.cost_quota = Some(number(value)?),
                    "priority" => budget.priority = Priority(within(value, 0, 255)? as u8),
                    other => return Err(format!("{expected}; `{other}` is none of them")),
                }
            }
            Ok(budget)
        }
        _ => Err(expected.to_owned()),
    }
}

/// What a value is, for people.
pub(crate) fn kind_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() <= 40 => format!("\"{text}\""),
        DeValue::String(_) => "a long string".to_owned(),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(n) => n.to_string(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
