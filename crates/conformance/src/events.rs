//! Events that only a host has, and the names of what events are about.

use crate::value::Value;
use std::collections::BTreeMap;

/// The provenance of a refused wait for a time, the same on every host.
pub(crate) const WAIT: &str = "a task's timer";

/// A host-only event: not part of the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Its kind.
    pub kind: &'static str,
    /// Its fields; absent mandatory ones are `None`.
    pub fields: Vec<(&'static str, Option<Value>)>,
}

/// The kinds of things that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Named {
    /// A task.
    Task,
    /// A region.
    Region,
    /// A timer.
    Timer,
    /// A channel.
    Channel,
    /// A permit.
    Permit,
    /// An obligation.
    Obligation,
    /// A task definition.
    Definition,
}

/// Names by kind and journal ordinal.
#[derive(Clone, Debug, Default)]
pub struct Ordinals(BTreeMap<(Named, u64), String>);

impl Ordinals {
    /// Notes that `name` is what the journal calls `ordinal`.
    pub fn note(&mut self, kind: Named, ordinal: u64, name: impl Into<String>) {
        self.0.insert((kind, ordinal), name.into());
    }

    /// The name of an ordinal.
    pub fn name(&self, kind: Named, ordinal: u64) -> Option<&str> {
        self.0.get(&(kind, ordinal)).map(String::as_str)
    }

    /// Every name with what it names.
    pub fn iter(&self) -> impl Iterator<Item = (Named, u64, &str)> {
        self.0.iter().map(|((kind, ordinal), name)| (*kind, *ordinal, name.as_str()))
    }

    /// Whether an ordinal has this name, in full or without its task's.
    pub fn is_called(&self, kind: Named, ordinal: u64, name: &str) -> bool {
        self.name(kind, ordinal)
            .is_some_and(|own| own == name || own.rsplit_once('.').is_some_and(|(_, n)| n == name))
    }
}
