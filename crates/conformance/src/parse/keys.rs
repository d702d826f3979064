//! Reading a table key by key: typed, with lines, and complaining about what nobody asked for.

use super::suggest;
use super::words::{self, Read};
use crate::pattern::Named;
use crate::scenario::{Body, BudgetKeys, Message, Name, Op, When};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// One thing wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key or op it is about.
    pub key: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SchemaError { file, line, key, expected } = self;
        write!(f, "{file}:{line}: {key}: {expected}")
    }
}

impl core::error::Error for SchemaError {}

/// Reading stops here: nobody reads more errors than these.
const MAX_ERRORS: usize = 100;

/// A name as it stands in the file.
pub(crate) struct Mention {
    pub(crate) kind: Named,
    pub(crate) name: Name,
    pub(crate) line: usize,
    pub(crate) key: &'static str,
}

/// What the whole reading shares.
pub(crate) struct Reading<'t> {
    file: &'t str,
    /// Where each line starts.
    starts: Vec<usize>,
    pub(crate) errors: Vec<SchemaError>,
    pub(crate) made: Vec<Mention>,
    pub(crate) used: Vec<Mention>,
    pub(crate) groups: BTreeMap<Name, Vec<Name>>,
    /// How many ops there are with groups written out: bounded, so that a small file stays small.
    pub(crate) ops: usize,
}

impl<'t> Reading<'t> {
    pub(crate) fn new(file: &'t str, text: &str) -> Reading<'t> {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Reading {
            file,
            starts: core::iter::once(0).chain(breaks).collect(),
            errors: Vec::new(),
            made: Vec::new(),
            used: Vec::new(),
            groups: BTreeMap::new(),
            ops: 0,
        }
    }

    pub(crate) fn line(&self, span: Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }

    pub(crate) fn error(&mut self, line: usize, key: &str, expected: impl Into<String>) {
        if self.is_hopeless() {
            return;
        }
        let (file, key) = (self.file.to_owned(), key.to_owned());
        self.errors.push(SchemaError { file, line, key, expected: expected.into() });
    }

    /// Whether there are so many errors that reading on is of no use.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// The errors in the order of their lines; at the end of very many, that there may be more.
    pub(crate) fn into_errors(mut self) -> Vec<SchemaError> {
        let hopeless = self.is_hopeless();
        self.errors.sort_by_key(|error| error.line);
        self.errors.dedup();
        if let (Some(last), true) = (self.errors.last(), hopeless) {
            let (key, expected) = ("errors".to_owned(), "there may be more of them".to_owned());
            self.errors.push(SchemaError { key, expected, ..last.clone() });
        }
        self.errors
    }
}

/// A table being read.
pub(crate) struct Keys<'r, 't, 'v> {
    pub(crate) reading: &'r mut Reading<'t>,
    pub(super) table: &'v DeTable<'v>,
    pub(crate) line: usize,
    /// What the table is, for messages: `op "send"`, `[config]`.
    pub(crate) what: String,
    pub(super) asked: Vec<&'static str>,
    /// Whether it is inside a task's body.
    pub(crate) in_body: bool,
    /// How deep in nested bodies.
    pub(crate) depth: usize,
    /// Whether the op is expected to succeed, so that the names it makes exist.
    pub(crate) succeeds: bool,
    /// How many copies of the op are meant, if a group is.
    pub(crate) count: Option<u64>,
    /// An op that goes before this one.
    pub(crate) before: Option<Op>,
}

impl<'r, 't, 'v> Keys<'r, 't, 'v> {
    pub(crate) fn new(
        reading: &'r mut Reading<'t>,
        table: &'v DeTable<'v>,
        line: usize,
        what: impl Into<String>,
    ) -> Self {
        let what = what.into();
        let asked = Vec::new();
        let (in_body, depth, succeeds, count, before) = (false, 0, true, None, None);
        Keys { reading, table, line, what, asked, in_body, depth, succeeds, count, before }
    }

    /// The raw value under a key, with its line.
    pub(crate) fn raw(&mut self, key: &'static str) -> Option<(&'v DeValue<'v>, usize)> {
        self.asked.push(key);
        let (name, value) = self.table.get_key_value(key)?;
        Some((value.get_ref(), self.reading.line(name.span())))
    }

    /// An optional key.
    pub(crate) fn opt<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'_>) -> Read<T>,
    ) -> Option<T> {
        let (value, line) = self.raw(key)?;
        match read(value) {
            Ok(value) => Some(value),
            Err(expected) => {
                self.reading.error(line, key, format!("expected {expected}"));
                None
            }
        }
    }

    /// A required key.
    pub(crate) fn req<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'_>) -> Read<T>,
    ) -> Option<T> {
        if !self.table.contains_key(key) {
            self.missing(key);
        }
        self.opt(key, read)
    }

    /// Reports a missing key, with a near one that is there.
    pub(crate) fn missing(&mut self, key: &str) {
        let asked = &self.asked;
        let there = self.table.iter().map(|(name, _)| name.get_ref().as_ref());
        let strange = there.filter(|name| !asked.contains(name));
        let near = match suggest::nearest(key, strange) {
            Some(found) => format!(" (is `{found}` meant to be it?)"),
            None => String::new(),
        };
        let what = format!("{} needs the key `{key}`{near}", self.what);
        self.reading.error(self.line, key, what);
    }

    /// A flag that is false unless said.
    pub(crate) fn flag(&mut self, key: &'static str) -> bool {
        self.opt(key, words::flag).unwrap_or(false)
    }

    /// The name of something that exists.
    pub(crate) fn name(&mut self, kind: Named, key: &'static str) -> Option<Name> {
        if !self.table.contains_key(key) {
            self.missing(key);
        }
        self.name_opt(kind, key)
    }

    /// The name of something that exists, if given.
    pub(crate) fn name_opt(&mut self, kind: Named, key: &'static str) -> Option<Name> {
        let line = self.table.get_key_value(key).map(|(name, _)| name.span());
        let name: Name = self.opt(key, words::text)?.into();
        let line = line.map_or(self.line, |span| self.reading.line(span));
        self.reading.used.push(Mention { kind, name: name.clone(), line, key });
        Some(name)
    }

    /// The name of something the op makes.
    pub(crate) fn makes(&mut self, kind: Named, key: &'static str) -> Option<Name> {
        if !self.table.contains_key(key) {
            self.missing(key);
        }
        self.makes_or(kind, key, None)
    }

    /// The name of something the op makes, or a default.
    pub(crate) fn makes_or(
        &mut self,
        kind: Named,
        key: &'static str,
        default: Option<&str>,
    ) -> Option<Name> {
        let name: Name = match self.opt(key, words::text) {
            Some(name) => name.into(),
            None => default?.into(),
        };
        self.is_name(&name, key).then(|| {
            self.made(kind, name.clone(), key);
            name
        })
    }

    /// Whether it may be a name; complains if not.
    pub(crate) fn is_name(&mut self, name: &str, key: &'static str) -> bool {
        let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let is = !name.is_empty() && name.chars().all(fits);
        if !is {
            self.reading.error(self.line, key, "expected a name of letters, digits, `_`, `-`");
        }
        is
    }

    /// Notes a name, unless the op that makes it is expected to fail.
    pub(crate) fn made(&mut self, kind: Named, name: Name, key: &'static str) {
        if self.succeeds {
            self.reading.made.push(Mention { kind, name, line: self.line, key });
        }
    }

    /// `after`/`for` or `at`/`until`; also `by` or `to`.
    pub(crate) fn when(&mut self) -> Option<When> {
        let mut found = Vec::new();
        let mut written = 0;
        for key in ["after", "for", "by", "within"] {
            written += usize::from(self.has(key));
            found.extend(self.opt(key, words::duration).map(When::After));
        }
        for key in ["at", "until", "to"] {
            written += usize::from(self.has(key));
            found.extend(self.opt(key, words::instant).map(When::At));
        }
        if written != 1 {
            let what = format!(
                "{} needs one of a duration (`by`, `after`, `for`) and an instant \
                                (`to`, `at`, `until`)",
                self.what
            );
            self.reading.error(self.line, "after", what);
        }
        found.pop()
    }

    /// The budget keys.
    pub(crate) fn budget(&mut self) -> BudgetKeys {
        let at = self.opt("deadline", words::instant).map(When::At);
        let within = self.opt("within", words::duration).map(When::After);
        if at.is_some() && within.is_some() {
            self.reading.error(self.line, "within", "expected `deadline` or `within`, not both");
        }
        BudgetKeys {
            priority: self.opt("priority", |v| words::within(v, 0, 255)).map(|n| n as u8),
            deadline: at.or(within),
            polls: self.opt("polls", words::number),
            cost: self.opt("cost", words::number),
        }
    }

    /// A message to send.
    pub(crate) fn message(&mut self) -> Option<Message> {
        let in_body = self.in_body;
        self.req("value", |value| match value {
            DeValue::String(text) if text == "index" && in_body => Ok(Message::Index),
            _ => words::int(value).map(Message::Value),
        })
    }

    /// An optional duration.
    pub(crate) fn span(&mut self, key: &'static str) -> Option<Duration> {
        self.opt(key, words::duration)
    }

    /// Nested ops.
    pub(crate) fn body(&mut self, key: &'static str) -> Option<Body> {
        if !self.table.contains_key(key) {
            self.missing(key);
        }
        let (value, line) = self.raw(key)?;
        let (in_body, depth) = (self.in_body, self.depth + 1);
        Some(Arc::from(super::ops::read_ops(self.reading, value, line, key, in_body, depth)))
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Complains about keys that nobody asked for.
    pub(crate) fn finish(self) {
        for (name, _) in self.table {
            let key = name.get_ref().as_ref();
            if !self.asked.contains(&key) {
                let line = self.reading.line(name.span());
                let near = suggest::near(key, self.asked.iter().copied());
                let what = format!("{} has no such key{near}", self.what);
                self.reading.error(line, key, what);
            }
        }
    }
}
