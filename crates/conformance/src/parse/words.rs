//! Types of the kernel as they are written in a file.

use super::node::OR_NONE;
use crate::scenario::Need;
use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::{Lane, Priority, Suggestion, TieBreak};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::pump::Capability;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::world::Policy;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// An enum whose values have names.
pub trait Vocabulary: Copy + PartialEq + 'static {
    /// The values with their names.
    fn all() -> Vec<(&'static str, Self)>;
}

macro_rules! vocabularies {
    ($($type:ty),* $(,)?) => {$(
        impl Vocabulary for $type {
            fn all() -> Vec<(&'static str, Self)> {
                <$type>::ALL.iter().map(|value| (value.name(), *value)).collect()
            }
        }
    )*};
}

vocabularies!(
    Kind,
    Phase,
    Lane,
    ObligationState,
    Severity,
    Capability,
    RegionState,
    Status,
    TaskState
);

impl Vocabulary for Suggestion {
    fn all() -> Vec<(&'static str, Self)> {
        vec![
            ("no_preference", Suggestion::NoPreference),
            ("meet_deadlines", Suggestion::MeetDeadlines),
            ("drain_obligations", Suggestion::DrainObligations),
            ("drain_regions", Suggestion::DrainRegions),
        ]
    }
}

impl Vocabulary for TieBreak {
    fn all() -> Vec<(&'static str, Self)> {
        vec![
            ("fifo", TieBreak::Fifo),
            ("seeded", TieBreak::Seeded),
            ("task_key", TieBreak::TaskKey),
        ]
    }
}

impl Vocabulary for WhenFull {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("overwrite", WhenFull::Overwrite), ("refuse", WhenFull::Refuse)]
    }
}

impl Vocabulary for Need {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("storage", Need::Storage), ("slots", Need::Slots)]
    }
}

impl Vocabulary for Policy {
    fn all() -> Vec<(&'static str, Self)> {
        vec![("collect_all", Policy::CollectAll), ("fail_fast", Policy::FailFast)]
    }
}

/// A value that is written by its name, whatever the case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<T: Vocabulary> Word<T> {
    fn of<E: Error>(text: &str) -> Result<Word<T>, E> {
        let all = T::all();
        let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, value)| Word(*value)).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
            // Of very many, one tells enough.
            let expected = match names.len() {
                ..=20 => format!("one of {}", names.join(", ")),
                _ => "a status name such as \"FULL\"".to_owned(),
            };
            let near = super::suggest::near(text, names);
            E::custom(format_args!("expected {expected}, not \"{text}\"{near}"))
        })
    }

    /// The name.
    pub(crate) fn name(self) -> &'static str {
        T::all().into_iter().find(|(_, value)| *value == self.0).map_or("none", |(name, _)| name)
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Word::of(&String::deserialize(from)?)
    }
}

/// A word, or a list of at least one.
#[derive(Clone, Debug)]
pub struct OneOrMore<T>(pub Vec<Word<T>>);

impl<'de, T: Vocabulary> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);

        impl<'de, T: Vocabulary> Visitor<'de> for Read<T> {
            type Value = Vec<Word<T>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Word::of(text).map(|word| vec![word])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                several(SeqAccessDeserializer::new(seq))
            }
        }

        from.deserialize_any(Read(PhantomData)).map(OneOrMore)
    }
}

const AT_LEAST_ONE: &str = "expected a list with at least one item";

/// A list of at least one.
pub(crate) fn several<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let items = Vec::deserialize(from)?;
    if items.is_empty() { Err(D::Error::custom(AT_LEAST_ONE)) } else { Ok(items) }
}

/// A number within bounds.
pub(crate) fn within<
    'de,
    D: Deserializer<'de>,
    T: TryFrom<u64>,
    const LOW: u64,
    const HIGH: u64,
>(
    from: D,
) -> Result<T, D::Error> {
    let wrong = || D::Error::custom(format_args!("expected a number from {LOW} to {HIGH}"));
    let number = u64::deserialize(from).map_err(|_| wrong())?;
    let number = Some(number).filter(|number| (LOW..=HIGH).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(wrong)
}

/// An instant: a duration since the beginning.
pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    Duration::deserialize(from).map(|span| Time::ZERO + span)
}

/// 16 hex digits.
pub(crate) struct Hex(pub(crate) u64);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Hex, D::Error> {
        let digits = String::deserialize(from).ok().filter(|text| text.len() == 16);
        let number = digits.and_then(|text| u64::from_str_radix(&text, 16).ok());
        number.map(Hex).ok_or_else(|| D::Error::custom("expected 16 hex digits in quotes"))
    }
}

/// A limit, or `"none"`.
struct OrNone<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrNone<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(OR_NONE, OrNoneVisitor(PhantomData)).map(OrNone)
    }
}

struct OrNoneVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OrNoneVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit or \"none\"")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        T::deserialize(from).map(Some)
    }
}

/// A budget: a word or a table.
#[derive(serde::Deserialize)]
#[serde(rename = "a budget")]
struct BudgetTable {
    /// What a word in place of the table stands for.
    #[serde(rename = "(word)")]
    word: Option<String>,
    deadline: Option<OrNone<Duration>>,
    polls: Option<u64>,
    cost: Option<OrNone<u64>>,
    priority: Option<u8>,
}

pub(crate) fn budget<'de, D: Deserializer<'de>>(from: D) -> Result<Budget, D::Error> {
    let table = BudgetTable::deserialize(from)?;
    match table.word.as_deref() {
        None => {}
        Some(word) if word.eq_ignore_ascii_case("INFINITE") => return Ok(Budget::INFINITE),
        Some(word) if word.eq_ignore_ascii_case("ZERO") => return Ok(Budget::ZERO),
        Some(_) => {
            let what = "\"INFINITE\", \"ZERO\" or a table of deadline, polls, cost, priority";
            return Err(D::Error::custom(format_args!("expected {what}")));
        }
    }
    let deadline = table.deadline.and_then(|OrNone(deadline)| deadline);
    Ok(Budget {
        deadline: deadline.map(|span| Time::ZERO + span),
        poll_quota: table.polls.unwrap_or(Budget::INFINITE.poll_quota),
        cost_quota: table.cost.and_then(|OrNone(cost)| cost),
        priority: table.priority.map_or(Budget::INFINITE.priority, Priority),
    })
}

/// Some budgets.
pub(crate) fn budgets<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Budget>, D::Error> {
    let budgets: Vec<Budgeted> = Vec::deserialize(from)?;
    Ok(budgets.into_iter().map(|Budgeted(budget)| budget).collect())
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Budgeted(#[serde(deserialize_with = "budget")] Budget);
