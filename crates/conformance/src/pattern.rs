//! Event patterns: `kind key=value ...`, all words must match.

use crate::events::{HostEvent, Named, Ordinals};
use crate::parse::span;
use asx_kernel::journal::{Event, Field};
use core::fmt;

/// A pattern over journal or host events.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Where it stands.
    pub line: usize,
    /// The kind; `*` is any.
    pub kind: String,
    /// The fields.
    pub words: Vec<(String, String)>,
}

/// Keys whose values are names, with the kind of thing they name.
pub(crate) const NAMED: &[(&str, Named)] = &[
    ("task", Named::Task),
    ("region", Named::Region),
    ("parent", Named::Region),
    ("task_id", Named::Task),
    ("region_id", Named::Region),
    ("timer", Named::Timer),
    ("channel", Named::Channel),
    ("permit", Named::Permit),
    ("obligation", Named::Obligation),
];

impl Named {
    /// The word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Named::Task => "task",
            Named::Region => "region",
            Named::Timer => "timer",
            Named::Channel => "channel",
            Named::Permit => "permit",
            Named::Obligation => "obligation",
            Named::Definition => "task definition",
        }
    }
}

/// The kind of thing a field names, if it names one.
pub(crate) fn named(key: &str) -> Option<Named> {
    NAMED.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(line: usize, text: &str) -> Result<Pattern, String> {
        let mut parts = text.split_whitespace();
        let kind = parts.next().ok_or("an event pattern such as \"task_ended task=a\"")?;
        let words = parts
            .map(|part| match part.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    Ok((key.to_owned(), value.to_owned()))
                }
                _ => Err(format!("`key=value` after the kind, not `{part}`")),
            })
            .collect::<Result<_, String>>()?;
        Ok(Pattern { line, kind: kind.to_owned(), words })
    }

    /// Whether a journal event matches.
    pub fn matches(&self, event: &Event, names: &Ordinals) -> bool {
        if !self.is_kind(event.kind.name()) {
            return false;
        }
        let mut fields: Vec<(&str, Option<String>)> =
            vec![("time", Some(event.time.as_nanos().to_string()))];
        event.subject.visit(|key, id| fields.push((key, id.map(|id| id.to_string()))));
        event.kind.visit(|key, field| {
            let shown = !matches!(field, Field::Maybe(None));
            fields.push((key, shown.then(|| field.to_string())));
        });
        self.words.iter().all(|(key, wanted)| {
            fields
                .iter()
                .any(|(name, got)| name == key && equal(key, wanted, got.as_deref(), names))
        })
    }

    /// Whether a host event matches.
    pub fn matches_host(&self, event: &HostEvent, names: &Ordinals) -> bool {
        self.is_kind(event.kind)
            && self.words.iter().all(|(key, wanted)| {
                event.fields.iter().any(|(name, got)| {
                    let got = got.as_ref().map(ToString::to_string);
                    name == key && equal(key, wanted, got.as_deref(), names)
                })
            })
    }

    fn is_kind(&self, name: &str) -> bool {
        self.kind == "*" || self.kind.eq_ignore_ascii_case(name)
    }
}

fn equal(key: &str, wanted: &str, got: Option<&str>, names: &Ordinals) -> bool {
    let Some(got) = got else { return wanted.eq_ignore_ascii_case("null") };
    if wanted.eq_ignore_ascii_case(got) {
        return true;
    }
    if let (Some(kind), Ok(ordinal)) = (named(key), got.parse()) {
        return names.is_called(kind, ordinal, wanted);
    }
    let instant = matches!(key, "time" | "deadline");
    instant && span(wanted).is_ok_and(|span| got == span.to_string())
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        self.words.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}
