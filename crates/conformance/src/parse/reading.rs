//! What the whole reading of a file shares: its lines, its errors and its names.

use super::node::Wrong;
use super::{Node, suggest};
use crate::events::Named;
use crate::scenario::Name;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::ops::Range;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeTable;

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
pub(crate) struct Reading {
    file: String,
    /// Where each line starts.
    starts: Vec<usize>,
    errors: RefCell<Vec<SchemaError>>,
    pub(crate) made: RefCell<Vec<Mention>>,
    pub(crate) used: RefCell<Vec<Mention>>,
    pub(crate) groups: RefCell<BTreeMap<Name, Vec<Name>>>,
    /// Names in ops that could not be read: such an op may make them.
    doubtful: RefCell<BTreeSet<String>>,
    /// How many ops there are with groups written out: bounded, so that a small file stays small.
    pub(crate) ops: Cell<usize>,
}

impl Reading {
    pub(crate) fn new(file: &str, text: &str) -> Reading {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Reading {
            file: file.to_owned(),
            starts: core::iter::once(0).chain(breaks).collect(),
            errors: RefCell::default(),
            made: RefCell::default(),
            used: RefCell::default(),
            groups: RefCell::default(),
            doubtful: RefCell::default(),
            ops: Cell::new(0),
        }
    }

    pub(crate) fn line(&self, span: Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }

    pub(crate) fn error(&self, line: usize, key: &str, expected: impl Into<String>) {
        if !self.is_hopeless() {
            let file = self.file.clone();
            let key = key.to_owned();
            let error = SchemaError { file, line, key, expected: expected.into() };
            self.errors.borrow_mut().push(error);
        }
    }

    /// The value, or nothing and a complaint.
    pub(crate) fn noted<T>(&self, node: &Node<'_>, read: Result<T, Wrong>) -> Option<T> {
        read.map_err(|wrong| {
            let (line, key, text) = wrong.into_parts(node);
            self.error(line, &key, text);
        })
        .ok()
    }

    /// A key of a table that there may be.
    pub(crate) fn optional<T: DeserializeOwned>(
        &self,
        table: &DeTable<'_>,
        key: &str,
    ) -> Option<T> {
        let node = Node::of_key(self, table, key)?;
        self.noted(&node, T::deserialize(node))
    }

    /// A key of a table that there must be.
    pub(crate) fn required<T: DeserializeOwned>(
        &self,
        table: &DeTable<'_>,
        key: &str,
        what: &str,
    ) -> Option<T> {
        if !table.contains_key(key) {
            self.error(1, key, format!("{what} needs the key `{key}`"));
        }
        self.optional(table, key)
    }

    /// Complains about keys that are none of those known.
    pub(crate) fn only(&self, table: &DeTable<'_>, known: &[&str], what: &str) {
        for (name, _) in table {
            let key = name.get_ref().as_ref();
            if !known.contains(&key) {
                let near = suggest::near(key, known.iter().copied());
                let line = self.line(name.span());
                self.error(line, key, format!("{what} has no such key{near}"));
            }
        }
    }

    /// Remembers that the op in a table could not be read.
    pub(crate) fn doubt(&self, table: &DeTable<'_>) {
        let texts = table.iter().filter_map(|(_, value)| value.get_ref().as_str());
        self.doubtful.borrow_mut().extend(texts.map(str::to_owned));
    }

    /// Whether an op that could not be read may make this name.
    pub(crate) fn is_doubtful(&self, name: &str) -> bool {
        self.doubtful.borrow().contains(name)
    }

    /// Whether there are so many errors that reading on is of no use.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.errors.borrow().len() >= MAX_ERRORS
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.borrow().is_empty()
    }

    /// The errors in the order of their lines; at the end of very many, that there may be more.
    pub(crate) fn into_errors(self) -> Vec<SchemaError> {
        let hopeless = self.is_hopeless();
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.line);
        errors.dedup();
        if let (Some(last), true) = (errors.last().cloned(), hopeless) {
            let key = "errors".to_owned();
            let expected = "there may be more of them".to_owned();
            errors.push(SchemaError { key, expected, ..last });
        }
        errors
    }
}
