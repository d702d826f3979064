//! The `[expect]` table.

use super::Node;
use super::reading::Reading;
use super::words::{Hex, Word};
use crate::pattern::Pattern;
use crate::scenario::{Expect, Name};
use asx_kernel::outcome::Severity;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

/// The keys that need no lines.
#[derive(Deserialize)]
#[serde(rename = "[expect]", default)]
#[derive(Default)]
struct Keys {
    fingerprint: Option<Hex>,
    fingerprints: Option<Vec<Hex>>,
    order: Option<Vec<Name>>,
    orders: Option<Vec<Vec<Name>>>,
    exactly: bool,
    quiescent: Option<bool>,
    replay: bool,
}

pub(super) fn read(node: Node<'_>, seeds: usize) -> Expect {
    let reading = node.reading;
    let aside = &["events", "never", "host_events", "host_never", "outcomes"];
    let keys = Keys::deserialize(Node { aside, ..node });
    let keys = reading.noted(&node, keys).unwrap_or_default();
    let DeValue::Table(table) = node.value else { return Expect::default() };
    let twice = keys.fingerprint.is_some() && keys.fingerprints.is_some()
        || keys.order.is_some() && keys.orders.is_some();
    if twice {
        let what = "expected one for all seeds or one per seed, not both";
        reading.error(node.line, "expect", what);
    }
    for (key, items) in [
        ("fingerprints", keys.fingerprints.as_ref().map(Vec::len)),
        ("orders", keys.orders.as_ref().map(Vec::len)),
    ] {
        if let (Some(items), Some(node)) = (items, Node::of_key(reading, table, key))
            && items != seeds
        {
            reading.error(node.line, key, format!("expected one item per seed: {seeds} in all"));
        }
    }
    let fingerprints = keys.fingerprint.map(|one| vec![one]).or(keys.fingerprints);
    Expect {
        line: node.line,
        fingerprints: fingerprints.into_iter().flatten().map(|Hex(hash)| hash).collect(),
        events: patterns(reading, table, "events"),
        exactly: keys.exactly,
        never: patterns(reading, table, "never"),
        orders: keys.order.map(|one| vec![one]).or(keys.orders).unwrap_or_default(),
        outcomes: outcomes(reading, table),
        quiescent: keys.quiescent,
        replay: keys.replay,
        host_events: patterns(reading, table, "host_events"),
        host_never: patterns(reading, table, "host_never"),
    }
}

fn patterns(reading: &Reading, table: &DeTable<'_>, key: &str) -> Vec<Pattern> {
    let Some(node) = Node::of_key(reading, table, key) else { return Vec::new() };
    let DeValue::Array(items) = node.value else {
        reading.noted::<()>(&node, Err(node.wrong("a list of event patterns")));
        return Vec::new();
    };
    let read = |item: &toml::Spanned<DeValue<'_>>| {
        let line = reading.line(item.span());
        let node = Node::new(reading, item.get_ref(), line, key);
        let text = reading.noted(&node, String::deserialize(node))?;
        Pattern::parse(line, &text)
            .map_err(|expected| reading.error(line, key, format!("expected {expected}")))
            .ok()
    };
    items.iter().filter_map(read).collect()
}

fn outcomes(reading: &Reading, table: &DeTable<'_>) -> Vec<(usize, Name, Severity)> {
    let Some(node) = Node::of_key(reading, table, "outcomes") else { return Vec::new() };
    let DeValue::Table(table) = node.value else {
        reading.noted::<()>(&node, Err(node.wrong("a table")));
        return Vec::new();
    };
    let read = |name: &str| {
        let node = Node::of_key(reading, table, name)?;
        let severity = reading.noted(&node, Word::deserialize(node))?.0;
        Some((node.line, Name::from(name), severity))
    };
    table.iter().filter_map(|(name, _)| read(name.get_ref())).collect()
}
