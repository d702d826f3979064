//! The `[config]` and `[expect]` tables.

use super::keys::{Keys, Reading};
use super::{Raw, words};
use crate::pattern::Pattern;
use crate::scenario::{Browser, Expect, Name, Settings, Timers};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::pump::Capability;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// The limits that can be set, by name.
pub(crate) const LIMITS: &[&str] = &[
    "tasks",
    "regions",
    "obligations",
    "channels",
    "ready_queue",
    "cancel_queue",
    "timed_queue",
    "memory",
];

/// The table under a key, or a complaint.
fn table<'v>(
    reading: &mut Reading<'_>,
    raw: Raw<'v>,
    key: &str,
) -> Option<(&'v DeTable<'v>, usize)> {
    let (value, line) = raw?;
    match value {
        DeValue::Table(table) => Some((table, line)),
        other => {
            let what = format!("expected a table, not {}", words::kind_of(other));
            reading.error(line, key, what);
            None
        }
    }
}

pub(super) fn config(reading: &mut Reading<'_>, raw: Raw<'_>) -> Settings {
    let mut config = Settings::default();
    let Some((table, line)) = table(reading, raw, "config") else { return config };
    let mut keys = Keys::new(reading, table, line, "[config]");
    let set = &mut config;
    put(&mut set.workers, keys.opt("workers", |v| words::within(v, 1, 64)).map(|n| n as usize));
    let ties = &[TieBreak::Fifo, TieBreak::Seeded, TieBreak::TaskKey];
    let tie_name = |tie| match tie {
        TieBreak::Fifo => "fifo",
        TieBreak::Seeded => "seeded",
        TieBreak::TaskKey => "task_key",
    };
    put(&mut set.tie_break, keys.opt("tie_break", |v| words::pick(v, ties, tie_name)));
    let streak = keys.opt("cancel_streak_limit", |v| words::within(v, 1, u32::MAX.into()));
    put(&mut set.cancel_streak_limit, streak.map(|n| n as u32));
    put(&mut set.chain.0, keys.opt("chain_depth", words::size));
    put(&mut set.chain.1, keys.opt("chain_bytes", words::size));
    put(&mut set.journal_capacity, keys.opt("journal_capacity", words::size));
    let fulls = &[WhenFull::Overwrite, WhenFull::Refuse];
    let full_name = |when| if when == WhenFull::Refuse { "refuse" } else { "overwrite" };
    put(&mut set.when_full, keys.opt("journal_when_full", |v| words::pick(v, fulls, full_name)));
    let (limits, timers, browser) = (keys.raw("limits"), keys.raw("timers"), keys.raw("browser"));
    keys.finish();
    config.limits = read_limits(reading, limits);
    config.timers = read_timers(reading, timers);
    config.browser = read_browser(reading, browser);
    config
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 1,
            tie_break: TieBreak::Fifo,
            cancel_streak_limit: 16,
            chain: (16, 4096),
            journal_capacity: 1_000_000,
            when_full: WhenFull::Overwrite,
            limits: BTreeMap::new(),
            timers: Timers::default(),
            browser: None,
        }
    }
}

fn read_limits(reading: &mut Reading<'_>, raw: Raw<'_>) -> BTreeMap<&'static str, usize> {
    let mut limits = BTreeMap::new();
    let Some((table, line)) = table(reading, raw, "limits") else { return limits };
    let mut keys = Keys::new(reading, table, line, "[config.limits]");
    for name in LIMITS {
        limits.extend(keys.opt(name, words::size).map(|limit| (*name, limit)));
    }
    keys.finish();
    limits
}

fn read_timers(reading: &mut Reading<'_>, raw: Raw<'_>) -> Timers {
    let Some((table, line)) = table(reading, raw, "timers") else { return Timers::default() };
    let mut keys = Keys::new(reading, table, line, "[config.timers]");
    let window = keys.opt("coalesce_window", words::duration);
    let min = keys.opt("coalesce_min", words::size);
    if min.is_some() && window.is_none() {
        keys.missing("coalesce_window");
    }
    let timers = Timers {
        max_wheel_duration: keys.span("max_wheel_duration"),
        max_timer_duration: keys.span("max_timer_duration"),
        limit: keys.opt("limit", words::size),
        coalesce: window.map(|window| (window, min.unwrap_or(1))),
        first_id: keys.opt("first_id", words::number),
        first_generation: keys.opt("first_generation", words::number),
    };
    keys.finish();
    timers
}

fn read_browser(reading: &mut Reading<'_>, raw: Raw<'_>) -> Option<Browser> {
    let (table, line) = table(reading, raw, "browser")?;
    let mut keys = Keys::new(reading, table, line, "[config.browser]");
    let burst = keys.opt("burst_limit", |v| words::within(v, 1, u32::MAX.into()));
    let granted = keys.opt("capabilities", |v| words::list(v, words::capability));
    let browser = Browser {
        burst_limit: burst.unwrap_or(256) as u32,
        burst_time: keys.span("burst_time"),
        timer_batch: keys.opt("timer_batch", words::size).unwrap_or(64),
        message_channel: keys.opt("message_channel", words::flag).unwrap_or(true),
        capabilities: granted.unwrap_or_else(|| Capability::ALL.to_vec()),
    };
    keys.finish();
    Some(browser)
}

pub(super) fn expect(reading: &mut Reading<'_>, raw: Raw<'_>, seeds: usize) -> Expect {
    let Some((table, line)) = table(reading, raw, "expect") else { return Expect::default() };
    let mut keys = Keys::new(reading, table, line, "[expect]");
    let one = keys.opt("fingerprint", words::hex).map(|hash| vec![hash]);
    let each = keys.opt("fingerprints", |v| parallel(words::list(v, words::hex)?, seeds));
    let order = keys.opt("order", names).map(|order| vec![order]);
    let orders = keys.opt("orders", |v| parallel(words::list(v, names)?, seeds));
    if one.is_some() && each.is_some() || order.is_some() && orders.is_some() {
        keys.reading.error(line, "expect", "expected one for all seeds or one per seed, not both");
    }
    let mut patterns = |key| read_patterns(&mut keys, key);
    let (events, never) = (patterns("events"), patterns("never"));
    let (host_events, host_never) = (patterns("host_events"), patterns("host_never"));
    let expect = Expect {
        line,
        fingerprints: one.or(each).unwrap_or_default(),
        events,
        exactly: keys.flag("exactly"),
        never,
        orders: order.or(orders).unwrap_or_default(),
        outcomes: read_outcomes(&mut keys),
        quiescent: keys.opt("quiescent", words::flag),
        replay: keys.flag("replay"),
        host_events,
        host_never,
    };
    keys.finish();
    expect
}

fn parallel<T>(items: Vec<T>, seeds: usize) -> words::Read<Vec<T>> {
    let fits = items.len() == seeds;
    if fits { Ok(items) } else { Err(format!("one item per seed: {seeds} in all")) }
}

fn names(value: &DeValue<'_>) -> words::Read<Vec<Name>> {
    words::list(value, |v| words::text(v).map(Name::from))
}

fn read_patterns(keys: &mut Keys<'_, '_, '_>, key: &'static str) -> Vec<Pattern> {
    let Some((value, line)) = keys.raw(key) else { return Vec::new() };
    let DeValue::Array(items) = value else {
        keys.reading.error(line, key, "expected a list of event patterns");
        return Vec::new();
    };
    let mut patterns = Vec::new();
    for item in items {
        let line = keys.reading.line(item.span());
        let pattern = words::text(item.get_ref()).and_then(|text| Pattern::parse(line, &text));
        match pattern {
            Ok(pattern) => patterns.push(pattern),
            Err(expected) => keys.reading.error(line, key, format!("expected {expected}")),
        }
    }
    patterns
}

fn read_outcomes(keys: &mut Keys<'_, '_, '_>) -> Vec<(usize, Name, asx_kernel::outcome::Severity)> {
    let raw = keys.raw("outcomes");
    let Some((table, _)) = table(keys.reading, raw, "outcomes") else { return Vec::new() };
    let mut outcomes = Vec::new();
    for (name, value) in table {
        let line = keys.reading.line(name.span());
        match words::severity(value.get_ref()) {
            Ok(severity) => outcomes.push((line, Name::from(name.get_ref().as_ref()), severity)),
            Err(expected) => {
                keys.reading.error(line, name.get_ref(), format!("expected {expected}"));
            }
        }
    }
    outcomes
}
