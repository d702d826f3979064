//! The text and JSON that `asx explore` prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use asx_conformance::{Scenario, shell_word};

use super::Explore;
use super::state::{Found, State};
use crate::output::{COMMAND, WARNING, counted, verdict};

/// Kinds of failure that are shown.
const SHOWN: usize = 10;

/// Writes the result of an exploration. There is no scenario if it was merged from files.
pub(super) fn write(
    state: &State,
    options: &Explore,
    scenario: Option<&Scenario>,
    out: &mut impl Write,
) -> io::Result<()> {
    if options.json {
        return writeln!(out, "{}", state.to_json());
    }
    write_verdict(state, out)?;
    let file = shell_word(options.file.as_deref().unwrap_or(&state.id));
    write_failures(state, &file, out)?;
    if let Some(scenario) = scenario {
        write_limits(state, options, scenario, out)?;
    }
    if !options.merge.is_empty() && state.left() > 0 {
        let left = counted(state.left(), "run");
        writeln!(out, "  {left} of this search are in none of these files")?;
    }
    for name in options.files.names() {
        match state.failures.first() {
            Some(_) => writeln!(out, "  {name}: the first run that failed, shrunk")?,
            None => writeln!(out, "  {name}: not written, since no run failed")?,
        }
    }
    Ok(())
}

/// The first line: the verdict, and how many runs and distinct journals it rests on.
fn write_verdict(state: &State, out: &mut impl Write) -> io::Result<()> {
    let State { id, strategy, done, failed, .. } = state;
    let failed = *failed;
    let word = verdict(failed == 0);
    let runs = counted(*done, "run");
    let distinct = counted(state.distinct.len(), "distinct journal");
    let all = if state.exhausted { ", every schedule there is" } else { "" };
    match failed {
        0 => writeln!(out, "{word} {id}: {runs} ({strategy}){all}, {distinct}"),
        _ => writeln!(out, "{word} {id} in {failed} of {runs} ({strategy}){all}, {distinct}"),
    }
}

/// Each kind of failure once, with the first run that has it.
fn write_failures(state: &State, file: &str, out: &mut impl Write) -> io::Result<()> {
    let mut kinds: BTreeMap<&str, (&Found, usize)> = BTreeMap::new();
    for found in &state.failures {
        kinds.entry(&found.message).or_insert((found, 0)).1 += 1;
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (Found { seed, token, message }, count) in kinds.iter().take(SHOWN) {
        let first = seed.map(|seed| format!(", the first under seed {seed}")).unwrap_or_default();
        writeln!(out, "  {message} ({}{first})", counted(*count, "run"))?;
        for command in ["replay", "shrink"] {
            writeln!(out, "    {}", COMMAND.text(format!("asx {command} {file} {token}")))?;
        }
    }
    match kinds.len().saturating_sub(SHOWN) {
        0 => {}
        more => writeln!(out, "  {more} more kinds of failure are not shown")?,
    }
    let kept = state.failures.len();
    if state.failed > kept as u64 {
        writeln!(out, "  only the first {kept} failures were kept and are counted by kind")?;
    }
    Ok(())
}

/// Notes on the parts that the search did not vary or check.
fn write_limits(
    state: &State,
    options: &Explore,
    scenario: &Scenario,
    out: &mut impl Write,
) -> io::Result<()> {
    let note = WARNING.text("note");
    let workers = options.setup.workers_of(scenario);
    if state.exhausted && state.done == 1 {
        let on = counted(workers, "worker");
        let hint = match workers {
            1 => "; try --workers 2",
            _ => "",
        };
        writeln!(
            out,
            "  {note}: nothing to vary: the scenario leaves no choice open on {on}{hint}"
        )?;
    }
    if state.done > 1 && state.distinct.len() == 1 && !state.exhausted {
        let hint = if workers == 1 { " or --workers 2" } else { "" };
        writeln!(out, "  {note}: all runs had the same journal; try --strategy dfs{hint}")?;
    }
    let expect = &scenario.expect;
    if !options.setup.expect {
        writeln!(
            out,
            "  {note}: only the laws were checked; --expect also checks [expect] and the results \
             of operations"
        )?;
    }
    if options.setup.expect && !expect.fingerprints.is_empty() {
        writeln!(
            out,
            "  {note}: fingerprints were not compared: each belongs to one schedule of `asx run`"
        )?;
    }
    if options.setup.expect && expect.orders.len() > 1 {
        writeln!(out, "  {note}: `orders` was not compared: it has one order for each seed")?;
    }
    Ok(())
}
