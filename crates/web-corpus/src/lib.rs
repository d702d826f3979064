//! The corpus, run inside the browser: a line of JSON per scenario and seed.
//!
//! Only for WebAssembly; `cargo xtask web` builds it. It stands beside the page, since it brings
//! the lab, whose hooks in the runtime would be in what is measured there.

#![cfg(target_arch = "wasm32")]

use asx_conformance::host::HostEvent;
use asx_conformance::value::Value;
use asx_conformance::{Native, Report, Scenario, SeedRun, corpus, parse_str, run_scenario};
use std::fmt::Write as _;
use std::sync::Arc;
use wasm_bindgen::prelude::*;

/// How many scenarios there are.
#[wasm_bindgen]
pub fn fixture_count() -> usize {
    corpus().len()
}

/// Runs one scenario under each of its seeds; `place` is where: a page or a worker.
#[wasm_bindgen]
pub fn run_fixture(nth: usize, place: &str, profile: &str) -> String {
    let Some(fixture) = corpus().into_iter().nth(nth) else { return String::new() };
    match parse_str(&fixture.file, &fixture.text) {
        Ok(scenario) => {
            let scenario = Arc::new(scenario);
            lines(&scenario, &run_scenario(&mut Native::in_page(), &scenario), place, profile)
        }
        Err(errors) => format!("{{\"error\":{}}}\n", quoted(&format!("{errors:?}"))),
    }
}

fn lines(scenario: &Scenario, report: &Report, place: &str, profile: &str) -> String {
    if let Some(why) = &report.skipped {
        let seeds = scenario.seeds.iter();
        return seeds.map(|seed| skipped(scenario, *seed, why, place, profile)).collect();
    }
    report.runs.iter().map(|run| done(scenario, run, place, profile)).collect()
}

fn head(scenario: &Scenario, seed: u64, place: &str, profile: &str) -> String {
    format!(
        "{{\"schema\":1,\"host\":\"web\",\"scenario\":{},\"seed\":{seed},\"place\":{},\
         \"profile\":{}",
        quoted(&scenario.id),
        quoted(place),
        quoted(profile)
    )
}

fn skipped(scenario: &Scenario, seed: u64, why: &str, place: &str, profile: &str) -> String {
    let head = head(scenario, seed, place, profile);
    format!(
        "{head},\"skipped\":{},\"digest\":\"\",\"events\":0,\"outcomes\":{{}},\
         \"not_quiescent\":[],\"journal\":[],\"host_events\":[]}}\n",
        quoted(why)
    )
}

fn done(scenario: &Scenario, run: &SeedRun, place: &str, profile: &str) -> String {
    let record = &run.record;
    let mut line = head(scenario, run.seed, place, profile);
    let outcomes = record.outcomes.iter().map(|(name, outcome)| {
        let outcome = outcome.map_or("null".to_owned(), quoted);
        format!("{}:{outcome}", quoted(name))
    });
    let outcomes = outcomes.collect::<Vec<_>>().join(",");
    let _ = write!(
        line,
        ",\"skipped\":null,\"digest\":\"{:016x}\",\"events\":{},\"outcomes\":{{{outcomes}}},\
         \"not_quiescent\":{},\"journal\":{},\"host_events\":[{}],\"failures\":{},\
         \"expected\":{},\"snapshot\":null,\"repro\":{}}}\n",
        run.fingerprint,
        record.recorded,
        list(record.not_quiescent.iter().map(|status| status.name())),
        list(run.journal.iter().map(String::as_str)),
        record.host_events.iter().map(host_event).collect::<Vec<_>>().join(","),
        list(run.failures.iter().map(ToString::to_string).collect::<Vec<_>>().iter()),
        list(scenario.expect.fingerprints.iter().map(|print| format!("{print:016x}"))),
        quoted(&format!("cargo xtask web --test # {}", run.repro)),
    );
    line
}

fn host_event(event: &HostEvent) -> String {
    let field = |(name, value): &(&'static str, Option<Value>)| {
        let value = match value {
            None => "null".to_owned(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Int(number)) => match i64::try_from(*number) {
                Ok(number) => number.to_string(),
                Err(_) => quoted(&number.to_string()),
            },
            Some(other) => quoted(&other.to_string()),
        };
        format!("{}:{value}", quoted(name))
    };
    let fields = event.fields.iter().map(field).collect::<Vec<_>>().join(",");
    format!("{{\"kind\":{},\"fields\":{{{fields}}}}}", quoted(event.kind))
}

fn list<S: AsRef<str>>(items: impl Iterator<Item = S>) -> String {
    let items: Vec<_> = items.map(|item| quoted(item.as_ref())).collect();
    format!("[{}]", items.join(","))
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
