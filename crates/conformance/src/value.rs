//! What replies carry and expectations compare.

use asx_kernel::budget::Budget;
use asx_kernel::time::{Time, nanos};
use core::fmt;
use core::time::Duration;

/// A value in a reply or an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Int(i128),
    /// A yes or no.
    Bool(bool),
    /// A word or a message; absent things are `none`.
    Text(String),
    /// Several.
    List(Vec<Value>),
}

impl Value {
    /// The word for an absent thing.
    pub fn none() -> Value {
        Value::text("none")
    }

    /// A word or message.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// A list of words.
    pub fn texts<S: Into<String>>(texts: impl IntoIterator<Item = S>) -> Value {
        Value::List(texts.into_iter().map(Value::text).collect())
    }

    /// A number or a word for its absence.
    pub fn maybe(value: Option<impl Into<Value>>) -> Value {
        value.map_or_else(Value::none, Into::into)
    }

    /// A budget, written out.
    pub fn budget(budget: &Budget) -> Value {
        let limit = |value: Option<u64>| value.map_or("none".to_owned(), |v| v.to_string());
        let polls = (budget.poll_quota != u64::MAX).then_some(budget.poll_quota);
        Value::text(format!(
            "deadline={} polls={} cost={} priority={}",
            limit(budget.deadline.map(Time::as_nanos)),
            limit(polls),
            limit(budget.cost_quota),
            budget.priority.0
        ))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Text(text) => f.write_str(text),
            Value::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

macro_rules! ints {
    ($($type:ty)*) => { $(impl From<$type> for Value {
        fn from(n: $type) -> Value {
            Value::Int(n as i128)
        }
    })* };
}
ints! { u8 u32 u64 usize i64 }

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Time> for Value {
    fn from(time: Time) -> Value {
        time.as_nanos().into()
    }
}

impl From<Duration> for Value {
    fn from(span: Duration) -> Value {
        nanos(span).into()
    }
}
