//! The snapshot id of a run: the digest of the canonical encoding of its initial state.
//!
//! The encoding is text, a line for each thing: every setting of `[config]` by name with its value,
//! whether it is written in the file or a default; each limit; then the ops of `setup` as they are
//! written, their keys in order, numbers in decimal, without blanks and comments. The digest is
//! that of the journal: the bytes of the text, then the seed as a word.
//!
//! The scenario digest identifies the whole scenario in the same encoding: its id, the initial
//! state, the ops of `steps` and of every task, and `[expect]` without its fingerprints. Title,
//! area, seeds, comments and layout are not part of it, and neither is `asx run --bless`.

use crate::scenario::{Browser, Settings, Timers};
use asx_kernel::digest::Digest;
use core::fmt::{Display, Write as _};
use core::time::Duration;
use toml::de::{DeTable, DeValue};

/// The initial state of a scenario, encoded, but for the seed.
pub(crate) fn encode(config: &Settings, setup: Option<&DeValue<'_>>) -> String {
    let mut text = String::new();
    encode_config(config, &mut |name, value| {
        let _ = writeln!(text, "{name}={value}");
    });
    let _ = match setup {
        Some(DeValue::Array(ops)) => ops.iter().try_for_each(|op| {
            text.push_str("op=");
            encode_value(op.get_ref(), &mut text);
            text.write_char('\n')
        }),
        _ => Ok(()),
    };
    text
}

/// The digest of the canonical scenario. `initial` is its encoded initial state.
pub(crate) fn scenario_digest(
    id: &str,
    initial: &str,
    tasks: Option<&DeValue<'_>>,
    steps: Option<&DeValue<'_>>,
    expect: Option<&DeValue<'_>>,
) -> u64 {
    let mut text = format!("id={id}\n{initial}");
    for (name, part) in [("tasks", tasks), ("steps", steps), ("expect", expect)] {
        let _ = write!(text, "{name}=");
        match part {
            Some(DeValue::Table(table)) if name == "expect" => {
                encode_table(table, &["fingerprint", "fingerprints"], &mut text);
            }
            Some(value) => encode_value(value, &mut text),
            // `asx run --bless` adds the table if the file has none.
            None if name == "expect" => text.push_str("{}"),
            None => {}
        }
        text.push('\n');
    }
    Digest::new().bytes(text.as_bytes()).value()
}

fn encode_config(config: &Settings, put: &mut dyn FnMut(&str, &dyn Display)) {
    let Settings {
        workers,
        tie_break,
        cancel_streak_limit,
        chain_depth,
        chain_bytes,
        journal_capacity,
        when_full,
        limits,
        timers,
        browser,
    } = config;
    put("workers", workers);
    put("tie_break", &tie_break.name());
    put("cancel_streak_limit", cancel_streak_limit);
    put("chain_depth", chain_depth);
    put("chain_bytes", chain_bytes);
    put("journal_capacity", journal_capacity);
    put("journal_when_full", &when_full.name());
    let limits = [
        ("cancel_queue", limits.cancel_queue),
        ("channels", limits.channels),
        ("memory", limits.memory),
        ("obligations", limits.obligations),
        ("ready_queue", limits.ready_queue),
        ("regions", limits.regions),
        ("tasks", limits.tasks),
        ("timed_queue", limits.timed_queue),
    ];
    for (name, limit) in limits {
        if let Some(limit) = limit {
            put(&format!("limits.{name}"), &limit);
        }
    }
    let coalesce = timers.coalesce();
    let Timers {
        max_wheel_duration,
        max_timer_duration,
        limit,
        coalesce_window: _,
        coalesce_min: _,
        first_id,
        first_generation,
    } = timers;
    put("timers.max_wheel_duration", &maybe(max_wheel_duration.map(nanos)));
    put("timers.max_timer_duration", &maybe(max_timer_duration.map(nanos)));
    put("timers.limit", &maybe(*limit));
    put("timers.coalesce_window", &maybe(coalesce.as_ref().map(|together| nanos(together.window))));
    put("timers.coalesce_min", &maybe(coalesce.map(|together| together.min_group_size)));
    put("timers.first_id", &maybe(*first_id));
    put("timers.first_generation", &maybe(*first_generation));
    let Some(browser) = browser else { return };
    let Browser { required, burst_limit, burst_time, timer_batch, message_channel, capabilities } =
        browser;
    // Left out where it is the usual one, so that older ids stay what they were.
    if !required {
        put("browser.required", required);
    }
    put("browser.burst_limit", burst_limit);
    put("browser.burst_time", &maybe(burst_time.map(nanos)));
    put("browser.timer_batch", timer_batch);
    put("browser.message_channel", message_channel);
    let mut granted: Vec<_> = capabilities.iter().map(|capability| capability.name()).collect();
    granted.sort_unstable();
    put("browser.capabilities", &granted.join(","));
}

fn nanos(span: Duration) -> u128 {
    span.as_nanos()
}

fn maybe(value: Option<impl Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn encode_value(value: &DeValue<'_>, text: &mut String) {
    match value {
        DeValue::String(word) => {
            let _ = write!(text, "{word:?}");
        }
        DeValue::Integer(number) => {
            let digits = number.as_str();
            match i128::from_str_radix(digits, number.radix()) {
                Ok(number) => drop(write!(text, "{number}")),
                Err(_) => text.push_str(digits),
            }
        }
        DeValue::Float(number) => text.push_str(number.as_str()),
        DeValue::Boolean(flag) => drop(write!(text, "{flag}")),
        DeValue::Datetime(time) => drop(write!(text, "{time}")),
        DeValue::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                encode_value(item.get_ref(), text);
            }
            text.push(']');
        }
        DeValue::Table(table) => encode_table(table, &[], text),
    }
}

/// Encodes a table with its keys in order, without those in `omitted`.
fn encode_table(table: &DeTable<'_>, omitted: &[&str], text: &mut String) {
    let mut pairs: Vec<_> =
        table.iter().filter(|(key, _)| !omitted.contains(&key.get_ref().as_ref())).collect();
    pairs.sort_by(|(one, _), (other, _)| one.get_ref().cmp(other.get_ref()));
    text.push('{');
    for (at, (key, value)) in pairs.into_iter().enumerate() {
        let _ = write!(text, "{}{}=", if at > 0 { "," } else { "" }, key.get_ref());
        encode_value(value.get_ref(), text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use crate::parse_str;

    fn snapshot(rest: &str, seed: u64) -> u64 {
        let text = format!("schema = 1\nid = \"x\"\ntitle = \"t\"\narea = \"a\"\n{rest}");
        parse_str("x.toml", &text).unwrap_or_else(|errors| panic!("{errors:?}")).snapshot_id(seed)
    }

    #[test]
    fn only_the_initial_state_counts_and_not_how_it_is_laid_out() {
        let one = "setup = [{ op = \"open\", as = \"r\", polls = 0x10 }]";
        let same = [
            "# a word\nsetup = [\n  { as = \"r\", polls = 16, op = \"open\" }, # another\n]",
            "[scenario]\nsetup = [{ op = \"open\", as = \"r\", polls = 1_6 }]",
            "steps = [{ op = \"run\" }]\nsetup = [{ op = \"open\", as = \"r\", polls = 16 }]",
            "setup = [{ op = \"open\", as = \"r\", polls = 16 }]\n[config]\nworkers = 1",
        ];
        for other in same {
            assert_eq!(snapshot(one, 4), snapshot(other, 4), "{other}");
        }
        let others = [
            "",
            "setup = [{ op = \"open\", as = \"r\", polls = 17 }]",
            "setup = [{ op = \"open\", as = \"r\", polls = 16 }]\n[config.limits]\ntasks = 9",
            "setup = [{ op = \"open\", as = \"r\", polls = 16 }]\n[config]\nworkers = 2",
            "setup = [{ op = \"open\", as = \"r\", polls = 16 }]\n\
             [config]\ntie_break = \"task_key\"",
            "setup = [{ op = \"open\", as = \"r\", polls = 16 }]\n[config.browser]",
        ];
        for other in others {
            assert_ne!(snapshot(one, 4), snapshot(other, 4), "{other}");
        }
        assert_ne!(snapshot(one, 4), snapshot(one, 5), "the seed is part of it");
    }

    fn digest(rest: &str) -> u64 {
        let text = format!("schema = 1\nid = \"x\"\narea = \"a\"\n{rest}");
        parse_str("x.toml", &text).unwrap_or_else(|errors| panic!("{errors:?}")).digest
    }

    #[test]
    fn scenario_digest_ignores_layout_title_seeds_and_fingerprint() {
        let one = "title = \"t\"\nsteps = [{ op = \"spawn\", task = \"a\", priority = 0x10 }]\n\
                   [tasks.a]\nbody = [{ op = \"yield\" }]\n[expect]\nquiescent = false\n";
        let moved = "title = \"other\"\nseeds = [1, 2] # a comment\n[tasks]\n\
                     a = { body = [ { op = 'yield' }, ] }\n[expect]\n\
                     fingerprint = \"0000000000000001\"\nquiescent = false\n[scenario]\n\
                     steps = [{ priority = 16, task = \"a\", op = \"spawn\" }]";
        assert_eq!(digest(one), digest(moved));
        let (bare, _) = one.split_once("[expect]").expect("a table");
        let blessed = format!("{bare}[expect]\nfingerprint = \"0000000000000001\"\n");
        assert_eq!(digest(bare), digest(&blessed));
        for (from, to) in [
            ("0x10", "0x11"),
            ("{ op = \"yield\" }", "{ op = \"yield\" }, { op = \"yield\" }"),
            ("[tasks.a]", "[tasks.b]\n[tasks.a]"),
            ("quiescent = false", "quiescent = true"),
            ("steps =", "setup = [{ op = \"advance\", by = 1 }]\nsteps ="),
            ("[expect]", "[config]\nworkers = 2\n[expect]"),
        ] {
            assert_ne!(digest(one), digest(&one.replace(from, to)), "{from}");
        }
    }
}
